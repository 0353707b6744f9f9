"""The tests that every integration passes: ``IntegrationKit``, a mixin for ``unittest.TestCase``.

An integration says how its effect is declared, how to make its service
misbehave, and how to count what the service really holds; the kit kills
processes, loses answers, lets requests land late, and judges by that count::

    class MyService(IntegrationKit, unittest.TestCase):
        def declare(self, gate): ...
        def arguments(self, number): ...
        def inject(self, fault): ...
        def landed(self, number): ...
        def requests(self): ...

A test for which a hook is missing is skipped, and says which. Children are
forked, so the service must run in another process or thread, and what
``declare`` makes must survive a fork. Runs on POSIX systems.
"""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import unittest
from collections.abc import Callable, Iterable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.decide import FOREVER
from ..core.entries import Instant, Kind
from ..effect import Effect
from ..errors import BadRequest, SendError
from ..gate import Gate
from ..journal.clock import SystemClock
from ..journal.sqlite import SqliteJournal
from ..outcome import Outcome
from .crash import CrashPoint, arm

if TYPE_CHECKING:
    Base = unittest.TestCase
else:
    Base = object


class Fault(str, Enum):
    """What happens to the next request that is a send."""

    CUT_BEFORE = "cut_before"
    """It arrives, the service does nothing, and the connection breaks."""
    CUT_AFTER = "cut_after"
    """The service carries it out, and the connection breaks."""
    ERROR_AFTER = "error_after"
    """The service carries it out and answers with a server error."""
    HOLD = "hold"
    """It is on its way until ``release``, and is then carried out, whether or not its sender lives."""
    REPEATED = "repeated"
    """Something on the way hands it to the service twice; the second answer comes back."""
    RATE_LIMITED = "rate_limited"
    """The service turns it away; it may come again soon."""


class KitClock:
    """The machine's clocks, moved forward by the test."""

    def __init__(self) -> None:
        self._real = SystemClock()
        self._ahead_ms = 0

    def now(self) -> Instant:
        """The time as this machine tells it, moved on."""
        now = self._real.now()
        return Instant(now.boot, now.boottime_ms + self._ahead_ms, now.wall_ms + self._ahead_ms)

    def advance(self, seconds: float) -> None:
        """Move on."""
        self._ahead_ms += round(seconds * 1000)


SENDING = (
    CrashPoint.BEFORE_JOURNAL,
    CrashPoint.AFTER_PROPOSED,
    CrashPoint.AFTER_DISPATCHED,
    CrashPoint.BEFORE_MARK,
    CrashPoint.BEFORE_BYTES,
    CrashPoint.IN_FLIGHT,
    CrashPoint.AFTER_RESPONSE,
    CrashPoint.AFTER_COMMITTED,
)
"""Where a call can be killed, in the order in which it passes them."""

RECOVERING = (CrashPoint.RECOVERY_STARTED, CrashPoint.RECOVERY_CHECKED, CrashPoint.RECOVERY_LOOKED_UP)
UNSENT = (CrashPoint.AFTER_DISPATCHED, CrashPoint.BEFORE_MARK)
LANDED = (CrashPoint.IN_FLIGHT, CrashPoint.AFTER_RESPONSE)


