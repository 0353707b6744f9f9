"""The integration kit, run whole by ``create_calendar_event`` and by ``send_email`` with each kind of lookup."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from kit_support import SandboxKit

from interlock_integrations.calendar import declare_event, gated_service
from interlock_integrations.resend import ResendClient, declare_mail
from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.testing.integration_kit import LANDED

TOKEN = "ya29.NotToBeSeenAnywhere"
KEY = "re_NotToBeSeen_0123456789abcdef"
SENDER = "Support <support@example.com>"


class CalendarKit(SandboxKit):
    service = "calendar"
    sends = ("POST", "/calendar/v3/calendars/[^/]+/events")
    rate_limit: ClassVar[dict[str, Any]] = {
        "status": 403,
        "headers": {"Retry-After": "0"},
        "answer": {
            "error": {
                "code": 403,
                "message": "Rate Limit Exceeded",
                "errors": [{"domain": "usageLimits", "reason": "rateLimitExceeded", "message": "Rate Limit Exceeded"}],
            }
        },
    }
    collisions: ClassVar[Any] = "detected"

    def declare(self, gate: Gate) -> Effect[Any]:
        credentials: Any = Credentials(token=TOKEN)  # type: ignore[no-untyped-call]
        options = {"api_endpoint": self.sandbox.url + "/calendar/v3/"}
        service = build("calendar", "v3", credentials=credentials, client_options=options)
        return declare_event(gate, gated_service(service), collisions=self.collisions)

    def slot(self, number: int) -> tuple[str, str]:
        return f"2026-09-{number:02}T10:00:00", f"2026-09-{number:02}T10:30:00"

    def arguments(self, number: int) -> dict[str, Any]:
        begin, end = self.slot(number)
        asked = {"summary": "Call", "start_datetime": begin, "end_datetime": end, "timezone": "UTC"}
        return {"request": f"case-{number}", **asked, "calendar_id": "primary"}

    def landed(self, number: int) -> int:
        begin = self.slot(number)[0] + "Z"
        return sum(event["via"] == "api" and event["start"] == begin for event in self.control.ledger()["events"])

    def disturb(self, number: int) -> None:
        begin, end = self.slot(number)
        self.control.action("event", start=begin + "Z", end=end + "Z")

    def crowd(self, number: int) -> None:
        self.skipTest("an event is read by its id, which has no pages")

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"start_datetime": "tomorrow"}, {"end_datetime": "2026-08-01T10:00:00"}, {"timezone": "Mars/Base"})
        yield from ({"summary": 5}, {"calendar_id": ""}, {"calendar_id": "a/b?c"}, {"attendees": []})
        yield from ({"summary": ""}, {"start_datetime": "2026-09-01T10:00:00+02:00"})

    def secrets(self) -> Iterable[str]:
        return (TOKEN,)


class Event(CalendarKit, unittest.TestCase):
    """Google notices a second insert with the same id."""


class UndetectedCollisions(CalendarKit, unittest.TestCase):
    """Nothing is built on Google's noticing it: read by id, once nothing can land any more."""

    collisions = "undetected"


class ResendKit(SandboxKit):
    service = "resend"
    sends = ("POST", "/emails")
    rate_limit: ClassVar[dict[str, Any]] = {
        "status": 429,
        "headers": {"Retry-After": "0"},
        "answer": {"statusCode": 429, "name": "rate_limit_exceeded", "message": "Too many requests."},
    }
    lookup: ClassVar[dict[str, Any]] = {}

    def setUp(self) -> None:
        super().setUp()
        self.refunds = self.kit_folder / "refunds"
        self.refunds.mkdir()

    def declare(self, gate: Gate) -> Effect[Any]:
        client = ResendClient(KEY, self.sandbox.url)
        return declare_mail(gate, client, premises=self.facts, expect={"refund": "good"}, **self.lookup)

    def facts(self, request: str) -> dict[str, Any]:
        """The refund that the email announces, at a service of its own."""
        return {"refund": "failed" if (self.refunds / request).exists() else "good"}

    def arguments(self, number: int) -> dict[str, Any]:
        mail = {"sender": SENDER, "to": f"reader{number}@example.org", "subject": "Your refund"}
        return {"request": f"case-{number}", **mail, "text": "It is on the way.", "html": None}

    def landed(self, number: int) -> int:
        to = [f"reader{number}@example.org"]
        return sum(mail["via"] == "api" and mail["to"] == to for mail in self.control.ledger()["mails"])

    def disturb(self, number: int) -> None:
        (self.refunds / f"case-{number}").touch()

    def crowd(self, number: int) -> None:
        self.disturb(number)
        for index in range(105):
            asked = {"to": f"other{index}@example.org", "subject": "News", "text": "x"}
            self.control.action("send", **{"from": SENDER, **asked})

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"to": ""}, {"to": "reader"}, {"to": ["a@example.org"]}, {"to": "a@example.org, b@example.org"})
        yield from ({"to": "a@example.org\nBcc: b@example.org"}, {"subject": ""}, {"subject": "a\nb"}, {"text": 5})
        yield from ({"sender": ""}, {"cc": "x@example.org"})

    def secrets(self) -> Iterable[str]:
        return (KEY,)


class FullAccess(ResendKit, unittest.TestCase):
    """The key may read: emails are listed and read."""

    lookup: ClassVar[dict[str, Any]] = {"full_access": True}


class Probe(ResendKit, unittest.TestCase):
    """The key only sends, and Resend is asked about the idempotency key."""

    lookup: ClassVar[dict[str, Any]] = {"probe": True}

    def requests(self) -> int:
        """A probe is a request that Resend refuses, and no send."""
        received = self.control.requests(*self.sends, "received")
        return sum(not self._is_probe(found) for found in received)

    def _is_probe(self, found: dict[str, Any]) -> bool:
        return found["status"] in (403, 409)


class SendingOnly(ResendKit, unittest.TestCase):
    """The key only sends, and nothing is asked: what may have landed and may not be repeated, nobody knows."""

    def crowd(self, number: int) -> None:
        self.skipTest("nothing is looked up")

    def test_kit_the_world_moves_after_it_landed(self) -> None:
        for number, point in enumerate(LANDED, 1):
            self._die_calling(point, number)
            self.disturb(number)
        gate, effect = self._open()
        for number, point in enumerate(LANDED, 1):
            with self.subTest(point.value):
                self._is(self._settled(gate, effect, number), "AMBIGUOUS", number, 1)
        self.assertEqual(self.requests(), len(LANDED), "nothing was sent again")


if __name__ == "__main__":
    unittest.main()
