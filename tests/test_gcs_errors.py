"""What each of Cloud Storage's errors proves: every row of the table, provoked over HTTP by the official client."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

from google.cloud import storage
from google.oauth2.credentials import Credentials

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.gcs import declare_restore, declare_write, gated_client
from interlock_integrations.gcs.errors import ANYTHING_ELSE, TABLE, answer_of, classify, row_of
from interlock_integrations.proofs import Proof
from interlock_integrations.transport import sending
from interlock_tools import DefiniteNo, NotSent, PreconditionFailed, RateLimited, SendError

BUCKET = "configs"
UPLOADS = f"/upload/storage/v1/b/{BUCKET}/o"
ROWS = {row.name: row for row in (*TABLE, ANYTHING_ELSE)}
RAISES: dict[Proof, type[Exception]] = {
    Proof.DEFINITE_NO: DefiniteNo,
    Proof.PRECONDITION_FAILED: PreconditionFailed,
    Proof.RATE_LIMITED: RateLimited,
    Proof.UNKNOWN: Exception,
}


def client(url: str, token: str = "t") -> storage.Client:
    credentials: Any = Credentials(token=token)  # type: ignore[no-untyped-call]
    return gated_client(storage.Client(project="p", credentials=credentials, client_options={"api_endpoint": url}))


def words(reason: str, code: int = 400) -> dict[str, Any]:
    detail = {"domain": "global", "reason": reason, "message": "no"}
    return {"error": {"code": code, "message": "no", "errors": [detail]}}


class EveryRow(ToolCase):
    service = "gcs"
    sends = ("POST", UPLOADS)

    def setUp(self) -> None:
        super().setUp()
        self.control.action("create_bucket", bucket=BUCKET, versioning=True)

    def attempt(self, *, generation: int = 0, bucket: str = BUCKET, token: str = "t") -> Any:
        """The bare send function, without the gate around it."""
        name = f"e{len(self.gate.effects)}"
        send = declare_write(self.gate, client(self.sandbox.url, token), name=name).definition.function
        facts = {"generation": generation, "content_type": ""}
        return send("1", bucket, "a", "x", idempotency_key="0123456789", on_send=lambda: None, facts=facts)

    def assert_row(self, name: str, attempt: Any = None) -> Exception:
        with self.assertRaises(RAISES[ROWS[name].proves]) as caught:
            (attempt or self.attempt)()
        error = caught.exception
        if ROWS[name].proves is Proof.UNKNOWN:
            self.assertNotIsInstance(error, SendError)
        theirs = error.__cause__ if isinstance(error, SendError) else error
        assert theirs is not None
        self.assertEqual(row_of(answer_of(theirs)).name, name)
        return error

    def answer(self, status: int, answer: Any = None, **fields: Any) -> None:
        self.control.fault("answer", "POST", UPLOADS, status=status, answer=answer, **fields)

    def test_every_row_is_provoked(self) -> None:
        tests = {name.removeprefix("test_row_").replace("_", " ") for name in dir(self) if name.startswith("test_row_")}
        self.assertEqual(tests, {name.replace("'", "") for name in ROWS})

    def test_row_no_answer(self) -> None:
        self.control.fault("cut_before", "POST", UPLOADS)
        self.assert_row("no answer")
        self.answer(200, "{")
        self.assert_row("no answer")

    def test_row_server_error(self) -> None:
        for status in (500, 502, 503, 504):
            self.answer(status)
            self.assert_row("server error")
        self.answer(504, "<html>")
        self.assert_row("server error")

    def test_row_not_Googles_words(self) -> None:
        nothing: list[Any] = ["<html>blocked</html>", "{}", {"error": "no"}, {"error": {"errors": []}}]
        for body in (*nothing, {"error": {"errors": [{}]}}, {"error": {"errors": ["x"]}}):
            for status in (403, 412):
                self.answer(status, body)
                self.assert_row("not Google's words")

    def test_row_timed_out(self) -> None:
        self.answer(408)
        self.assert_row("timed out")

    def test_row_precondition(self) -> None:
        self.control.action("put", bucket=BUCKET, object="a", content="x")
        self.assert_row("precondition")
        self.assert_row("precondition", lambda: self.attempt(generation=5))

    def test_row_rate_limit(self) -> None:
        self.answer(429, headers={"Retry-After": "7"})
        error = self.assert_row("rate limit")
        assert isinstance(error, RateLimited)
        self.assertEqual(error.retry_after, 7)
        for reason in ("rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"):
            self.answer(403, words(reason))
            self.assert_row("rate limit")

    def test_row_credentials(self) -> None:
        self.assert_row("credentials", lambda: self.attempt(token="invalid"))
        self.assertEqual(self.count(), 1, "no second request with a refreshed token")

    def test_row_not_permitted(self) -> None:
        self.control.action("deny", bucket=BUCKET, permissions=["storage.objects.create"])
        self.assert_row("not permitted")
        self.answer(403, words("retentionPolicyNotMet"))
        self.assert_row("not permitted")

    def test_row_not_there(self) -> None:
        self.assert_row("not there", lambda: self.attempt(bucket="missing"))
        send = declare_restore(self.gate, client(self.sandbox.url)).definition.function
        facts = {"generation": 0, "source": "found", "source_fields": {"metadata": {}}}
        arguments: dict[str, Any] = {"idempotency_key": "0123456789", "on_send": lambda: None, "facts": facts}
        self.assert_row("not there", lambda: send("1", BUCKET, "a", 5, **arguments))

    def test_row_invalid_request(self) -> None:
        self.answer(400, words("invalid"))
        self.assert_row("invalid request")

    def test_row_anything_else(self) -> None:
        for status in (402, 409, 410, 416):
            self.answer(status, words("new", status))
            self.assert_row("anything else")

    def test_an_answer_without_a_generation_is_no_evidence(self) -> None:
        self.answer(200, {"kind": "storage#object", "name": "a"})
        self.assertIsNone(self.attempt())


class OtherErrors(unittest.TestCase):
    def test_what_failed_before_the_first_byte(self) -> None:
        ours = client("http://127.0.0.1:1")
        with self.assertRaises(NotSent) as caught, sending(lambda: None):
            ours.bucket(BUCKET).blob("a").upload_from_string("x", retry=None)
        self.assertIsInstance(classify(caught.exception), NotSent)

    def test_every_row_says_why_and_whence(self) -> None:
        for row in TABLE:
            self.assertTrue(row.why.endswith((".", ")")) and row.source, row.name)


if __name__ == "__main__":
    unittest.main()
