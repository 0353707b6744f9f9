"""How the Stripe sandbox treats requests: idempotency, lists, events, keys, faults; driven by the official SDK."""

from __future__ import annotations

import http.client
import json
import threading
import unittest
from typing import Any
from urllib.parse import urlsplit

import stripe

from scenarios.sandbox import SandboxError, SandboxProcess
from scenarios.sandbox.stripe.cases import StripeCase


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


class Shapes(StripeCase):
    def test_objects_have_what_the_sdk_says_they_always_have(self) -> None:
        intent = self.pay("pm_card_createDisputeInquiry")
        refund = self.refund(intent, 2_000)
        self.control.action("chargeback", payment=intent.id)
        (dispute,) = self.v1.disputes.list().data
        charge = self.charge(intent)
        method = self.v1.payment_methods.retrieve(intent.payment_method)
        objects = [intent, method, refund, charge, dispute, dispute.evidence_details, dispute.evidence]
        for obj in [*objects, *dispute.balance_transactions, self.events()[0], self.v1.balance.retrieve()]:
            self.check_shape(obj)


if __name__ == "__main__":
    unittest.main()
