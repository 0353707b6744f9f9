"""One test at least for every invariant, by its number, against the real gate and the SQLite journal.

The crash suite, the random schedules and the explorer break these in many more ways; here each stands alone.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import unittest
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from interlock_tools import Budget, DefiniteNo, Gate, Grant, JournalError, Outcome, RateLimited
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.core.states import fold
from interlock_tools.journal.protocol import Write
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.retention import prune
from interlock_tools.testing import CrashPoint
from scenarios.crash.special import try_special
from scenarios.sandbox import SandboxProcess
from tests.gate_support import GateCase, Lands

WAIT_S = 30
"""Bound on every wait for another thread or process."""


class Invariants(GateCase):
    """Helpers: threads and processes that meet at one point."""

    def in_threads(self, *acts: Callable[[], Any]) -> list[Any]:
        """Run functions in threads that start together; return what each returned."""
        barrier = threading.Barrier(len(acts))
        found: list[Any] = [None] * len(acts)

        def go(number: int, act: Callable[[], Any]) -> None:
            barrier.wait(WAIT_S)
            found[number] = act()

        threads = [threading.Thread(target=go, args=pair) for pair in enumerate(acts)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT_S)
        return found

    def in_child(self, act: Callable[[], Any]) -> int:
        """Run a function in a forked child; return its exit code."""
        pid = os.fork()
        if pid == 0:
            code = 99
            try:
                act()
                code = 0
            finally:
                os._exit(code)
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def slow_commits(self, of: Kind, seconds: float, skip: int = 0) -> Gate:
        """A gate whose commits of one kind of entry take ``seconds`` by the machine's clock, but for the first ones."""
        clock = self.clock
        left = [skip]

        class Slow(SqliteJournal):
            def append(self, writes: Sequence[Write]) -> None:
                super().append(writes)
                if any(entry.kind is of for write in writes for entry in write.entries):
                    left[0] -= 1
                    if left[0] < 0:
                        clock.advance(seconds)

        gate = Gate(Slow(self.path, self.clock), retry=0.3)
        self.addCleanup(gate.close)
        return gate


class I1DurableBeforeSent(Invariants):
    """Nothing is sent unless its DISPATCHED entry is durable. See also ``test_wire_order``."""

    def test_i1_another_process_can_read_the_dispatch_while_it_is_sent(self) -> None:
        script = (
            "import sqlite3, sys; "
            "rows = sqlite3.connect(f'file:{sys.argv[1]}?mode=ro', uri=True).execute('SELECT kind FROM entries'); "
            "print(','.join(kind for kind, in rows))"
        )
        seen: list[str] = []

        def look(request: Any) -> str:
            command = [sys.executable, "-c", script, str(self.path)]
            seen.append(subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip())
            return "re_1"

        self.service.script = [look]
        self.assertOutcome(self.refund()(case="1"), "COMMITTED")
        self.assertEqual(seen, ["proposed,authorized,dispatched"])

    def test_i1_a_journal_that_fails_sends_nothing(self) -> None:
        class Failing(SqliteJournal):
            def append(self, writes: Sequence[Write]) -> None:
                raise JournalError("the disk is full")

        gate = Gate(Failing(self.path, self.clock))
        self.addCleanup(gate.close)
        effect = self.refund(gate=gate)
        with self.assertRaises(JournalError):
            effect(case="1")
        self.assertEqual(self.service.requests, [])


