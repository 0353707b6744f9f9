"""A person's approval: asked for once, used once, checked at the send, lost by no crash."""

from __future__ import annotations

import asyncio
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import BadArguments, Budget, DefinitionError, Gate, NotDecidable, NotRegistered, verify
from interlock_tools.core.entries import Kind
from interlock_tools.receipts import Policy
from interlock_tools.testing import CrashPoint


class ApprovalCase(GateCase):
    def asking(self, gate: Gate | None = None, **options: Any) -> Any:
        options.setdefault("requires_approval", True)
        options.setdefault("premises", lambda: dict(self.facts))
        return self.refund(gate=gate, **options)


class Asked(ApprovalCase):
    def test_nothing_is_sent_before_a_person_has_answered(self) -> None:
        self.facts = {"chargebacks": 0}
        refund = self.asking()
        first = refund("1")
        self.assertOutcome(first, "IN_FLIGHT:awaiting_approval")
        self.assertEqual(self.kinds(first), ["proposed", "approval_requested"])
        for _ in range(3):
            self.assertOutcome(refund("1"), "IN_FLIGHT:awaiting_approval")
        self.assertEqual([str(one) for one in self.gate.recover()], ["IN_FLIGHT:awaiting_approval"])
        self.assertEqual(self.kinds(first), ["proposed", "approval_requested"], "it is asked for once")
        self.assertEqual(self.service.requests, [])
        self.assertIn("waits for a person's approval", first.message)
        self.assertEqual([one.effect_id for one in self.gate.pending()], [first.effect_id])

        asked = self.gate.approval(first.effect_id)
        assert asked is not None
        self.assertEqual((asked.arguments, asked.facts), ({"case": "1", "amount": 2000}, {"chargebacks": 0}))
        self.assertEqual(asked.expires_at - asked.asked_at, timedelta(days=1))

        approved = self.gate.approve(first.effect_id, by="ann", why="customer is right", digest=asked.digest)
        self.assertOutcome(approved, "IN_FLIGHT:waiting")
        self.assertEqual((self.service.requests, self.gate.pending()), ([], []))
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual(
            self.kinds(first),
            ["proposed", "approval_requested", "approved", "authorized", "dispatched", "committed"],
        )
        answer = self.gate.approval(first.effect_id)
        assert answer is not None
        self.assertEqual((answer.answer, answer.by, answer.why), ("approved", "ann", "customer is right"))

    def test_who_when_and_why_are_in_the_receipt(self) -> None:
        refund = self.asking()
        effect_id = refund("1").effect_id
        self.gate.approve(effect_id, by="ann", why="customer is right")
        refund("1")
        receipt = self.gate.receipt(effect_id)
        report = str(verify(receipt, Policy()))
        self.assertIn("approval by ann", report)
        self.assertRegex(report, r"approved by ann at \d{4}-\d\d-\d\d [0-9:]+Z: customer is right")

    def test_only_calls_that_the_function_names(self) -> None:
        refund = self.asking(requires_approval=lambda amount: amount > 50_00)
        self.assertOutcome(refund("1", 50_00), "COMMITTED")
        self.assertOutcome(refund("2", 50_01), "IN_FLIGHT:awaiting_approval")

    def test_what_was_asked_needs_its_approval_whatever_the_code_says_later(self) -> None:
        outcome = self.asking()("1")
        later = self.refund(gate=self.open())
        self.assertOutcome(later("1"), "IN_FLIGHT:awaiting_approval")
        self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(later("1"), "COMMITTED")

    def test_what_does_not_hold_is_refused_without_asking(self) -> None:
        self.facts = {"open": False}
        outcome = self.asking(expect={"open": True})("1")
        self.assertOutcome(outcome, "REFUSED:premise_not_met")
        self.assertEqual(self.kinds(outcome), ["proposed", "refused"])

    def test_a_proposal_asks_too(self) -> None:
        refund = self.asking()
        outcome = refund.propose("1", by="agent")
        self.assertOutcome(outcome, "IN_FLIGHT:awaiting_approval")
        self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_a_proposal_under_asyncio_does_not_block_the_loop(self) -> None:
        loops: list[Any] = []

        async def facts() -> dict[str, Any]:
            loops.append(asyncio.get_running_loop())
            return {}

        refund = self.asking(premises=facts)

        async def run() -> Any:
            loops.append(asyncio.get_running_loop())
            return await refund.apropose("1", by="agent")

        self.assertOutcome(asyncio.run(run()), "IN_FLIGHT:awaiting_approval")
        self.assertIs(loops[0], loops[1])

    def test_a_proposal_from_before_it_was_required_asks_when_it_is_called(self) -> None:
        outcome = self.refund()
        proposed = outcome.propose("1")
        again = self.asking(self.open())
        self.assertOutcome(again("1"), "IN_FLIGHT:awaiting_approval")
        self.assertEqual(self.kinds(proposed), ["proposed", "approval_requested"])

    def test_another_payload_is_a_conflict_and_asks_nothing(self) -> None:
        refund = self.asking()
        first = refund("1", 2000)
        other = refund("1", 9000)
        self.assertOutcome(other, "REFUSED:conflicting_payload")
        assert other.existing is not None
        self.assertOutcome(other.existing, "IN_FLIGHT:awaiting_approval")
        self.gate.approve(first.effect_id, by="ann")
        self.assertOutcome(refund("1", 2000), "COMMITTED")
        self.assertEqual([one["amount"] for one in self.service.created], [2000])

    def test_a_call_may_wait_for_the_answer(self) -> None:
        refund = self.asking()
        effect_id = refund("1").effect_id
        other = self.open()
        timer = threading.Timer(0.1, lambda: other.approve(effect_id, by="ann"))
        timer.start()
        self.addCleanup(timer.join)
        self.assertOutcome(refund.invoke(("1",), {}, wait=30), "COMMITTED")


