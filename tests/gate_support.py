"""What the tests of the gate share: a service in this process, a clock that a test sets, and a journal of its own."""

from __future__ import annotations

import logging
import os
import signal
import tempfile
import unittest
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from interlock_tools import Gate, Outcome
from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import fold
from interlock_tools.journal.clock import SystemClock
from interlock_tools.journal.protocol import Write
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing import CrashPoint, arm


class Lands:
    """A script's step: the request takes effect, and the caller sees this exception all the same."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class Service:
    """A service in this process: it keeps what was created by idempotency key, and counts requests.

    ``script`` says how the next requests end: an exception (nothing was done),
    ``Lands(exception)``, or a function of the request whose return value is the
    answer. Without one a request takes effect.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.created: list[dict[str, Any]] = []
        self.by_key: dict[str, dict[str, Any]] = {}
        self.script: list[Any] = []
        self.dedupes = True

    def create(self, key: str, **fields: Any) -> Any:
        self.requests.append({"key": key, **fields})
        act = self.script.pop(0) if self.script else None
        if isinstance(act, BaseException):
            raise act
        if callable(act):
            return act(self.requests[-1])
        made = self._land(key, fields)
        if isinstance(act, Lands):
            raise act.error
        return made

    def _land(self, key: str, fields: dict[str, Any]) -> dict[str, Any]:
        if self.dedupes and key in self.by_key:
            return self.by_key[key]
        made = {"id": f"re_{len(self.created) + 1}", **fields}
        self.created.append(made)
        self.by_key[key] = made
        return made

    def find(self, idempotency_key: str) -> dict[str, Any] | None:
        return self.by_key.get(idempotency_key)


class SetClock:
    """The machine's clocks, moved forward by the test."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self.ahead_ms = 0

    def now(self) -> Instant:
        now = self._real.now()
        return Instant(now.boot, now.boottime_ms + self.ahead_ms, now.wall_ms + self.ahead_ms)

    def advance(self, seconds: float) -> None:
        self.ahead_ms += round(seconds * 1000)


MEMORY = "/dev/shm"
"""Where these tests keep their journals if they can: what a commit costs is not what they are about."""

logging.getLogger("interlock_tools").addHandler(logging.NullHandler())


class GateCase(unittest.TestCase):
    """A journal in a folder of its own, a gate with short patience, a service, and one way to declare an effect."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="gate-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.path = self.folder / "journal.db"
        self.clock = SetClock()
        self.service = Service()
        self.facts: dict[str, Any] = {}
        self.gate = self.open()

    def open(self, **options: Any) -> Gate:
        """Another gate over the same journal, as another part of the program would open it."""
        options.setdefault("retry", 0.3)
        gate = Gate(SqliteJournal(self.path, self.clock), **options)
        self.addCleanup(gate.close)
        return gate

    def refund(self, name: str = "test.refund", gate: Gate | None = None, **options: Any) -> Any:
        """Declare the effect that most tests use: it marks its send and passes the key on to the service."""
        service = self.service

        def send(case: str, amount: int = 2000, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            return service.create(idempotency_key, case=case, amount=amount)

        options.setdefault("key", lambda case: case)
        return (gate or self.gate).effect(name, **options)(send)

    def looked_up(self, **options: Any) -> Any:
        """``refund`` with a lookup and a send time-out of 90 s."""
        return self.refund(lookup=self.service.find, send_timeout=timedelta(seconds=90), **options)

    # -- what was recorded ---------------------------------------------------------------------------

    def kinds(self, outcome: Outcome | str) -> list[str]:
        """The kinds of an effect's entries, in order."""
        effect_id = outcome if isinstance(outcome, str) else outcome.effect_id
        return [entry.kind.value for entry in self.gate.history(effect_id)]

    def body(self, outcome: Outcome, kind: str) -> dict[str, Any]:
        """The body of the effect's last entry of a kind."""
        found = [entry.body for entry in self.gate.history(outcome.effect_id) if entry.kind.value == kind]
        self.assertTrue(found, f"no {kind} entry in {self.kinds(outcome)}")
        return found[-1]

    def assertOutcome(self, outcome: Outcome, expected: str) -> None:
        self.assertEqual(str(outcome), expected, outcome.message)

    def assertNothingRecorded(self) -> None:
        self.assertEqual(self.gate.journal.effects(), [])

    def everything_written(self) -> bytes:
        """The bytes of every file of the journal, to search for what must not be in them."""
        self.gate.close()
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    # -- what others do ------------------------------------------------------------------------------

    def append_elsewhere(self, effect_id: str, *bodies: tuple[Kind, dict[str, Any]]) -> None:
        """Append entries as a recovery in another process would."""
        journal = self.gate.journal
        state = fold(journal.entries(effect_id))
        entries = tuple(
            Entry(effect_id, state.seq + number, kind, journal.now().wall_ms, body)
            for number, (kind, body) in enumerate(bodies, 1)
        )
        fold(entries, state)
        journal.append([Write(effect_id, state.seq, entries)])

    def dies_at(self, point: CrashPoint, act: Callable[[Gate], Any], occurrence: int = 1) -> None:
        """Run ``act`` in a forked child that kills itself at ``point``; fail if it ends in any other way."""
        pid = os.fork()
        if pid == 0:
            try:
                arm(point, occurrence)
                act(self.open())
            finally:
                os._exit(99)
        _, status = os.waitpid(pid, 0)
        self.assertTrue(os.WIFSIGNALED(status), f"the child ended with {status}, not at {point.value}")
        self.assertEqual(os.WTERMSIG(status), signal.SIGKILL)
