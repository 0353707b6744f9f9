"""Recovery, waiting, and what a person decides: recover, settle, pending, resolve, redecide, history."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import BadArguments, DefiniteNo, Gate, NotDecidable, NotRegistered, NotSent, RateLimited, Status
from interlock_tools.core.entries import Kind
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing import CrashPoint


class AfterADeath(GateCase):
    """A process is killed; another takes its effects over at once, by what its contract allows."""

    def died(self, point: CrashPoint, *, landed: bool = False, **options: Any) -> Any:
        """Let a child die in the middle of request "1"; return the effect as this process declares it."""
        self.dies_at(point, lambda gate: self.refund(gate=gate, **options)("1"))
        refund = self.refund(**options)
        if landed:
            self.service.by_key[refund.effect_id("1")] = {"id": "re_child"}
        return refund

    def recovered(self) -> Any:
        report = self.gate.recover()
        self.assertEqual(len(report), 1)
        return report.outcomes[0]

    def test_before_the_journal_nothing_is_known_and_nothing_was_sent(self) -> None:
        refund = self.died(CrashPoint.BEFORE_JOURNAL)
        self.assertEqual(len(self.gate.recover()), 0)
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_after_a_proposal_the_call_sends(self) -> None:
        self.dies_at(CrashPoint.AFTER_PROPOSED, lambda gate: self.refund(gate=gate).propose("1"))
        refund = self.refund()
        self.assertOutcome(self.recovered(), "IN_FLIGHT:waiting")
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_without_a_mark_not_one_byte_was_sent(self) -> None:
        """Whatever the service offers: nothing is ambiguous, and nothing is waited for."""
        for point in (CrashPoint.AFTER_DISPATCHED, CrashPoint.BEFORE_MARK):
            with self.subTest(point):
                self.path = self.folder / f"{point.value}.db"
                self.gate = self.open()
                self.died(point)
                outcome = self.recovered()
                self.assertOutcome(outcome, "COMMITTED")
                self.assertTrue(outcome.at_recovery)
                self.assertEqual(self.body(outcome, "not_landed"), {"sends": [1], "proof": "mark"})

    def test_without_a_mark_and_with_facts_moved_it_is_refused_at_once(self) -> None:
        self.facts = {"open": True}
        self.died(CrashPoint.BEFORE_MARK, premises=lambda: self.facts)
        self.facts = {"open": False}
        outcome = self.recovered()
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertTrue(outcome.at_recovery)
        self.assertTrue(self.gate.outcome(outcome.effect_id).at_recovery)
        self.assertEqual(self.service.requests, [])

    def test_marked_and_deduped_is_resent_at_once(self) -> None:
        self.died(CrashPoint.BEFORE_BYTES, landed=True, dedupes=timedelta(hours=24))
        outcome = self.recovered()
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, outcome.result), ("resend", {"id": "re_child"}))

    def test_marked_and_looked_up(self) -> None:
        self.died(CrashPoint.AFTER_RESPONSE, landed=True, lookup=self.service.find)
        outcome = self.recovered()
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, outcome.result), ("lookup", {"id": "re_child"}))
        self.assertEqual(self.service.requests, [])

    def test_not_found_counts_only_when_nothing_can_land_any_more(self) -> None:
        """I7."""
        self.died(CrashPoint.BEFORE_BYTES, lookup=self.service.find, lookup_lag=timedelta(seconds=5))
        outcome = self.recovered()
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertGreater(outcome.retry_after_s or 0, 90)
        self.clock.advance(94)
        self.assertOutcome(self.recovered(), "IN_FLIGHT:waiting")
        self.assertEqual(self.service.requests, [])
        self.clock.advance(2)
        outcome = self.recovered()
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(self.body(outcome, "not_landed"), {"sends": [1], "proof": "lookup"})
        self.assertEqual(len(self.service.requests), 1)

    def test_found_late_is_found(self) -> None:
        refund = self.died(CrashPoint.BEFORE_BYTES, lookup=self.service.find)
        self.assertOutcome(self.recovered(), "IN_FLIGHT:waiting")
        self.service.by_key[refund.effect_id("1")] = {"id": "re_child"}
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_marked_with_neither_is_for_a_person(self) -> None:
        self.died(CrashPoint.BEFORE_BYTES)
        outcome = self.recovered()
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertEqual([found.effect_id for found in self.gate.pending()], [outcome.effect_id])

    def test_facts_moved_and_nothing_enforced_waits_for_the_lookup_to_count(self) -> None:
        self.facts = {"open": True}
        self.died(CrashPoint.BEFORE_BYTES, premises=lambda: self.facts, lookup=self.service.find, dedupes=True)
        self.facts = {"open": False}
        self.assertOutcome(self.recovered(), "IN_FLIGHT:waiting")
        self.clock.advance(91)
        self.assertOutcome(self.recovered(), "REFUSED:stale_premise")
        self.assertEqual(self.service.requests, [])

    def test_facts_moved_where_it_landed_is_committed(self) -> None:
        self.facts = {"open": True}
        self.died(
            CrashPoint.AFTER_RESPONSE, landed=True, premises=lambda: self.facts, lookup=self.service.find, dedupes=True
        )
        self.facts = {"open": False}
        self.assertOutcome(self.recovered(), "COMMITTED")

    def test_facts_moved_with_no_lookup_is_for_a_person(self) -> None:
        self.facts = {"open": True}
        self.died(CrashPoint.BEFORE_BYTES, premises=lambda: self.facts, dedupes=True)
        self.facts = {"open": False}
        self.assertOutcome(self.recovered(), "AMBIGUOUS:no_evidence")

    def test_unreadable_facts_leave_it_open(self) -> None:
        """I3: what cannot be read does not hold, and does not refuse either."""
        self.facts = {"open": True}
        refund = self.died(CrashPoint.BEFORE_BYTES, premises=lambda: self.facts, dedupes=True)
        self.facts = None  # type: ignore[assignment]
        outcome = self.recovered()
        self.assertOutcome(outcome, "IN_FLIGHT:unreadable")
        self.assertIn("may have taken effect", outcome.message)
        self.assertEqual(self.service.requests, [])
        self.facts = {"open": True}
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_a_lookup_that_raises_leaves_it_open(self) -> None:
        def lookup(idempotency_key: str) -> Any:
            raise ConnectionError("search is down")

        self.died(CrashPoint.BEFORE_BYTES, lookup=lookup)
        outcome = self.recovered()
        self.assertOutcome(outcome, "IN_FLIGHT:unreadable")
        self.assertIn("search is down", outcome.message)
        self.clock.advance(1000)
        self.assertOutcome(self.recovered(), "IN_FLIGHT:unreadable")
        self.assertEqual(self.service.requests, [])

    def test_a_lookup_that_returns_what_proves_nothing_is_neither_yes_nor_no(self) -> None:
        answers: list[Any] = [0, {}, [], "", False, True, 0.0, {"id": None}]
        found: list[Any] = []
        self.died(CrashPoint.BEFORE_BYTES, lookup=lambda idempotency_key: found[0])
        for answer in answers:
            with self.subTest(answer):
                found[:] = [answer]
                outcome = self.recovered()
                self.assertOutcome(outcome, "IN_FLIGHT:unreadable")
                self.assertIn("proves nothing", outcome.message)
        found[:] = [None]
        self.assertOutcome(self.recovered(), "IN_FLIGHT:waiting")  # counted from when its death was seen
        self.clock.advance(91)
        self.assertOutcome(self.recovered(), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)

    def test_a_grant_that_was_revoked_meanwhile(self) -> None:
        from interlock_tools import Grant

        grants = [Grant("g")]
        self.died(CrashPoint.BEFORE_MARK, allowed=lambda: grants[0] if grants else None)
        grants.clear()
        self.assertOutcome(self.recovered(), "REFUSED:not_allowed")

    def test_killed_again_in_recovery(self) -> None:
        self.died(CrashPoint.BEFORE_BYTES, dedupes=True)
        for point in (CrashPoint.RECOVERY_STARTED, CrashPoint.RECOVERY_CHECKED, CrashPoint.BEFORE_BYTES):

            def recover(gate: Any) -> None:
                self.refund(gate=gate, dedupes=True)
                gate.recover()

            self.dies_at(point, recover)
        outcome = self.recovered()
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(self.kinds(outcome).count("dispatched"), 3)

    def test_calling_it_recovers_it_there_and_then(self) -> None:
        refund = self.died(CrashPoint.BEFORE_BYTES, dedupes=True)
        outcome = refund("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertFalse(outcome.at_recovery)

    def test_async_recovery(self) -> None:
        self.died(CrashPoint.BEFORE_BYTES, dedupes=True)
        report = asyncio.run(self.gate.arecover())
        self.assertEqual([str(outcome) for outcome in report], ["COMMITTED"])

    def test_the_code_is_not_loaded_here(self) -> None:
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.refund("gone", gate=gate)("1"))
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.refund("here", gate=gate, dedupes=True)("1"))
        self.refund("here", dedupes=True)
        report = self.gate.recover()
        self.assertEqual([str(outcome) for outcome in report], ["COMMITTED"])
        self.assertEqual([row.name for row in report.unregistered], ["gone"])
        with self.assertRaises(NotRegistered) as raised:
            self.gate.settle(report.unregistered[0].effect_id)
        self.assertIn("'gone' is not declared in this process", str(raised.exception))
        self.refund("gone", dedupes=True)
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["COMMITTED"])  # it was not dropped

    def test_a_forgotten_argument_after_a_redeploy_loses_nothing(self) -> None:
        """The code has changed its arguments since; the old payload no longer fits it."""
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.refund(gate=gate, dedupes=True)("1"))
        gate = self.open()

        @gate.effect("test.refund", key=lambda case: case, dedupes=True, premises=lambda reason: {})
        def refund(case: str, reason: str, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            return self.service.create(idempotency_key, case=case)

        self.assertEqual([str(outcome) for outcome in gate.recover()], ["IN_FLIGHT:unreadable"])
        self.assertOutcome(refund("1", "x"), "REFUSED:conflicting_payload")
        self.assertEqual(self.service.requests, [])
        self.refund(dedupes=True)
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["COMMITTED"])

    def test_one_effect_does_not_hold_up_another(self) -> None:
        for case in ("1", "2", "3"):
            self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate, case=case: self.looked_up(gate=gate)(case))
        refund = self.looked_up()
        self.service.by_key[refund.effect_id("3")] = {"id": "re_3"}
        report = self.gate.recover()
        self.assertEqual([str(found) for found in report], ["IN_FLIGHT:waiting", "IN_FLIGHT:waiting", "COMMITTED"])
        self.assertEqual([found.request_key for found in report.blocked], ["1", "2"])


class ALiveSender(GateCase):
    """Another process is sending, and goes on sending whatever this one does."""

    def setUp(self) -> None:
        super().setUp()
        self.facts = {"open": True}
        self.effect = self.looked_up(premises=lambda: self.facts)
        sending, self.go_on = os.pipe(), os.pipe()
        self.child = os.fork()
        if self.child == 0:
            os.close(self.go_on[1])  # so that the child goes on if its parent ends before its time
            self.send_in_the_child(sending[1])
        os.close(sending[1])
        self.ended: int | None = None
        self.addCleanup(self.answer)
        self.addCleanup(os.close, sending[0])
        self.assertEqual(os.read(sending[0], 1), b"s", "the child never sent")

    def send_in_the_child(self, sending: int) -> None:
        try:
            gate = Gate(SqliteJournal(self.path, self.clock))

            def answer(request: dict[str, Any]) -> Any:
                os.write(sending, b"s")
                os.read(self.go_on[0], 1)
                return {"id": "re_child"}

            self.service.script = [answer]
            os._exit(0 if self.looked_up(gate=gate, premises=lambda: {"open": True})("1").committed else 1)
        finally:
            os._exit(99)

    def answer(self) -> int:
        """Let the child's send end, and return how the child ended."""
        if self.ended is None:
            for end in self.go_on:
                os.close(end)
            self.ended = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        return self.ended

    def test_it_is_never_taken_over(self) -> None:
        """I6."""
        self.clock.advance(10**6)
        self.facts = {"open": False}
        (outcome,) = self.gate.recover()
        self.assertOutcome(outcome, "IN_FLIGHT:sending")
        self.assertEqual((outcome.holder or {})["pid"], self.child)
        self.assertIn(f"process {self.child} on ", outcome.message)
        self.assertOutcome(self.effect("1"), "IN_FLIGHT:sending")
        self.assertEqual(self.answer(), 0)
        self.assertOutcome(self.effect("1"), "COMMITTED")
        self.assertEqual(self.service.requests, [])

    def test_one_whose_session_was_lost_answers_late(self) -> None:
        """A host that tidies up removed its session file; the effect is closed, and then its answer comes."""
        for path in Path(f"{self.path}.sessions").iterdir():
            path.unlink()
        self.facts = {"open": False}
        self.assertOutcome(self.effect("1"), "IN_FLIGHT:waiting")
        self.clock.advance(91)
        self.assertOutcome(self.effect("1"), "REFUSED:stale_premise")
        self.assertIn("sender_lost", self.kinds(self.effect.effect_id("1")))
        self.assertEqual(self.answer(), 1)
        outcome = self.effect("1")
        self.assertOutcome(outcome, "AMBIGUOUS:unverifiable")
        self.assertEqual(self.body(outcome, "late")["result"]["evidence"], {"id": "re_child"})
        self.assertEqual(self.service.requests, [])


