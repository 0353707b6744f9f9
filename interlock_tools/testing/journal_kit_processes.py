"""The part of the journal kit that needs other processes: sessions, marks, forks, and races between processes.

Every death is a real SIGKILL and every halt a real SIGSTOP of a child process.
"""

from __future__ import annotations

import gc
import os
import signal
import time
from typing import Any

from ..core.decide import Mark, Sender
from ..core.entries import Kind
from ..errors import JournalError
from ..journal.clock import SystemClock
from .journal_child import Child
from .journal_kit_base import FixedClock, KitBase
from .journal_story import TO_DISPATCHED, Story

DEADLINE_S = 30.0


class SessionsKit(KitBase):
    """Who lives, and what the marks say."""

    def child(self, **options: Any) -> Child:
        child = Child(self.url(), **options)
        self.addCleanup(child.__exit__)
        return child

    def sent(self, child: Child, key: str = "sent") -> Story:
        """Let a child record a send; return its story as this process sees it."""
        child.ask("dispatch", key)
        story = self.story(self.journal(), key)
        story.seq, story.sends = 3, 1
        return story

    def assert_seen(self, story: Story, sender: Sender, mark: Mark) -> None:
        seen, _ = story.journal.sight(story.last_send())
        self.assertEqual((seen.sender, seen.mark), (sender, mark))

    # -- a send of this process ---------------------------------------------------------------------

    def test_a_send_of_this_process_lives_until_it_is_given_up(self) -> None:
        story = self.story(self.journal()).dispatch()
        assert story.slot is not None
        self.assertIsNone(story.slot.check())
        self.assert_seen(story, Sender.LIVE, Mark.NO)
        story.slot.hand_over()
        self.assert_seen(story, Sender.LIVE, Mark.YES)
        other = self.story(self.journal())
        self.assert_seen(other, Sender.LIVE, Mark.YES)
        story.slot.give_up()
        self.assert_seen(story, Sender.RETURNED, Mark.YES)
        self.assert_seen(other, Sender.RETURNED, Mark.YES)

    def test_a_send_that_nobody_holds_any_more_has_returned(self) -> None:
        story = self.story(self.journal()).dispatch()
        story.slot = None
        gc.collect()
        self.assert_seen(story, Sender.RETURNED, Mark.NO)

    def test_a_mark_says_when_all_bytes_were_written(self) -> None:
        clock = FixedClock(SystemClock().now().boot)
        story = self.story(self.journal(clock)).dispatch()
        assert story.slot is not None
        story.slot.hand_over()
        clock.boottime_ms += 250
        clock.wall_ms += 250
        story.slot.written()
        written = clock.now()
        clock.boottime_ms += 100
        clock.wall_ms += 100
        seen, _ = story.journal.sight(story.last_send())
        self.assertEqual((seen.mark, seen.written), (Mark.YES, written))

    def test_each_send_has_a_mark_of_its_own(self) -> None:
        journal = self.journal()
        first = self.story(journal, "first").dispatch()
        second = self.story(journal, "second").dispatch()
        assert first.slot is not None and second.slot is not None
        self.assertNotEqual(first.slot.mark, second.slot.mark)
        self.assertEqual(first.slot.session, second.slot.session)
        first.slot.hand_over()
        self.assert_seen(second, Sender.LIVE, Mark.NO)

    def test_a_slot_serves_another_effect_only_after_its_own_is_closed(self) -> None:
        journal = self.journal()
        story = self.story(journal).dispatch()
        assert story.slot is not None
        story.slot.hand_over()
        taken = [journal.new_slot(f"{number:032x}") for number in range(100)]
        self.assertNotIn(story.slot.mark, [slot.mark for slot in taken])
        self.assert_seen(story, Sender.LIVE, Mark.YES)
        story.append(Kind.COMMITTED)
        story.slot.close()
        story.slot.close()
        self.assertEqual(story.slot.check(), "its effect is closed")
        with self.assertRaises(JournalError):
            story.slot.hand_over()
        again = [self.story(journal, f"again {number}").dispatch() for number in range(5)]
        for new in again:
            self.assert_seen(new, Sender.LIVE, Mark.NO)

    def test_a_holder_is_named(self) -> None:
        story = self.story(self.journal()).dispatch()
        assert story.slot is not None
        _, own = story.journal.sight(story.last_send())
        assert own is not None
        self.assertEqual((own.session, own.pid), (story.slot.session, os.getpid()))
        child = self.child()
        other = self.sent(child)
        _, holder = other.journal.sight(other.last_send())
        assert holder is not None
        self.assertEqual((holder.pid, holder.host), (child.pid, own.host))
        self.assertGreaterEqual(holder.started_ms, own.started_ms)

    # -- sends of other processes -----------------------------------------------------------------------

    def test_i6_a_sender_that_lives_or_stands_still_is_live(self) -> None:
        child = self.child()
        story = self.sent(child)
        self.assert_seen(story, Sender.LIVE, Mark.NO)
        child.ask("slot", "sent", "hand_over")
        self.assert_seen(story, Sender.LIVE, Mark.YES)
        child.stop()
        self.assert_seen(story, Sender.LIVE, Mark.YES)
        child.go_on()
        child.ask("monotonic")
        self.assert_seen(story, Sender.LIVE, Mark.YES)

    def test_a_killed_sender_is_dead_and_its_mark_stays(self) -> None:
        for handed_over, mark in ((False, Mark.NO), (True, Mark.YES)):
            with self.subTest(handed_over=handed_over):
                child = self.child()
                story = self.sent(child, f"sent {handed_over}")
                if handed_over:
                    child.ask("slot", story.key, "hand_over")
                    child.ask("slot", story.key, "written")
                child.kill()
                self.assert_seen(story, Sender.DEAD, mark)
                seen, holder = story.journal.sight(story.last_send())
                self.assertEqual(seen.written is not None, handed_over)
                assert holder is not None
                self.assertEqual(holder.pid, child.pid)

    def test_a_sender_that_is_killed_while_it_stands_still_is_dead(self) -> None:
        child = self.child()
        story = self.sent(child)
        child.stop()
        child.kill()
        self.assert_seen(story, Sender.DEAD, Mark.NO)

    def test_death_is_seen_before_a_live_process_answers(self) -> None:
        """No waiting: the first look after the death, by whoever looks, sees it."""
        child, other = self.child(), self.child()
        story = self.sent(child)
        self.assertEqual(other.ask("sight", story.effect_id)[0], "live")
        child.kill()
        self.assertEqual(other.ask("sight", story.effect_id)[:2], ["dead", "no"])

    def test_several_can_look_at_a_dead_sender_at_once(self) -> None:
        child = self.child()
        story = self.sent(child)
        child.kill()
        send = story.last_send()
        journals = [self.journal() for _ in range(8)]
        seen = self.in_threads([lambda j=j: j.sight(send)[0].sender for j in journals * 4])  # type: ignore[misc]
        self.assertEqual(set(seen), {Sender.DEAD})

    def test_a_send_that_a_live_process_gave_up_has_returned(self) -> None:
        child = self.child()
        story = self.sent(child)
        child.ask("slot", "sent", "hand_over")
        child.ask("slot", "sent", "give_up")
        self.assert_seen(story, Sender.RETURNED, Mark.YES)
        dropped = self.sent(child, "dropped")
        child.ask("drop", "dropped")
        self.assert_seen(dropped, Sender.RETURNED, Mark.NO)

    def test_a_program_that_the_sender_started_does_not_keep_it_alive(self) -> None:
        child = self.child()
        started = child.ask("spawn")
        self.addCleanup(os.kill, started, signal.SIGKILL)
        story = self.sent(child)
        second = child.ask("spawn")
        self.addCleanup(os.kill, second, signal.SIGKILL)
        child.kill()
        os.kill(started, 0)
        os.kill(second, 0)
        self.assert_seen(story, Sender.DEAD, Mark.NO)

    def test_after_a_restart_of_the_machine_every_sender_is_dead_and_no_mark_counts(self) -> None:
        child = self.child()
        story = self.sent(child)
        child.ask("slot", "sent", "hand_over")
        child.kill()
        send = story.last_send()
        seen, _ = self.journal(FixedClock("another boot")).sight(send)
        self.assertEqual((seen.sender, seen.mark, seen.written), (Sender.DEAD, Mark.MAYBE, None))

    def test_an_unmarked_send_may_have_been_handed_over(self) -> None:
        child = self.child()
        story = self.sent(child)
        session = story.last_send().session
        unmarked = self.story(story.journal, "unmarked").append(*TO_DISPATCHED, session=session)
        self.assert_seen(unmarked, Sender.LIVE, Mark.MAYBE)
        child.kill()
        self.assert_seen(unmarked, Sender.DEAD, Mark.MAYBE)

    def test_a_session_that_is_unknown_here_proves_nothing(self) -> None:
        journal = self.journal()
        for session in ("0" * 32, "../../etc/passwd", "", "no such session"):
            with self.subTest(session=session):
                story = self.story(journal, session or "empty").append(*TO_DISPATCHED, session=session)
                self.assert_seen(story, Sender.LOST, Mark.MAYBE)

    # -- forks ----------------------------------------------------------------------------------------

    def test_a_forked_child_uses_the_journal_under_a_session_of_its_own(self) -> None:
        child = self.child()
        story = self.sent(child)
        forked = child.ask("fork", "of the fork")
        self.addCleanup(_kill, forked["pid"])
        self.assertIn("fork", forked["check"])
        self.assertIn("fork", forked["hand_over"])
        self.assertNotEqual(forked["session"], story.last_send().session)
        self.assert_seen(story, Sender.LIVE, Mark.NO)
        fork_story = self.story(story.journal, "of the fork")
        self.assert_seen(fork_story, Sender.LIVE, Mark.NO)
        child.ask("finish", "sent")
        self.assertEqual([row.phase for row in story.journal.effects()], ["committed", "dispatched"])

    def test_a_forked_child_neither_keeps_its_parent_alive_nor_dies_with_it(self) -> None:
        child = self.child()
        story = self.sent(child)
        forked = child.ask("fork", "of the fork")
        self.addCleanup(_kill, forked["pid"])
        child.kill()
        os.kill(forked["pid"], 0)
        self.assert_seen(story, Sender.DEAD, Mark.NO)
        fork_story = self.story(story.journal, "of the fork")
        self.assert_seen(fork_story, Sender.LIVE, Mark.NO)
        _kill(forked["pid"])
        self.wait_for(lambda: fork_story.journal.sight(fork_story.last_send())[0].sender is Sender.DEAD)

    def wait_for(self, condition: Any) -> None:
        """Wait for what another process will bring about."""
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it does not come about")


