"""The Resend sandbox, driven by the official SDK over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from unittest import mock

import resend
from resend.exceptions import ResendError

from scenarios.sandbox.cases import SandboxCase

MAILS = "/emails"
KEY = "re_sandbox_0123456789abcdef"


class ResendCase(SandboxCase):
    services = ("resend",)

    def setUp(self) -> None:
        super().setUp()
        for name, value in (("api_url", self.sandbox.url), ("api_key", KEY)):
            patch = mock.patch.object(resend, name, value)
            patch.start()
            self.addCleanup(patch.stop)

    def send(self, key: str | None = None, **fields: Any) -> Any:
        mail: Any = {"from": "Bot <bot@example.com>", "to": "a@b.org", "subject": "Hello", "text": "Hi", **fields}
        return resend.Emails.send(mail, {"idempotency_key": key} if key else None)

    def refused(self, status: int, name: str, call: Callable[[], Any]) -> ResendError:
        with self.assertRaises(ResendError) as caught:
            call()
        error = caught.exception
        self.assertEqual((int(error.code), error.error_type), (status, name), error.message)
        return error

    def mails(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.control.ledger()["mails"]
        return found


class Keys(ResendCase):
    def test_a_repeat_replays_the_first_answer(self) -> None:
        first, second = self.send("k1"), self.send("k1")
        self.assertEqual(first["id"], second["id"])
        self.assertNotIn("idempotent-replayed", first["http_headers"])
        self.assertEqual(second["http_headers"]["idempotent-replayed"], "true")
        self.assertEqual([mail["idempotency_key"] for mail in self.mails()], ["k1"])
        self.assertNotEqual(self.send()["id"], self.send()["id"])

    def test_another_body_under_the_key(self) -> None:
        self.send("k1")
        self.refused(409, "invalid_idempotent_request", lambda: self.send("k1", text="Bye"))

    def test_a_key_that_is_24_hours_old(self) -> None:
        first = self.send("k1")
        self.control.advance(24 * 3600 - 1)
        self.assertEqual(self.send("k1")["id"], first["id"])
        self.control.advance(1)
        self.assertNotEqual(self.send("k1", text="Bye")["id"], first["id"])

    def test_a_key_in_progress(self) -> None:
        self.control.hold("POST", MAILS, executing=True)
        results: list[Any] = []
        waiting = threading.Thread(target=lambda: results.append(self.send("k1")))
        waiting.start()
        self.control.received(1, "POST", MAILS, stage="held")
        self.refused(409, "concurrent_idempotent_requests", lambda: self.send("k1"))
        self.refused(409, "concurrent_idempotent_requests", lambda: self.send("k1", text="Bye"))
        self.control.release()
        waiting.join(20)
        self.assertEqual(self.send("k1")["id"], results[0]["id"])

    def test_a_dropped_request_frees_its_key(self) -> None:
        self.control.hold("POST", MAILS, executing=True, then="cut")
        waiting = threading.Thread(target=lambda: self.refused(500, "HttpClientError", lambda: self.send("k1")))
        waiting.start()
        self.control.received(1, "POST", MAILS, stage="held")
        self.control.release(apply=False)
        waiting.join(20)
        self.send("k1", text="Bye")
        self.assertEqual(len(self.mails()), 1)

    def test_the_key_is_looked_at_before_the_domain(self) -> None:
        probe: Any = {"from": "probe@unverified.example", "to": "a@b.org", "subject": "x", "text": "x"}
        for _ in range(2):
            self.refused(403, "validation_error", lambda: self.send("k1", **probe))
        self.send("k1")
        self.refused(409, "invalid_idempotent_request", lambda: self.send("k1", **probe))
        self.refused(422, "missing_required_field", lambda: self.send("k1", subject=""))
        self.control.advance(24 * 3600)
        self.refused(403, "validation_error", lambda: self.send("k1", **probe))
        self.assertEqual(len(self.mails()), 1)

    def test_a_stored_answer(self) -> None:
        self.control.fault("apply_then_status", "POST", MAILS, status=500, stored=True)
        for replayed in (None, "true"):
            error = self.refused(500, "application_error", lambda: self.send("k1"))
            self.assertEqual(error.headers.get("idempotent-replayed"), replayed)
        self.assertEqual(len(self.mails()), 1)

    def test_a_key_that_is_too_long(self) -> None:
        self.send("k" * 256)
        self.refused(400, "invalid_idempotency_key", lambda: self.send("k" * 257))


class Reading(ResendCase):
    def test_list_and_retrieve(self) -> None:
        made = self.send("k1", html="<p>Hi</p>", tags=[{"name": "kind", "value": "greeting"}])
        listed: Any = resend.Emails.list()
        self.assertEqual((listed["object"], listed["has_more"], len(listed["data"])), ("list", False, 1))
        row = listed["data"][0]
        self.assertEqual((row["id"], row["to"], row["last_event"]), (made["id"], ["a@b.org"], "sent"))
        self.assertFalse({"html", "text", "tags", "headers"} & set(row))
        self.control.advance(2)
        mail: Any = resend.Emails.get(made["id"])
        self.assertEqual((mail["object"], mail["text"], mail["html"]), ("email", "Hi", "<p>Hi</p>"))
        self.assertEqual(mail["last_event"], "delivered")
        self.assertNotIn("tags", mail)
        self.control.action("show_tags", on=True)
        self.assertEqual(dict(resend.Emails.get(made["id"]))["tags"], [{"name": "kind", "value": "greeting"}])
        self.refused(404, "not_found", lambda: resend.Emails.get("none"))
        self.control.action("event", mail=made["id"], what="bounced")
        self.assertEqual(dict(resend.Emails.get(made["id"]))["last_event"], "bounced")

    def test_pages(self) -> None:
        ids = [self.send()["id"] for _ in range(5)]
        first: Any = resend.Emails.list({"limit": 2})
        second: Any = resend.Emails.list({"limit": 2, "after": first["data"][-1]["id"]})
        third: Any = resend.Emails.list({"limit": 2, "after": second["data"][-1]["id"]})
        pages = [first, second, third]
        self.assertEqual([mail["id"] for page in pages for mail in page["data"]], ids[::-1], "newest first")
        self.assertEqual([page["has_more"] for page in pages], [True, True, False])
        back: Any = resend.Emails.list({"limit": 2, "before": third["data"][0]["id"]})
        self.assertEqual(back["data"], second["data"])
        self.refused(422, "validation_error", lambda: resend.Emails.list({"limit": 101}))
        self.refused(422, "validation_error", lambda: resend.Emails.list({"after": "none"}))

    def test_the_retention(self) -> None:
        self.send()
        self.control.action("retention", days=1)
        self.control.advance(86_401)
        listed: Any = resend.Emails.list()
        self.assertEqual((listed["data"], len(self.mails())), ([], 1))

    def test_api_keys(self) -> None:
        made = self.send()
        resend.api_key = "re_sending_0123456789abcdef"
        self.send()
        self.refused(401, "restricted_api_key", resend.Emails.list)
        self.refused(401, "restricted_api_key", lambda: resend.Emails.get(made["id"]))
        resend.api_key = "re_invalid_0123456789abcdef"
        self.refused(403, "invalid_api_key", self.send)
        resend.api_key = ""
        self.refused(401, "missing_api_key", self.send)
        self.assertEqual(len(self.mails()), 2)


class Sending(ResendCase):
    def test_what_is_not_an_email(self) -> None:
        for field in ("from", "to", "subject"):
            self.refused(422, "missing_required_field", lambda field=field: self.send(**{field: None}))
        self.refused(422, "missing_required_field", lambda: self.send(text=None))
        self.refused(422, "validation_error", lambda: self.send(to="nobody"))
        self.refused(422, "validation_error", lambda: self.send(to=["a@b.org"] * 51))
        self.refused(422, "validation_error", lambda: self.send(tags=[{"name": "a b", "value": "x"}]))
        self.refused(403, "validation_error", lambda: self.send(**{"from": "bot@other.example"}))
        self.control.action("verify", domain="other.example")
        self.send(**{"from": "bot@other.example"})

    def test_a_rate_limit(self) -> None:
        self.control.fault("answer", "POST", MAILS, status=429)
        error = self.refused(429, "rate_limit_exceeded", self.send)
        self.assertEqual(error.headers["retry-after"], "1")
        self.assertEqual(self.mails(), [])

    def test_the_sdk_sends_once_and_calls_a_broken_connection_a_500(self) -> None:
        self.control.fault("apply_then_cut", "POST", MAILS)
        self.refused(500, "HttpClientError", self.send)
        self.assertEqual((self.control.count("POST", MAILS), len(self.mails())), (1, 1))

    def test_somebody_else_s_emails(self) -> None:
        fields = {"from": "a@example.com", "to": "a@b.org", "subject": "Hello", "html": "x"}
        self.assertEqual(len(self.control.action("send", count=3, **fields)["ids"]), 3)
        self.assertEqual({mail["via"] for mail in self.mails()}, {"person"})