class Premises(ApprovalCase):
    def test_they_are_read_again_after_the_answer(self) -> None:
        self.facts = {"refunded": 0}
        refund = self.asking()
        outcome = refund("1")
        self.gate.approve(outcome.effect_id, by="ann")
        self.facts = {"refunded": 500}
        refused = refund("1")
        self.assertOutcome(refused, "REFUSED:stale_premise")
        self.assertEqual(refused.changes, {"refunded": {"was": 0, "now": 500}})
        self.assertEqual(self.service.requests, [])

    def test_a_grant_that_is_gone_by_then_refuses(self) -> None:
        from interlock_tools import Grant

        grants = [Grant("g")]
        refund = self.asking(allowed=lambda: grants[0] if grants else None)
        self.gate.approve(refund("1").effect_id, by="ann")
        grants.clear()
        self.assertOutcome(refund("1"), "REFUSED:not_allowed")

    def test_the_budget_is_taken_at_the_send(self) -> None:
        refund = self.asking(budget=lambda amount: Budget("cap", amount=amount, limit=3000))
        first, second = refund("1"), refund("2")
        for one in (first, second):
            self.gate.approve(one.effect_id, by="ann")
        self.assertEqual(self.gate.budget("cap").used, 0)
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual([str(one) for one in self.gate.recover()], ["REFUSED:over_budget"])
        self.assertEqual(self.gate.budget("cap").used, 2000)


class Rejected(ApprovalCase):
    def test_it_stays_rejected(self) -> None:
        refund = self.asking()
        outcome = refund("1")
        refused = self.gate.reject(outcome.effect_id, by="ann", why="not this customer")
        self.assertOutcome(refused, "REFUSED:rejected")
        self.assertEqual(self.kinds(outcome), ["proposed", "approval_requested", "rejected", "refused"])
        self.assertOutcome(refund("1"), "REFUSED:rejected")
        self.assertIn("a person was asked to approve", refused.message)
        self.assertIn("ann: not this customer", refused.message)
        with self.assertRaisesRegex(NotDecidable, "refused already"):
            self.gate.approve(outcome.effect_id, by="bea")
        self.assertEqual(self.service.requests, [])

    def test_what_was_approved_may_be_withdrawn_until_it_is_sent(self) -> None:
        refund = self.asking()
        outcome = refund("1")
        self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(self.gate.reject(outcome.effect_id, by="ann", why="changed my mind"), "REFUSED:rejected")
        self.assertOutcome(refund("1"), "REFUSED:rejected")
        other = refund("2")
        self.gate.approve(other.effect_id, by="ann")
        refund("2")
        with self.assertRaisesRegex(NotDecidable, "committed already"):
            self.gate.reject(other.effect_id, by="ann", why="too late")

    def test_deciding_again_needs_an_approval_of_its_own(self) -> None:
        refund = self.asking()
        outcome = refund("1")
        self.gate.reject(outcome.effect_id, by="ann", why="ask the bank first")
        again = self.gate.redecide(outcome.effect_id, by="bea")
        self.assertNotEqual(again.effect_id, outcome.effect_id)
        self.assertOutcome(refund("1"), "IN_FLIGHT:awaiting_approval")
        self.gate.approve(again.effect_id, by="ann")
        self.assertOutcome(refund("1"), "COMMITTED")