class I2NeverTwice(Invariants):
    """An effect id is never sent by two senders at once, nor again while an earlier send may still land."""

    def racing(self, **options: Any) -> None:
        """While one thread is sending, others ask for the same: in the same process, and in another."""
        sending, go_on = threading.Event(), threading.Event()
        self.addCleanup(go_on.set)

        def slowly(request: Any) -> str:
            sending.set()
            go_on.wait(WAIT_S)
            return "re_1"

        self.service.script = [slowly]
        effect = self.refund(**options)
        answers: list[Outcome] = []
        sender = threading.Thread(target=lambda: answers.append(effect(case="1")))
        sender.start()
        self.assertTrue(sending.wait(WAIT_S))
        self.clock.advance(3600)
        self.assertOutcome(effect(case="1"), "IN_FLIGHT:sending")
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["IN_FLIGHT:sending"])
        other = self.open()
        self.assertOutcome(self.refund(gate=other, **options)(case="1"), "IN_FLIGHT:sending")
        go_on.set()
        sender.join(WAIT_S)
        self.assertOutcome(answers[0], "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)

    def test_i2_what_was_archived_is_never_sent_again_and_what_is_open_is_never_archived(self) -> None:
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.refund(gate=gate)(case="open"))
        effect = self.refund()
        done = effect(case="done")
        self.clock.advance(86_400)
        report = prune(self.gate, timedelta(0), self.folder / "archive")
        self.assertEqual((dict(report.archived), dict(report.kept)), ({"test.refund": 1}, {"open": 1}))
        self.assertEqual([row.phase for row in self.gate.journal.effects()], ["dispatched", "archived"])
        self.assertEqual(effect(case="done"), done)
        self.assertEqual(self.refund(gate=self.open())(case="done"), done)
        self.assertEqual(len(self.service.requests), 1)

    def test_i2_while_one_thread_sends_nobody_else_does(self) -> None:
        self.racing(dedupes=True)

    def test_i2_nor_where_marks_prove_nothing(self) -> None:
        self.racing(dedupes=True, marks=False)

    def test_i2_a_resend_whose_commit_took_until_the_key_was_forgotten_is_not_sent(self) -> None:
        gate = self.slow_commits(Kind.DISPATCHED, 2 * 86_400, skip=1)
        effect = self.refund(gate=gate, dedupes=timedelta(days=1))
        self.service.script = [Lands(TimeoutError())]
        outcome = effect(case="1")
        self.assertEqual(len(self.service.requests), 1)
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")

    def test_i2_a_first_send_whose_commit_took_as_long_is_not_sent_either(self) -> None:
        gate = self.slow_commits(Kind.DISPATCHED, 2 * 86_400)
        effect = self.refund(gate=gate, dedupes=timedelta(days=1))
        self.assertOutcome(effect(case="1"), "REFUSED:unreachable")
        self.assertEqual(self.service.requests, [])

    def test_i2_where_a_fork_runs_the_send_function_twice_only_the_parent_sends_and_records(self) -> None:
        service, pids = self.service, []

        @self.gate.effect("forks", key=lambda case: case)
        def effect(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            pid = os.fork()
            pids.append(pid)
            if pid:
                os.waitpid(pid, 0)
            on_send()
            return service.create(idempotency_key, case=case)

        parent = os.getpid()
        try:
            outcome = effect(case="1")
        finally:
            if os.getpid() != parent:
                os._exit(0)
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(self.kinds(outcome), ["proposed", "authorized", "dispatched", "committed"])

    def test_i2_a_child_that_is_forked_after_the_bytes_records_nothing(self) -> None:
        service = self.service

        @self.gate.effect("forks", key=lambda case: case)
        def effect(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            made = service.create(idempotency_key, case=case)
            pid = os.fork()
            if not pid:
                raise TimeoutError("the child sees no answer")
            os.waitpid(pid, 0)
            return made

        parent = os.getpid()
        try:
            outcome = effect(case="1")
        finally:
            if os.getpid() != parent:
                os._exit(0)
        self.assertEqual(self.kinds(outcome), ["proposed", "authorized", "dispatched", "committed"])


class I3ReadAgain(Invariants):
    """Before every send and after every wait the premises and the grant are read again."""

    def test_i3_after_a_rate_limit_moved_facts_send_nothing(self) -> None:
        self.facts["refunded"] = 0

        def busy(request: Any) -> Any:
            self.facts["refunded"] = 500
            raise RateLimited(retry_after=0.01)

        self.service.script = [busy]
        outcome = self.refund(premises=lambda: dict(self.facts))(case="1")
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(outcome.changes, {"refunded": {"was": 0, "now": 500}})
        self.assertEqual(len(self.service.requests), 1)

    def test_i3_after_a_death_a_revoked_grant_sends_nothing(self) -> None:
        grants: list[Grant | None] = [Grant("g-1")]
        self.dies_at(CrashPoint.BEFORE_MARK, lambda gate: self.refund(gate=gate, allowed=lambda: grants[0])(case="1"))
        self.refund(allowed=lambda: grants[0])
        grants[0] = None
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["REFUSED:not_allowed"])
        self.assertEqual(self.service.requests, [])

    def test_i3_what_cannot_be_read_neither_sends_nor_refuses(self) -> None:
        readable = [True]

        def premises() -> dict[str, Any]:
            if not readable[0]:
                raise ConnectionError("the service is away")
            return {}

        self.dies_at(CrashPoint.BEFORE_MARK, lambda gate: self.refund(gate=gate, premises=premises)(case="1"))
        self.refund(premises=premises)
        readable[0] = False
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["IN_FLIGHT:unreadable"])
        self.assertEqual(self.service.requests, [])
        readable[0] = True
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["COMMITTED"])


