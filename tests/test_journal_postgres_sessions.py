"""Who lives, seen from another host: a lost session is not a death, and a sender past its lease does not send."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_proxy import Proxy
from postgres_support import URL, PostgresCase, missing, server

from interlock_tools.core.decide import Mark, Sender
from interlock_tools.core.entries import Kind
from interlock_tools.testing.journal_child import Child
from interlock_tools.testing.journal_kit_base import FixedClock
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story

HERE = Path(__file__).resolve().parent
DEADLINE_S = 30.0
LEASE_S = 1


class HostsCase(PostgresCase):
    """Tests with several hosts: processes that share neither session files nor a boot."""

    def environment(self, host: str) -> dict[str, str]:
        """The environment of processes on a host."""
        boot = self.folder / f"{host}.boot"
        boot.write_text(f"boot-of-{host}")
        root = str(HERE.parent)
        return {
            "INTERLOCK_SESSIONS": str(self.folder / f"sessions-{host}"),
            "INTERLOCK_TEST_BOOT": str(boot),
            "PYTHONPATH": os.pathsep.join([root, str(HERE), os.environ.get("PYTHONPATH", "")]),
        }

    def host_url(self) -> str:
        return self.url(interlock_lease_s=LEASE_S)

    def child(self, host: str) -> Child:
        with mock.patch.dict(os.environ, self.environment(host)):
            child = Child(self.host_url(), prefix=[sys.executable, str(HERE / "postgres_host.py")])
        self.addCleanup(child.__exit__)
        return child

    def here(self, clock: Any = None) -> Any:
        """This process's journal, on a host of its own."""
        from interlock_tools.journal.postgres import PostgresJournal

        journal = PostgresJournal(self.host_url(), clock)
        self.addCleanup(journal.close)
        return journal

    def sent(self, child: Child, journal: Any, key: str = "sent") -> Story:
        child.ask("dispatch", key)
        story = Story(journal, key)
        story.seq, story.sends = 3, 1
        return story

    def seen(self, story: Story) -> Sender:
        sighting, _ = story.journal.sight(story.last_send())
        self.assertEqual(sighting.mark, Mark.MAYBE)
        self.assertEqual(sighting.lease_ms, LEASE_S * 1000 if sighting.sender is Sender.LOST else 0)
        found: Sender = sighting.sender
        return found

    def wait_for(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while not condition():
            self.assertLess(time.monotonic(), deadline, "it does not come about")

    def end_session(self, story: Story) -> None:
        """Terminate the backend that holds a session's lock."""
        name = f"interlock session {story.last_send().session}"
        ended = (
            self.raw()
            .execute(
                "SELECT count(pg_terminate_backend(pid, 10000)) FROM pg_stat_activity WHERE application_name = %s",
                (name,),
            )
            .fetchall()
        )
        self.assertEqual(ended, [(1,)])


class TestOtherHosts(HostsCase):
    """A sender on another host."""

    def test_a_sender_that_lives_or_stands_still_is_live_however_long(self) -> None:
        child, journal = self.child("a"), self.here()
        self.assertEqual(journal.liveness, "lock")
        story = self.sent(child, journal)
        self.assertIs(self.seen(story), Sender.LIVE)
        child.stop()
        renewed = f"SELECT renewed_at + interval '{LEASE_S} s' < clock_timestamp() FROM {self.schema}.sessions"
        raw = self.raw()
        self.wait_for(lambda: raw.execute(renewed).fetchall()[0][0])  # its lease has run out
        self.assertIs(self.seen(story), Sender.LIVE)
        _, holder = journal.sight(story.last_send())
        self.assertEqual((holder.pid, holder.host), (child.pid, "a"))

    def test_a_killed_sender_is_lost_and_not_dead(self) -> None:
        child, journal = self.child("a"), self.here()
        story = self.sent(child, journal)
        child.kill()
        self.wait_for(lambda: self.seen(story) is Sender.LOST)
        again = self.child("a")  # on its own host it is dead, and its mark is there
        self.assertEqual(again.ask("sight", story.effect_id)[:2], ["dead", "no"])

    def test_a_sender_that_has_closed_its_journal_with_nothing_running_is_gone(self) -> None:
        child, journal = self.child("a"), self.here()
        story = self.sent(child, journal)
        child.ask("drop", "sent")
        child.ask("close")
        self.assertIs(self.seen(story), Sender.DEAD)

    def test_i2_a_stopped_sender_whose_session_was_lost_does_not_send_after_its_lease(self) -> None:
        child, journal = self.child("a"), self.here()
        story = self.sent(child, journal)
        self.assertIsNone(child.ask("slot", "sent", "check"))
        child.stop()
        self.end_session(story)
        self.assertIs(self.seen(story), Sender.LOST)
        lost_ms = journal.now().boottime_ms
        self.wait_for(lambda: journal.now().boottime_ms > lost_ms + LEASE_S * 1000)
        child.go_on()
        self.assertIn("not been renewed", child.ask("slot", "sent", "check"))
        other = self.sent(child, journal, "under a new session")
        self.assertIsNone(child.ask("slot", "under a new session", "check"))
        self.assertNotEqual(other.last_send().session, story.last_send().session)
        self.assertIs(self.seen(other), Sender.LIVE)
        self.assertIs(self.seen(story), Sender.LOST)

    def test_a_session_that_was_seen_lost_is_never_renewed(self) -> None:
        """Also where its process goes on at once: it stops sending when its lease runs out."""
        child, journal = self.child("a"), self.here()
        story = self.sent(child, journal)
        self.end_session(story)
        self.assertIs(self.seen(story), Sender.LOST)
        self.wait_for(lambda: child.ask("slot", "sent", "check") is not None)
        state = f"SELECT state FROM {self.schema}.sessions"
        self.assertEqual(self.raw().execute(state).fetchall(), [("lost",)])

    def test_i2_not_even_a_session_with_its_lock_is_renewed_once_it_is_lost(self) -> None:
        """Somebody has recorded it as lost and waits for its lease to run out."""
        journal = self.here()
        story = Story(journal).dispatch()
        assert story.slot is not None
        with self.assertLogs("interlock_tools.journal", "WARNING"):
            self.raw().execute(f"UPDATE {self.schema}.sessions SET state = 'lost'")
            self.wait_for(lambda: story.slot is not None and story.slot.check() is not None)
        again = Story(journal, "again").dispatch()
        assert again.slot is not None
        self.assertIsNone(again.slot.check())

    def test_a_lost_session_of_a_process_of_this_host_is_live(self) -> None:
        first, second = self.child("a"), self.child("a")
        story = self.sent(first, self.here())
        first.stop()
        self.end_session(story)
        self.assertEqual(second.ask("sight", story.effect_id)[0], "live")
        first.kill()
        self.assertEqual(second.ask("sight", story.effect_id)[:2], ["dead", "no"])

    def test_a_copy_of_a_session_file_on_another_host_proves_nothing(self) -> None:
        child, journal = self.child("a"), self.here()
        story = self.sent(child, journal)
        (folder,) = (self.folder / "sessions-a").iterdir()
        target = self.folder / "sessions" / folder.name
        shutil.copytree(folder, target, dirs_exist_ok=True)
        self.assertIs(self.seen(story), Sender.LIVE)
        child.stop()
        self.end_session(story)
        self.assertIs(self.seen(story), Sender.LOST)

    def test_a_session_without_a_row_may_have_had_the_longest_lease(self) -> None:
        journal = self.here()
        Story(journal, "opens a session").dispatch()
        story = Story(journal).append(*TO_DISPATCHED, session="0" * 32)
        self.assertIs(self.seen(story), Sender.LOST)

    def test_a_lease_that_ran_out_is_renewed_if_the_session_is_still_there(self) -> None:
        clock = FixedClock()
        journal = self.here(clock)
        story = Story(journal).dispatch()
        assert story.slot is not None
        clock.boottime_ms += LEASE_S * 1000
        self.wait_for(lambda: story.slot is not None and story.slot.check() is None)
        self.assertEqual(Story(journal, "another").dispatch().slot.session, story.slot.session)  # type: ignore[union-attr]


class TestBehindAPooler(HostsCase):
    """Session locks do not stay there; heartbeats tell."""

    def setUp(self) -> None:
        if os.environ.get(URL):
            self.skipTest("needs a server of known address")
        super().setUp()
        self.pooler = Proxy(server().port, as_pooler=True)
        self.addCleanup(self.pooler.__exit__)

    def host_url(self) -> str:
        return server().url(self.pooler.port, interlock_schema=self.schema, interlock_lease_s=LEASE_S)

    def test_heartbeats_tell_who_lives_and_it_says_so(self) -> None:
        with self.assertLogs("interlock_tools.journal", "WARNING") as logged:
            journal = self.here()
        self.assertEqual(journal.liveness, "heartbeats")
        self.assertIn("heartbeats", logged.output[0])
        self.assertNotIn("s3cr3t", logged.output[0])
        child = self.child("a")
        story = self.sent(child, journal)
        raw = self.raw()
        mode = f"SELECT mode FROM {self.schema}.sessions"
        self.assertEqual(raw.execute(mode).fetchall(), [("heartbeats",)])
        began = f"SELECT renewed_at FROM {self.schema}.sessions"
        first = raw.execute(began).fetchall()
        self.wait_for(lambda: bool(raw.execute(began).fetchall() > first))
        self.assertIs(self.seen(story), Sender.LIVE)
        child.stop()
        self.wait_for(lambda: self.seen(story) is Sender.LOST)
        lost_ms = journal.now().boottime_ms
        self.wait_for(lambda: journal.now().boottime_ms > lost_ms + LEASE_S * 1000)
        child.go_on()
        self.assertIn("not been renewed", child.ask("slot", "sent", "check"))
        self.assertIs(self.seen(story), Sender.LOST)

    def test_a_heartbeat_survives_its_connection(self) -> None:
        journal = self.here()
        story = Story(journal).dispatch()
        self.end_session(story)
        raw = self.raw()
        began = f"SELECT renewed_at FROM {self.schema}.sessions"
        first = raw.execute(began).fetchall()
        self.wait_for(lambda: bool(raw.execute(began).fetchall() > first))
        assert story.slot is not None
        self.assertIsNone(story.slot.check())


class TestPgBouncer(TestBehindAPooler):
    """The same behind a real pooler in transaction mode."""

    def setUp(self) -> None:
        program = shutil.which("pgbouncer")
        if program is None:
            missing("no PgBouncer: apt-get install pgbouncer")
        super().setUp()
        folder = Path(tempfile.mkdtemp(prefix="interlock-pgbouncer-"))
        self.addCleanup(shutil.rmtree, folder)
        self.pooler.port = self.start(program, folder)

    def start(self, program: str, folder: Path) -> int:
        import socket

        from interlock_tools.testing.postgres import SECRET

        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port: int = probe.getsockname()[1]
        (folder / "users").write_text(f'"tester" "{SECRET}"\n')
        (folder / "ini").write_text(
            f"[databases]\npostgres = host=127.0.0.1 port={server().port} user=tester password='{SECRET}'\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = plain\n"
            f"auth_file = {folder / 'users'}\npool_mode = transaction\nmax_client_conn = 200\ndefault_pool_size = 5\n"
            f"logfile = {folder / 'log'}\n"
        )
        options: dict[str, Any] = {}
        if os.geteuid() == 0:
            for path in (folder, folder / "users", folder / "ini"):
                os.chown(path, 65534, 65534)
            options = {"user": 65534, "group": 65534, "extra_groups": []}
        process = subprocess.Popen(
            [program, "-q", str(folder / "ini")], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.send_signal, signal.SIGKILL)

        def answers() -> bool:
            self.assertIsNone(process.poll(), "PgBouncer does not start")
            with socket.socket() as probe:
                return probe.connect_ex(("127.0.0.1", port)) == 0

        self.wait_for(answers)
        return port

    def test_a_heartbeat_survives_its_connection(self) -> None:
        journal = self.here()
        story = Story(journal).dispatch()
        story.append(Kind.COMMITTED)
        self.assertEqual(len(journal.entries(story.effect_id)), 4)


class WorkersCase(HostsCase):
    """Tests with whole gates on several hosts."""

    def url_on(self, host: str) -> str:
        """What a host calls the database."""
        return self.host_url()

    def start(
        self, host: str, case: str, crash: str = "", hold: str = "", prefix: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start a worker on a host that tries its refund, or recovers."""
        environment = {**os.environ, **self.environment(host), "INTERLOCK_CRASH": crash, "INTERLOCK_TEST_HOLD": hold}
        command = [sys.executable, "-m", "postgres_worker", self.url_on(host), str(self.folder / "ledger"), case]
        worker = subprocess.Popen(
            [*prefix, sys.executable, str(HERE / "postgres_host.py"), *command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(worker.communicate)
        self.addCleanup(worker.kill)
        return worker

    def answer(self, worker: subprocess.Popen[str]) -> dict[str, Any]:
        """Wait for what a worker says."""
        words, errors = worker.communicate(timeout=60)
        self.assertEqual(worker.returncode, 0, errors)
        found: dict[str, Any] = json.loads(words)
        return found

    def ledger(self) -> list[str]:
        path = self.folder / "ledger"
        return path.read_text().split() if path.exists() else []


class TestSharedCap(WorkersCase):
    """Whole gates on two hosts, one of them killed or cut off."""

    def test_i5_two_hosts_never_exceed_a_cap_and_nothing_is_stranded(self) -> None:
        for crash, landed in (("before_bytes", 0), ("after_response", 1)):
            with self.subTest(crash):
                (self.folder / "ledger").unlink(missing_ok=True)
                budget = f"cap {crash}"
                killed = self.start("a", f"a {budget}", crash)
                self.assertEqual(killed.wait(60), -signal.SIGKILL)
                self.assertEqual(len(self.ledger()), landed)
                turned_away = self.answer(self.start("b", f"b {budget}"))
                self.assertEqual(turned_away["outcome"], "REFUSED:over_budget")
                recovered = self.answer(self.start("b", "recover"))
                self.assertEqual(recovered["outcomes"], ["COMMITTED"])
                self.assertEqual(recovered["open"], 0)
                self.assertEqual(len(self.ledger()), 1)
                self.assertEqual(self.here().budget(budget).used, 20)

    def test_i2_a_sender_that_was_taken_for_gone_does_not_send_when_it_goes_on(self) -> None:
        """Stopped right before its send, cut off from the database, replaced by another host, then continued."""
        stopped = self.start("a", "a cap", "after_dispatched:1:stop")
        os.waitpid(stopped.pid, os.WUNTRACED)
        journal = self.here()
        (row,) = journal.open_effects()
        story = Story(journal, row.request_key, name="kit.refund")
        self.assertIs(self.seen(story), Sender.LIVE)
        self.end_session(story)
        self.assertEqual(self.answer(self.start("b", "recover"))["outcomes"], ["COMMITTED"])
        kinds = [entry.kind for entry in journal.entries(row.effect_id)]
        self.assertIn(Kind.SENDER_LOST, kinds)
        stopped.send_signal(signal.SIGCONT)
        self.assertEqual(self.answer(stopped)["outcome"], "COMMITTED")
        self.assertEqual(self.ledger(), [row.effect_id])


if __name__ == "__main__":
    unittest.main()