class Edited(ApprovalCase):
    def test_an_edited_call_is_a_new_decision(self) -> None:
        refund = self.asking()
        outcome = refund("1", 5000)
        edited = self.gate.approve(outcome.effect_id, by="ann", why="half of it", arguments={"amount": 2500})
        self.assertNotEqual(edited.effect_id, outcome.effect_id)
        self.assertEqual(self.kinds(outcome), ["proposed", "approval_requested", "rejected", "refused", "replaced"])
        self.assertEqual(self.kinds(edited), ["proposed", "approval_requested", "approved"])
        asked_for = refund("1", 5000)
        self.assertOutcome(asked_for, "REFUSED:conflicting_payload")
        assert asked_for.existing is not None
        self.assertOutcome(asked_for.existing, "COMMITTED")
        self.assertOutcome(refund("1", 2500), "COMMITTED")
        self.assertEqual([one["amount"] for one in self.service.created], [2500])

    def test_what_an_edit_may_not_be(self) -> None:
        refund = self.asking()
        outcome = refund("1", 5000)
        for arguments, error in (
            ({"case": "2"}, BadArguments),
            ({"amount": "much"}, BadArguments),
            ({"amount": 5000}, BadArguments),
            ({"other": 1}, BadArguments),
        ):
            with self.subTest(arguments=arguments), self.assertRaises(error):
                self.gate.approve(outcome.effect_id, by="ann", arguments=arguments)
        with self.assertRaises(NotRegistered):
            self.open().approve(outcome.effect_id, by="ann", arguments={"amount": 1})
        self.assertOutcome(refund("1", 5000), "IN_FLIGHT:awaiting_approval")


class Expired(ApprovalCase):
    def test_a_request_that_nobody_answered_is_asked_anew(self) -> None:
        refund = self.asking(approval_expires=timedelta(hours=1))
        outcome = refund("1")
        self.clock.advance(3600)
        with self.assertRaisesRegex(NotDecidable, "expired; the next call of it asks anew"):
            self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(refund("1"), "IN_FLIGHT:awaiting_approval")
        self.assertEqual(self.kinds(outcome), ["proposed", "approval_requested", "approval_requested"])
        self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_an_approval_that_was_not_used_in_time_is_asked_for_anew(self) -> None:
        refund = self.asking(approval_expires=timedelta(hours=1))
        outcome = refund("1")
        self.gate.approve(outcome.effect_id, by="ann")
        self.clock.advance(3601)
        self.gate.recover()
        self.assertEqual(self.service.requests, [])
        self.assertOutcome(refund("1"), "IN_FLIGHT:awaiting_approval")
        self.assertEqual(self.service.requests, [])

    def test_a_send_is_not_repeated_under_an_approval_that_has_ended(self) -> None:
        self.service.script = [ConnectionError("lost")]
        refund = self.asking(approval_expires=timedelta(hours=1), lookup=self.service.find)
        outcome = refund("1")
        self.gate.approve(outcome.effect_id, by="ann")
        self.assertOutcome(refund("1"), "IN_FLIGHT:waiting")
        self.clock.advance(3601)
        refused = refund("1")
        self.assertOutcome(refused, "REFUSED:not_allowed")
        self.assertIn("its approval expired at", refused.message)
        self.assertEqual(len(self.service.requests), 1)

    def test_evidence_counts_after_the_approval_has_ended(self) -> None:
        self.service.script = [Lands(ConnectionError("lost"))]
        refund = self.asking(approval_expires=timedelta(hours=1), lookup=self.service.find)
        outcome = refund("1")
        self.gate.approve(outcome.effect_id, by="ann")
        gate = self.open(retry=0)
        first = self.asking(gate, lookup=lambda idempotency_key: 1 / 0)("1")
        self.assertOutcome(first, "IN_FLIGHT:unreadable")
        self.clock.advance(3601)
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)