class Waiting(GateCase):
    def test_settle_waits_until_a_lookup_counts(self) -> None:
        self.service.script = [TimeoutError()]
        refund = self.refund(lookup=self.service.find, send_timeout=timedelta(seconds=0.2))
        outcome = refund.invoke(("1",), {}, wait=30)
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(len(self.service.requests), 2)

    def test_recover_waits_for_all_that_is_blocked(self) -> None:
        for case in ("1", "2"):
            self.dies_at(
                CrashPoint.BEFORE_BYTES,
                lambda gate, case=case: self.refund(gate=gate, lookup=self.service.find)(case),
            )
        self.refund(lookup=self.service.find, send_timeout=timedelta(seconds=0.3))
        self.assertEqual({str(found) for found in self.gate.recover()}, {"IN_FLIGHT:waiting"})
        report = self.gate.recover(wait=timedelta(seconds=30))
        self.assertEqual([str(found) for found in report], ["COMMITTED", "COMMITTED"])
        self.assertEqual(report.blocked, [])

    def test_the_wait_is_bounded(self) -> None:
        self.service.script = [TimeoutError()]
        refund = self.looked_up()
        outcome = refund.invoke(("1",), {}, wait=0.05)
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertOutcome(self.gate.settle(outcome.effect_id, wait=0.05), "IN_FLIGHT:waiting")

    def test_premises_are_read_again_after_the_wait(self) -> None:
        self.facts = {"open": True}
        self.service.script = [TimeoutError()]
        refund = self.refund(
            premises=lambda: self.facts, lookup=self.find_and_close, send_timeout=timedelta(seconds=0.05)
        )
        self.assertOutcome(refund.invoke(("1",), {}, wait=30), "REFUSED:stale_premise")
        self.assertEqual(len(self.service.requests), 1)

    def find_and_close(self, idempotency_key: str) -> None:
        self.facts = {"open": False}

    def test_what_is_no_wait(self) -> None:
        refund = self.refund()
        for wait in (-1, float("nan"), True, "1", timedelta(seconds=-1), None):
            with self.subTest(wait):
                if wait is not None:
                    with self.assertRaises(BadArguments):
                        refund.invoke(("1",), {}, wait=wait)
                with self.assertRaises(BadArguments):
                    self.gate.recover(wait=wait)  # type: ignore[arg-type]
        self.assertNothingRecorded()

    def test_the_gate_s_own_wait_is_the_default(self) -> None:
        gate = self.open(wait=30)
        self.service.script = [TimeoutError()]
        refund = self.refund(gate=gate, lookup=self.service.find, send_timeout=timedelta(seconds=0.05))
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_rate_limits_share_what_one_recovery_may_take(self) -> None:
        refund = self.refund()
        for case in ("1", "2", "3"):
            self.service.script = [RateLimited(retry_after=60)]
            self.assertOutcome(refund(case), "IN_FLIGHT:rate_limited")
        self.service.requests.clear()
        self.service.script = [RateLimited(retry_after=0.1)] * 99
        report = self.gate.recover()
        self.assertEqual([str(found) for found in report], ["IN_FLIGHT:rate_limited"] * 3)
        sends = [sum(request["case"] == case for request in self.service.requests) for case in ("1", "2", "3")]
        self.assertGreaterEqual(sends[0], 1)
        self.assertEqual(sends[1:], [1, 1])  # the first took all the patience that there was


