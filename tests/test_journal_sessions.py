"""Session files: when they are believed, how long they stay, and what happens when somebody removes them."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import sys
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal_support import JournalCase

from interlock_tools.core.decide import Mark, Sender
from interlock_tools.core.entries import Instant, Kind
from interlock_tools.core.states import Send
from interlock_tools.errors import JournalError
from interlock_tools.journal import marks, sessions, sightings
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing.journal_child import Child
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story

PIDS = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
"""A container's view of processes: the first one in it has the id 1."""


class SessionCase(JournalCase):
    def dispatched_by(self, child: Child, key: str = "sent") -> Story:
        child.ask("dispatch", key)
        child.ask("slot", key, "hand_over")
        story = self.story(self.journal(), key)
        story.seq, story.sends = 3, 1
        return story

    def seen(self, story: Story) -> tuple[Sender, Mark]:
        seen, _ = story.journal.sight(story.last_send())
        return seen.sender, seen.mark


class TestSessionFile(SessionCase):
    def test_it_is_opened_by_the_first_send_and_shared_by_the_process(self) -> None:
        journal = self.journal()
        self.story(journal, "no send").append(Kind.PROPOSED)
        self.assertEqual(self.sessions(), [])
        link = self.folder / "link.db"
        link.symlink_to(self.path)
        names = set()
        for number, path in enumerate((self.path, link, self.path)):
            other = SqliteJournal(path)
            self.addCleanup(other.close)
            slot = other.new_slot(f"{number:032x}")
            names.add(slot.session)
        self.assertEqual(len(names), 1)
        self.assertEqual([path.name for path in self.sessions()], list(names))

    def test_all_of_it_is_allocated_before_it_is_used(self) -> None:
        self.journal().new_slot("0" * 32)
        (file,) = self.sessions()
        status = file.stat()
        self.assertEqual(status.st_size, marks.FILE_BYTES)
        self.assertGreaterEqual(status.st_blocks * 512, marks.FILE_BYTES)
        self.assertEqual(status.st_mode & 0o777 & ~0o644, 0)

    def test_its_descriptors_are_closed_on_exec(self) -> None:
        self.journal().new_slot("0" * 32)
        inodes = {file.stat().st_ino for file in self.sessions()}
        found = 0
        for link in Path("/proc/self/fd").iterdir():
            try:
                inside = os.fstat(int(link.name)).st_ino in inodes
            except OSError:
                continue
            if inside:
                found += 1
                self.assertFalse(os.get_inheritable(int(link.name)))
        self.assertGreaterEqual(found, 1)

    def test_a_file_that_is_locked_by_somebody_else_at_once_is_not_used(self) -> None:
        """A process that tidies up can lock a file before its owner does; the owner takes another."""
        journal = self.journal()
        lock, calls = sessions._lock, []

        def late(fd: int, path: Path) -> bool:
            calls.append(path)
            return len(calls) > 2 and lock(fd, path)

        with mock.patch.object(sessions, "_lock", late):
            journal.new_slot("0" * 32)
        self.assertEqual(len(calls), 3)
        with mock.patch.object(sessions, "_lock", lambda fd, path: False), self.assertRaises(JournalError):
            sessions.Session.start(journal._database.directory, journal._clock)


class TestRemovedFiles(SessionCase):
    def test_a_sender_whose_file_is_gone_does_not_send(self) -> None:
        journal = self.journal()
        story = self.story(journal).dispatch()
        assert story.slot is not None
        (file,) = self.sessions()
        kept = file.rename(file.with_suffix(".kept"))
        self.assertRegex(story.slot.check() or "", "removed")
        shutil.copy(kept, file)
        self.assertRegex(story.slot.check() or "", "replaced")
        file.unlink()
        kept.rename(file)
        self.assertIsNone(story.slot.check())
        file.unlink()
        self.assertRegex(story.slot.check() or "", "removed")

    def test_the_next_send_opens_another_session(self) -> None:
        journal = self.journal()
        story = self.story(journal, "first").dispatch()
        shutil.rmtree(f"{self.path}.sessions")
        second = self.story(journal, "second").dispatch()
        assert story.slot is not None and second.slot is not None
        self.assertRegex(story.slot.check() or "", "removed")
        self.assertIsNone(second.slot.check())
        self.assertNotEqual(story.slot.session, second.slot.session)
        self.assertEqual(self.seen(story), (Sender.LIVE, Mark.NO))
        self.assertEqual(self.seen(second), (Sender.LIVE, Mark.NO))
        other = self.child()
        self.assertEqual(other.ask("sight", story.effect_id)[:2], ["lost", "maybe"])
        self.assertEqual(other.ask("sight", second.effect_id)[:2], ["live", "no"])

    def test_a_missing_file_means_lost_in_this_boot_and_dead_after_it(self) -> None:
        child = self.child()
        story = self.dispatched_by(child)
        child.kill()
        send = story.last_send()
        directory = story.journal._database.directory  # type: ignore[attr-defined]
        (directory / send.session).unlink()
        now = story.journal.now()
        seen, holder = sightings.sight(directory, send, now)
        self.assertEqual((seen.sender, seen.mark, seen.lease_ms, holder), (Sender.LOST, Mark.MAYBE, 0, None))
        seen, _ = sightings.sight(directory, send, Instant("another", 5, now.wall_ms))
        self.assertEqual((seen.sender, seen.mark), (Sender.DEAD, Mark.MAYBE))


