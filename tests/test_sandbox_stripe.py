"""The Stripe sandbox, driven by the official SDK over real HTTP."""

from __future__ import annotations

import http.client
import inspect
import json
import threading
import typing
import unittest
from typing import Any
from urllib.parse import urlsplit

import stripe
from stripe import StripeClient

from scenarios.sandbox import SandboxError, SandboxProcess


class StripeCase(unittest.TestCase):
    """One sandbox for the class, reset and with a frozen clock for each test."""

    sandbox: SandboxProcess
    options: typing.ClassVar[dict[str, str]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("stripe", options=cls.options).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        self.control = self.sandbox.control
        self.control.reset()
        self.control.freeze()
        self.client = self.connect("sk_test_x")
        self.v1 = self.client.v1

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def connect(self, key: str) -> StripeClient:
        return StripeClient(key, base_addresses={"api": self.sandbox.url}, max_network_retries=0)

    def pay(self, method: str = "pm_card_visa", amount: int = 10_000, **params: Any) -> Any:
        given = {"amount": amount, "currency": "usd", "payment_method": method, "confirm": True, **params}
        return self.v1.payment_intents.create(given)  # type: ignore[arg-type]

    def refund(self, intent: Any, amount: int | None = None, key: str | None = None, **params: Any) -> Any:
        given: dict[str, Any] = {"payment_intent": intent.id, **params}
        if amount is not None:
            given["amount"] = amount
        return self.v1.refunds.create(given, {"idempotency_key": key} if key else {})  # type: ignore[arg-type]

    def charge(self, intent: Any) -> Any:
        return self.v1.charges.retrieve(intent.latest_charge)

    def events(self, *types: str) -> list[Any]:
        return list(self.v1.events.list({"types": list(types), "limit": 100} if types else {"limit": 100}).data)

    def refused(self, kind: type[stripe.StripeError], status: int, call: Any) -> Any:
        """The SDK error that ``call`` raises, checked for class and status."""
        with self.assertRaises(kind) as caught:
            call()
        self.assertIs(type(caught.exception), kind)
        self.assertEqual(caught.exception.http_status, status)
        return caught.exception


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


class Idempotency(StripeCase):
    def test_a_repeat_replays_the_first_answer_and_has_no_second_effect(self) -> None:
        intent = self.pay()
        first, second = (self.refund(intent, 2_000, "key-1") for _ in range(2))
        self.assertEqual(first.id, second.id)
        self.assertNotIn("Idempotent-Replayed", first.last_response.headers)
        self.assertEqual(second.last_response.headers["Idempotent-Replayed"], "true")
        self.assertEqual(second.last_response.headers["Original-Request"], first.last_response.request_id)
        self.assertEqual(len(self.control.ledger()["refunds"]), 1)

    def test_an_executed_refusal_is_replayed_though_it_would_succeed_today(self) -> None:
        intent = self.pay("pm_card_createDispute")
        self.control.advance(1)
        self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 2_000, "key-1"))
        self.control.action("close_dispute", payment=intent.id, won=True)
        error = self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 2_000, "key-1"))
        self.assertEqual(error.headers["Idempotent-Replayed"], "true")
        self.assertEqual(self.refund(intent, 2_000, "key-2").status, "succeeded")

    def test_other_parameters_or_another_endpoint_under_the_key(self) -> None:
        intent = self.pay()
        refund = self.refund(intent, 2_000, "key-1")
        error = self.refused(stripe.IdempotencyError, 400, lambda: self.refund(intent, 3_000, "key-1"))
        self.assertEqual(error.error.type, "idempotency_error")
        self.refused(
            stripe.IdempotencyError, 400, lambda: self.v1.refunds.cancel(refund.id, {}, {"idempotency_key": "key-1"})
        )

    def test_failed_validation_authentication_and_rate_limits_leave_the_key_free(self) -> None:
        intent = self.pay()
        self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 0, "key-1"))
        bad = self.connect("sk_test_invalid")
        options: Any = {"idempotency_key": "key-1"}
        self.refused(
            stripe.AuthenticationError, 401, lambda: bad.v1.refunds.create({"payment_intent": intent.id}, options)
        )
        self.control.fault("answer", "POST", "/v1/refunds", status=429)
        limited = self.refused(stripe.RateLimitError, 429, lambda: self.refund(intent, 2_000, "key-1"))
        self.assertEqual(limited.error.code, "rate_limit")
        self.assertEqual(self.refund(intent, 2_000, "key-1").status, "succeeded")

    def test_a_key_that_is_24_hours_old_starts_a_new_operation(self) -> None:
        intent = self.pay()
        first = self.refund(intent, 2_000, "key-1")
        self.control.advance(24 * 3600 - 1)
        self.assertEqual(self.refund(intent, 2_000, "key-1").id, first.id)
        self.control.advance(1)
        self.assertNotEqual(self.refund(intent, 2_000, "key-1").id, first.id)

    def test_a_key_in_use(self) -> None:
        intent = self.pay()
        self.control.hold("POST", "/v1/refunds", executing=True)
        results: list[Any] = []
        waiting = threading.Thread(target=lambda: results.append(self.refund(intent, 2_000, "key-1")))
        waiting.start()
        self.control.received(1, "POST", "/v1/refunds", stage="held")
        error = self.refused(stripe.APIError, 409, lambda: self.refund(intent, 2_000, "key-1"))
        self.assertIsNone(error.code)
        self.assertEqual(error.error.code, "idempotency_key_in_use")
        self.control.release()
        waiting.join(20)
        self.assertEqual(self.refund(intent, 2_000, "key-1").id, results[0].id)
        self.assertEqual(len(self.control.ledger()["refunds"]), 1)

    def test_a_key_whose_request_is_dropped_is_free_again(self) -> None:
        intent = self.pay()
        self.control.hold("POST", "/v1/refunds", executing=True)
        errors: list[BaseException] = []

        def send() -> None:
            try:
                self.refund(intent, 2_000, "key-1")
            except stripe.APIConnectionError as error:
                errors.append(error)

        waiting = threading.Thread(target=send)
        waiting.start()
        self.control.received(1, "POST", "/v1/refunds", stage="held")
        self.control.release(apply=False)
        waiting.join(20)
        self.assertEqual((len(errors), self.control.ledger()["refunds"]), (1, []))
        self.assertEqual(self.refund(intent, 2_000, "key-1").status, "succeeded")

    def test_a_request_still_on_its_way_lands_once(self) -> None:
        intent = self.pay()
        self.control.hold("POST", "/v1/refunds", then="cut")
        waiting = threading.Thread(
            target=lambda: self.assertRaises(stripe.APIConnectionError, self.refund, intent, 2_000, "key-1")
        )
        waiting.start()
        self.control.received(1, "POST", "/v1/refunds", stage="held")
        self.assertEqual(self.refund(intent, 2_000, "key-1").status, "succeeded")
        self.control.release()
        waiting.join(20)
        self.assertEqual(len(self.control.ledger()["refunds"]), 1)

    def test_a_stored_500_is_replayed_and_an_unstored_one_is_not(self) -> None:
        intent = self.pay()
        self.control.fault("apply_then_status", "POST", "/v1/refunds", status=500, stored=True)
        for _ in range(2):
            error = self.refused(stripe.APIError, 500, lambda: self.refund(intent, 2_000, "key-1"))
        self.assertEqual(error.headers["Idempotent-Replayed"], "true")
        self.control.fault("apply_then_status", "POST", "/v1/refunds", status=500)
        self.refused(stripe.APIError, 500, lambda: self.refund(intent, 3_000, "key-2"))
        self.assertEqual(self.refund(intent, 3_000, "key-2").amount, 3_000)
        self.assertEqual(len(self.control.ledger()["refunds"]), 2)

    def test_a_key_of_more_than_255_characters(self) -> None:
        intent = self.pay()
        self.refund(intent, 2_000, "k" * 255)
        self.refused(stripe.InvalidRequestError, 400, lambda: self.refund(intent, 2_000, "k" * 256))


