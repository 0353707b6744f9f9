"""Premises, expected values and grants: read again before every send, and what cannot be read sends nothing."""

from __future__ import annotations

import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import BadArguments, DefinitionError, Grant, Reason


class Premises(GateCase):
    def test_expected_as_a_dict(self) -> None:
        self.facts = {"chargebacks": [], "note": "x"}
        refund = self.refund(premises=lambda: self.facts, expect={"chargebacks": []})
        self.assertOutcome(refund("1"), "COMMITTED")
        self.facts = {"chargebacks": ["dp_1"], "note": "x"}
        outcome = refund("2")
        self.assertOutcome(outcome, "REFUSED:premise_not_met")
        self.assertEqual(outcome.changes, {"chargebacks": {"now": ["dp_1"], "expected": []}})
        self.assertEqual(self.kinds(outcome), ["proposed", "refused"])

    def test_expected_as_a_function(self) -> None:
        refund = self.refund(premises=lambda case: {"owner": case}, expect=lambda case: {"owner": "1"})
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("2"), "REFUSED:premise_not_met")

    def test_an_expected_fact_that_is_not_read_is_not_met(self) -> None:
        outcome = self.refund(premises=lambda: {"closed": False}, expect={"open": True})("1")
        self.assertOutcome(outcome, "REFUSED:premise_not_met")
        self.assertEqual(outcome.changes["open"]["now"], "(absent)")

    def test_expected_without_premises_is_a_mistake(self) -> None:
        with self.assertRaisesRegex(DefinitionError, "needs premises="):
            self.refund(expect={"open": True})

    def test_true_is_not_one(self) -> None:
        self.assertOutcome(
            self.refund(premises=lambda: {"open": 1}, expect={"open": True})("1"), "REFUSED:premise_not_met"
        )

    def test_a_refusal_stays_however_often_it_is_asked(self) -> None:
        self.facts = {"open": False}
        refund = self.refund(premises=lambda: self.facts, expect={"open": True})
        first = refund("1")
        self.facts = {"open": True}
        self.assertEqual(refund("1"), first)
        self.assertEqual(self.service.requests, [])

    def test_unreadable_premises_send_nothing_record_nothing_and_may_be_asked_again(self) -> None:
        works = False

        def premises() -> dict[str, Any]:
            if not works:
                raise ConnectionError("service is down")
            return {}

        refund = self.refund(premises=premises)
        outcome = refund("1")
        self.assertOutcome(outcome, "IN_FLIGHT:unreadable")
        self.assertEqual((outcome.effect_id, outcome.request_key), ("", "1"))
        self.assertIn("service is down", outcome.message)
        self.assertNothingRecorded()
        works = True
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_facts_that_cannot_be_compared_are_unreadable(self) -> None:
        bad: list[Any] = [
            None,
            [1],
            {"total": 19.99},
            {"at": datetime.now(timezone.utc)},
            {1: 2},
            {"x": {"y": object()}},
        ]
        for number, facts in enumerate(bad):
            with self.subTest(facts):
                refund = self.refund(f"bad.{number}", premises=lambda facts=facts: facts)
                self.assertOutcome(refund("1"), "IN_FLIGHT:unreadable")
        self.assertNothingRecorded()

    def test_moved_while_a_call_waits_out_a_rate_limit(self) -> None:
        from interlock_tools import RateLimited

        readings = iter([{"balance": 10}, {"balance": 7}])
        self.service.script = [RateLimited("slow down", retry_after=0.01)]
        outcome = self.refund(premises=lambda: next(readings))("1")
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(outcome.changes, {"balance": {"was": 10, "now": 7}})
        self.assertEqual(len(self.service.requests), 1)

    def test_stale_and_expected_are_told_together(self) -> None:
        refund = self.refund(premises=lambda: {"open": False}, expect={"open": True})
        outcome = refund.propose("1", facts={"open": True})
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(outcome.changes, {"open": {"was": True, "now": False, "expected": True}})

    def test_readers_can_leave_the_effect_s_own_result_out(self) -> None:
        """I3: the effect's own result is never one of its premises."""

        def others(idempotency_key: str) -> dict[str, Any]:
            return {"others": [key for key in self.service.by_key if key != idempotency_key]}

        refund = self.refund(premises=others, dedupes=True)
        self.gate.retry_s = 0.0
        self.service.script = [Lands(TimeoutError())]
        self.assertOutcome(refund("1"), "IN_FLIGHT:waiting")
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 1)


