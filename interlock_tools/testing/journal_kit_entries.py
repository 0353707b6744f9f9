"""The part of the journal kit about entries, the compare-and-set, and the index."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from ..core import canonical
from ..core.entries import Entry, Instant, Kind
from ..core.states import CLOSED_PHASES, TRANSITIONS, IllegalTransition, Phase, State, step
from ..errors import JournalError
from ..journal.protocol import Conflict, Write
from .journal_kit_base import FixedClock, KitBase
from .journal_story import TO_DISPATCHED, Story


class EntriesKit(KitBase):
    """Entries, the compare-and-set, and the index that is derived from them."""

    def test_entries_are_read_back_as_written(self) -> None:
        story = self.story(self.journal())
        payload = {"text": "a 'quote', \x00, \n, é, 🙂", "n": canonical.MAX_INTEGER, "deep": [{"x": [None, True]}]}
        write = story.write(Kind.PROPOSED, payload=payload)
        story.carry_out(write)
        second = story.write(Kind.AUTHORIZED, grant={"id": "a1"})
        story.carry_out(second)
        for journal in (story.journal, self.journal()):
            self.assertEqual(journal.entries(story.effect_id), [*write.entries, *second.entries])

    def test_unknown_effects(self) -> None:
        journal = self.journal()
        self.assertEqual(journal.entries("0" * 32), [])
        self.assertIsNone(journal.effect("0" * 32))
        self.assertIsNone(journal.latest_decision("kit.refund", "case 1"))
        self.assertEqual((journal.effects(), journal.open_effects()), ([], []))
        self.assertEqual((journal.budget("none").used, journal.budget("none").limit), (0, None))

    def test_an_append_names_the_last_entry_that_its_writer_saw(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        before = journal.entries(story.effect_id)
        for seen in (0, 1, 2, 4, 7):
            with self.subTest(seen=seen):
                late = self.story(journal)
                late.seq, late.sends = seen, 1
                with self.assertRaises(Conflict):
                    late.append(Kind.PROPOSED if seen == 0 else Kind.COMMITTED)
        self.assertEqual(journal.entries(story.effect_id), before)
        story.append(Kind.COMMITTED)
        with self.assertRaises(Conflict):
            journal.append([Write(story.effect_id, 3, (Entry(story.effect_id, 4, Kind.LATE, 1, {}),))])

    def test_a_conflict_reaches_another_object_of_the_journal_too(self) -> None:
        first, second = self.story(self.journal()), self.story(self.journal())
        first.append(Kind.PROPOSED)
        with self.assertRaises(Conflict):
            second.append(Kind.PROPOSED)
        second.seq = 1
        second.append(Kind.AUTHORIZED)
        with self.assertRaises(Conflict):
            first.append(Kind.AUTHORIZED)

    def test_several_effects_in_one_append_are_written_together_or_not_at_all(self) -> None:
        journal = self.journal()
        old = self.story(journal).append(Kind.PROPOSED, Kind.REFUSED)
        new = self.story(journal, decision=2)
        writes = [old.write(Kind.REPLACED), new.write(Kind.PROPOSED)]
        stale = self.story(journal)
        with self.assertRaises(Conflict):
            journal.append([new.write(Kind.PROPOSED), stale.write(Kind.PROPOSED)])
        self.assertEqual(journal.entries(new.effect_id), [])
        journal.append(writes)
        self.assertEqual([row.phase for row in journal.effects()], ["replaced", "proposed"])

    def test_entries_that_are_not_consecutive_are_refused(self) -> None:
        journal = self.journal()
        story = self.story(journal)
        write = story.write(*TO_DISPATCHED)
        for entries in ((), write.entries[1:], write.entries[::-1], (write.entries[0], write.entries[0])):
            with self.assertRaises(ValueError):
                journal.append([Write(story.effect_id, 0, entries)])
        with self.assertRaises(ValueError):
            journal.append([Write("f" * 32, 0, write.entries)])
        self.assertEqual(journal.effects(), [])

    def test_an_illegal_step_is_refused(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        for kind in Kind:
            if (Phase.DISPATCHED, kind) not in TRANSITIONS:
                with self.subTest(kind=kind), self.assertRaises(IllegalTransition):
                    story.append(kind)
        with self.assertRaises(IllegalTransition):
            self.story(journal, "case 2").append(Kind.PROPOSED, Kind.COMMITTED)
        self.assertEqual([row.last_seq for row in journal.effects()], [3])

    def test_latest_decision(self) -> None:
        journal = self.journal()
        first = self.story(journal).append(Kind.PROPOSED)
        self.story(journal, "another case").append(Kind.PROPOSED)
        self.assertEqual(journal.latest_decision("kit.refund", "case 1"), journal.effect(first.effect_id))
        first.append(Kind.REFUSED)
        second = self.story(journal, decision=2)
        journal.append([first.write(Kind.REPLACED), second.write(Kind.PROPOSED)])
        row = journal.latest_decision("kit.refund", "case 1")
        assert row is not None
        self.assertEqual((row.effect_id, row.decision, row.phase), (second.effect_id, 2, "proposed"))

    def test_open_effects_are_those_that_are_not_closed(self) -> None:
        journal = self.journal()
        waits = self.story(journal, "proposed").append(Kind.PROPOSED)
        sent = self.story(journal, "sent").append(*TO_DISPATCHED)
        self.story(journal, "done").append(*TO_DISPATCHED).append(Kind.COMMITTED)
        doubt = self.story(journal, "doubt").append(*TO_DISPATCHED).append(Kind.UNKNOWN).append(Kind.AMBIGUOUS)
        never = self.story(journal, "never").append(*TO_DISPATCHED).append(Kind.NOT_LANDED, Kind.REFUSED)
        expected = [waits, sent, doubt]
        self.assertEqual([row.effect_id for row in journal.open_effects()], [s.effect_id for s in expected])
        never.append(Kind.DISPATCHED)
        doubt.append(Kind.RESOLVED)
        expected = [waits, sent, never]
        self.assertEqual([row.effect_id for row in journal.open_effects()], [s.effect_id for s in expected])

    def test_open_effects_among_many_closed_ones_page_by_page(self) -> None:
        """Crosses every boundary that a journal may have inside, in bulk and one by one."""
        journal = self.journal()
        stories = [self.story(journal, f"case {number}") for number in range(1100)]
        for start in range(0, 1000, 100):
            journal.append([story.write(*TO_DISPATCHED) for story in stories[start : start + 100]])
        for story in stories[:1000]:
            story.seq, story.sends = 3, 1
        for story in stories[1000:]:
            story.append(*TO_DISPATCHED)
        chosen = random.Random(7)
        left = {story.effect_id for story in stories if chosen.random() < 0.05}
        closing = [story for story in stories if story.effect_id not in left]
        chosen.shuffle(closing)
        for story in closing[:200]:
            story.append(Kind.COMMITTED)
        for start in range(200, len(closing), 50):
            journal.append([story.write(Kind.COMMITTED) for story in closing[start : start + 50]])
        expected = [story.effect_id for story in stories if story.effect_id in left]
        for size in (1, 7, 1000):
            with self.subTest(page=size):
                self.assertEqual([row.effect_id for row in _pages(journal.open_effects, size)], expected)
        everything = _pages(journal.effects, 300)
        self.assertEqual([row.effect_id for row in everything], [story.effect_id for story in stories])
        self.assertEqual(len({row.position for row in everything}), len(stories))
        self.assertTrue(all(journal.effect(row.effect_id) == row for row in everything[::97]))

    def test_the_index_is_the_fold_of_the_entries(self) -> None:
        """Random walks over all legal steps."""
        journal = self.journal()
        chosen = random.Random(11)
        held: dict[str, int] = {}
        for number in range(60):
            story = self.story(journal, f"walk {number}")
            state = State()
            for _ in range(chosen.randrange(1, 12)):
                after = self._walk(chosen, story, state)
                if after is None:
                    break
                state = after
            row = journal.effect(story.effect_id)
            assert row is not None
            self.assertEqual((row.phase, row.last_seq), (state.phase.value, state.seq))
            is_open = story.effect_id in {found.effect_id for found in journal.open_effects(row.position - 1, 1)}
            self.assertEqual(is_open, state.phase not in CLOSED_PHASES)
            for item in state.reserved:
                held[item["budget"]] = held.get(item["budget"], 0) + item["amount"]
        for name in ("a", "b"):
            self.assertEqual(journal.budget(name).used, held.get(name, 0))

    def _walk(self, chosen: random.Random, story: Story, state: State) -> State | None:
        kinds = [kind for (phase, kind) in TRANSITIONS if phase is state.phase]
        chosen.shuffle(kinds)
        for kind in kinds:
            changes: dict[str, Any] = {}
            if kind is Kind.DISPATCHED and not state.reserved:
                names = chosen.sample(["a", "b", "a"], chosen.randrange(3))
                changes["budgets"] = [{"budget": name, "amount": 5, "limit": 10_000} for name in names]
            if kind is Kind.RESOLVED:
                changes["landed"] = chosen.random() < 0.5
            write = story.write(kind, **changes)
            try:
                after = step(state, write.entries[0])
            except IllegalTransition:
                continue
            story.carry_out(write)
            return after
        return None

    def test_one_of_many_threads_wins_each_entry(self) -> None:
        journal = self.journal()
        first = self.story(journal).append(*TO_DISPATCHED)
        for round_number in range(5):
            tellers = [self.story(journal) for _ in range(16)]
            for teller in tellers:
                teller.seq, teller.sends = first.seq, 1
            results = self.in_threads([lambda t=t: t.append(Kind.UNKNOWN) for t in tellers])  # type: ignore[misc]
            self.assertEqual(sum(isinstance(result, Story) for result in results), 1, results)
            self.assertEqual(sum(isinstance(result, Conflict) for result in results), 15, results)
            first.seq += 1
            self.assertEqual(len(journal.entries(first.effect_id)), 4 + round_number)

    def test_many_threads_append_to_effects_of_their_own(self) -> None:
        journal = self.journal()

        def work(number: int) -> None:
            for index in range(10):
                story = self.story(journal, f"{number}-{index}")
                story.append(*TO_DISPATCHED).append(Kind.COMMITTED)
                assert len(journal.entries(story.effect_id)) == 4

        results = self.in_threads([lambda n=n: work(n) for n in range(32)])  # type: ignore[misc]
        self.assertEqual(results, [None] * 32)
        rows = _pages(journal.effects, 1000)
        self.assertEqual({row.phase for row in rows}, {"committed"})
        self.assertEqual(len(rows), 320)

    def test_now_is_the_clock_that_was_given(self) -> None:
        clock = FixedClock()
        journal = self.journal(clock)
        self.assertEqual(journal.now(), Instant("boot-1", 1_000_000, 1_700_000_000_000))
        clock.boottime_ms += 5
        self.assertEqual(journal.now().boottime_ms, 1_000_005)

    def test_a_closed_journal_says_so(self) -> None:
        journal = self.open()
        other = self.journal()
        journal.close()
        journal.close()
        with self.assertRaisesRegex(JournalError, "closed"):
            self.story(journal).append(Kind.PROPOSED)
        with self.assertRaisesRegex(JournalError, "closed"):
            journal.entries("0" * 32)
        self.story(other).append(Kind.PROPOSED)


def _pages(read: Callable[[int, int], list[Any]], size: int) -> list[Any]:
    rows: list[Any] = []
    while page := read(rows[-1].position if rows else 0, size):
        rows += page
    return rows