class TestForeignFiles(SessionCase):
    """A mark is believed only if boot, device, inode and session are those recorded with the send."""

    def killed(self) -> tuple[Story, Path]:
        child = self.child()
        story = self.dispatched_by(child)
        child.kill()
        self.assertEqual(self.seen(story), (Sender.DEAD, Mark.YES))
        (file,) = self.sessions()
        return story, file

    def test_another_inode(self) -> None:
        story, file = self.killed()
        copy = file.with_suffix(".copy")
        shutil.copy(file, copy)
        copy.rename(file)
        self.assertEqual(self.seen(story), (Sender.LOST, Mark.MAYBE))

    def test_another_sessions_content(self) -> None:
        story, file = self.killed()
        with file.open("r+b") as content:
            content.write(marks.header("f" * 32, 1, story.journal.now()))
        self.assertEqual(self.seen(story), (Sender.LOST, Mark.MAYBE))

    def test_no_intelligible_content(self) -> None:
        story, file = self.killed()
        for junk in (b"", b"{}", b"\xff" * 4096, b"[" * 4096):
            with self.subTest(junk=junk[:4]):
                with file.open("r+b") as content:
                    content.write(junk.ljust(marks.HEADER_BYTES, b"\0"))
                self.assertEqual(self.seen(story), (Sender.LOST, Mark.MAYBE))

    def test_a_file_cut_short(self) -> None:
        story, file = self.killed()
        os.truncate(file, marks.HEADER_BYTES + 8)
        self.assertEqual(self.seen(story), (Sender.LOST, Mark.MAYBE))

    def test_marks_that_make_no_sense(self) -> None:
        story, _ = self.killed()
        send = story.last_send()
        assert send.mark is not None
        for changes in ({"slot": -1}, {"slot": marks.SLOTS}, {"slot": True}, {"slot": "0"}, {"slot": None},
                        {"device": None}, {"inode": "1"}):  # fmt: skip
            with self.subTest(changes):
                odd = Send(1, send.session, {**send.mark, **changes}, send.dispatched)
                seen, _ = story.journal.sight(odd)
                self.assertEqual((seen.sender, seen.mark), (Sender.LOST, Mark.MAYBE))

    def test_a_live_session_is_live_whatever_the_mark_says(self) -> None:
        child = self.child()
        story = self.dispatched_by(child)
        send = story.last_send()
        odd = Send(1, send.session, {"device": "0", "inode": "0", "slot": 0}, Instant("another boot", 1, 1))
        seen, _ = story.journal.sight(odd)
        self.assertEqual((seen.sender, seen.mark), (Sender.LIVE, Mark.MAYBE))


