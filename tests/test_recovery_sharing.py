"""Workers who recover at the same time divide the open effects among themselves, whatever the journal."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_support import PostgresCase

from interlock_tools import Gate
from interlock_tools.testing.crash import CrashPoint, arm

EFFECTS, WORKERS = 24, 4


class Sharing:
    """A mixin: ``url`` names the journal of the test."""

    folder: Path
    url: Any

    def declare(self, gate: Gate, slow_s: float = 0.0) -> Any:
        looked = self.folder / "looked"

        def lookup(case: str, idempotency_key: str) -> dict[str, Any]:
            fd = os.open(looked, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(fd, f"{case} {os.getpid()}\n".encode())
            os.close(fd)
            time.sleep(slow_s)
            return {"id": case}

        @gate.effect("shared", key=lambda case: case, lookup=lookup, send_timeout=timedelta(seconds=0.1))
        def send(case: str, *, idempotency_key: str) -> dict[str, Any]:
            return {"id": case}

        return send

    def child(self, act: Any) -> int:
        pid = os.fork()
        if pid == 0:
            try:
                act()
            finally:
                os._exit(0)
        return pid

    def leave_open(self, count: int) -> None:
        """A process is killed in the middle of each of some effects."""
        for number in range(count):

            def act(number: int = number) -> None:
                gate = Gate(self.url())
                effect = self.declare(gate)
                arm(CrashPoint.AFTER_RESPONSE)
                effect(f"case {number:02}")

            _, status = os.waitpid(self.child(act), 0)
            assert status == signal.SIGKILL, status

    def looks(self) -> list[str]:
        path = self.folder / "looked"
        return path.read_text().split("\n")[:-1] if path.exists() else []

    def test_each_effect_is_recovered_by_one_of_them(self: Any) -> None:
        self.leave_open(EFFECTS)
        go = self.folder / "go"

        def act() -> None:
            gate = Gate(self.url())
            self.declare(gate, slow_s=0.02)
            while not go.exists():
                time.sleep(0.001)
            gate.recover(wait=20)
            gate.close()

        pids = [self.child(act) for _ in range(WORKERS)]
        go.touch()
        for pid in pids:
            os.waitpid(pid, 0)
        looks = self.looks()
        self.assertEqual(sorted(look.split()[1] for look in looks), [f"{number:02}" for number in range(EFFECTS)])
        self.assertGreater(len({look.split()[2] for look in looks}), 1, "more than one of them did some of it")
        gate = Gate(self.url())
        self.addCleanup(gate.close)
        self.assertEqual(gate.open_effects(), [])

    def test_a_worker_that_is_killed_lets_go_at_once(self: Any) -> None:
        self.leave_open(1)

        def act() -> None:
            gate = Gate(self.url())
            self.declare(gate)
            arm(CrashPoint.RECOVERY_LOOKED_UP)
            gate.recover()

        _, status = os.waitpid(self.child(act), 0)
        self.assertEqual(status, signal.SIGKILL)
        gate = Gate(self.url())
        self.addCleanup(gate.close)
        self.declare(gate)
        self.assertEqual([str(outcome) for outcome in gate.recover(wait=5)], ["COMMITTED"])

    def test_what_another_is_at_is_told_and_not_waited_for_unless_asked(self: Any) -> None:
        self.leave_open(1)
        gates = [Gate(self.url()) for _ in range(2)]
        for gate in gates:
            self.addCleanup(gate.close)
            self.declare(gate, slow_s=0.3)
        first = threading.Thread(target=gates[0].recover)
        first.start()
        deadline = time.monotonic() + 20
        while not self.looks() and time.monotonic() < deadline:
            time.sleep(0.005)
        (outcome,) = gates[1].recover()
        self.assertEqual((str(outcome), outcome.detail), ("IN_FLIGHT:waiting", "another worker is recovering it"))
        (outcome,) = gates[1].recover(wait=20) or [gates[1].settle(outcome.effect_id)]
        self.assertEqual(str(outcome), "COMMITTED")
        first.join()
        self.assertEqual(len(self.looks()), 1)


class Sqlite(Sharing, unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def url(self) -> str:
        return str(self.folder / "journal.db")


class Postgres(Sharing, PostgresCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


del PostgresCase

if __name__ == "__main__":
    unittest.main()