class Settle(GateCase):
    def test_one_effect(self) -> None:
        self.gate.retry_s = 0.0
        refund = self.refund(dedupes=True)
        for case in ("1", "2"):
            self.service.script = [Lands(TimeoutError())]
            self.assertOutcome(refund(case), "IN_FLIGHT:waiting")
        outcome = self.gate.settle(refund.effect_id("2"))
        self.assertOutcome(outcome, "COMMITTED")
        self.assertTrue(outcome.at_recovery)
        self.assertOutcome(self.gate.outcome(refund.effect_id("1")), "IN_FLIGHT:waiting")

    def test_what_is_closed_stays(self) -> None:
        outcome = self.refund()("1")
        self.assertEqual(str(self.gate.settle(outcome.effect_id)), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)

    def test_no_such_effect(self) -> None:
        for ask in (self.gate.settle, self.gate.outcome, self.gate.receipt):
            with self.subTest(ask), self.assertRaises(NotDecidable):
                ask("0" * 32)
        self.assertEqual(self.gate.history("0" * 32), [])


class People(GateCase):
    """What only a person can settle."""

    def ambiguous(self, case: str = "1", **options: Any) -> Any:
        self.service.script = [TimeoutError("read timed out")]
        refund = self.refund(**options)
        outcome = refund(case)
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        return refund, outcome

    def test_pending_lists_it_oldest_first_until_it_is_settled(self) -> None:
        refund, first = self.ambiguous("1")
        self.service.script = [TimeoutError()]
        second = refund("2")
        refund("3")
        self.assertEqual([found.effect_id for found in self.gate.pending()], [first.effect_id, second.effect_id])
        self.gate.resolve(first.effect_id, landed=True, by="kim", why="seen")
        self.assertEqual([found.effect_id for found in self.gate.pending()], [second.effect_id])

    def test_it_landed(self) -> None:
        refund, outcome = self.ambiguous()
        settled = self.gate.resolve(outcome.effect_id, landed=True, by="kim", why="re_9 in the dashboard")
        self.assertOutcome(settled, "COMMITTED")
        self.assertEqual((settled.via, settled.by_us), ("person", "unknown"))
        self.assertIn("re_9 in the dashboard", settled.message)
        self.assertEqual(refund("1"), settled)
        self.assertEqual(len(self.service.requests), 1)

    def test_it_did_not_land(self) -> None:
        refund, outcome = self.ambiguous()
        settled = self.gate.resolve(outcome.effect_id, landed=False, by="kim", why="not in the dashboard")
        self.assertOutcome(settled, "REFUSED:rejected")
        self.assertEqual(settled.detail, "kim: not in the dashboard")
        self.assertEqual(refund("1"), settled)
        self.assertEqual(len(self.service.requests), 1)

    def test_it_did_not_land_and_is_decided_again(self) -> None:
        refund, outcome = self.ambiguous()
        self.gate.resolve(outcome.effect_id, landed=False, by="kim", why="not there")
        decided = refund.redecide(outcome.effect_id, by="kim")
        done = refund("1")
        self.assertOutcome(done, "COMMITTED")
        self.assertEqual(done.effect_id, decided.effect_id)
        self.assertNotEqual(done.effect_id, outcome.effect_id)

    def test_only_what_is_ambiguous_is_resolved(self) -> None:
        refund = self.refund()
        done = refund("1")
        refund.propose("2")
        self.service.script = [DefiniteNo("no")]
        refused = refund("3")
        for effect_id in (done.effect_id, refund.effect_id("2"), refused.effect_id, "0" * 32):
            with self.subTest(effect_id), self.assertRaises(NotDecidable) as raised:
                self.gate.resolve(effect_id, landed=True, by="kim", why="seen")
            self.assertIn(effect_id, str(raised.exception))

    def test_twice_is_refused(self) -> None:
        _, outcome = self.ambiguous()
        self.gate.resolve(outcome.effect_id, landed=True, by="kim", why="seen")
        with self.assertRaises(NotDecidable):
            self.gate.resolve(outcome.effect_id, landed=False, by="lee", why="not seen")

    def test_who_and_why_must_be_said(self) -> None:
        _, outcome = self.ambiguous()
        wrong: list[dict[str, Any]] = [
            {"by": ""},
            {"by": None},
            {"why": "  "},
            {"why": 5},
            {"landed": 1},
            {"landed": "no"},
        ]
        for fields in wrong:
            with self.subTest(fields), self.assertRaises(BadArguments):
                self.gate.resolve(outcome.effect_id, **{"landed": True, "by": "kim", "why": "seen", **fields})
        self.assertEqual(self.kinds(outcome)[-1], "ambiguous")

    def test_words_of_a_person_are_kept_on_one_line(self) -> None:
        _, outcome = self.ambiguous()
        settled = self.gate.resolve(outcome.effect_id, landed=False, by="kim\x00", why="line one\nline \ud800 two")
        self.assertTrue(settled.message.isprintable())

    def test_a_race_between_a_person_and_a_lookup_has_one_winner(self) -> None:
        _, outcome = self.ambiguous()

        def lookup(idempotency_key: str) -> Any:
            self.gate.resolve(idempotency_key, landed=True, by="kim", why="seen")
            return {"id": "re_1"}

        gate = self.open()
        self.refund(gate=gate, lookup=lookup)
        report = gate.recover()
        self.assertEqual([str(seen) for seen in report], ["COMMITTED"])
        self.assertEqual(report.outcomes[0].via, "person")
        self.assertEqual(self.kinds(outcome)[-1], "resolved")