class I4Payload(Invariants):
    """A decision's first payload is the only one that is ever sent under its effect id."""

    def test_i4_another_payload_is_refused_before_and_after_the_commit(self) -> None:
        self.dies_at(CrashPoint.BEFORE_MARK, lambda gate: self.refund(gate=gate)(case="1", amount=2000))
        effect = self.refund()
        for _ in range(2):
            outcome = effect(case="1", amount=1500)
            self.assertOutcome(outcome, "REFUSED:conflicting_payload")
            assert outcome.existing is not None
            self.assertOutcome(outcome.existing, "COMMITTED")
            self.assertTrue(outcome.message.startswith(outcome.existing.message))
        self.assertEqual([made["amount"] for made in self.service.created], [2000])

    def test_i4_another_payload_is_refused_after_the_archive_too(self) -> None:
        effect = self.refund()
        done = effect(case="1", amount=2000)
        self.clock.advance(86_400)
        prune(self.gate, timedelta(0), self.folder / "archive")
        outcome = effect(case="1", amount=1500)
        self.assertOutcome(outcome, "REFUSED:conflicting_payload")
        self.assertEqual(outcome.existing, done)
        self.assertTrue(outcome.message.startswith(done.message))
        self.assertEqual([made["amount"] for made in self.service.created], [2000])


class I5Budgets(Invariants):
    """What is in flight, committed or ambiguous never exceeds the limit; nothing is leaked or swept."""

    def capped(self, gate: Gate | None = None) -> Any:
        return self.refund(gate=gate, budget=lambda amount: Budget("cap", amount, 3000))

    def test_i5_processes_that_race_for_one_cap_never_overdraw(self) -> None:
        results, barrier = os.pipe(), os.pipe()
        count = 6
        pids = []
        for number in range(count):
            pid = os.fork()
            if pid == 0:
                try:
                    os.close(barrier[1])
                    effect = self.capped(Gate(SqliteJournal(self.path, self.clock)))
                    os.read(barrier[0], 1)  # returns when the parent closes its end
                    os.write(results[1], json.dumps([number, str(effect(case=f"case-{number}"))]).encode() + b"\n")
                finally:
                    os._exit(0)
            pids.append(pid)
        os.close(barrier[1])
        for pid in pids:
            os.waitpid(pid, 0)
        os.close(results[1])
        os.close(barrier[0])
        with os.fdopen(results[0]) as lines:
            told = sorted(json.loads(line)[1] for line in lines)
        self.assertEqual(told, ["COMMITTED", *["REFUSED:over_budget"] * (count - 1)])
        self.assertEqual(self.gate.budget("cap").used, 2000)

    def test_i5_a_death_before_the_dispatch_reserves_nothing(self) -> None:
        self.dies_at(CrashPoint.BEFORE_JOURNAL, lambda gate: self.capped(gate)(case="1"))
        self.assertEqual(self.gate.budget("cap").used, 0)
        self.assertOutcome(self.capped()(case="2"), "COMMITTED")

    def test_i5_a_death_after_it_keeps_the_reservation_until_it_is_settled(self) -> None:
        for point in (CrashPoint.AFTER_DISPATCHED, CrashPoint.BEFORE_BYTES):
            case = point.value
            self.dies_at(point, lambda gate, case=case: self.capped(gate)(case=case))  # type: ignore[misc]
            self.assertEqual(self.gate.budget("cap").used, 2000)
            other = self.open()
            self.assertOutcome(self.capped(other)(case="other"), "REFUSED:over_budget")
            if point is CrashPoint.AFTER_DISPATCHED:
                moved = self.open()
                self.refund(gate=moved, premises=lambda: {"moved": True})
                self.assertEqual([str(outcome) for outcome in moved.recover()], ["REFUSED:stale_premise"])
                self.assertEqual(self.gate.budget("cap").used, 0)
            else:
                settled = self.open()
                self.capped(settled)
                self.assertEqual([str(outcome) for outcome in settled.recover()], ["AMBIGUOUS:no_evidence"])
                self.assertEqual(self.gate.budget("cap").used, 2000)
                self.gate.resolve(settled.pending()[0].effect_id, landed=False, by="a person", why="not at the service")
                self.assertEqual(self.gate.budget("cap").used, 0)

    def test_i5_time_never_sweeps_a_reservation(self) -> None:
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.capped(gate)(case="1"))
        self.clock.advance(365 * 86_400)
        self.assertOutcome(self.capped()(case="2"), "REFUSED:over_budget")

    def test_i5_what_was_archived_still_counts(self) -> None:
        capped = self.capped()
        self.assertOutcome(capped(case="1"), "COMMITTED")
        self.clock.advance(365 * 86_400)
        self.assertEqual(prune(self.gate, timedelta(days=1), self.folder / "archive").archived.total(), 1)
        self.assertOutcome(capped(case="2"), "REFUSED:over_budget")


