"""Payments, refunds and disputes of the Stripe sandbox, driven by the official SDK over real HTTP."""

from __future__ import annotations

import threading
import unittest
from typing import Any

import stripe

from scenarios.sandbox.stripe.cases import StripeCase


class Payments(StripeCase):
    def test_a_confirmed_payment_has_a_charge_money_and_events(self) -> None:
        intent = self.pay(metadata={"order": "77"}, description="A lamp")
        self.assertEqual((intent.status, intent.amount_received, intent.metadata["order"]), ("succeeded", 10_000, "77"))
        charge = self.charge(intent)
        self.assertEqual((charge.paid, charge.captured, charge.refunded, charge.disputed), (True, True, False, False))
        moved = self.v1.balance_transactions.retrieve(charge.balance_transaction)
        self.assertEqual((moved.amount, moved.fee, moved.net, moved.type), (10_000, 320, 9_680, "charge"))
        self.assertEqual(
            [event.type for event in self.events()],
            ["payment_intent.succeeded", "charge.succeeded", "payment_intent.created"],
        )
        self.assertEqual(self.control.ledger()["payments"][0]["in"], 10_000)

    def test_confirming_in_a_second_step(self) -> None:
        intent = self.v1.payment_intents.create({"amount": 500, "currency": "eur", "payment_method": "pm_card_visa"})
        self.assertEqual(intent.status, "requires_confirmation")
        self.assertEqual(self.v1.payment_intents.confirm(intent.id).status, "succeeded")
        again = self.refused(stripe.InvalidRequestError, 400, lambda: self.v1.payment_intents.confirm(intent.id))
        self.assertEqual(again.code, "payment_intent_unexpected_state")

    def test_a_declined_card(self) -> None:
        error = self.refused(stripe.CardError, 402, lambda: self.pay("pm_card_visa_chargeDeclinedInsufficientFunds"))
        self.assertEqual((error.code, error.error.decline_code), ("card_declined", "insufficient_funds"))
        self.assertEqual(error.error.payment_intent.status, "requires_payment_method")
        self.assertEqual(self.control.ledger()["payments"][0]["in"], 0)

    def test_capture_and_cancel(self) -> None:
        held = self.pay(capture_method="manual")
        self.assertEqual((held.status, held.amount_capturable), ("requires_capture", 10_000))
        self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(held))
        self.assertEqual(self.v1.payment_intents.capture(held.id, {"amount_to_capture": 4_000}).amount_received, 4_000)
        other = self.pay(capture_method="manual")
        self.assertEqual(self.v1.payment_intents.cancel(other.id).status, "canceled")

    def test_bad_parameters(self) -> None:
        cases: list[tuple[dict[str, Any], str, str | None]] = [
            ({"amount": 10, "currency": "usd"}, "amount", "amount_too_small"),
            ({"amount": "5.5", "currency": "usd"}, "amount", "parameter_invalid_integer"),
            ({"amount": 1000, "currency": "zzz"}, "currency", None),
            ({"currency": "usd"}, "amount", "parameter_missing"),
            ({"amount": 1000, "currency": "usd", "colour": "red"}, "colour", "parameter_unknown"),
            ({"amount": 1000, "currency": "usd", "payment_method": "pm_nope"}, "payment_method", "resource_missing"),
        ]
        for params, param, code in cases:
            with self.subTest(params):
                error = self.refused(
                    stripe.InvalidRequestError, 400, lambda p=params: self.v1.payment_intents.create(p)
                )
                self.assertEqual((error.param, error.code), (param, code))
        error = self.refused(stripe.InvalidRequestError, 404, lambda: self.v1.payment_intents.retrieve("pi_nope"))
        self.assertEqual(error.code, "resource_missing")
        self.assertTrue(error.request_id.startswith("req_"))


