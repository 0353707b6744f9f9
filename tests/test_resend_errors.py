from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.proofs import Proof
from interlock_integrations.resend import ResendClient, declare_mail
from interlock_integrations.resend.errors import ANYTHING_ELSE, TABLE, answer_of, classify, row_of
from interlock_integrations.transport import sending
from interlock_tools import DefiniteNo, InProgress, NotSent, RateLimited, SendError, StoredError

MAILS = "/emails"
ROWS = {row.name: row for row in (*TABLE, ANYTHING_ELSE)}
RAISES: dict[Proof, type[Exception]] = {
    Proof.DEFINITE_NO: DefiniteNo,
    Proof.STORED: StoredError,
    Proof.IN_PROGRESS: InProgress,
    Proof.RATE_LIMITED: RateLimited,
    Proof.UNKNOWN: Exception,
}


class EveryRow(ToolCase):
    service = "resend"
    sends = ("POST", MAILS)

    def setUp(self) -> None:
        super().setUp()
        self.send = self.sender("re_full_0123456789abcdef")

    def sender(self, key: str) -> Any:
        """The bare send function, without the gate around it."""
        return declare_mail(self.gate, ResendClient(key, self.sandbox.url), name=key).definition.function

    def attempt(self, send: Any = None, text: str = "Hi", sender: str = "bot@example.com") -> Any:
        return (send or self.send)(
            "1", sender, "a@b.org", "Hello", text, None, idempotency_key="k1", on_send=lambda: None
        )

    def assert_row(self, name: str, send: Any = None, **changes: Any) -> Any:
        with self.assertRaises(RAISES[ROWS[name].proves]) as caught:
            self.attempt(send, **changes)
        error = caught.exception
        if ROWS[name].proves is Proof.UNKNOWN:
            self.assertNotIsInstance(error, SendError)
        theirs = error.__cause__ if isinstance(error, SendError) else error
        assert theirs is not None
        self.assertEqual(row_of(answer_of(theirs)).name, name)
        return error

    def answer(self, status: int, answer: Any = None, **fields: Any) -> None:
        self.control.fault("answer", "POST", MAILS, status=status, answer=answer, **fields)

        tests = {name.removeprefix("test_row_").replace("_", " ") for name in dir(self) if name.startswith("test_row_")}
        self.assertEqual(tests, {name.replace("'", "") for name in ROWS})

    def test_row_no_answer(self) -> None:
        self.control.fault("cut_before", "POST", MAILS)
        self.assert_row("no answer")

    def test_row_not_Resends_words(self) -> None:
        for status, body in ((403, "<html>blocked</html>"), (200, "{"), (200, "[]"), (400, {}), (502, "")):
            self.answer(status, body)
            self.assert_row("not Resend's words")

    def test_row_key_in_progress(self) -> None:
        self.answer(409)
        self.assertEqual(self.assert_row("key in progress").code, "concurrent_idempotent_requests")

    def test_row_key_used_with_another_body(self) -> None:
        self.attempt()
        self.assert_row("key used with another body", text="Bye")

    def test_row_rate_limit(self) -> None:
        self.answer(429, headers={"Retry-After": "7"})
        self.assertEqual(self.assert_row("rate limit").code, "rate_limit_exceeded")
        for name in ("daily_quota_exceeded", "monthly_quota_exceeded"):
            self.answer(429, {"statusCode": 429, "name": name, "message": "used up"})
            self.assertEqual(self.assert_row("rate limit").code, name)

    def test_row_stored_server_error(self) -> None:
        self.control.fault("apply_then_status", "POST", MAILS, status=500, stored=True)
        self.assert_row("server error")
        self.assert_row("stored server error")

    def test_row_server_error(self) -> None:
        for status in (500, 503):
            self.answer(status)
            self.assert_row("server error")

    def test_row_no_valid_key(self) -> None:
        self.assertEqual(self.assert_row("no valid key", self.sender("re_invalid_key")).code, "invalid_api_key")
        self.answer(401)
        self.assertEqual(self.assert_row("no valid key").code, "restricted_api_key")

    def test_row_not_permitted(self) -> None:
        error = self.assert_row("not permitted", sender="bot@other.example")
        self.assertIn("not verified", error.detail)

    def test_row_invalid_request(self) -> None:
        self.assertEqual(self.assert_row("invalid request", sender="nobody").code, "validation_error")
        self.answer(400, {"statusCode": 400, "name": "invalid_idempotency_key", "message": "1-256 chars"})
        self.assertEqual(self.assert_row("invalid request").code, "invalid_idempotency_key")

    def test_row_anything_else(self) -> None:
        self.answer(451)
        self.assert_row("anything else")

    def test_an_answer_without_an_id_is_no_evidence(self) -> None:
        self.answer(200, {"object": "email"})
        self.assertIsNone(self.attempt())


class OtherErrors(unittest.TestCase):
    def test_what_failed_before_the_first_byte(self) -> None:
        client = ResendClient("re_x", "http://127.0.0.1:1")
        with self.assertRaises(NotSent) as caught, sending(lambda: None):
            client.send({}, "k1")
        self.assertIsInstance(classify(caught.exception), NotSent)

    def test_every_row_says_why_and_whence(self) -> None:
        for row in TABLE:
            self.assertTrue(row.why.endswith(".") and row.source, row.name)


if __name__ == "__main__":
    unittest.main()
