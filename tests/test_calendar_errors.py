"""What each of Calendar's errors proves: every row of the table, provoked over HTTP by the official client library."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

from google.auth.exceptions import RefreshError
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.calendar import declare_event, gated_service
from interlock_integrations.calendar.errors import ANYTHING_ELSE, TABLE, AlreadyThere, answer_of, classify, row_of
from interlock_integrations.proofs import Proof
from interlock_tools import DefiniteNo, NotSent, RateLimited, SendError

EVENTS = "/calendar/v3/calendars/[^/]+/events"
ROWS = {row.name: row for row in (*TABLE, ANYTHING_ELSE)}
RAISES: dict[Proof, type[Exception]] = {
    Proof.DEFINITE_NO: DefiniteNo,
    Proof.STORED: AlreadyThere,
    Proof.RATE_LIMITED: RateLimited,
    Proof.UNKNOWN: Exception,
}


def words(reason: str) -> dict[str, Any]:
    detail = {"domain": "global", "reason": reason, "message": "no"}
    return {"error": {"code": 400, "message": "no", "errors": [detail]}}


class EveryRow(ToolCase):
    service = "calendar"
    sends = ("POST", EVENTS)

    def setUp(self) -> None:
        super().setUp()
        self.send = self.sender("t")

    def sender(self, token: str) -> Any:
        """The bare send function, without the gate around it."""
        options = {"api_endpoint": self.sandbox.url + "/calendar/v3/"}
        service = gated_service(build("calendar", "v3", credentials=Credentials(token=token), client_options=options))
        return declare_event(self.gate, service, name=f"e{len(self.gate.effects)}").definition.function

    def attempt(self, send: Any = None, **changes: Any) -> Any:
        arguments = {
            "request": "1",
            "summary": "Call",
            "start_datetime": "2026-09-07T10:00:00",
            "end_datetime": "2026-09-07T10:30:00",
            "timezone": "UTC",
            "calendar_id": "primary",
        }
        return (send or self.send)(**{**arguments, **changes}, idempotency_key="0123456789", on_send=lambda: None)

    def assert_row(self, name: str, send: Any = None, **changes: Any) -> Exception:
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
        self.control.fault("answer", "POST", EVENTS, status=status, answer=answer, **fields)

    def test_every_row_is_provoked(self) -> None:
        tests = {name.removeprefix("test_row_").replace("_", " ") for name in dir(self) if name.startswith("test_row_")}
        self.assertEqual(tests, {name.replace("'", "") for name in ROWS})

    def test_row_no_answer(self) -> None:
        self.control.fault("cut_before", "POST", EVENTS)
        self.assert_row("no answer")
        for status, body in ((200, "{"), (403, "[]")):
            self.answer(status, body)
            self.assert_row("no answer")

    def test_row_server_error(self) -> None:
        for status in (500, 502, 503):
            self.answer(status)
            self.assert_row("server error")
        self.answer(504, "<html>")
        self.assert_row("server error")

    def test_row_not_Googles_words(self) -> None:
        nothing: list[Any] = ["<html>blocked</html>", "{}", {"error": "no"}, {"error": {"errors": []}}]
        for body in (*nothing, {"error": {"errors": [{}]}}):
            self.answer(403, body)
            self.assert_row("not Google's words")

    def test_row_duplicate(self) -> None:
        self.answer(409)
        self.assert_row("duplicate")

    def test_row_quota(self) -> None:
        self.answer(429, headers={"Retry-After": "7"})
        error = self.assert_row("quota")
        assert isinstance(error, RateLimited)
        self.assertEqual(error.retry_after, 7)
        for reason in ("rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded"):
            self.answer(403, words(reason))
            self.assert_row("quota")

    def test_row_credentials(self) -> None:
        self.assert_row("credentials", self.sender("invalid"))

    def test_row_not_permitted(self) -> None:
        self.assert_row("not permitted", self.sender("readonly"))
        self.control.action("calendar", id="anna@example.com", role="reader")
        self.assert_row("not permitted", calendar_id="anna@example.com")

    def test_row_no_such_calendar(self) -> None:
        self.assert_row("no such calendar", calendar_id="nobody@example.com")

    def test_row_invalid_request(self) -> None:
        error = self.assert_row("invalid request", timezone="Mars/Base")
        self.assertIn("time zone", str(error))

    def test_row_anything_else(self) -> None:
        self.answer(412, words("conditionNotMet"))
        self.assert_row("anything else")

    def test_a_redirect_is_not_followed(self) -> None:
        self.answer(307, "", headers={"Location": self.sandbox.url + "/calendar/v3/elsewhere"})
        self.assertRaises(HttpError, self.attempt)
        self.assertEqual(len(self.control.requests("POST")), 1)

    def test_a_token_that_cannot_be_refreshed_is_not_sent(self) -> None:
        options = {"api_endpoint": self.sandbox.url + "/calendar/v3/"}
        service = gated_service(build("calendar", "v3", credentials=Credentials(token=None), client_options=options))
        marks: list[int] = []
        send = declare_event(self.gate, service, name="x").definition.function
        with self.assertRaises(RefreshError):
            send(
                *("1", "Call", "2026-09-07T10:00:00", "2026-09-07T10:30:00", "UTC", "primary"),
                idempotency_key="0123456789",
                on_send=lambda: marks.append(1),
            )
        self.assertEqual((marks, self.control.requests()), ([], []))


class OtherErrors(unittest.TestCase):
    def test_what_failed_before_the_first_byte(self) -> None:
        options = {"api_endpoint": "http://127.0.0.1:1/calendar/v3/"}
        service = gated_service(build("calendar", "v3", credentials=Credentials(token="t"), client_options=options))
        from interlock_integrations.transport import sending

        with self.assertRaises(NotSent) as caught, sending(lambda: None):
            service.events().insert(calendarId="primary", body={}).execute()
        self.assertIsInstance(classify(caught.exception), NotSent)

    def test_every_row_says_why_and_whence(self) -> None:
        for row in TABLE:
            self.assertTrue(row.why.endswith(".") and row.source, row.name)


if __name__ == "__main__":
    unittest.main()