class I6LiveSenders(unittest.TestCase):
    """A sender that is alive is never taken over, also when it is stopped; real processes and a real service."""

    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("generic").start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def test_i6_a_stopped_sender_is_reported_with_who_it_is_and_goes_on(self) -> None:
        for name in ("stopped~dedupes~before_bytes", "stopped~lookup~in_flight", "stopped~lookup_unmarked~in_flight"):
            with self.subTest(name):
                found = try_special(self.sandbox, name, 1)
                self.assertEqual(found["problems"], [], found["trace"])

    def test_i6_a_stopped_sender_that_is_killed_is_dead(self) -> None:
        found = try_special(self.sandbox, "stopped_killed~dedupes~in_flight", 1)
        self.assertEqual(found["problems"], [], found["trace"])


class I6Holder(Invariants):
    def test_i6_the_holder_is_the_send_not_the_process(self) -> None:
        self.service.script = [TimeoutError()]
        effect = self.looked_up()
        self.assertOutcome(effect(case="1"), "IN_FLIGHT:waiting")
        self.clock.advance(91)
        self.assertOutcome(effect(case="1"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 2)

    def test_i6_unknown_is_written_only_when_a_cancelled_send_has_ended(self) -> None:
        service = self.service

        async def story() -> tuple[list[str], Outcome, Outcome]:
            handed_over, go_on = asyncio.Event(), asyncio.Event()

            @self.gate.effect("async", key=lambda case: case)
            async def effect(case: str, *, idempotency_key: str, on_send: Any) -> Any:
                on_send()
                handed_over.set()
                await go_on.wait()
                return service.create(idempotency_key, case=case)

            call = asyncio.ensure_future(effect(case="1"))
            await asyncio.wait_for(handed_over.wait(), WAIT_S)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            meanwhile = await effect(case="1")
            kinds = self.kinds(meanwhile)
            go_on.set()
            after = await asyncio.wait_for(effect.ainvoke((), {"case": "1"}, wait=WAIT_S), WAIT_S)
            return kinds, meanwhile, after

        kinds, meanwhile, after = asyncio.run(story())
        self.assertEqual(kinds, ["proposed", "authorized", "dispatched"])
        self.assertOutcome(meanwhile, "IN_FLIGHT:sending")
        self.assertOutcome(after, "COMMITTED")
        self.assertEqual(self.kinds(after), ["proposed", "authorized", "dispatched", "committed"])
        self.assertEqual(len(self.service.requests), 1)

    def test_i6_a_send_that_is_cancelled_before_on_send_is_not_sent(self) -> None:
        service = self.service

        async def story() -> Outcome:
            called, go_on = asyncio.Event(), asyncio.Event()

            @self.gate.effect("async", key=lambda case: case)
            async def effect(case: str, *, idempotency_key: str, on_send: Any) -> Any:
                called.set()
                await go_on.wait()
                on_send()
                return service.create(idempotency_key, case=case)

            call = asyncio.ensure_future(effect(case="1"))
            await asyncio.wait_for(called.wait(), WAIT_S)
            call.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await call
            self.assertOutcome(await effect(case="1"), "IN_FLIGHT:sending")
            go_on.set()
            for _ in range(1000):
                outcome = self.gate.outcome(effect.effect_id(case="1"))
                if str(outcome) != "IN_FLIGHT:waiting":
                    return outcome
                await asyncio.sleep(0.01)
            return outcome

        self.assertOutcome(asyncio.run(story()), "REFUSED:unreachable")
        self.assertEqual(self.service.requests, [])


class I7NotFound(Invariants):
    """A lookup's "not found" counts only if it began when nothing could land any more, plus its lag."""

    def test_i7_not_found_counts_from_the_end_of_the_last_landing_plus_the_lag(self) -> None:
        self.service.script = [TimeoutError()]
        effect = self.refund(
            lookup=self.service.find, lookup_lag=timedelta(seconds=10), send_timeout=timedelta(seconds=90)
        )
        self.assertOutcome(effect(case="1"), "IN_FLIGHT:waiting")
        for seconds in (85, 9):  # 94 s: nothing can land any more, but the lookup may not show it yet
            self.clock.advance(seconds)
            self.assertOutcome(effect(case="1"), "IN_FLIGHT:waiting")
            self.assertEqual(len(self.service.requests), 1)
        self.clock.advance(7)
        self.assertOutcome(effect(case="1"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 2)

    def test_i7_what_lands_at_the_last_moment_is_found(self) -> None:
        requests: list[Any] = []

        def lost(request: Any) -> Any:
            requests.append(request)
            raise TimeoutError

        self.service.script = [lost]
        effect = self.looked_up()
        self.assertOutcome(effect(case="1"), "IN_FLIGHT:waiting")
        self.clock.advance(89)
        self.assertOutcome(effect(case="1"), "IN_FLIGHT:waiting")
        self.service._land(requests[0]["key"], {})
        outcome = effect(case="1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, len(self.service.requests)), ("lookup", 1))


class I8TrueAnswers(Invariants):
    """COMMITTED only on evidence, REFUSED only if nothing landed or can, and otherwise why and until when."""

    def test_i8_a_result_after_the_end_is_late_and_never_hidden(self) -> None:
        """The sender's session file goes, so it is lost, not dead; a person decides; then its answer comes."""
        sending, go_on = os.pipe(), os.pipe()

        def slowly(request: Any) -> str:
            os.write(sending[1], b"!")
            os.read(go_on[0], 1)
            return "re_1"

        self.service.script = [slowly]
        pid = os.fork()
        if pid == 0:
            try:
                self.refund(gate=Gate(SqliteJournal(self.path, self.clock)))(case="1")
            finally:
                os._exit(0)
        os.read(sending[0], 1)
        for name in self.folder.glob("journal.db.sessions/*"):
            if len(name.name) == 32:
                name.unlink()
        effect = self.refund()
        outcome = effect(case="1")
        self.assertOutcome(outcome, "AMBIGUOUS:sender_lost")
        self.gate.resolve(outcome.effect_id, landed=False, by="a person", why="looked too early")
        os.write(go_on[1], b"!")
        os.waitpid(pid, 0)
        self.assertEqual(self.kinds(outcome)[-2:], ["resolved", "late"])
        self.assertEqual(self.body(outcome, "late")["result"]["evidence"], "re_1")
        for end in (*sending, *go_on):
            os.close(end)

    def test_i8_an_answer_stored_after_the_key_was_forgotten_says_nothing_about_earlier_sends(self) -> None:
        options: dict[str, Any] = {
            "dedupes": timedelta(days=1),
            "enforces": ("fact",),
            "premises": lambda: {"fact": 1},
        }
        self.dies_at(CrashPoint.AFTER_RESPONSE, lambda gate: self.refund(gate=gate, **options)(case="1"))
        self.refund(**options)
        self.clock.advance(2 * 86_400)
        self.service.script = [DefiniteNo("declined", stored=True)]
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["AMBIGUOUS:no_evidence"])
        self.assertEqual(len(self.service.requests), 1)

    def test_i8_what_may_still_land_is_not_refused_and_says_until_when(self) -> None:
        facts = {"owner": "ann"}
        self.service.script = [TimeoutError()]

        def premises() -> dict[str, Any]:
            return dict(facts) if not self.service.requests else {"owner": "bob"}

        outcome = self.looked_up(premises=premises)(case="1")
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertAlmostEqual(outcome.retry_after_s or 0, 90, delta=5)
        self.clock.advance(91)
        self.assertEqual([str(found) for found in self.gate.recover()], ["REFUSED:stale_premise"])


class I9Settled(Invariants):
    """Removing every SETTLED entry changes no decision."""

    def test_i9_without_its_settled_entries_every_state_is_the_same(self) -> None:
        effect = self.refund(budget=lambda amount: Budget("cap", amount, 10_000))
        landed = effect(case="1")
        unclear = self.resolved()
        for outcome in (landed, unclear):
            plain = fold(self.gate.history(outcome.effect_id))
            for state in ("at_risk", "failed", "reversed"):
                self.append_elsewhere(outcome.effect_id, (Kind.SETTLED, {"state": state, "detail": None}))
            settled = fold(self.gate.history(outcome.effect_id))
            self.assertEqual(settled._replace(settled=None, seq=plain.seq), plain)
            self.assertEqual(str(self.gate.outcome(outcome.effect_id)), "COMMITTED")
        self.assertOutcome(effect(case="1"), "COMMITTED")
        self.assertEqual(self.gate.budget("cap").used, 2000)
        self.assertEqual(list(self.gate.recover()), [])
        self.assertEqual(len(self.service.requests), 2)

    def resolved(self) -> Outcome:
        self.service.script = [TimeoutError()]
        outcome = self.refund(name="other")(case="2")
        return self.gate.resolve(outcome.effect_id, landed=True, by="a person", why="seen at the service")

    def test_i9_a_journal_without_them_decides_the_same(self) -> None:
        outcome = self.refund()(case="1")
        self.append_elsewhere(outcome.effect_id, (Kind.SETTLED, {"state": "failed", "detail": "closed account"}))
        kept = [entry for entry in self.gate.history(outcome.effect_id) if entry.kind is not Kind.SETTLED]
        renumbered = [Entry(e.effect_id, number, e.kind, e.at_ms, e.body) for number, e in enumerate(kept, 1)]
        self.assertEqual(fold(renumbered).phase, fold(self.gate.history(outcome.effect_id)).phase)


class I10Ends(Invariants):
    """If the service answers, recovery brings every open effect to an end in bounded time."""

    def test_i10_one_recovery_after_the_longest_wait_ends_everything(self) -> None:
        contracts: dict[str, dict[str, Any]] = {
            "neither": {},
            "dedupes": {"dedupes": True},
            "window": {"dedupes": timedelta(hours=1)},
            "lookup": {"lookup": self.service.find, "lookup_lag": timedelta(seconds=5)},
            "enforces": {"enforces": ("fact",), "premises": lambda: {"fact": 1}},
            "both": {"dedupes": timedelta(hours=1), "lookup": self.service.find},
        }
        for name, options in contracts.items():
            for point in (CrashPoint.AFTER_DISPATCHED, CrashPoint.BEFORE_BYTES, CrashPoint.AFTER_RESPONSE):
                case = f"{name}-{point.value}"
                self.dies_at(point, lambda gate, n=name, o=options, c=case: self.refund(n, gate, **o)(case=c))  # type: ignore[misc]
        for name, options in contracts.items():
            self.refund(name, **options)
        self.gate.recover()
        self.clock.advance(96)
        report = self.gate.recover()
        self.assertEqual(report.blocked, [])
        self.assertEqual({row.phase for row in self.gate.open_effects()}, {"ambiguous"})
        self.assertEqual({outcome.effect for outcome in self.gate.pending()}, {"neither"})


if __name__ == "__main__":
    unittest.main()
