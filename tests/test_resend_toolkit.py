"""``send_email`` against the Resend sandbox: how it recovers, what it may say it knows, what it refuses."""

from __future__ import annotations

import json
import os
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import resend
from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import RECOVERS, ToolCase, calls, proposes

from interlock_integrations.resend import ResendClient, ResendToolkit, SendEmail, declare_mail
from interlock_tools import BadArguments, DefinitionError, Gate, Grant, MissingRequestKey, Outcome
from interlock_tools.langchain import GatedTool

MAILS = "/emails"
KEY = "re_NotToBeSeen_0123456789abcdef"
SENDING = "re_sending_0123456789abcdef"
SENDER = "Support <support@example.com>"
MAIL = {"to": "anna@example.org", "subject": "Your refund", "text": "It is on the way."}
HOUR = 3600.0


def always(reference: str) -> Any:
    return lambda: reference


class ResendToolCase(ToolCase):
    service = "resend"
    sends = ("POST", MAILS)

    def toolkit(self, gate: Gate | None = None, **options: Any) -> ResendToolkit:
        options.setdefault("client", ResendClient(options.pop("api_key", KEY), self.sandbox.url))
        options.setdefault("request", lambda: "case-1")
        options.setdefault("sender", SENDER)
        return ResendToolkit(gate or self.gate, **options)

    def tool(self, gate: Gate | None = None, **options: Any) -> GatedTool:
        (tool,) = self.toolkit(gate, **options).get_tools()
        assert isinstance(tool, GatedTool)
        return tool

    def mail(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        return self.call(tool or self.tool(), **{**MAIL, **changes})

    def mails(self, via: str = "api") -> list[dict[str, Any]]:
        return [mail for mail in self.control.ledger()["mails"] if mail["via"] == via]

    def person(self, **fields: Any) -> None:
        """Somebody else sends an email that is the same but for ``fields``."""
        self.control.action("send", **{"from": SENDER, **MAIL, **fields})

    def arguments(self, request: str = "case-1") -> dict[str, Any]:
        return {"request": request, "sender": SENDER, **MAIL, "html": None}

    def dies(self, point: str, **options: Any) -> None:
        """A process makes the one call and is killed in it."""
        client = ResendClient(options.pop("api_key", KEY), self.sandbox.url)
        self.fork_and_die(point, lambda gate: declare_mail(gate, client, **options)(**self.arguments()))

    def recovered(self, **options: Any) -> Outcome:
        """What recovery says after a restart."""
        gate = self.open_gate()
        self.toolkit(gate, **options)
        (outcome,) = gate.recover().outcomes
        return outcome


class OneEmail(ResendToolCase):
    def test_it_is_sent_once_and_found_again(self) -> None:
        tool = self.tool(api_key=SENDING)
        first, second = self.mail(tool), self.mail(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual(first.text, second.text)
        (made,) = self.mails()
        effect_id = first.artifact["effect_id"]
        self.assertEqual((made["to"], made["from"], made["idempotency_key"]), ([MAIL["to"]], SENDER, effect_id))
        self.assertEqual(made["tags"], [{"name": "interlock_effect_id", "value": effect_id}])
        self.assertEqual(first.artifact["result"]["id"], made["id"])
        self.assertEqual((self.count(), self.dispatched(self.gate, effect_id)), (1, 1))

    def test_a_resend_has_the_same_bytes(self) -> None:
        self.control.fault("apply_then_cut", "POST", MAILS)
        message = self.mail(html="<p>Käse</p>")
        self.assert_outcome(message, "COMMITTED", "resend")
        first, second = self.control.requests("POST", MAILS)
        self.assertEqual(first["body_sha256"], second["body_sha256"])
        self.assertEqual(first["headers"]["idempotency-key"], second["headers"]["idempotency-key"])
        self.assertEqual((len(self.mails()), self.dispatched(self.gate, message.artifact["effect_id"])), (1, 2))

    def test_the_journal_s_words_are_sent_and_not_newer_ones(self) -> None:
        self.dies("before_bytes")
        outcome = self.recovered(sender="New <new@example.com>")
        self.assertEqual((str(outcome), outcome.via), ("COMMITTED", "resend"))
        self.assertEqual(self.mails()[0]["from"], SENDER)
        message = self.mail(self.tool(self.open_gate()), text="It is on its way.")
        self.assert_outcome(message, "REFUSED:already_done")
        self.assertEqual((self.count(), len(self.mails())), (1, 1))

    def test_one_of_each_kind_to_each_recipient(self) -> None:
        tool = self.tool(request=None)
        for request, to in (
            ("1", "anna@example.org"),
            ("1", "ANNA@example.org"),
            ("1", "ben@example.org"),
            ("2", "anna@example.org"),
        ):
            self.call(tool, {"configurable": {"request_id": request}}, **{**MAIL, "to": to})
        other = self.tool(name="resend.other", template="receipt")
        self.assert_outcome(self.mail(other), "COMMITTED", "send")
        self.assertEqual(len(self.mails()), 4)
        with self.assertRaises(MissingRequestKey):
            tool.invoke(MAIL)

    def test_arguments(self) -> None:
        tool = self.tool()
        for bad in (
            {"to": "anna"},
            {"to": "Anna <anna@example.org>"},
            {"to": "anna@example.org, ben@example.org"},
            {"to": ["anna@example.org"]},
            {"to": "anna@example.org\n"},
            {"subject": ""},
            {"subject": "a\nBcc: b@example.org"},
            {"text": ""},
            {"text": 5},
            {"html": ""},
            {"text": "x" * 60_001},
            {"sender": "ceo@example.com"},
            {"idempotency_key": "k"},
        ):
            with self.subTest(str(bad)[:60]), self.assertRaises(BadArguments):
                tool.invoke({**MAIL, **bad})
        self.assertEqual((self.control.requests(), self.gate.journal.effects()), ([], []))

    def test_the_application_s_own_use_of_the_sdk_is_left_alone(self) -> None:
        with mock.patch.object(resend, "api_url", self.sandbox.url), mock.patch.object(resend, "api_key", SENDING):
            client = resend.default_http_client
            self.mail()
            self.assertEqual((resend.api_key, resend.default_http_client), (SENDING, client))
            theirs: Any = {"from": SENDER, **MAIL}
            resend.Emails.send(theirs)
        self.assertEqual(len(self.mails()), 2)


class Premises(ResendToolCase):
    def test_what_the_email_announces(self) -> None:
        refund = {"status": "succeeded"}
        options: dict[str, Any] = {
            "premises": lambda request: {"refund": refund["status"]},
            "expect": {"refund": "succeeded"},
        }
        tool = self.tool(**options)
        tool.effect.propose(**self.arguments())
        refund["status"] = "failed"
        message = self.mail(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertIn("refund: was succeeded, now failed", message.text)
        self.assert_outcome(self.mail(self.tool(name="new", **options)), "REFUSED:premise_not_met")
        self.assertEqual(self.count(), 0)

    def test_approvals(self) -> None:
        self.assert_outcome(self.mail(self.tool(name="a", approvals=lambda to: None)), "REFUSED:not_allowed")
        self.assert_outcome(self.mail(self.tool(name="b", approvals=lambda to: Grant(to))), "COMMITTED", "send")


class UnknownEnds(ResendToolCase):
    def revoked(self) -> Any:
        """Approvals that are in force until the first request has left."""
        return lambda: None if self.count() else Grant("a")

    def test_what_never_arrived(self) -> None:
        self.control.fault("cut_before", "POST", MAILS)
        self.assert_outcome(self.mail(self.tool(api_key=SENDING)), "COMMITTED", "resend")
        self.assertEqual((self.count(), len(self.mails())), (2, 1))

    def test_a_key_in_progress(self) -> None:
        self.control.hold("POST", MAILS, executing=True, then="cut")
        tool = self.tool(api_key=SENDING)
        messages: list[ToolMessage] = []
        waiting = threading.Thread(target=lambda: messages.append(self.mail(tool)))
        with mock.patch("interlock_integrations.resend.client.READ_TIMEOUT_S", 0.2):
            waiting.start()
            self.control.received(2, *self.sends, stage="finished", timeout_s=20)
            self.control.release()
            waiting.join(20)
        self.assert_outcome(messages[0], "COMMITTED", "resend")
        self.assertEqual(len(self.mails()), 1)

    def test_a_rate_limit(self) -> None:
        self.control.fault("answer", "POST", MAILS, status=429, headers={"retry-after": "0"}, times=2)
        message = self.mail()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual((self.count(), self.dispatched(self.gate, message.artifact["effect_id"])), (3, 3))

    def test_an_unverified_domain(self) -> None:
        message = self.mail(self.tool(sender="bot@other.example"))
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertIn("not verified", message.text)

    def test_a_stored_server_error(self) -> None:
        for access, outcome in ((False, "AMBIGUOUS:stored_error"), (True, "COMMITTED")):
            self.control.fault("apply_then_status", "POST", MAILS, status=500, stored=True)
            message = self.mail(self.tool(name=outcome, full_access=access, lookup_lag=timedelta(0)))
            self.assertEqual(message.artifact["outcome"], outcome, message.text)
        self.assertEqual((self.count(), len(self.mails())), (4, 2))

    def test_a_proxy_that_repeats_it(self) -> None:
        self.control.fault("apply_then_status", "POST", MAILS, status=502, applications=2)
        self.assert_outcome(self.mail(), "COMMITTED", "resend")
        self.assertEqual(len(self.mails()), 1)

    def test_it_landed_and_the_approval_is_gone(self) -> None:
        """With a sending-only key nobody can tell; with full access, or the probe, it is found."""
        options: dict[str, Any]
        for name, options, outcome in (
            ("sending", {"api_key": SENDING}, "AMBIGUOUS:no_evidence"),
            ("full", {"full_access": True}, "COMMITTED"),
            ("probe", {"api_key": SENDING, "probe": True}, "COMMITTED"),
        ):
            with self.subTest(name):
                self.control.reset()
                self.control.fault("apply_then_cut", "POST", MAILS)
                message = self.mail(self.tool(name=name, approvals=self.revoked(), **options))
                self.assertEqual(message.artifact["outcome"], outcome, message.text)
                self.assertEqual(len(self.mails()), 1)

    def test_it_never_arrived_and_the_approval_is_gone(self) -> None:
        options: dict[str, Any]
        for name, options, outcome in (
            ("sending", {"api_key": SENDING}, "AMBIGUOUS:no_evidence"),
            ("full", {"full_access": True}, "REFUSED:not_allowed"),
            ("probe", {"api_key": SENDING, "probe": True}, "REFUSED:not_allowed"),
        ):
            with self.subTest(name):
                self.control.reset()
                self.control.fault("cut_before", "POST", MAILS)
                message = self.mail(self.tool(name=name, approvals=self.revoked(), **options))
                if name != "sending":
                    self.assert_outcome(message, "IN_FLIGHT:waiting")
                self.clock.advance(151)
                self.gate.recover()
                self.assertEqual(str(self.gate.outcome(message.artifact["effect_id"])), outcome)
                self.assertEqual(self.mails(), [])


class Lookups(ResendToolCase):
    """What counts as evidence of an email, and what does not."""

    def setUp(self) -> None:
        super().setUp()
        self.dies("before_bytes")
        (row,) = self.gate.journal.open_effects()
        self.effect_id = row.effect_id
        self.control.advance(1)

    def look(self, **options: Any) -> Any:
        """The bare lookup: evidence, None, or the words of what it raised."""
        gate = self.open_gate()
        client = ResendClient(options.pop("api_key", KEY), self.sandbox.url)
        effect = declare_mail(gate, client, **{"full_access": True, **options})
        lookup = effect.definition.lookup
        assert lookup is not None
        arguments = {name: value for name, value in self.arguments().items() if name != "request"}
        try:
            found = [lookup.function(**arguments, idempotency_key=self.effect_id) for _ in range(2)]
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        if found[0] is None:
            self.assertIsNone(found[1])
            return None
        self.assertEqual(found[0].value, found[1].value, "a lookup changes nothing")
        return found[0]

    def send_it(self) -> None:
        """The request arrives after all."""
        mail = {"from": SENDER, "to": [MAIL["to"]], "subject": MAIL["subject"], "text": MAIL["text"]}
        tagged = {**mail, "tags": [{"name": "interlock_effect_id", "value": self.effect_id}]}
        ResendClient(KEY, self.sandbox.url).probe(tagged, self.effect_id)

    def test_nothing(self) -> None:
        self.assertIsNone(self.look())

    def test_a_tag(self) -> None:
        self.control.action("show_tags", on=True)
        self.person()
        self.send_it()
        self.person(count=120)
        found = self.look()
        self.assertEqual((found.by_us, found.value["found_by"]), ("yes", "tag"))
        self.assertEqual(found.value["id"], self.mails()[0]["id"])

    def test_another_effect_s_tag(self) -> None:
        self.control.action("show_tags", on=True)
        self.person(tags=[{"name": "interlock_effect_id", "value": "another"}])
        self.assertIsNone(self.look())

    def test_the_same_content(self) -> None:
        self.send_it()
        found = self.look()
        self.assertEqual((found.by_us, found.value["found_by"]), ("unknown", "content"))

    def test_the_same_content_of_another_effect(self) -> None:
        gate = self.open_gate()
        other = declare_mail(gate, ResendClient(KEY, self.sandbox.url))
        other(**self.arguments("case-2"))
        self.assertIsNone(self.look())
        self.send_it()
        self.assertEqual(self.look().value["id"], self.mails()[1]["id"])

    def test_another_body_settles_nothing(self) -> None:
        self.person(text="Something else")
        self.assertIn("CannotKnow", self.look())

    def test_others_are_no_matter(self) -> None:
        self.person(to="ben@example.org")
        self.person(subject="Another")
        self.assertIsNone(self.look())

    def test_what_was_sent_before_or_long_after(self) -> None:
        now = self.control.now()
        for moment in (now - 3600, now + 3600):
            self.control.set_clock(moment)
            self.person()
            self.control.set_clock(now)
            self.assertIsNone(self.look())

    def test_a_list_of_several_pages(self) -> None:
        self.send_it()
        self.person(count=250, to="ben@example.org")
        self.assertEqual(self.look().value["id"], self.mails()[0]["id"])

    def test_past_the_retention(self) -> None:
        self.later(25 * HOUR)
        self.assertIn("CannotKnow: it is longer ago than Resend keeps emails", self.look())
        self.assertIsNone(self.look(retention=timedelta(days=3)))

    def test_a_list_that_is_none(self) -> None:
        self.control.fault("answer", "GET", MAILS, status=200, answer={"object": "x"}, times=None)
        self.assertIn("UnknownAnswer", self.look())
        self.control.clear_faults()
        self.control.fault("answer", "GET", MAILS, status=500, times=None)
        self.assertIn("ApplicationError", self.look())

    def test_a_key_that_may_only_send(self) -> None:
        self.assertIn("restricted", self.look(api_key=SENDING))

    def test_the_probe(self) -> None:
        options: dict[str, Any] = {"full_access": False, "probe": True, "api_key": SENDING}
        self.assertIsNone(self.look(**options))
        self.send_it()
        found = self.look(**options)
        self.assertEqual((found.by_us, found.value["found_by"]), ("yes", "key probe"))
        self.assertEqual(len(self.mails()), 1)

    def test_a_probe_after_the_key_was_forgotten(self) -> None:
        self.send_it()
        self.later(25 * HOUR)
        self.assertIn("CannotKnow: Resend may have forgotten", self.look(full_access=False, probe=True))

    def test_a_probe_that_is_answered_in_another_way(self) -> None:
        options: dict[str, Any] = {"full_access": False, "probe": True}
        answers: list[tuple[int, Any]] = [
            (409, None),
            (403, {"name": "invalid_api_key", "message": "x"}),
            (422, None),
            (429, None),
            (500, None),
            (200, {"id": "x"}),
            (403, "<html>"),
        ]
        for status, answer in answers:
            self.control.fault("answer", "POST", MAILS, status=status, answer=answer)
            self.assertRegex(self.look(**options), "UnknownAnswer|NotResend", str(status))
        self.control.fault("cut_before", "POST", MAILS)
        self.assertIn("ConnectionError", self.look(**options))
        self.control.action("verify", domain="interlock.invalid")
        self.assertIn("may send, so it is no probe", self.look(**options))

    def test_full_access_first_and_the_probe_where_that_settles_nothing(self) -> None:
        self.person(text="Something else")
        self.assertIsNone(self.look(probe=True))


class Deaths(ResendToolCase):
    """A process is killed at every crash point; another takes over."""

    def test_every_crash_point(self) -> None:
        """Crash point and requests on the wire in the end."""
        points = {
            "before_journal": 1,
            "after_proposed": 1,
            "after_dispatched": 1,
            "before_mark": 1,
            "before_bytes": 1,
            "in_flight": 2,
            "after_response": 2,
            "after_committed": 1,
        }
        jobs = []
        for point in points:
            steps = [calls(self.arguments(point))]
            if point == "after_proposed":
                steps.insert(0, proposes(self.arguments(point)))
            jobs.append(self.job(point, *steps, journal=f"{point}.db", api_key=SENDING))
        self.die(*jobs)
        for point, requests in points.items():
            with self.subTest(point):
                gate = self.open_gate(f"{point}.db")
                tool = self.tool(gate, api_key=SENDING, request=always(point))
                gate.recover()
                message = self.mail(tool)
                self.assertEqual(message.artifact["outcome"], "COMMITTED", message.text)
                effect_id = message.artifact["effect_id"]
                made = [mail for mail in self.mails() if mail["idempotency_key"] == effect_id]
                sent = [r for r in self.control.requests(*self.sends) if r["headers"]["idempotency-key"] == effect_id]
                self.assertEqual((len(made), len(sent)), (1, requests))
                self.assertEqual(len({record["body_sha256"] for record in sent}), 1)
        self.assertEqual(len(self.mails()), len(points))

    def test_a_second_death_during_recovery(self) -> None:
        points = ("recovery_started", "recovery_checked")
        options = {"api_key": KEY, "full_access": True}
        self.die(
            *(self.job("in_flight", calls(self.arguments(p)), journal=f"{p}.db", **options) for p in points),
            *(self.job(point, RECOVERS, journal=f"{point}.db", **options) for point in points),
        )
        for point in points:
            gate = self.open_gate(f"{point}.db")
            self.toolkit(gate, full_access=True)
            self.assertEqual([str(outcome) for outcome in gate.recover()], ["COMMITTED"])
        self.assertEqual((self.count(), len(self.mails())), (4, 2))

    def test_the_refund_failed_during_the_outage(self) -> None:
        failed: dict[str, Any] = {"premises": lambda: {"refund": "failed"}, "expect": {"refund": "succeeded"}}
        for point, options, outcome, mails in (
            ("after_dispatched", {"api_key": SENDING}, "REFUSED:stale_premise", 0),
            ("in_flight", {"api_key": SENDING, "probe": True}, "COMMITTED", 1),
            ("in_flight", {"api_key": KEY, "full_access": True}, "COMMITTED", 1),
            ("in_flight", {"api_key": SENDING}, "AMBIGUOUS:no_evidence", 1),
        ):
            with self.subTest((point, options)):
                self.control.reset()
                self.folder = self.folder / "next"
                self.folder.mkdir()
                self.dies(point, **options)
                if mails:
                    self.control.received(1, *self.sends, stage="applied")
                gate = self.open_gate()
                self.toolkit(gate, **options, **failed)
                (found,) = gate.recover()
                self.assertEqual(str(found), outcome)
                self.assertEqual(len(self.mails()), mails)

    def test_its_request_lands_after_the_next_one(self) -> None:
        self.control.hold("POST", MAILS)
        self.dies("in_flight")
        self.control.received(1, *self.sends, stage="held")
        outcome = self.recovered()
        self.assertEqual((str(outcome), outcome.via), ("COMMITTED", "resend"))
        self.control.release()
        self.assertEqual((self.count(), len(self.mails())), (2, 1))


class AfterTheKeyWasForgotten(ResendToolCase):
    """The restart comes 25 hours later."""

    def test_with_a_key_that_may_only_send(self) -> None:
        self.dies("in_flight", api_key=SENDING)
        self.control.received(1, *self.sends, stage="applied")
        self.later(25 * HOUR)
        self.assertEqual(str(self.recovered(api_key=SENDING)), "AMBIGUOUS:no_evidence")
        self.assertEqual((self.count(), len(self.mails())), (1, 1))

    def test_with_the_probe(self) -> None:
        self.dies("in_flight", api_key=SENDING)
        self.control.received(1, *self.sends, stage="applied")
        self.later(25 * HOUR)
        gate = self.open_gate()
        self.toolkit(gate, api_key=SENDING, probe=True)
        (outcome,) = gate.recover()
        self.assertEqual(str(outcome), "AMBIGUOUS:no_evidence")
        self.assertIn("forgotten the key", outcome.message)
        self.assertEqual(len(self.mails()), 1)

    def test_with_full_access(self) -> None:
        for tags in (False, True):
            with self.subTest(tags=tags):
                self.control.reset()
                self.control.action("show_tags", on=tags)
                self.clock.ahead_ms = 0
                self.folder = self.folder / str(tags)
                self.folder.mkdir()
                self.dies("in_flight")
                self.control.received(1, *self.sends, stage="applied")
                self.later(25 * HOUR)
                gate = self.open_gate()
                self.toolkit(gate, full_access=True)
                (outcome,) = gate.recover()
                self.assertEqual((str(outcome), outcome.via), ("COMMITTED", "lookup"))
                self.assertEqual(outcome.by_us, "yes" if tags else "unknown")
                self.assertEqual((self.count(), len(self.mails())), (1, 1))

    def test_with_full_access_and_nothing_arrived(self) -> None:
        self.dies("before_bytes")
        self.later(25 * HOUR)
        gate = self.open_gate()
        self.toolkit(gate, full_access=True, retention=timedelta(days=3))
        self.assertEqual([str(outcome) for outcome in gate.recover()], ["IN_FLIGHT:waiting"])
        self.later(151)
        (outcome,) = gate.recover()
        self.assertEqual((str(outcome), self.count(), len(self.mails())), ("COMMITTED", 1, 1))

    def test_what_certainly_never_left_is_sent(self) -> None:
        self.dies("before_mark", api_key=SENDING)
        self.later(25 * HOUR)
        self.assertEqual(str(self.recovered(api_key=SENDING)), "COMMITTED")
        self.assertEqual(len(self.mails()), 1)


class Configuration(ResendToolCase):
    def environment(self, **changes: str | None) -> Any:
        wanted: dict[str, str | None] = {
            "RESEND_API_KEY": KEY,
            "RESEND_API_URL": self.sandbox.url,
            "RESEND_FROM": SENDER,
            "INTERLOCK_JOURNAL": str(self.folder / "environment.db"),
            **changes,
        }
        kept = {name: value for name, value in os.environ.items() if name not in wanted}
        return mock.patch.dict(os.environ, {**kept, **{n: v for n, v in wanted.items() if v is not None}}, clear=True)

    def test_a_tool_from_the_environment_recovers_what_was_left_open(self) -> None:
        self.control.fault("answer", "POST", MAILS, status=429, headers={"retry-after": "600"})
        with self.environment():
            first = SendEmail(request=lambda: "case-1")
            self.assert_outcome(self.mail(first), "IN_FLIGHT:rate_limited")
            first.effect._gate.close()
            second = SendEmail(request=lambda: "case-1")
            self.addCleanup(second.effect._gate.close)
        self.assertEqual(len(self.mails()), 1)

    def test_what_is_missing(self) -> None:
        for name in ("RESEND_API_KEY", "RESEND_FROM", "INTERLOCK_JOURNAL"):
            with self.environment(**{name: None}), self.assertRaisesRegex(DefinitionError, name):
                SendEmail()
        self.assertRaises(DefinitionError, self.toolkit, sender="nobody")
        self.assertRaises(DefinitionError, self.toolkit, template="a:b")

    def test_the_key_is_nowhere(self) -> None:
        self.control.fault(
            "answer", "POST", MAILS, status=401, answer={"name": "missing_api_key", "message": f"no {KEY}"}
        )
        toolkit = self.toolkit()
        (tool,) = toolkit.get_tools()
        assert isinstance(tool, GatedTool)
        message = self.mail(tool)
        self.assert_outcome(message, "REFUSED:rejected")
        seen = [message.text, json.dumps(message.artifact), repr(tool), repr(toolkit), json.dumps(tool.to_json())]
        for text in (*seen, repr(ResendClient(KEY)), self.everything_written().decode("latin-1")):
            self.assertNotIn("NotToBeSeen", text)


if __name__ == "__main__":
    unittest.main()
