"""What every journal must pass about finished effects that are moved to an archive."""

from __future__ import annotations

from ..core.entries import Kind
from ..errors import Archived
from ..journal.protocol import ARCHIVED, Conflict, Journal, Tombstone
from ..journal.records import Secret
from .journal_kit_base import FixedClock
from .journal_kit_records import RecordsKit
from .journal_story import TO_DISPATCHED, Story

TEXT = '{"archive":"a.jsonl","note":"kit"}'


def tombstone(story: Story, *, then: Story | None = None, ended_ms: int = 5) -> Tombstone:
    """Return the tombstone of an effect as its story has told it so far; ``then`` is the next decision."""
    return Tombstone(_position(story), story.seq, ended_ms, _position(then) if then is not None else None, TEXT)


def _position(story: Story) -> int:
    row = story.journal.effect(story.effect_id)
    assert row is not None
    return row.position


class ArchiveKit(RecordsKit):
    """Tombstones: only finished effects get one, nothing follows it, and the log and the budgets stay whole."""

    def archived(self, journal: Journal, story: Story) -> bool:
        row = journal.effect(story.effect_id)
        return row is not None and row.phase == ARCHIVED

    def test_a_tombstone_takes_the_place_of_the_entries(self) -> None:
        journal = self.journal()
        story = self.story(journal, "gone").append(*TO_DISPATCHED, Kind.COMMITTED)
        other = self.story(journal, "stays").append(*TO_DISPATCHED, Kind.COMMITTED)
        before = journal.entries(other.effect_id)
        journal.archive([tombstone(story)])
        for opened in (journal, self.journal()):
            with self.assertRaises(Archived) as raised:
                opened.entries(story.effect_id)
            self.assertEqual(raised.exception.tombstone["note"], "kit")
            self.assertTrue(self.archived(opened, story))
            row = opened.latest_decision(story.name, story.key)
            self.assertEqual(row and row.effect_id, story.effect_id)
            self.assertEqual([row.phase for row in opened.effects()], [ARCHIVED, "committed"])
            self.assertEqual(opened.open_effects(), [])
            self.assertEqual(opened.entries(other.effect_id), before)
        journal.archive([tombstone(story)])
        self.assertEqual(len(journal.effects()), 2, "doing it again changes nothing")

    def test_nothing_follows_a_tombstone(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED, Kind.COMMITTED)
        journal.archive([tombstone(story)])
        for opened in (journal, self.journal()):
            for seq, kind in ((0, Kind.PROPOSED), (1, Kind.AUTHORIZED), (story.seq, Kind.LATE)):
                late = self.story(opened)
                late.seq = seq
                with self.subTest(kind=kind), self.assertRaises(Conflict):
                    late.append(kind)

    def test_what_is_open_or_has_a_newer_entry_or_is_watched_stays(self) -> None:
        journal = self.journal()
        ambiguous = self.story(journal, "ambiguous").append(*TO_DISPATCHED, Kind.AMBIGUOUS)
        proposed = self.story(journal, "proposed").append(Kind.PROPOSED)
        asked = self.story(journal, "asked").append(Kind.PROPOSED, Kind.APPROVAL_REQUESTED)
        dispatched = self.story(journal, "dispatched").append(*TO_DISPATCHED)
        watched = self.story(journal, "watched").append(*TO_DISPATCHED, Kind.COMMITTED)
        journal.look_at(watched.effect_id, 500)
        newer = self.story(journal, "newer").append(*TO_DISPATCHED, Kind.COMMITTED)
        stale = tombstone(newer)
        newer.append(Kind.SETTLED)
        stories = (ambiguous, proposed, asked, dispatched, watched, newer)
        before = [journal.entries(story.effect_id) for story in stories]
        good = self.story(journal, "good").append(*TO_DISPATCHED, Kind.COMMITTED)
        journal.archive([*(tombstone(story) for story in stories[:-1]), stale, tombstone(good)])
        self.assertEqual([journal.entries(story.effect_id) for story in stories], before)
        self.assertTrue(self.archived(journal, good))
        dispatched.append(Kind.COMMITTED)
        journal.look_at(good.effect_id, 500)
        self.assertEqual([row.effect_id for row in journal.watched()], [watched.effect_id])

    def test_a_decision_goes_after_the_one_that_replaced_it(self) -> None:
        journal = self.journal()
        first = self.story(journal).append(Kind.PROPOSED, Kind.REFUSED, Kind.REPLACED)
        second = self.story(journal, decision=2).append(*TO_DISPATCHED, Kind.COMMITTED)
        newer = tombstone(second)
        second.append(Kind.SETTLED)
        journal.archive([newer, tombstone(first, then=second)])
        self.assertFalse(self.archived(journal, first), "its next decision has stayed")
        journal.archive([tombstone(second), tombstone(first, then=second)])
        self.assertTrue(self.archived(journal, first))
        row = journal.latest_decision(first.name, first.key)
        self.assertEqual(row and row.decision, 2)

    def test_budgets_still_count_it(self) -> None:
        journal = self.journal()
        budgets = [{"budget": "day", "amount": 70, "limit": 100}]
        story = self.story(journal).append(*TO_DISPATCHED, budgets=budgets).append(Kind.COMMITTED)
        journal.archive([tombstone(story)])
        use = journal.budget("day")
        self.assertEqual((use.used, use.limit), (70, 100))

    def test_the_next_effect_has_a_position_of_its_own(self) -> None:
        journal = self.journal()
        story = self.story(journal, "1").append(*TO_DISPATCHED, Kind.COMMITTED)
        position = _position(story)
        journal.archive([tombstone(story)])
        journal.forget(10)
        for opened in (journal, self.journal()):
            later = self.story(opened, opened.now().to_json()["boot"] + str(len(opened.effects())))
            later.append(*TO_DISPATCHED, Kind.COMMITTED)
            self.assertGreater(_position(later), position)

    def test_tombstones_are_forgotten_by_their_age(self) -> None:
        journal = self.journal()
        stories = [
            self.story(journal, str(number)).append(*TO_DISPATCHED, Kind.COMMITTED) for number in range(4)
        ]  # the newest effect numbers the next one, and may stay
        journal.archive([tombstone(story, ended_ms=number) for number, story in enumerate(stories[:3])])
        self.assertEqual(journal.to_forget(2), 2)
        journal.forget(2, limit=1)
        self.assertEqual(journal.to_forget(2), 1)
        journal.forget(2)
        self.assertEqual(journal.to_forget(2), 0)
        self.assertEqual([row.request_key for row in journal.effects()], ["2", "3"])
        self.assertIsNone(journal.effect(stories[0].effect_id))
        again = self.story(journal, "0").append(*TO_DISPATCHED)
        self.assertEqual(len(journal.entries(again.effect_id)), 3)

    def test_the_log_stays_whole(self) -> None:
        from ..receipts.merkle import root_at

        journal, _ = self.stamping(Secret(b"s" * 32, '[["payload","case"]]'))
        stories = [self.story(journal, str(number)).append(*TO_DISPATCHED, Kind.COMMITTED) for number in range(5)]
        size = journal.records.place()
        root = root_at(size, journal.records.node)
        journal.archive([tombstone(story) for story in stories[:4]])
        journal.forget(10)
        for opened in (journal, self.journal()):
            self.assertEqual(opened.records.place(), size)
            self.assertEqual(root_at(size, opened.records.node), root)
            self.assertIsNone(opened.records.secret(stories[0].effect_id))
            self.assertEqual(len(opened.records.of(stories[4].effect_id)), 4)
        later = self.story(journal, "later").append(*TO_DISPATCHED)
        self.assertEqual(journal.records.place(), size + 3)
        self.assertEqual([record.leaf for record in journal.records.of(later.effect_id)], [size, size + 1, size + 2])
        self.assertEqual(root_at(size, journal.records.node), root)

    def test_others_go_on_meanwhile(self) -> None:
        journals = [self.journal(FixedClock()) for _ in range(3)]
        stories = [self.story(journals[0], str(number)).append(*TO_DISPATCHED, Kind.COMMITTED) for number in range(60)]

        def prune(journal: Journal) -> None:
            for start in range(0, 60, 10):
                journal.archive([tombstone(story) for story in stories[start : start + 10]])

        def work() -> None:
            for number in range(30):
                self.story(journals[2], f"new {number}").append(*TO_DISPATCHED).append(Kind.COMMITTED)

        self.assertEqual(self.in_threads([lambda: prune(journals[0]), lambda: prune(journals[1]), work]), [None] * 3)
        phases = [row.phase for row in journals[0].effects(limit=200)]
        self.assertEqual((phases.count(ARCHIVED), phases.count("committed")), (60, 30))