class IntegrationKit(Base):
    """Mix in before ``unittest.TestCase``. Methods down to ``secrets`` are for the subclass."""

    # -- what an integration must say ------------------------------------------------------------------

    def declare(self, gate: Gate) -> Effect[...]:
        """Declare the effect on a gate, at the service as it is in this test."""
        raise NotImplementedError

    def arguments(self, number: int) -> dict[str, Any]:
        """Arguments of the request with this number; each number is a request and a subject of its own."""
        raise NotImplementedError

    def inject(self, fault: Fault) -> None:
        """Let a fault happen to the next send. Call ``self.skipTest`` for one that cannot be made."""
        raise NotImplementedError

    def landed(self, number: int) -> int:
        """How often the service has carried out the request with this number: the truth to judge by."""
        raise NotImplementedError

    def requests(self) -> int:
        """How many sends have arrived at the service, whole, since the test began."""
        raise NotImplementedError

    # -- what it may say ---------------------------------------------------------------------------------

    def quiet(self, count: int) -> None:
        """Wait until the service has dealt with so many sends, or holds them."""

    def release(self) -> None:
        """Let the service carry out what it holds; it has when this returns."""
        self._unsupported("release")

    def disturb(self, number: int) -> None:
        """Somebody changes the world so that the premises of this request fail, whether or not it has landed."""
        self._unsupported("disturb")

    def crowd(self, number: int) -> None:
        """Others do so much that this request's effect is not on the first page of any listing."""
        self._unsupported("crowd")

    def later(self, seconds: float) -> None:
        """The service's clock moves on as well."""

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        """Changes to ``arguments(1)``, each of which must be refused before anything is written or sent."""
        return ({"no_such_argument": 1},)

    def secrets(self) -> Iterable[str]:
        """Texts that no record may hold, such as the key in use."""
        return ()

    # -- how the kit works -----------------------------------------------------------------------------------

    def setUp(self) -> None:
        """Make a journal for the test, with a clock to be moved."""
        super().setUp()
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # what a commit costs is not what this is about
        folder = tempfile.TemporaryDirectory(prefix="kit-", dir=memory)
        self.addCleanup(folder.cleanup)
        self.kit_folder = Path(folder.name)
        self.kit_clock = KitClock()

    def _unsupported(self, hook: str) -> None:
        self.skipTest(f"{type(self).__name__} does not say how to {hook}")

    def _open(self) -> tuple[Gate, Effect[...]]:
        """The gate of a process that has just started, over the test's journal."""
        gate = Gate(SqliteJournal(self.kit_folder / "kit.db", self.kit_clock), retry=3.0)
        self.addCleanup(gate.close)
        return gate, self.declare(gate)

    def _die(self, point: CrashPoint, act: Callable[[Gate, Effect[...]], Any]) -> None:
        """Run ``act`` in a process that is killed at ``point``."""
        pid = os.fork()
        if pid == 0:
            try:
                arm(point)
                gate = Gate(SqliteJournal(self.kit_folder / "kit.db", self.kit_clock), retry=3.0)
                act(gate, self.declare(gate))
            finally:
                os._exit(99)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        self.assertTrue(killed, f"the process was not killed at {point.value}: it ended with {status}")

    def _die_calling(self, point: CrashPoint, number: int) -> None:
        def act(gate: Gate, effect: Effect[...]) -> None:
            if point is CrashPoint.AFTER_PROPOSED:
                effect.propose(**self.arguments(number))
            effect(**self.arguments(number))

        sent = self.requests()
        self._die(point, act)
        if point in (CrashPoint.IN_FLIGHT, CrashPoint.AFTER_RESPONSE, CrashPoint.AFTER_COMMITTED):
            self.quiet(sent + 1)

    def _wait_out(self, effect: Effect[...]) -> None:
        """Time passes until no request that was sent can land any more and every lookup shows it."""
        contract = effect.definition.contract
        seconds = (contract.send_timeout_ms + contract.lookup_lag_ms) / 1000 + 2
        self.kit_clock.advance(seconds)
        self.later(seconds)

    def _settled(self, gate: Gate, effect: Effect[...], number: int) -> Outcome:
        """The outcome once everything was recovered, asked for again, and waited out where that is due."""
        gate.recover()
        outcome = effect(**self.arguments(number))
        if str(outcome).startswith("IN_FLIGHT"):
            self._wait_out(effect)
            gate.recover()
            outcome = effect(**self.arguments(number))
        return outcome

    def _is(self, outcome: Outcome, expected: str, number: int, landed: int) -> None:
        self.assertEqual(str(outcome).split(":")[0], expected, outcome.message)
        self.assertEqual(self.landed(number), landed, f"the service holds something else; it was said: {outcome}")

    def _repeatable(self, effect: Effect[...]) -> bool:
        """Whether the service itself makes one of two equal sends, for decisions like those of ``arguments``."""
        contract = effect.definition.declared
        return bool(contract.dedupes) or bool(contract.enforces)

    # -- the tests -----------------------------------------------------------------------------------------

    def test_kit_it_happens_once(self) -> None:
        gate, effect = self._open()
        first = effect(**self.arguments(1))
        self._is(first, "COMMITTED", 1, 1)
        second = effect(**self.arguments(1))
        self.assertEqual((second.result, second.effect_id, self.requests()), (first.result, first.effect_id, 1))
        sends = [entry for entry in gate.history(first.effect_id) if entry.kind is Kind.DISPATCHED]
        self.assertEqual(len(sends), 1, "one journalled send is one request on the wire")

    def test_kit_killed_at_every_crash_point(self) -> None:
        for number, point in enumerate(SENDING, 1):
            self._die_calling(point, number)
        gate, effect = self._open()
        for number, point in enumerate(SENDING, 1):
            with self.subTest(point.value):
                outcome = self._settled(gate, effect, number)
                self._is(outcome, "COMMITTED", number, 1)
        sent = self.requests()
        gate.recover()
        self.assertEqual(self.requests(), sent, "everything was settled")

    def test_kit_killed_during_recovery(self) -> None:
        for number, _ in enumerate(RECOVERING, 1):
            self._die_calling(CrashPoint.BEFORE_BYTES, number)
        dying: dict[CrashPoint, int] = {}
        for point in RECOVERING:
            try:
                self._die(point, lambda gate, effect: gate.recover())
                dying[point] = 1
            except AssertionError:  # this service's recovery does not pass here
                dying[point] = 0
        self.assertEqual(dying[CrashPoint.RECOVERY_STARTED] + dying[CrashPoint.RECOVERY_CHECKED], 2)
        gate, effect = self._open()
        for number, _ in enumerate(RECOVERING, 1):
            self._is(self._settled(gate, effect, number), "COMMITTED", number, 1)

    def test_kit_the_world_moves_before_it_was_sent(self) -> None:
        for number, point in enumerate(UNSENT, 1):
            self._die_calling(point, number)
            self.disturb(number)
        gate, effect = self._open()
        gate.recover()
        for number, point in enumerate(UNSENT, 1):
            with self.subTest(point.value):
                self._is(effect(**self.arguments(number)), "REFUSED", number, 0)
        self.assertEqual(self.requests(), 0)

    def test_kit_the_world_moves_after_it_landed(self) -> None:
        for number, point in enumerate(LANDED, 1):
            self._die_calling(point, number)
            self.disturb(number)
        gate, effect = self._open()
        for number, point in enumerate(LANDED, 1):
            with self.subTest(point.value):
                self._is(self._settled(gate, effect, number), "COMMITTED", number, 1)
        self.assertEqual(self.requests(), len(LANDED), "nothing was sent again")

    def test_kit_an_unknown_answer(self) -> None:
        gate, effect = self._open()
        for number, fault in enumerate((Fault.CUT_AFTER, Fault.ERROR_AFTER, Fault.CUT_BEFORE), 1):
            with self.subTest(fault.value):
                self.inject(fault)
                effect(**self.arguments(number))
                self._is(self._settled(gate, effect, number), "COMMITTED", number, 1)

    def test_kit_it_lands_late(self) -> None:
        """A lookup that comes too early says "not found"; that must not make it happen twice."""
        self.inject(Fault.HOLD)
        self._die_calling(CrashPoint.IN_FLIGHT, 1)
        gate, effect = self._open()
        gate.recover()
        self.release()
        self._is(self._settled(gate, effect, 1), "COMMITTED", 1, 1)

    def test_kit_two_restarts_at_once(self) -> None:
        self.inject(Fault.CUT_AFTER)
        self._die_calling(CrashPoint.AFTER_RESPONSE, 1)
        first, second = self._open(), self._open()
        for gate, _ in (first, second):
            gate.recover()
        for gate, effect in (first, second):
            self._is(self._settled(gate, effect, 1), "COMMITTED", 1, 1)

    def test_kit_a_request_that_is_repeated_on_the_way(self) -> None:
        gate, effect = self._open()
        if not self._repeatable(effect):
            self.skipTest("this service does not tell a repeated request from a new one, and nobody can help that")
        self.inject(Fault.REPEATED)
        self._is(self._settled(gate, effect, 1), "COMMITTED", 1, 1)

    def test_kit_a_rate_limit(self) -> None:
        _, effect = self._open()
        self.inject(Fault.RATE_LIMITED)
        self._is(effect(**self.arguments(1)), "COMMITTED", 1, 1)
        self.assertEqual(self.requests(), 2)

    def test_kit_sends_and_lookups_run_twice(self) -> None:
        """What the functions do without the gate around them."""
        _, effect = self._open()
        definition = effect.definition
        outcome = effect(**self.arguments(1))
        facts = self._facts(effect, outcome.effect_id)
        lookup = definition.lookup
        if lookup is not None:
            payload = definition.bind((), self.arguments(1))
            answers = [lookup.function(**lookup.arguments(payload, outcome.effect_id, facts)) for _ in range(2)]
            values = [getattr(answer, "value", answer) for answer in answers]
            self.assertEqual(values[0], values[1])
            self.assertIsNotNone(values[0])
        if not self._repeatable(effect):
            return
        given: dict[str, Any] = {**self.arguments(1), "idempotency_key": outcome.effect_id, "on_send": lambda: None}
        given["facts"] = facts
        taken = {"idempotency_key": definition.takes_key, "on_send": definition.takes_on_send}
        taken["facts"] = definition.takes_facts
        for _ in range(2):
            with contextlib.suppress(SendError):  # the service may say no, in words that the integration knows
                definition.function(**{name: value for name, value in given.items() if taken.get(name, True)})
        self.assertEqual(self.landed(1), 1)

    def _facts(self, effect: Effect[...], effect_id: str) -> dict[str, Any]:
        entries = effect._gate.history(effect_id)
        found: dict[str, Any] = entries[0].body.get("facts") or {}
        return dict(found)

    def test_kit_the_service_forgets_the_key(self) -> None:
        probe_gate, probe = self._open()
        window_ms = probe.definition.contract.dedupes_ms
        probe_gate.close()
        if window_ms in (0, FOREVER):
            self.skipTest("this service has no key that it forgets")
        self._die_calling(CrashPoint.IN_FLIGHT, 1)
        sent = self.requests()
        self.kit_clock.advance(window_ms / 1000 + 3600)
        self.later(window_ms / 1000 + 3600)
        gate, effect = self._open()
        outcome = self._settled(gate, effect, 1)
        self.assertIn(str(outcome).split(":")[0], ("COMMITTED", "AMBIGUOUS"), outcome.message)
        self.assertEqual((self.landed(1), self.requests()), (1, sent), "nothing was sent under a forgotten key")

    def test_kit_it_is_found_on_a_later_page(self) -> None:
        self._die_calling(CrashPoint.AFTER_RESPONSE, 1)
        self.crowd(1)
        gate, effect = self._open()
        self._is(self._settled(gate, effect, 1), "COMMITTED", 1, 1)

    def test_kit_bad_arguments(self) -> None:
        gate, effect = self._open()
        for change in self.bad_arguments():
            with self.subTest(change), self.assertRaises(BadRequest):
                effect(**{**self.arguments(1), **change})
        self.assertEqual((gate.open_effects(), self.requests()), ([], 0))

    def test_kit_no_secret_is_recorded(self) -> None:
        gate, effect = self._open()
        texts = [repr(effect(**self.arguments(1)))]
        self.inject(Fault.ERROR_AFTER)
        outcome = effect(**self.arguments(2))
        texts += [repr(outcome), outcome.message, repr(gate.history(outcome.effect_id))]
        written = b"".join(path.read_bytes() for path in self.kit_folder.rglob("*") if path.is_file())
        for secret in self.secrets():
            self.assertNotIn(secret.encode(), written)
            for text in texts:
                self.assertNotIn(secret, text)