class DecidingAgain(GateCase):
    def refused(self, **options: Any) -> Any:
        self.facts = {"open": False}
        refund = self.refund(premises=lambda: self.facts, expect={"open": True}, **options)
        outcome = refund("1")
        self.assertOutcome(outcome, "REFUSED:premise_not_met")
        self.facts = {"open": True}
        return refund, outcome

    def test_a_new_decision_with_a_new_effect_id(self) -> None:
        refund, outcome = self.refused()
        decided = refund.redecide(outcome.effect_id, by="kim")
        self.assertOutcome(decided, "IN_FLIGHT:waiting")
        self.assertOutcome(self.gate.outcome(outcome.effect_id), "REFUSED:replaced")
        done = refund("1")
        self.assertOutcome(done, "COMMITTED")
        self.assertEqual(self.body(done, "proposed")["decision"], 2)
        self.assertEqual(self.body(done, "proposed")["facts"], {"open": True})
        self.assertEqual(self.service.requests[0]["key"], done.effect_id)
        self.assertEqual(refund("1"), done)

    def test_with_the_facts_that_its_decider_saw(self) -> None:
        refund, outcome = self.refused()
        refund.redecide(outcome.effect_id, by="kim", facts={"open": True, "note": "seen"})
        self.assertOutcome(refund("1"), "REFUSED:stale_premise")

    def test_with_other_arguments_of_the_same_request(self) -> None:
        refund, outcome = self.refused()
        with self.assertRaises(BadArguments):
            refund.redecide(outcome.effect_id, by="kim", arguments={"case": "2", "amount": 500})
        with self.assertRaises(BadArguments):
            refund.redecide(outcome.effect_id, by="kim", arguments={"case": "1", "price": 500})
        refund.redecide(outcome.effect_id, by="kim", arguments={"case": "1", "amount": 500})
        self.assertOutcome(refund("1"), "REFUSED:conflicting_payload")
        self.assertOutcome(refund("1", 500), "COMMITTED")
        self.assertEqual(self.service.created[0]["amount"], 500)

    def test_as_often_as_somebody_decides(self) -> None:
        refund, outcome = self.refused()
        for _ in range(3):
            self.facts = {"open": False}
            outcome = refund.redecide(outcome.effect_id, by="kim", facts={"open": True})
            outcome = refund("1")
            self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.facts = {"open": True}
        refund.redecide(outcome.effect_id, by="kim")
        done = refund("1")
        self.assertOutcome(done, "COMMITTED")
        self.assertEqual(self.body(done, "proposed")["decision"], 5)
        self.assertEqual(len(self.service.requests), 1)

    def test_only_the_latest_refused_decision(self) -> None:
        refund, outcome = self.refused()
        decided = refund.redecide(outcome.effect_id, by="kim")
        for effect_id in (outcome.effect_id, decided.effect_id, "0" * 32):
            with self.subTest(effect_id), self.assertRaises(NotDecidable):
                refund.redecide(effect_id, by="kim")

    def test_never_what_is_done_or_may_still_land(self) -> None:
        refund = self.refund()
        done = refund("1")
        self.service.script = [TimeoutError()]
        ambiguous = refund("2")
        self.service.script = [RateLimited(retry_after=60)]
        opened = refund("3")
        for outcome in (done, ambiguous, opened):
            with self.subTest(str(outcome)), self.assertRaises(NotDecidable):
                refund.redecide(outcome.effect_id, by="kim")

    def test_what_was_unreachable_or_rejected(self) -> None:
        refund = self.refund()
        for case, error in (("1", NotSent("down")), ("2", DefiniteNo("no"))):
            self.service.script = [error]
            refund.redecide(refund(case).effect_id, by="kim")
            self.assertOutcome(refund(case), "COMMITTED")

    def test_another_effect_s_id(self) -> None:
        _, outcome = self.refused()
        with self.assertRaises(NotDecidable):
            self.refund("other").redecide(outcome.effect_id, by="kim")

    def test_unreadable_premises_decide_nothing(self) -> None:
        refund, outcome = self.refused()
        self.facts = None  # type: ignore[assignment]
        with self.assertRaises(NotDecidable):
            refund.redecide(outcome.effect_id, by="kim")
        self.assertOutcome(self.gate.outcome(outcome.effect_id), "REFUSED:premise_not_met")

    def test_nonsense(self) -> None:
        refund, outcome = self.refused()
        for options in ({"by": ""}, {"by": 5}, {"by": "kim", "facts": {"x": 1.5}}, {"by": "kim", "facts": [1]}):
            with self.subTest(options), self.assertRaises(BadArguments):
                refund.redecide(outcome.effect_id, **options)

    def test_two_at_once_make_one_decision(self) -> None:
        refund, outcome = self.refused()
        barrier = threading.Barrier(4)
        ends: list[Any] = []

        def decide() -> None:
            barrier.wait()
            try:
                ends.append(refund.redecide(outcome.effect_id, by="kim").effect_id)
            except NotDecidable as error:
                ends.append(error)

        threads = [threading.Thread(target=decide) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sum(isinstance(end, str) for end in ends), 1, ends)