class Refunds(StripeCase):
    def test_partial_refunds_add_up_to_the_charge_and_not_beyond(self) -> None:
        intent = self.pay()
        first = self.refund(intent, 2_000, reason="requested_by_customer", metadata={"case": "4471"})
        self.assertEqual((first.status, first.amount, first.metadata["case"]), ("succeeded", 2_000, "4471"))
        self.assertEqual(self.charge(intent).amount_refunded, 2_000)
        too_much = self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 9_000))
        self.assertEqual(too_much.param, "amount")
        self.assertIn("$80.00", str(too_much))
        self.assertEqual(self.refund(intent).amount, 8_000)
        self.assertTrue(self.charge(intent).refunded)
        again = self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 1))
        self.assertEqual(again.code, "charge_already_refunded")
        (payment,) = self.control.ledger()["payments"]
        self.assertEqual((payment["in"], payment["out"]), (10_000, 10_000))

    def test_by_charge_and_zero_decimal_currency(self) -> None:
        intent = self.pay(amount=700, currency="jpy")
        refund = self.v1.refunds.create({"charge": intent.latest_charge, "amount": 200})
        self.assertEqual((refund.currency, refund.payment_intent), ("jpy", intent.id))

    def test_bad_parameters(self) -> None:
        intent = self.pay()
        for params in (
            {},
            {"payment_intent": intent.id, "amount": 0},
            {"payment_intent": intent.id, "amount": -5},
            {"payment_intent": intent.id, "amount": "20.00"},
            {"payment_intent": intent.id, "reason": "because"},
            {"payment_intent": intent.id, "colour": "red"},
            {"payment_intent": "pi_nope"},
        ):
            with self.subTest(params):
                self.refused(
                    stripe.InvalidRequestError,
                    400,
                    lambda p=params: self.v1.refunds.create(p),
                )
        self.assertEqual(self.control.ledger()["refunds"], [])

    def test_a_refund_that_fails_later(self) -> None:
        intent = self.pay("pm_card_refundFail")
        refund = self.refund(intent, 2_000)
        self.assertEqual(refund.status, "succeeded")
        self.control.advance(3.9)
        self.assertEqual(self.v1.refunds.retrieve(refund.id).status, "succeeded")
        self.control.advance(3.1)
        failed = self.v1.refunds.retrieve(refund.id)
        self.assertEqual((failed.status, failed.failure_reason), ("failed", "unknown"))
        self.assertIsNotNone(failed.failure_balance_transaction)
        self.assertEqual(self.charge(intent).amount_refunded, 0)
        kinds = [event.type for event in self.events("refund.*", "charge.refund.updated")]
        self.assertEqual(kinds, ["charge.refund.updated", "refund.failed", "refund.updated", "refund.created"])
        self.assertEqual(
            [status for _, status in self.control.ledger()["refunds"][0]["history"]], ["succeeded", "failed"]
        )

    def test_a_refund_that_is_pending_first(self) -> None:
        refund = self.refund(self.pay("pm_card_pendingRefund"), 2_000)
        self.assertEqual((refund.status, refund.pending_reason), ("pending", "processing"))
        self.control.advance(10)
        self.assertEqual(self.v1.refunds.retrieve(refund.id).status, "succeeded")

    def test_any_status_by_the_control_plane(self) -> None:
        intent = self.pay()
        refund = self.refund(intent, 2_000)
        self.control.action("refund_status", refund=refund.id, status="requires_action")
        self.assertEqual(self.v1.refunds.cancel(refund.id).status, "canceled")
        other = self.refund(intent, 3_000)
        self.control.action("refund_status", refund=other.id, status="failed", failure_reason="lost_or_stolen_card")
        self.assertEqual(self.v1.refunds.retrieve(other.id).failure_reason, "lost_or_stolen_card")
        self.assertEqual(len(self.v1.refunds.list({"payment_intent": intent.id}).data), 2)

    def test_metadata_is_merged(self) -> None:
        refund = self.refund(self.pay(), 2_000, metadata={"a": "1", "b": "2"})
        changed: Any = self.v1.refunds.update(refund.id, {"metadata": {"b": "", "c": "3"}})
        self.assertEqual(changed.metadata.to_dict(), {"a": "1", "c": "3"})