class ProcessesKit(KitBase):
    """Races between processes, and crashes."""

    def children(self, count: int) -> list[Child]:
        found = [Child(self.url()) for _ in range(count)]
        for child in found:
            self.addCleanup(child.__exit__)
        return found

    def test_one_of_many_processes_records_each_effect(self) -> None:
        self.journal()
        children = self.children(4)
        keys = [f"case {number}" for number in range(60)]
        for child in children:
            child.tell("try_each", keys, [])
        answers = [child.answer() for child in children]
        self.assertEqual(sorted(key for answer in answers for key in answer["won"]), sorted(keys))
        self.assertEqual(sum(len(answer["lost"]) for answer in answers), 3 * len(keys))

    def test_i5_processes_never_exceed_a_budget_together(self) -> None:
        journal = self.journal()
        children = self.children(3)
        budget = {"budget": "day", "amount": 10, "limit": 250}
        for number, child in enumerate(children):
            child.tell("try_each", [f"{number}-{index}" for index in range(20)], [budget])
        answers = [child.answer() for child in children]
        self.assertEqual(sum(len(answer["won"]) for answer in answers), 25)
        self.assertEqual(sum(len(answer["over"]) for answer in answers), 35)
        self.assertEqual(journal.budget("day").used, 250)

    def test_i1_what_was_acknowledged_survives_sigkill(self) -> None:
        journal = self.journal()
        for round_number in range(3):
            acknowledged = self._killed_in_a_loop(f"round {round_number}", after=15 + 20 * round_number)
            for key in acknowledged:
                entries = journal.entries(self.story(journal, key).effect_id)
                self.assertEqual(len(entries), 4, key)
            rows = journal.effects(limit=10_000)
            whole = {1: False, 2: False, 3: True, 4: True}
            self.assertTrue(all(whole[row.last_seq] for row in rows), "half of a transaction")
            self.assertLessEqual(sum(row.phase == "dispatched" for row in rows), round_number + 1)

    def _killed_in_a_loop(self, prefix: str, after: int) -> list[str]:
        (child,) = self.children(1)
        child.tell("loop", prefix, 100_000)
        acknowledged = [child.answer() for _ in range(after)]
        child.kill()
        assert child.process.stdout is not None
        rest = child.process.stdout.read().splitlines(keepends=True)
        return acknowledged + [line.strip()[1:-1] for line in rest if line.endswith("\n")]


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