class Questions(GateCase):
    def test_history_tells_every_entry_in_order(self) -> None:
        self.service.script = [Lands(TimeoutError("read timed out"))]
        outcome = self.refund(dedupes=True)("1")
        history = self.gate.history(outcome.effect_id)
        self.assertEqual(
            [entry.kind.value for entry in history],
            ["proposed", "authorized", "dispatched", "unknown", "dispatched", "committed"],
        )
        self.assertEqual([entry.seq for entry in history], [1, 2, 3, 4, 5, 6])
        self.assertEqual(sorted(entry.at_ms for entry in history), [entry.at_ms for entry in history])

    def test_open_effects_pages_through_all(self) -> None:
        refund = self.refund()
        for number in range(3):
            refund.propose(str(number))
        self.assertEqual([row.request_key for row in self.gate.open_effects()], ["0", "1", "2"])

    def test_a_budget_that_nobody_named(self) -> None:
        use = self.gate.budget("nothing")
        self.assertEqual((use.used, use.limit), (0, None))

    def test_settled_entries_change_no_decision(self) -> None:
        """I9."""
        refund = self.refund()
        outcome = refund("1")
        self.append_elsewhere(outcome.effect_id, (Kind.SETTLED, {"state": "failed", "detail": "insufficient funds"}))
        after = refund("1")
        self.assertIs(after.status, Status.COMMITTED)
        self.assertEqual(after.settlement, {"state": "failed", "detail": "insufficient funds"})
        self.assertIn("insufficient funds", after.message)
        self.assertEqual(len(self.service.requests), 1)


if __name__ == "__main__":
    unittest.main()