class TestTidying(SessionCase):
    def test_files_of_the_dead_go_when_no_open_effect_refers_to_them(self) -> None:
        done, open_, alive = self.child(), self.child(), self.child()
        finished = self.dispatched_by(done, "finished")
        pending = self.dispatched_by(open_, "pending")
        living = self.dispatched_by(alive, "living")
        done.ask("finish", "finished")
        done.kill()
        open_.kill()
        self.assertEqual(len(self.sessions()), 3)
        # Only whole blocks of effects are told apart; fill this one.
        journal = self.journal()
        journal.append([self.story(journal, f"{n}").write(*TO_DISPATCHED) for n in range(300)])
        journal.new_slot("0" * 32)
        left = {file.name for file in self.sessions()}
        self.assertNotIn(finished.last_send().session, left)
        self.assertLessEqual({pending.last_send().session, living.last_send().session}, left)
        self.assertEqual(self.seen(pending), (Sender.DEAD, Mark.YES))
        self.assertEqual(self.seen(living), (Sender.LIVE, Mark.YES))

    def test_a_clean_end_removes_the_own_file_unless_an_open_effect_refers_to_it(self) -> None:
        for closes, left in ((True, 0), (False, 1)):
            with self.subTest(closes=closes):
                journal = self.journal()
                story = self.story(journal, f"closes {closes}").dispatch()
                assert story.slot is not None
                story.append(Kind.COMMITTED if closes else Kind.UNKNOWN)
                if closes:
                    story.slot.close()
                story.slot = None
                gc.collect()
                journal.close()
                self.assertEqual(len(self.sessions()), left)

    def test_closing_keeps_the_session_while_a_send_is_running(self) -> None:
        journal = self.journal()
        story = self.story(journal).dispatch()
        assert story.slot is not None
        child = self.child()
        journal.close()
        self.assertIsNone(story.slot.check())
        self.assertEqual(child.ask("sight", story.effect_id)[:2], ["live", "no"])
        again = self.story(self.journal(), "again").dispatch()
        assert again.slot is not None
        self.assertEqual(again.slot.session, story.slot.session)


class TestSlots(SessionCase):
    def test_when_all_slots_are_taken_sends_are_unmarked(self) -> None:
        journal = self.journal()
        with mock.patch.object(marks, "SLOTS", 8):
            stories = [self.story(journal, f"{number}").dispatch() for number in range(8)]
            for story in stories:
                assert story.slot is not None
                story.slot.hand_over()
            unmarked = self.story(journal, "unmarked").dispatch()
            assert unmarked.slot is not None
            self.assertIsNone(unmarked.slot.mark)
            unmarked.slot.hand_over()
            self.assertEqual(self.seen(unmarked), (Sender.LIVE, Mark.MAYBE))
            # A slot whose send is over serves again only after the effect is closed.
            stories[3].slot = None
            gc.collect()
            still = self.story(journal, "still").dispatch()
            assert still.slot is not None
            self.assertIsNone(still.slot.mark)
            self.assertEqual(self.seen(stories[3]), (Sender.RETURNED, Mark.YES))
            stories[3].append(Kind.COMMITTED)
            again = self.story(journal, "again").dispatch()
            assert again.slot is not None and again.slot.mark is not None
            self.assertEqual(again.slot.mark["slot"], 3)
            self.assertEqual(self.seen(again), (Sender.LIVE, Mark.NO))
            # One that is closed while its send still runs is not taken away.
            stories[4].append(Kind.COMMITTED)
            other = self.story(journal, "other").dispatch()
            assert other.slot is not None
            self.assertIsNone(other.slot.mark)
            unmarked.slot = still.slot = other.slot = None
            gc.collect()
            self.assertEqual(self.seen(unmarked), (Sender.RETURNED, Mark.MAYBE))

    def test_a_mark_survives_what_comes_after_it(self) -> None:
        """Written before the process is killed from within, with nothing in between."""
        child = self.child()
        child.ask("dispatch", "sent")
        code = "import os, signal; stories['sent'].slot.hand_over(); os.kill(os.getpid(), signal.SIGKILL)"
        with self.assertRaises(EOFError):
            child.ask("run", code)
        self.assertEqual(self.seen(self.story(self.journal(), "sent")), (Sender.DEAD, Mark.YES))


class TestContainers(SessionCase):
    def test_two_processes_that_are_both_number_one(self) -> None:
        if subprocess.run([*PIDS, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no process namespace can be made here")
        first, second = self.child(PIDS), self.child(PIDS)
        self.assertEqual([child.ask("run", "import os; answer = os.getpid()") for child in (first, second)], [1, 1])
        dead, alive = self.dispatched_by(first, "dead"), self.dispatched_by(second, "alive")
        self.assertEqual(second.ask("sight", dead.effect_id), ["live", "yes", 1])
        first.kill()  # the container; its process goes with it
        self.assertEqual(self.seen(alive), (Sender.LIVE, Mark.YES))
        while self.seen(dead)[0] is Sender.LIVE:
            second.ask("monotonic")
        self.assertEqual(second.ask("sight", dead.effect_id), ["dead", "yes", 1])
        self.assertEqual(self.seen(alive), (Sender.LIVE, Mark.YES))


if __name__ == "__main__":
    unittest.main()