class Disputes(StripeCase):
    def escalated(self, intent: Any) -> Any:
        """The payment's dispute after evidence that escalates its inquiry has been submitted."""
        self.control.advance(0.5)
        (dispute,) = self.v1.disputes.list({"payment_intent": intent.id}).data
        evidence: Any = {"evidence": {"uncategorized_text": "escalate_inquiry_evidence"}, "submit": True}
        return self.v1.disputes.update(dispute.id, evidence)

    def test_an_inquiry_marks_the_charge_and_leaves_it_refundable(self) -> None:
        intent = self.pay("pm_card_createDisputeInquiry")
        self.assertEqual(self.v1.disputes.list().data, [])
        self.control.advance(0.5)
        (dispute,) = self.v1.disputes.list({"charge": intent.latest_charge}).data
        self.assertEqual((dispute.status, dispute.is_charge_refundable), ("warning_needs_response", True))
        self.assertEqual(dispute.balance_transactions, [])
        self.assertTrue(self.charge(intent).disputed)
        self.assertEqual(self.refund(intent, 2_000).status, "succeeded")

    def test_an_inquiry_escalates_and_the_refund_sent_in_between_fails(self) -> None:
        intent = self.pay("pm_card_createDisputeInquiry")
        dispute = self.escalated(intent)
        self.assertEqual(dispute.status, "warning_under_review")
        self.control.advance(3)
        refund = self.refund(intent, 2_000)
        self.assertEqual(refund.status, "succeeded")
        self.control.advance(5)
        dispute = self.v1.disputes.retrieve(dispute.id)
        self.assertEqual((dispute.status, dispute.balance_transactions[0].amount), ("needs_response", -10_000))
        refund = self.v1.refunds.retrieve(refund.id)
        self.assertEqual((refund.status, refund.failure_reason), ("failed", "charge_for_pending_refund_disputed"))
        self.assertEqual(self.control.ledger()["payments"][0]["out"], 10_000)
        (entry,) = self.control.ledger()["disputes"]
        self.assertGreater(entry["posted_at"], self.control.ledger()["refunds"][0]["created_at"])

    def test_a_refund_minutes_before_the_chargeback_stays_and_more_goes_out_than_came_in(self) -> None:
        intent = self.pay("pm_card_createDisputeInquiry")
        refund = self.refund(intent, 2_000)
        self.control.advance(300)
        self.control.action("chargeback", payment=intent.id)
        self.assertEqual(self.v1.refunds.retrieve(refund.id).status, "succeeded")
        (payment,) = self.control.ledger()["payments"]
        self.assertEqual((payment["in"], payment["refunded"], payment["charged_back"]), (10_000, 2_000, 10_000))
        self.assertEqual(payment["out"], 12_000)

    def test_a_charged_back_charge_refuses_refunds(self) -> None:
        intent = self.pay("pm_card_createDispute")
        self.control.advance(1)
        (dispute,) = self.v1.disputes.list().data
        self.assertEqual((dispute.status, dispute.balance_transactions[0].amount), ("needs_response", -10_000))
        error = self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 2_000))
        self.assertIn("has been charged back", str(error))
        self.assertEqual(error.code, "charge_disputed")

    def test_verdicts(self) -> None:
        for text, status, out in (("winning_evidence", "won", 0), ("losing_evidence", "lost", 10_000)):
            self.control.reset()
            self.pay("pm_card_createDispute")
            self.control.advance(1)
            (dispute,) = self.v1.disputes.list().data
            self.v1.disputes.update(dispute.id, {"evidence": {"uncategorized_text": text}})
            self.control.advance(5)
            self.assertEqual(self.v1.disputes.retrieve(dispute.id).status, status)
            self.assertEqual(self.control.ledger()["payments"][0]["out"], out)

    def test_real_time_passes_too(self) -> None:
        self.control.freeze(False)
        self.pay("pm_card_createDisputeInquiry")
        for _ in range(500):
            if self.v1.disputes.list().data:
                return
            threading.Event().wait(0.02)
        self.fail("the inquiry never opened")


if __name__ == "__main__":
    unittest.main()