class Answers(ApprovalCase):
    def test_one_answer_counts(self) -> None:
        outcome = self.asking()("1")
        with self.assertRaisesRegex(NotDecidable, "not what was seen"):
            self.gate.approve(outcome.effect_id, by="ann", digest="0" * 64)
        self.gate.approve(outcome.effect_id, by="ann")
        with self.assertRaisesRegex(NotDecidable, "approved already"):
            self.gate.approve(outcome.effect_id, by="bea")

    def test_what_nobody_asked_for(self) -> None:
        refund = self.refund()
        proposed = refund.propose("1")
        with self.assertRaisesRegex(NotDecidable, "nobody has asked"):
            self.gate.approve(proposed.effect_id, by="ann")
        done = refund("2")
        with self.assertRaisesRegex(NotDecidable, "committed already"):
            self.gate.approve(done.effect_id, by="ann")
        with self.assertRaisesRegex(NotDecidable, "no effect"):
            self.gate.approve("f" * 32, by="ann")
        self.assertIsNone(self.gate.approval(done.effect_id))

    def test_bad_words(self) -> None:
        outcome = self.asking()("1")
        for by, why in (("", "x"), ("ann", " "), (7, "x")):
            with self.subTest(by=by, why=why), self.assertRaises(BadArguments):
                self.gate.approve(outcome.effect_id, by=by, why=why)  # type: ignore[arg-type]

    def test_a_forged_approval_of_something_else_sends_nothing(self) -> None:
        outcome = self.refund().propose("1")
        expires = self.clock.now().wall_ms + 60_000
        self.append_elsewhere(
            outcome.effect_id,
            (Kind.APPROVAL_REQUESTED, {"digest": "d" * 64, "expires_at_ms": expires}),
            (Kind.APPROVED, {"digest": "d" * 64, "by": "mallory", "why": "x"}),
        )
        again = self.asking(self.open())
        self.assertOutcome(again("1"), "REFUSED:not_allowed")
        self.assertEqual(self.service.requests, [])

    def test_declarations_that_are_wrong(self) -> None:
        for number, options in enumerate(
            (
                {"requires_approval": "yes"},
                {"requires_approval": lambda nothing: True},
                {"approval_expires": 5},
                {"approval_expires": timedelta(0)},
            )
        ):
            with self.subTest(options=options), self.assertRaises(DefinitionError):
                self.refund(f"test.{number}", **options)
        refund = self.refund("test.raises", requires_approval=lambda: 1 / 0)
        with self.assertRaisesRegex(BadArguments, "requires_approval function raised"):
            refund("1")
        with self.assertRaisesRegex(BadArguments, "must return True or False"):
            self.refund("test.none", requires_approval=lambda: None)("1")
        self.assertNothingRecorded()


class Crashes(ApprovalCase):
    def test_a_crash_after_it_was_asked_for_does_not_ask_twice(self) -> None:
        self.dies_at(CrashPoint.AFTER_PROPOSED, lambda gate: self.asking(gate)("1"))
        refund = self.asking()
        outcome = refund("1")
        self.assertEqual(self.kinds(outcome), ["proposed", "approval_requested"])

    def test_a_crash_between_approval_and_send_loses_nothing(self) -> None:
        outcome = self.asking()("1")
        self.gate.approve(outcome.effect_id, by="ann")
        restarted = self.open()
        self.asking(restarted)
        self.assertEqual([str(one) for one in restarted.recover()], ["COMMITTED"])
        self.assertEqual(len(self.service.requests), 1)

    def test_a_crash_after_the_record_of_the_send(self) -> None:
        outcome = self.asking()("1")
        self.gate.approve(outcome.effect_id, by="ann")
        self.dies_at(CrashPoint.AFTER_DISPATCHED, lambda gate: self.asking(gate)("1"))
        restarted = self.open()
        self.asking(restarted)
        self.assertEqual([str(one) for one in restarted.recover()], ["COMMITTED"])
        self.assertEqual(self.kinds(outcome).count("approval_requested"), 1)
        self.assertEqual(len(self.service.requests), 1)


if __name__ == "__main__":
    unittest.main()