class Reading(StripeCase):
    def test_lists_page_newest_first(self) -> None:
        intent = self.pay()
        other = self.pay()
        made = [self.refund(intent, 10).id for _ in range(105)]
        self.refund(other, 10)
        newest_first = made[::-1]
        page = self.v1.refunds.list({"payment_intent": intent.id, "limit": 100})
        self.assertEqual(([r.id for r in page.data], page.has_more), (newest_first[:100], True))
        rest = self.v1.refunds.list({"payment_intent": intent.id, "limit": 100, "starting_after": newest_first[99]})
        self.assertEqual(([r.id for r in rest.data], rest.has_more), (newest_first[100:], False))
        back = self.v1.refunds.list({"payment_intent": intent.id, "limit": 3, "ending_before": newest_first[50]})
        self.assertEqual(([r.id for r in back.data], back.has_more), (newest_first[47:50], True))
        every = [r.id for r in page.auto_paging_iter()]
        self.assertEqual(every, newest_first)
        self.assertEqual(len(self.v1.refunds.list({"payment_intent": intent.id}).data), 10)
        for bad in ({"limit": 101}, {"limit": 0}, {"starting_after": "re_nope"}, {"colour": "red"}):
            self.refused(stripe.InvalidRequestError, 400, lambda p=bad: self.v1.refunds.list(p))

    def test_created_filters(self) -> None:
        first = self.pay()
        self.control.advance(100)
        second = self.pay()
        found = self.v1.payment_intents.list({"created": {"gt": first.created}})
        self.assertEqual([intent.id for intent in found.data], [second.id])

    def test_events_keep_a_snapshot_and_name_the_request(self) -> None:
        intent = self.pay("pm_card_refundFail")
        refund = self.refund(intent, 2_000, "key-1")
        self.control.advance(60)
        (created,) = self.events("refund.created")
        self.assertEqual(created.data.object["status"], "succeeded")
        self.assertEqual(created.request.idempotency_key, "key-1")
        self.assertEqual(created.request.id, refund.last_response.request_id)
        (failed,) = self.events("refund.failed")
        self.assertEqual(failed.data.object["status"], "failed")
        self.assertEqual(failed.data.previous_attributes["status"], "succeeded")
        self.assertIsNone(failed.request.idempotency_key)
        self.assertEqual(self.v1.events.retrieve(failed.id).id, failed.id)
        self.control.advance(31 * 86_400)
        self.assertEqual(self.events(), [])

    def test_expanding(self) -> None:
        intent = self.pay()
        self.refund(intent, 2_000)
        expanded: Any = self.v1.payment_intents.retrieve(
            intent.id, {"expand": ["latest_charge.refunds", "latest_charge.balance_transaction"]}
        )
        self.assertEqual(expanded.latest_charge.refunds.data[0].amount, 2_000)
        self.assertEqual(expanded.latest_charge.balance_transaction.amount, 10_000)
        listed: Any = self.v1.refunds.list({"expand": ["data.charge"]})
        self.assertEqual(listed.data[0].charge.id, intent.latest_charge)
        self.refused(stripe.InvalidRequestError, 400, lambda: self.v1.refunds.list({"expand": ["data.colour"]}))

    def test_the_balance_holds_charges_back_for_two_days(self) -> None:
        self.pay()
        self.pay("pm_card_bypassPending")
        balance = self.v1.balance.retrieve()
        self.assertEqual((balance.available[0].amount, balance.pending[0].amount), (9_680, 9_680))
        self.control.advance(2 * 86_400)
        self.assertEqual(self.v1.balance.retrieve().available[0].amount, 2 * 9_680)


