"""What each of Stripe's errors proves: every row of the table, provoked over HTTP by the official SDK."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stripe

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stripe_support import StripeToolCase

from interlock_integrations.stripe import declare_refund, gated_client
from interlock_integrations.stripe.errors import ANYTHING_ELSE, TABLE, Proof, answer_of, classify, row_of
from interlock_tools import (
    DefiniteNo,
    Gate,
    InProgress,
    NotSent,
    PreconditionFailed,
    RateLimited,
    SendError,
    StoredError,
)

RAISES: dict[Proof, type[Exception]] = {
    Proof.DEFINITE_NO: DefiniteNo,
    Proof.PRECONDITION_FAILED: PreconditionFailed,
    Proof.IN_PROGRESS: InProgress,
    Proof.STORED: StoredError,
    Proof.RATE_LIMITED: RateLimited,
    Proof.UNKNOWN: stripe.StripeError,
}
REFUNDS = "/v1/refunds"
ROWS = {row.name: row for row in (*TABLE, ANYTHING_ELSE)}
PROVOKED = (
    "no answer",
    "not Stripe's words",
    "key in use",
    "key used with other parameters",
    "rate limit",
    "stored server error",
    "server error",
    "already refunded",
    "charged back",
    "card declined",
    "no valid key",
    "not permitted",
    "invalid request",
    "anything else",
)


class EveryRow(StripeToolCase):
    def setUp(self) -> None:
        super().setUp()
        self.payment = self.pay()
        self.send = self.sender()

    def sender(self, key: str = "sk_test_x") -> Callable[..., Any]:
        """The bare send function, without the gate around it."""
        effect = declare_refund(Gate(self.folder / f"{key}.db"), gated_client(self.client(key)))
        self.addCleanup(effect._gate.close)
        return effect.definition.function

    def attempt(self, send: Callable[..., Any] | None = None, amount: int = 2000) -> Any:
        return (send or self.send)(
            "case-1", self.payment, amount, "duplicate", idempotency_key="k1", on_send=lambda: None
        )

    def assert_row(self, name: str, send: Callable[..., Any] | None = None, amount: int = 2000) -> Any:
        with self.assertRaises(RAISES[ROWS[name].proves]) as caught:
            self.attempt(send, amount)
        error = caught.exception
        theirs = error.__cause__ if isinstance(error, SendError) else error
        assert isinstance(theirs, stripe.StripeError)
        self.assertEqual(row_of(answer_of(theirs)).name, name)
        self.assertIn(name, PROVOKED)
        return error

    def test_every_row_is_provoked(self) -> None:
        self.assertEqual(sorted(PROVOKED), sorted(ROWS))
        tests = [name for name in dir(self) if name.startswith("test_row_")]
        self.assertEqual(len(tests), len(ROWS))

    def test_row_no_answer(self) -> None:
        self.control.fault("cut_before", "POST", REFUNDS)
        self.assertIsInstance(self.assert_row("no answer"), stripe.APIConnectionError)

    def test_row_not_stripes_words(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=403, answer="<html>blocked</html>")
        self.assert_row("not Stripe's words")
        for damaged in ("", "{", "[]", '{"error": {"message": "x"}}'):
            self.control.fault("answer", "POST", REFUNDS, status=200 if damaged == "{" else 400, answer=damaged)
            self.assert_row("not Stripe's words")

    def test_row_key_in_use(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=409)
        self.assertEqual(self.assert_row("key in use").code, "idempotency_key_in_use")

    def test_row_key_used_with_other_parameters(self) -> None:
        self.attempt(amount=1)
        self.assert_row("key used with other parameters")

    def test_row_rate_limit(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=429, headers={"Retry-After": "7"})
        self.assertEqual(self.assert_row("rate limit").retry_after, 7)
        self.control.fault(
            "answer",
            "POST",
            REFUNDS,
            status=400,
            answer={"error": {"type": "invalid_request_error", "code": "lock_timeout", "message": "locked"}},
        )
        self.assertIsNone(self.assert_row("rate limit").retry_after)

    def test_row_stored_server_error(self) -> None:
        self.control.fault("apply_then_status", "POST", REFUNDS, status=500, stored=True)
        self.assert_row("server error")
        self.assert_row("stored server error")

    def test_row_server_error(self) -> None:
        for status in (500, 502, 503, 504, 424):
            answer = {"error": {"type": "api_error", "message": "failed"}}
            self.control.fault("answer", "POST", REFUNDS, status=status, answer=answer)
            self.assert_row("server error")

    def test_row_already_refunded(self) -> None:
        self.v1.refunds.create({"payment_intent": self.payment})
        self.assertFalse(self.assert_row("already refunded").stored)
        self.assertTrue(self.assert_row("already refunded").stored, "the second time it is replayed")

    def test_row_charged_back(self) -> None:
        self.control.action("chargeback", payment=self.payment)
        self.assertIn("charged back", self.assert_row("charged back").detail)

    def test_row_card_declined(self) -> None:
        told = {"type": "card_error", "code": "card_declined", "message": "Your card was declined."}
        self.control.fault("answer", "POST", REFUNDS, status=402, answer={"error": told})
        self.assertEqual(self.assert_row("card declined").code, "card_declined")

    def test_row_no_valid_key(self) -> None:
        self.assert_row("no valid key", self.sender("sk_test_invalid"))

    def test_row_not_permitted(self) -> None:
        self.assert_row("not permitted", self.sender("rk_test_read"))

    def test_row_invalid_request(self) -> None:
        error = self.assert_row("invalid request", amount=20_000)
        self.assertFalse(error.stored)
        self.assertIn("greater than unrefunded amount", error.detail)

    def test_row_anything_else(self) -> None:
        told = {"error": {"type": "api_error", "message": "what?"}}
        self.control.fault("answer", "POST", REFUNDS, status=418, answer=told)
        self.assert_row("anything else")


class OtherErrors(unittest.TestCase):
    def test_what_failed_before_the_first_byte(self) -> None:
        client = gated_client(stripe.StripeClient("sk_test_x", base_addresses={"api": "http://127.0.0.1:1"}))
        from interlock_integrations.transport import sending

        with self.assertRaises(stripe.APIConnectionError) as caught, sending(lambda: None):
            client.v1.refunds.create({"payment_intent": "pi_1"})
        self.assertIsInstance(classify(caught.exception), NotSent)

    def test_what_is_not_stripes(self) -> None:
        self.assertIsNone(classify(ValueError("x")))

    def test_every_row_says_why_and_whence(self) -> None:
        for row in TABLE:
            self.assertTrue(row.why.endswith(".") and row.source, row.name)


if __name__ == "__main__":
    unittest.main()