class Proposals(GateCase):
    """A decision that is made before the call holds the call to what was seen then."""

    def setUp(self) -> None:
        super().setUp()
        self.facts = {"balance": 10}
        self.effect = self.refund(premises=lambda: self.facts)

    def test_then_the_call_sends(self) -> None:
        proposed = self.effect.propose("1", by="kim")
        self.assertOutcome(proposed, "IN_FLIGHT:waiting")
        self.assertIn("nothing was sent", proposed.message)
        outcome = self.effect("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(self.kinds(outcome), ["proposed", "authorized", "dispatched", "committed"])
        self.assertEqual(self.body(outcome, "proposed")["decided_by"], "propose")
        self.assertEqual(self.body(outcome, "proposed")["context"], {"by": "kim"})
        self.assertEqual(self.body(outcome, "dispatched")["facts"], {"balance": 10})

    def test_the_call_is_held_to_the_facts_of_the_decision(self) -> None:
        self.effect.propose("1")
        self.facts = {"balance": 9}
        outcome = self.effect("1")
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(outcome.changes, {"balance": {"was": 10, "now": 9}})
        self.assertEqual(self.service.requests, [])

    def test_facts_given_with_the_proposal_are_compared_at_once(self) -> None:
        self.assertOutcome(self.effect.propose("1", facts={"balance": 8}), "REFUSED:stale_premise")
        self.assertOutcome(self.effect.propose("2", facts={"balance": 10}), "IN_FLIGHT:waiting")
        self.assertOutcome(self.effect("2"), "COMMITTED")

    def test_recovery_sends_nothing_that_was_only_proposed(self) -> None:
        self.effect.propose("1")
        report = self.gate.recover()
        self.assertEqual([str(outcome) for outcome in report], ["IN_FLIGHT:waiting"])
        self.assertEqual(self.service.requests, [])

    def test_twice_is_once(self) -> None:
        first = self.effect.propose("1")
        self.assertEqual(self.effect.propose("1"), first)
        self.assertEqual(self.kinds(first), ["proposed"])

    def test_of_what_is_done_tells_so(self) -> None:
        done = self.effect("1")
        self.assertEqual(self.effect.propose("1"), done)

    def test_may_come_before_its_approval(self) -> None:
        grants: list[Grant] = []
        effect = self.refund("approved", allowed=lambda: grants[0] if grants else None)
        self.assertOutcome(effect.propose("1"), "IN_FLIGHT:waiting")
        grants.append(Grant("g"))
        self.assertOutcome(effect("1"), "COMMITTED")
        self.assertOutcome(self.refund("unapproved", allowed=lambda: None)("1"), "REFUSED:not_allowed")

    def test_unreadable_records_nothing(self) -> None:
        self.facts = None  # type: ignore[assignment]
        self.assertOutcome(self.effect.propose("1"), "IN_FLIGHT:unreadable")
        self.assertNothingRecorded()

    def test_a_budget_is_taken_at_the_call_and_not_at_the_proposal(self) -> None:
        from interlock_tools import Budget

        effect = self.refund("budgeted", budget=lambda amount: Budget("b", amount, 3000))
        effect.propose("1")
        self.assertEqual(self.gate.budget("b").used, 0)
        effect("1")
        self.assertEqual(self.gate.budget("b").used, 2000)


class Grants(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.grant: Any = Grant("g")
        self.effect = self.refund(allowed=lambda: self.grant, premises=lambda: self.facts)

    def refused(self, grant: Any, case: str) -> str:
        self.grant = grant
        outcome = self.effect(case)
        self.assertOutcome(outcome, "REFUSED:not_allowed")
        self.assertEqual(self.service.requests, [])
        return outcome.detail or ""

    def test_no_grant(self) -> None:
        self.assertIn("no approval", self.refused(None, "1"))

    def test_maximum(self) -> None:
        self.assertIn("up to 1999", self.refused(Grant("g", max_amount=1999), "1"))
        self.grant = Grant("g", max_amount=2000)
        self.assertOutcome(self.effect("2"), "COMMITTED")

    def test_a_maximum_covers_no_negative_amount(self) -> None:
        self.grant = Grant("g", max_amount=2000)
        self.assertOutcome(self.effect("1", -5), "REFUSED:not_allowed")

    def test_a_maximum_without_an_amount(self) -> None:
        @self.gate.effect("no.amount", key=lambda case: case, allowed=lambda: Grant("g", max_amount=1))
        def act(case: str) -> str:
            return "done-1"

        self.assertOutcome(act("1"), "REFUSED:not_allowed")

    def test_an_amount_function(self) -> None:
        grant = Grant("g", max_amount=500)
        effect = self.refund("scaled", allowed=lambda: grant, amount=lambda amount: amount * 100)
        self.assertOutcome(effect("1", 5), "COMMITTED")
        self.assertOutcome(effect("2", 6), "REFUSED:not_allowed")

    def test_payload_digest(self) -> None:
        self.assertIn("another payload", self.refused(Grant("g", payload_digest=self.effect.digest("1", 1)), "1"))
        self.grant = Grant("g", payload_digest=self.effect.digest("2", 2000))
        self.assertOutcome(self.effect("2"), "COMMITTED")

    def test_expiry(self) -> None:
        now = datetime.fromtimestamp(self.clock.now().wall_ms / 1000, timezone.utc)
        self.assertIn("expired", self.refused(Grant("g", expires_at=now - timedelta(seconds=1)), "1"))
        self.grant = Grant("g", expires_at=now + timedelta(hours=1))
        self.assertOutcome(self.effect("2"), "COMMITTED")

    def test_it_expires_between_the_decision_and_the_call(self) -> None:
        now = datetime.fromtimestamp(self.clock.now().wall_ms / 1000, timezone.utc)
        self.grant = Grant("g", expires_at=now + timedelta(hours=1))
        self.effect.propose("1")
        self.clock.advance(3601)
        self.assertOutcome(self.effect("1"), "REFUSED:not_allowed")

    def test_facts_that_the_approver_saw(self) -> None:
        self.facts = {"balance": 9}
        self.grant = Grant("g", facts={"balance": 10})
        outcome = self.effect("1")
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(outcome.changes, {"balance": {"was": 10, "now": 9}})
        self.grant = Grant("g", facts={"balance": 9})
        self.assertOutcome(self.effect("2"), "COMMITTED")

    def test_every_field_is_recorded_but_its_facts_once(self) -> None:
        until = datetime(2099, 1, 1, tzinfo=timezone.utc)
        self.facts = {"a": 1}
        self.grant = Grant("g", "kim", 5000, self.effect.digest("1"), until, {"a": 1})
        outcome = self.effect("1")
        recorded = self.body(outcome, "authorized")["grant"]
        self.assertEqual(
            recorded,
            {
                "id": "g",
                "by": "kim",
                "max_amount": 5000,
                "payload_digest": self.effect.digest("1"),
                "expires_at_ms": int(until.timestamp() * 1000),
            },
        )
        self.assertEqual(self.body(outcome, "proposed")["facts"], {"a": 1})

    def test_revoked_while_a_call_waits_out_a_rate_limit(self) -> None:
        from interlock_tools import RateLimited

        def answer(request: dict[str, Any]) -> Any:
            self.grant = None
            raise RateLimited(retry_after=0.01)

        self.service.script = [answer]
        self.assertOutcome(self.effect("1"), "REFUSED:not_allowed")
        self.assertEqual(len(self.service.requests), 1)

    def test_what_is_no_grant_is_unreadable(self) -> None:
        for number, grant in enumerate((True, "approved", {"id": "g"}, Grant)):
            with self.subTest(grant):
                self.grant = grant
                outcome = self.effect(str(number))
                self.assertOutcome(outcome, "IN_FLIGHT:unreadable")
                self.assertIn("must return a Grant or None", outcome.message)
        self.assertNothingRecorded()

    def test_a_grant_that_raises_is_unreadable(self) -> None:
        def allowed() -> Grant:
            raise LookupError("approvals are down")

        self.assertIs(self.refund("raises", allowed=allowed)("1").reason, Reason.UNREADABLE)

    def test_fields_of_the_wrong_type(self) -> None:
        wrong: list[dict[str, Any]] = [
            {"id": ""},
            {"id": " "},
            {"id": 5},
            {"by": 5},
            {"max_amount": 19.99},
            {"max_amount": True},
            {"max_amount": "100"},
            {"max_amount": -1},
            {"payload_digest": 5},
            {"expires_at": datetime(2099, 1, 1)},
            {"expires_at": "2099-01-01"},
            {"expires_at": 4070908800},
            {"facts": [1]},
        ]
        for fields in wrong:
            with self.subTest(fields), self.assertRaises(BadArguments):
                Grant(**{"id": "g", **fields})


if __name__ == "__main__":
    unittest.main()
