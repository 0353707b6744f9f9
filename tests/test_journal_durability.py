"""What is acknowledged is on the disk, once, whatever else happens to the files: fsyncs, host programs, full disks."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal_support import JournalCase

from interlock_tools.core.entries import Kind
from interlock_tools.errors import CommitUnknown, JournalError
from interlock_tools.journal import connections
from interlock_tools.journal.protocol import Conflict, OverBudget
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story

BUDGET = {"budget": "day", "amount": 1, "limit": 1}


class TestConnections(JournalCase):
    def test_every_connection_reads_back_wal_and_full(self) -> None:
        journal = self.journal()
        self.story(journal).append(Kind.PROPOSED)
        journal.effects()
        found = journal._database.connections
        assert found._writer is not None
        self.assertGreaterEqual(len(found._idle), 1)
        for connection in (found._writer, *found._idle):
            self.assertEqual(connection.execute("PRAGMA journal_mode").fetchone(), ("wal",))
            self.assertEqual(connection.execute("PRAGMA synchronous").fetchone(), (2,))

    def test_the_log_has_its_length_from_the_start_and_keeps_it(self) -> None:
        journal = self.journal()
        wal = Path(f"{self.path}-wal")
        length = wal.stat().st_size
        self.assertGreater(length, connections.WAL_PAGES * 4096)
        for start in range(0, 3000, 100):
            journal.append([Story(journal, f"{start + n}").write(*TO_DISPATCHED) for n in range(100)])
        self.assertLess(wal.stat().st_size, 2 * length)
        self.assertLess(self.path.stat().st_size, 8_000_000)

    def test_the_last_to_close_leaves_one_file(self) -> None:
        first, second = self.journal(), self.journal()
        child = self.child()
        self.story(first).append(Kind.PROPOSED)
        first.close()
        second.close()
        self.assertTrue(Path(f"{self.path}-wal").exists(), "the child still has it open")
        child.ask("close")
        self.assertFalse(Path(f"{self.path}-wal").exists())
        self.assertFalse(Path(f"{self.path}-shm").exists())
        self.assertEqual(self.sessions(), [])
        self.assertEqual(len(self.journal().effects()), 1)

    def test_processes_that_create_it_at_the_same_time(self) -> None:
        code = (
            "import sys; from interlock_tools.journal.sqlite import SqliteJournal\n"
            "from interlock_tools.testing.journal_story import Story, TO_DISPATCHED\n"
            "from pathlib import Path\n"
            "sys.stdin.readline()\n"
            "for number in range(8):\n"
            "    journal = SqliteJournal(f'{sys.argv[1]}{number}')\n"
            "    Story(journal, sys.argv[2]).append(*TO_DISPATCHED)\n"
            "    if sys.argv[2] != '0': journal.close()\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", code, str(self.path)]
        started = [
            subprocess.Popen([*command, str(number)], stdin=subprocess.PIPE, env=environment) for number in range(5)
        ]
        for process in started:
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
        self.assertEqual([process.wait(60) for process in started], [0] * 5)
        for number in range(8):
            self.path = self.path.with_name(f"journal.db{number}")
            self.assertEqual(len(self.journal().effects()), 5)

    def test_a_read_does_not_wait_for_a_commit(self) -> None:
        journal = self.journal()
        self.story(journal).append(Kind.PROPOSED)
        raw = self.raw()
        raw.execute("BEGIN IMMEDIATE")
        writer = threading.Thread(target=lambda: self.story(journal, "waits").append(Kind.PROPOSED))
        writer.start()
        self.assertEqual(len(journal.effects()), 1)
        raw.execute("COMMIT")
        writer.join(30)
        self.assertEqual(len(journal.effects()), 2)

    def test_a_lock_that_is_never_let_go_of_is_reported(self) -> None:
        journal = self.journal()
        self.story(journal).append(Kind.PROPOSED)
        raw = self.raw()
        raw.execute("BEGIN IMMEDIATE")
        writer = journal._database.connections._writer
        assert writer is not None
        writer.execute("PRAGMA busy_timeout=10")
        with self.assertRaisesRegex(JournalError, "locked"):
            self.story(journal, "waits").append(Kind.PROPOSED)
        raw.execute("COMMIT")
        self.story(journal, "waits").append(Kind.PROPOSED)

    def test_a_process_that_stands_still_while_it_commits_is_reported(self) -> None:
        journal = self.journal()
        child = self.child()
        child.ask("run", "journal._database._lock.acquire()")
        child.stop()
        with (
            mock.patch.object(journal._database._lock, "_timeout_s", 0.05),
            self.assertRaisesRegex(JournalError, "another process has been committing"),
        ):
            self.story(journal).append(Kind.PROPOSED)
        child.kill()
        self.story(journal).append(Kind.PROPOSED)


@unittest.skipUnless(shutil.which("strace"), "strace is not installed: fsyncs are not counted")
class TestSyncs(JournalCase):
    def syncs(self, *command: Any) -> int:
        """Let a child under strace do something, and count what makes data durable."""
        self.journal()
        trace = self.folder / "trace"
        calls = "trace=fsync,fdatasync,sync_file_range,msync"
        child = self.child(["strace", "-f", "-qq", "-e", calls, "-o", str(trace)])
        child.tell(*command)
        assert child.process.stdin is not None
        child.process.stdin.close()
        child.process.wait(60)
        return trace.read_text().count("sync(")

    def test_i1_an_append_is_one_fsync_and_an_effect_is_two(self) -> None:
        few, many = self.syncs("loop", "few", 3), self.syncs("loop", "many", 23)
        self.assertEqual(many - few, 2 * 20)

    def test_threads_that_commit_at_the_same_time_share_an_fsync(self) -> None:
        effects = 16 * 10
        self.assertLess(self.syncs("threads", "t", 16, 10), effects * 2 / 3)


class TestGroupCommit(JournalCase):
    def test_each_caller_gets_its_own_answer(self) -> None:
        journal = self.journal()
        taken = self.story(journal, "taken").append(*TO_DISPATCHED)
        raw = self.raw()
        raw.execute("BEGIN IMMEDIATE")  # so that all wait for the same commit
        results: dict[str, object] = {}

        def append(name: str, story: Story, **changes: Any) -> threading.Thread:
            def run() -> None:
                try:
                    story.append(*TO_DISPATCHED, **changes)
                    results[name] = "written"
                except Exception as error:
                    results[name] = type(error)

            thread = threading.Thread(target=run)
            thread.start()
            return thread

        leader = append("leader", self.story(journal, "leader"))
        while not journal._database._queue._busy:
            pass
        followers = [
            append("fits", self.story(journal, "fits")),
            append("conflict", self.story(journal, "taken")),
            append("reserves", self.story(journal, "reserves"), budgets=[BUDGET]),
        ]
        while len(journal._database._queue._waiting) < 3:
            pass
        followers.append(append("over", self.story(journal, "over"), budgets=[BUDGET]))
        while len(journal._database._queue._waiting) < 4:
            pass
        raw.execute("COMMIT")
        for thread in (leader, *followers):
            thread.join(30)
        expected = {
            "leader": "written",
            "fits": "written",
            "conflict": Conflict,
            "reserves": "written",
            "over": OverBudget,
        }
        self.assertEqual(results, expected)
        self.assertEqual(len(journal.effects()), 4)
        self.assertEqual(len(journal.entries(taken.effect_id)), 3)

    def test_an_interrupted_leader_does_not_leave_the_others_waiting(self) -> None:
        journal = self.journal()
        story = self.story(journal)
        transact = journal._database._transact

        def interrupted(jobs: Any) -> None:
            raise KeyboardInterrupt

        journal._database._transact = interrupted  # type: ignore[method-assign]
        with self.assertRaises(KeyboardInterrupt):
            story.append(Kind.PROPOSED)
        journal._database._transact = transact  # type: ignore[method-assign]
        story.append(Kind.PROPOSED)


class _Faulty:
    """A cursor whose commit fails before or after it has been carried out."""

    def __init__(self, cursor: sqlite3.Cursor, when: str) -> None:
        self._cursor = cursor
        self._when = when

    def execute(self, sql: str, *values: Any) -> Any:
        fails = sql == "COMMIT" or (sql.startswith("INSERT") and not self._cursor.connection.in_transaction)
        if fails and self._when == "before":
            raise sqlite3.OperationalError("disk I/O error")
        result = self._cursor.execute(sql, *values)
        if fails:
            raise sqlite3.OperationalError("disk I/O error")
        return result

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class TestFailedCommits(JournalCase):
    def faulty(self, when: str) -> Story:
        journal = self.journal()
        self.story(journal, f"earlier {len(journal.effects())}").append(Kind.PROPOSED)
        found = journal._database.connections
        found._cursor = _Faulty(found.cursor(), when)  # type: ignore[assignment]
        return self.story(journal)

    def test_a_commit_that_failed_wrote_nothing(self) -> None:
        for kinds in (TO_DISPATCHED, (Kind.PROPOSED,)):
            with self.subTest(kinds=kinds):
                story = self.faulty("before")
                with self.assertRaisesRegex(JournalError, "disk I/O error; nothing was written") as caught:
                    story.append(*kinds)
                self.assertNotIsInstance(caught.exception, CommitUnknown)
                self.assertEqual(story.journal.entries(story.effect_id), [])
                self.story(story.journal, f"next {len(kinds)}").append(*TO_DISPATCHED)

    def test_a_commit_whose_answer_was_lost_is_found_by_reading_back(self) -> None:
        story = self.faulty("after")
        story.append(*TO_DISPATCHED, budgets=[BUDGET]).append(Kind.COMMITTED)
        self.assertEqual(len(story.journal.entries(story.effect_id)), 4)

    def test_a_commit_that_cannot_be_read_back_is_unknown(self) -> None:
        story = self.faulty("after")
        found = self.journal()._database.connections

        def unreadable(query: str, values: Any) -> Any:
            raise sqlite3.OperationalError("disk I/O error")

        found.read, read = unreadable, found.read  # type: ignore[method-assign]
        with self.assertRaises(CommitUnknown):
            story.append(*TO_DISPATCHED)
        found.read = read  # type: ignore[method-assign]
        self.assertEqual(len(self.journal().entries(story.effect_id)), 3)


class TestHostPrograms(JournalCase):
    """A program that opens and closes the journal's files in the process drops SQLite's locks of them."""

    NO_GUARD = "journal._database.connections._guard.let_last_close()"

    def files(self) -> list[str]:
        return [str(self.path), f"{self.path}-wal", f"{self.path}-shm"]

    def last_user(self) -> str:
        """Let another program count the entries, and close the file in the belief that it is the last."""
        code = (
            "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); "
            "print(*c.execute('SELECT count(*) FROM entries').fetchone()); c.close()"
        )
        command = [sys.executable, "-c", code, str(self.path)]
        return subprocess.run(command, check=True, timeout=60, capture_output=True, text=True).stdout.strip()

    def committed(self, keys: list[str]) -> None:
        """Every acknowledged effect is there for a process that comes now."""
        fresh = self.child()
        self.assertEqual(fresh.ask("count"), len(keys))
        journal = self.journal()
        for key in keys:
            self.assertEqual(len(journal.entries(self.story(journal, key).effect_id)), 4, key)
        self.assertEqual(self.raw().execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_without_protection_an_acknowledged_commit_vanishes(self) -> None:
        """What the rest of this class is about, shown on SQLite alone."""
        connection = self.raw()
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE entries (x)")
        self.path.read_bytes()
        self.last_user()
        connection.execute("INSERT INTO entries VALUES (1)")
        self.assertEqual(connection.execute("SELECT count(*) FROM entries").fetchone(), (1,))
        self.assertEqual(self.last_user(), "0")

    def test_the_guard_keeps_the_log(self) -> None:
        child = self.child()
        keys = []
        for number in range(3):
            inode = Path(f"{self.path}-wal").stat().st_ino
            child.ask("loop", f"k{number}", 1)
            child.answer()
            child.ask("touch", *self.files())
            self.last_user()
            self.assertEqual(Path(f"{self.path}-wal").stat().st_ino, inode)
            keys.append(f"k{number}-0")
        child.kill()
        self.committed(keys)

    def test_a_log_that_was_removed_all_the_same_is_noticed_at_the_commit(self) -> None:
        child = self.child()
        child.ask("run", self.NO_GUARD)
        keys = []
        for number in range(3):
            child.ask("loop", f"k{number}", 1)
            child.answer()
            keys.append(f"k{number}-0")
            child.ask("touch", *self.files())
            child.ask("run", self.NO_GUARD)
            self.last_user()
            self.assertFalse(Path(f"{self.path}-wal").exists())
        child.ask("loop", "k3", 1)
        child.answer()
        child.kill()
        self.committed([*keys, "k3-0"])

    def test_two_processes_whose_log_was_removed_under_both(self) -> None:
        first, second = self.child(), self.child()
        for child in (first, second):
            child.ask("run", self.NO_GUARD)
            child.ask("touch", *self.files())
        self.last_user()
        keys = []
        for number in range(6):
            child = (first, second)[number % 2]
            child.ask("loop", f"k{number}", 1)
            child.answer()
            keys.append(f"k{number}-0")
        first.kill()
        second.kill()
        self.committed(keys)

    def test_processes_that_commit_while_their_hosts_read_the_files(self) -> None:
        children = [self.child() for _ in range(3)]
        reading = (
            "import threading\n"
            f"paths = {self.files()!r}\n"
            "def read():\n"
            "    while True:\n"
            "        for path in paths:\n"
            "            with open(path, 'rb') as file: file.read(100)\n"
            "threading.Thread(target=read, daemon=True).start()\n"
        )
        for child in children:
            child.ask("run", reading)
        count = 40
        for number, child in enumerate(children):
            child.tell("loop", f"c{number}", count)
        for child in children:
            for _ in range(count + 1):
                child.answer()
            child.kill()
        self.committed([f"c{number}-{index}" for number in range(3) for index in range(count)])


class TestFullDisk(JournalCase):
    def test_a_file_that_must_not_grow(self) -> None:
        """Stands for a full disk where nothing may be mounted."""
        child = self.child()
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({}, resource.RLIM_INFINITY))"
        self.assertEqual(child.ask("try_each", ["before"], [])["won"], ["before"])
        child.ask("run", limit.format(4096))
        refused = child.ask("try_each", ["during"], [])
        self.assertEqual(refused["error"], "JournalError")
        self.assertIn("nothing was written", refused["words"])
        self.assertIn("error", child.ask("dispatch", "no room for a session"))
        child.ask("run", limit.format("resource.RLIM_INFINITY"))
        self.assertEqual(child.ask("try_each", ["during", "after"], [])["won"], ["during", "after"])
        self.assertEqual(child.ask("count"), 3)
        child.ask("dispatch", "room for a session")
        self.assertEqual(len(self.sessions()), 1)

    def test_a_disk_that_is_full(self) -> None:
        disk = self.folder / "disk"
        disk.mkdir()
        mount = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=7m tmpfs {disk} && exec "$@"', "sh"]
        if subprocess.run([*mount, "true"], capture_output=True, check=False).returncode:
            self.skipTest("no small disk can be mounted here")
        self.path = disk / "journal.db"
        child = self.child(mount)
        self.assertEqual(child.ask("try_each", ["before"], [])["won"], ["before"])
        fill = f"answer = open('{disk}/filler', 'wb', buffering=0)\ntry:\n    while True: answer.write(b'x' * 4096)\n"
        child.ask("run", fill + "except OSError: answer = None")
        refused: dict[str, Any] = {}
        for number in range(2000):
            refused = child.ask("try_each", [f"during {number}"], [])
            if "error" in refused:
                break
        self.assertEqual(refused.get("error"), "JournalError", "the disk never filled up")
        self.assertRegex(refused["words"], "full; nothing was written. Make room")
        written = child.ask("count")
        self.assertEqual(written, number + 1)
        child.ask("run", f"import os; os.unlink('{disk}/filler')")
        self.assertEqual(child.ask("try_each", [f"during {number}", "after"], [])["won"], [f"during {number}", "after"])
        check = "answer = journal._database.read('PRAGMA integrity_check', ())[0][0]"
        self.assertEqual(child.ask("run", check), "ok")


class TestForks(JournalCase):
    def test_forks_while_threads_commit(self) -> None:
        child = self.child()
        code = (
            "import os, threading\n"
            "from interlock_tools.core.entries import Kind\n"
            "from interlock_tools.testing.journal_story import TO_DISPATCHED\n"
            "stop, done, failed = threading.Event(), [], []\n"
            "def work(n):\n"
            "    try:\n"
            "        for i in range(10_000):\n"
            "            if stop.is_set(): break\n"
            "            Story(journal, f't{n}-{i}').append(*TO_DISPATCHED).append(Kind.COMMITTED)\n"
            "            done.append(len(journal.entries('0' * 32)))\n"
            "    except BaseException as error: failed.append(repr(error))\n"
            "threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]\n"
            "for t in threads: t.start()\n"
            "codes = []\n"
            "for f in range(12):\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        code = 1\n"
            "        try:\n"
            "            Story(journal, f'f{f}').append(*TO_DISPATCHED).append(Kind.COMMITTED)\n"
            "            code = 0\n"
            "        finally: os._exit(code)\n"
            "    codes.append(os.waitpid(pid, 0)[1])\n"
            "stop.set()\n"
            "for t in threads: t.join()\n"
            "answer = [codes, failed, len(done)]\n"
        )
        codes, failed, done = child.ask("run", code)
        self.assertEqual((codes, failed), ([0] * 12, []))
        self.assertEqual(child.ask("count"), done + 12)
        self.assertEqual({row.phase for row in self.journal().effects(limit=100_000)}, {"committed"})
        self.assertEqual(self.raw().execute("PRAGMA integrity_check").fetchone(), ("ok",))

    def test_a_fork_that_nobody_announced(self) -> None:
        """C code can fork without telling Python; the child notices by its process id."""
        child = self.child()
        child.ask("dispatch", "parent's")
        code = (
            "import ctypes, os, signal\n"
            "from interlock_tools.core.entries import Kind\n"
            "parents = journal._database.connections\n"
            "pid = ctypes.PyDLL(None).fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            "        Story(journal, 'own').append(Kind.PROPOSED)\n"
            "        if journal._database.connections is parents: os._exit(1)\n"
            "    finally: os.kill(os.getpid(), signal.SIGKILL)\n"
            "answer = os.waitpid(pid, 0)[1]\n"
        )
        self.assertEqual(child.ask("run", code), signal.SIGKILL)
        self.assertEqual(child.ask("count"), 2)
        child.ask("finish", "parent's")
        seen, _ = self.journal().sight(self.story(self.journal(), "parent's").last_send())
        self.assertEqual(seen.sender.value, "live")

    def test_a_forked_child_that_ends_in_peace_harms_nothing(self) -> None:
        """Its interpreter shuts down and finalises what is left in its memory."""
        self.journal().close()
        code = (
            "import os, sys\n"
            "from interlock_tools.journal.sqlite import SqliteJournal\n"
            "from interlock_tools.testing.journal_story import Story, TO_DISPATCHED\n"
            "from interlock_tools.core.entries import Kind\n"
            "journal = SqliteJournal(sys.argv[1])\n"
            "story = Story(journal).dispatch()\n"
            "if os.fork() == 0: sys.exit(0)\n"
            "assert os.wait()[1] == 0\n"
            "story.append(Kind.COMMITTED)\n"
            "if os.fork() == 0:\n"
            "    Story(journal, 'child').append(*TO_DISPATCHED)\n"
            "    sys.exit(0)\n"
            "assert os.wait()[1] == 0\n"
            "Story(journal, 'last').append(*TO_DISPATCHED)\n"
            "assert story.slot.check() is None\n"
        )
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-c", code, str(self.path)], check=True, timeout=60, env=environment)
        self.assertEqual([row.last_seq for row in self.journal().effects()], [4, 3, 3])