class Access(StripeCase):
    def test_keys(self) -> None:
        for key, kind, status in (
            ("sk_test_invalid_key_1234", stripe.AuthenticationError, 401),
            ("pk_something_else", stripe.AuthenticationError, 401),
            ("sk_live_abcdef", stripe.AuthenticationError, 401),
        ):
            with self.subTest(key[:8]):
                error = self.refused(kind, status, lambda k=key: self.connect(k).v1.balance.retrieve())
                self.assertNotIn(key, json.dumps(error.json_body))
        reader = self.connect("rk_test_read_only")
        reader.v1.balance.retrieve()
        self.refused(stripe.PermissionError, 403, lambda: reader.v1.customers.create({"email": "a@example.com"}))

    def test_without_a_key(self) -> None:
        where = urlsplit(self.sandbox.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
        connection.request("GET", "/v1/refunds")
        response = connection.getresponse()
        self.assertEqual(
            (response.status, json.loads(response.read())["error"]["type"]), (401, "invalid_request_error")
        )
        connection.close()

    def test_what_it_does_not_have_it_says(self) -> None:
        error = self.refused(stripe.InvalidRequestError, 404, lambda: self.v1.coupons.list())
        self.assertIn("Unrecognized request URL", str(error))

    def test_no_authorization_is_kept(self) -> None:
        self.connect("sk_test_keep_me_secret").v1.balance.retrieve()
        self.assertNotIn("keep_me_secret", json.dumps(self.control.requests()))

    def test_options_are_checked(self) -> None:
        for options in ({"stripe.colour": "red"}, {"stripe.connect": "maybe"}, {"stripe.escalation_s": "soon"}):
            with self.assertRaises(SandboxError):
                SandboxProcess("stripe", options=options).start()


class OnTheWire(StripeCase):
    def test_one_call_is_one_request(self) -> None:
        intent = self.pay()
        self.control.fault("apply_then_cut", "POST", "/v1/refunds")
        self.assertRaises(stripe.APIConnectionError, self.refund, intent, 2_000, "key-1")
        self.assertEqual(self.control.count("POST", "/v1/refunds"), 1)
        (record,) = self.control.requests("POST", "/v1/refunds")
        self.assertEqual(record["headers"]["idempotency-key"], "key-1")
        self.assertEqual(len(self.control.ledger()["refunds"]), 1)

    def test_a_repeat_with_the_same_parameters_has_the_same_bytes(self) -> None:
        intent = self.pay()
        for _ in range(2):
            self.refund(intent, 2_000, "key-1", metadata={"case": "4471"})
        first, second = self.control.requests("POST", "/v1/refunds")
        self.assertEqual(first["body_sha256"], second["body_sha256"])


def required_fields(model: type) -> set[str]:
    """Fields that the SDK's class says every such object has."""
    found = set()
    for name, annotation in inspect.get_annotations(model).items():
        text = str(annotation)
        if "ClassVar" in text or type(None) in typing.get_args(annotation) or name.startswith("_"):
            continue
        found.add(name)
    return found


class Shapes(StripeCase):
    def check(self, *objects: Any) -> None:
        for obj in objects:
            required = required_fields(type(obj))
            self.assertTrue(required, f"nothing to check in {type(obj).__name__}")
            self.assertEqual(required - set(obj.to_dict()), set(), f"missing in {type(obj).__name__}")

    def test_objects_have_what_the_sdk_says_they_always_have(self) -> None:
        intent = self.pay("pm_card_createDisputeInquiry")
        refund = self.refund(intent, 2_000)
        self.control.action("chargeback", payment=intent.id)
        (dispute,) = self.v1.disputes.list().data
        charge = self.charge(intent)
        self.check(intent, refund, charge, dispute, *dispute.balance_transactions, self.events()[0])
        self.check(dispute.evidence_details, dispute.evidence, self.v1.balance.retrieve())
        self.check(self.v1.payment_methods.retrieve(intent.payment_method))


if __name__ == "__main__":
    unittest.main()
