"""``create_calendar_event`` against the Calendar sandbox: what it rests on, how it recovers, what it refuses."""

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

from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import RECOVERS, ToolCase, calls, proposes

from interlock_integrations.calendar import (
    CalendarToolkit,
    CreateCalendarEvent,
    calendar_from_environment,
    declare_event,
    gated_service,
)
from interlock_integrations.calendar.reading import Unreadable
from interlock_integrations.calendar.slots import slot_of
from interlock_tools import BadArguments, DefinitionError, Gate, Grant, MissingRequestKey
from interlock_tools.langchain import GatedTool

EVENTS = "/calendar/v3/calendars/[^/]+/events"
TOKEN = "ya29.NotToBeSeenAnywhere"
CALL = {
    "summary": "Call",
    "start_datetime": "2026-09-07T10:00:00",
    "end_datetime": "2026-09-07T10:30:00",
    "timezone": "UTC",
}
SLOT = {"start": "2026-09-07T10:00:00Z", "end": "2026-09-07T10:30:00Z"}


_services: dict[str, Any] = {}


class CalendarToolCase(ToolCase):
    service = "calendar"
    sends = ("POST", EVENTS)

    def api(self, token: str = TOKEN) -> Any:
        options = {"api_endpoint": self.sandbox.url + "/calendar/v3/"}
        if token not in _services:
            _services[token] = build("calendar", "v3", credentials=Credentials(token=token), client_options=options)
        return _services[token]

    def toolkit(self, gate: Gate | None = None, **options: Any) -> CalendarToolkit:
        options.setdefault("service", self.api())
        options.setdefault("request", lambda: "case-1")
        return CalendarToolkit(gate or self.gate, **options)

    def tool(self, gate: Gate | None = None, **options: Any) -> GatedTool:
        (tool,) = self.toolkit(gate, **options).get_tools()
        assert isinstance(tool, GatedTool)
        return tool

    def book(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        return self.call(tool or self.tool(), **{**CALL, **changes})

    def events(self, via: str | None = "api") -> list[dict[str, Any]]:
        return [event for event in self.control.ledger()["events"] if via in (None, event["via"])]

    def person(self, **event: Any) -> str:
        made: str = self.control.action("event", **{**SLOT, **event})["id"]
        return made


class OneEvent(CalendarToolCase):
    def test_it_is_booked_once_and_found_again(self) -> None:
        tool = self.tool()
        first, second = self.book(tool), self.book(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual(first.text, second.text)
        (made,) = self.events()
        effect_id = first.artifact["effect_id"]
        self.assertEqual((made["id"], made["summary"]), (effect_id, "Call"))
        self.assertEqual({name: made[name] for name in SLOT}, SLOT)
        self.assertEqual(first.artifact["result"]["id"], effect_id)
        self.assertNotIn("copies", first.artifact["result"])
        self.assertEqual((self.count(), self.dispatched(self.gate, effect_id)), (1, 1))

    def test_a_broken_connection_is_one_request_and_not_two(self) -> None:
        self.control.fault("cut_before", "POST", EVENTS)
        message = self.book()
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assertEqual((self.count(), self.dispatched(self.gate, message.artifact["effect_id"])), (2, 2))
        first, second = self.control.requests("POST", EVENTS)
        self.assertEqual(first["body_sha256"], second["body_sha256"])

    def test_the_zone_counts(self) -> None:
        self.book(timezone="America/New_York")
        self.assertEqual(self.events()[0]["start"], "2026-09-07T14:00:00Z")

    def test_another_title_for_the_same_slot_and_request(self) -> None:
        tool = self.tool()
        self.book(tool)
        self.assert_outcome(self.book(tool, summary="Another"), "REFUSED:already_done")
        self.assertEqual(len(self.events()), 1)

    def test_a_second_request_for_a_taken_slot(self) -> None:
        tool = self.tool(request=None)
        self.call(tool, {"configurable": {"request_id": "1"}}, **CALL)
        message = self.call(tool, {"configurable": {"request_id": "2"}}, **CALL)
        self.assert_outcome(message, "REFUSED:premise_not_met")
        with self.assertRaises(MissingRequestKey):
            tool.invoke(CALL)

    def test_arguments(self) -> None:
        tool = self.tool()
        for bad in (
            {"start_datetime": "2026-09-07 10:00:00"},
            {"start_datetime": "2026-09-07T10:00:00Z"},
            {"start_datetime": "2026-09-31T10:00:00"},
            {"start_datetime": "2026-09-07T10:00:00\n"},
            {"end_datetime": "2026-09-07T10:00:00"},
            {"end_datetime": "2026-12-07T10:00:00"},
            {"timezone": "Mars/Base"},
            {"timezone": "../etc/passwd"},
            {"summary": ""},
            {"summary": 5},
            {"calendar_id": "a b"},
            {"id": "abcde"},
            {
                "timezone": "Europe/Berlin",
                "start_datetime": "2026-03-29T02:30:00",
                "end_datetime": "2026-03-29T04:00:00",
            },
            {
                "timezone": "Europe/Berlin",
                "start_datetime": "2026-10-25T02:30:00",
                "end_datetime": "2026-10-25T04:00:00",
            },
        ):
            with self.subTest(bad), self.assertRaises(BadArguments):
                tool.invoke({**CALL, **bad})
        self.assertEqual((self.control.requests(), self.gate.journal.effects()), ([], []))
        message = self.book(tool, timezone="Mars/Base")
        self.assertEqual(message.status, "error")

    def test_slots(self) -> None:
        berlin = slot_of("2026-10-25T01:00:00", "2026-10-25T04:00:00", "Europe/Berlin")
        self.assertEqual(berlin.end - berlin.start, timedelta(hours=4), "the night that is an hour longer")


class Premises(CalendarToolCase):
    def assert_free(self, free: bool, name: str = "calendar.event", **options: Any) -> ToolMessage:
        message = self.book(self.tool(name=name, **options))
        self.assert_outcome(message, *(("COMMITTED", "send") if free else ("REFUSED:premise_not_met", None)))
        return message

    def test_what_takes_the_slot(self) -> None:
        self.control.action("calendar", id="agent@example.com", role="owner", zone="Europe/Berlin")
        cases: dict[str, dict[str, Any]] = {
            "the same time": {},
            "a part of it": {"start": "2026-09-07T10:29:00Z", "end": "2026-09-07T11:00:00Z"},
            "all day": {"start": "2026-09-07", "end": "2026-09-08"},
            "weekly": {
                "start": {"dateTime": "2026-08-31T12:00:00", "timeZone": "Europe/Berlin"},
                "end": {"dateTime": "2026-08-31T12:30:00", "timeZone": "Europe/Berlin"},
                "recurrence": ["RRULE:FREQ=WEEKLY"],
            },
            "tentative": {"status": "tentative"},
        }
        for name, event in cases.items():
            with self.subTest(name):
                made = self.person(**event)
                message = self.assert_free(False, name)
                self.assertIn("busy: is", message.text)
                self.control.action("delete", event=made)
        self.assertEqual((self.count(), self.events()), (0, []))

    def test_what_does_not(self) -> None:
        self.control.action("calendar", id="agent@example.com", role="owner", zone="America/New_York")
        self.person(transparency="transparent")
        self.person(start="2026-09-07", end="2026-09-08", transparency="transparent")
        self.person(start="2026-09-06", end="2026-09-07")
        self.person(start="2026-09-07T09:00:00Z", end=SLOT["start"])
        self.person(start=SLOT["end"], end="2026-09-07T11:00:00Z")
        self.person(attendees=[{"email": "agent@example.com", "self": True, "responseStatus": "declined"}])
        weekly = (
            {"dateTime": "2026-08-31T10:00:00Z", "timeZone": "UTC"},
            {"dateTime": "2026-08-31T10:30:00Z", "timeZone": "UTC"},
        )
        series = self.person(start=weekly[0], end=weekly[1], recurrence=["RRULE:FREQ=WEEKLY"])
        self.control.action("delete", event=f"{series}_20260907T100000Z")
        self.control.action("delete", event=self.person())
        self.assert_free(True)

    def test_every_page_is_read(self) -> None:
        for _ in range(255):
            self.person(transparency="transparent")
        self.person()
        self.assert_free(False)

    def test_other_people_s_calendars(self) -> None:
        self.control.action("calendar", id="anna@example.com", role="freeBusyReader")
        others = ["anna@example.com"]
        self.person(calendar="anna@example.com", transparency="transparent")
        self.person(calendar="anna@example.com")
        message = self.assert_free(False, others=others)
        self.assertIn("anna@example.com 2026-09-07T10:00:00Z/2026-09-07T10:30:00Z", message.text)
        self.control.action("calendar", id="ben@example.com", role="freeBusyReader")
        self.assert_free(True, "ben", others=["ben@example.com"])

    def test_an_error_for_one_calendar_is_not_free(self) -> None:
        self.control.action("calendar", id="anna@example.com", role="freeBusyReader")
        self.control.action("free_busy_error", calendar="anna@example.com")
        for others in (["anna@example.com"], ["nobody@example.com"], ["ben@example.com"] * 51):
            message = self.book(self.tool(name=others[0], others=others))
            self.assert_outcome(message, "IN_FLIGHT:unreadable")
            self.assertIn(Unreadable.__name__, message.text)
        self.assertEqual(self.count(), 0)
        for told in ({"calendars": {}}, {"calendars": {"anna@example.com": {}}}, {}):
            self.control.fault("answer", "POST", ".*/freeBusy", status=200, answer=told)
            self.assert_outcome(
                self.book(self.tool(name=f"x{len(str(told))}", others=["anna@example.com"])), "IN_FLIGHT:unreadable"
            )

    def test_a_list_that_is_none(self) -> None:
        self.control.fault("answer", "GET", EVENTS, status=200, answer={"error": "x"})
        self.assert_outcome(self.book(), "IN_FLIGHT:unreadable")

    def test_a_calendar_that_is_not_there(self) -> None:
        message = self.book(calendar_id="nobody@example.com")
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("calendar: is not found", message.text)

    def test_a_slot_that_only_has_to_stay_as_it_is(self) -> None:
        self.person()
        self.assert_free(True, slot="unchanged")
        tool = self.tool(name="two", slot="unchanged")
        tool.effect.propose("case-1", *CALL.values(), "primary")
        self.person(summary="Later")
        self.assert_outcome(self.book(tool), "REFUSED:stale_premise")

    def test_the_application_s_own_facts_and_approvals(self) -> None:
        live = {"request": "live"}
        options: dict[str, Any] = {
            "premises": lambda request: {"request": live["request"]},
            "expect": {"request": "live"},
        }
        live["request"] = "cancelled"
        self.assert_outcome(self.book(self.tool(name="a", **options)), "REFUSED:premise_not_met")
        self.assert_outcome(self.book(self.tool(name="b", approvals=lambda calendar_id: None)), "REFUSED:not_allowed")
        self.assert_outcome(self.book(self.tool(name="c", approvals=lambda: Grant("g"))), "COMMITTED", "send")
        self.assertRaises(DefinitionError, self.tool, name="d", premises=lambda colour: {})

    def test_after_the_decision(self) -> None:
        tool = self.tool()
        tool.effect.propose("case-1", *CALL.values(), "primary")
        self.person()
        message = self.book(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertEqual(self.events(), [])


class UnknownEnds(CalendarToolCase):
    """A send came back without an answer, or with one that has to be looked at."""

    def once(self, *steps: Any) -> Any:
        """Premises that let something happen once a request has left."""
        pending = list(steps)

        def premises(idempotency_key: str) -> dict[str, Any]:
            while self.count() and pending:
                pending.pop(0)(idempotency_key)
            return {}

        return premises

    def test_it_landed(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        message = self.book()
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assertEqual((len(self.events()), self.count()), (1, 2))

    def test_a_409_is_looked_at(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        deletes = self.once(lambda own: self.control.action("delete", event=own))
        message = self.book(self.tool(premises=deletes))
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assertEqual(message.artifact["result"]["status"], "cancelled")
        self.assertIn("has been deleted since", message.text)

    def test_a_409_of_nothing(self) -> None:
        self.control.fault("answer", "POST", EVENTS, status=409)
        message = self.book(self.tool(send_timeout=timedelta(seconds=0.2), wait=20))
        self.assert_outcome(message, "AMBIGUOUS:stored_error")
        self.assertEqual(self.events(), [])

    def test_it_landed_and_the_slot_was_taken_as_well(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        message = self.book(self.tool(premises=self.once(lambda own: self.person())))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual((self.count(), len(self.events())), (1, 1))

    def test_it_never_arrived_and_the_slot_was_taken(self) -> None:
        self.control.fault("cut_before", "POST", EVENTS)
        message = self.book(self.tool(premises=self.once(lambda own: self.person())))
        self.assert_outcome(message, "IN_FLIGHT:waiting")
        self.clock.advance(121)
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), self.events()), ("REFUSED:stale_premise", []))

    def test_it_lands_late(self) -> None:
        """The proxy gives up on a request that the service applies later: sent again at once, booked once."""
        self.control.hold("POST", EVENTS, then="cut")
        tool = self.tool()
        messages: list[ToolMessage] = []
        waiting = threading.Thread(target=lambda: messages.append(self.book(tool)))
        with mock.patch("interlock_integrations.calendar.client.READ_TIMEOUT_S", 0.2):
            waiting.start()
            self.control.received(1, *self.sends, stage="held")
            waiting.join(20)
        self.assert_outcome(messages[0], "COMMITTED", "resend")
        self.control.release()
        self.assertEqual((self.count(), len(self.events())), (2, 1))

    def test_a_calendar_that_cannot_be_seen_any_more_is_no_proof(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        hides = self.once(lambda own: self.control.action("calendar", id="agent@example.com", role="none"))
        message = self.book(self.tool(premises=hides, send_timeout=timedelta(seconds=0.1), wait=1))
        self.assert_outcome(message, "IN_FLIGHT:unreadable")
        self.control.action("calendar", id="agent@example.com", role="owner")
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.events())), ("COMMITTED", 1))

    def test_quota(self) -> None:
        for status in (403, 429):
            self.control.fault("answer", "POST", EVENTS, status=status)
        message = self.book()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual((self.count(), self.dispatched(self.gate, message.artifact["effect_id"])), (3, 3))

    def test_quota_that_lasts(self) -> None:
        self.control.fault("answer", "POST", EVENTS, status=403, headers={"Retry-After": "600"}, times=None)
        message = self.book()
        self.assert_outcome(message, "IN_FLIGHT:rate_limited")
        self.assertEqual(message.artifact["retry_after_ms"], 600_000)
        self.control.clear_faults()
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.events())), ("COMMITTED", 1))

    def test_no_access(self) -> None:
        self.control.action("calendar", id="anna@example.com", role="reader")
        self.assert_outcome(self.book(calendar_id="anna@example.com"), "REFUSED:rejected")

    def test_a_proxy_that_repeats_it(self) -> None:
        self.control.fault("latency", "POST", EVENTS, seconds=0)
        self.control.fault("apply_then_status", "POST", EVENTS, status=502, applications=2)
        self.assert_outcome(self.book(), "COMMITTED", "resend")
        self.assertEqual(len(self.events()), 1)


class Collisions(CalendarToolCase):
    """Google does not guarantee that a second insert with an id is noticed."""

    def setUp(self) -> None:
        super().setUp()
        self.control.action("collisions", detected=False)

    def test_two_copies_are_told(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        message = self.book()
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assertEqual((message.artifact["result"]["copies"], len(self.events())), (2, 2))
        self.assertTrue(message.text.startswith("Attention: 2 copies"))

    def test_who_does_not_rely_on_it_waits_and_has_one(self) -> None:
        self.control.fault("apply_then_cut", "POST", EVENTS)
        self.assert_outcome(self.book(self.tool(collisions="undetected")), "COMMITTED", "lookup")
        self.assertEqual((self.count(), len(self.events())), (1, 1))

    def test_who_does_not_rely_on_it_and_nothing_arrived(self) -> None:
        self.control.fault("cut_before", "POST", EVENTS)
        self.assert_outcome(self.book(self.tool(collisions="undetected")), "IN_FLIGHT:waiting")
        self.clock.advance(121)
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.events()), self.count()), ("COMMITTED", 1, 2))

    def test_that_it_is_there_once_need_not_be_readable(self) -> None:
        self.control.fault("answer", "GET", EVENTS, nth=2, status=500)
        message = self.book()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertNotIn("copies", message.artifact["result"])


class RunTwice(CalendarToolCase):
    def test_sends_and_lookups(self) -> None:
        effect = declare_event(self.gate, gated_service(self.api()))
        send, lookup = effect.definition.function, effect.definition.lookup
        assert lookup is not None
        arguments = {"request": "1", **CALL, "calendar_id": "primary", "idempotency_key": "0123456789abcdef"}
        found = [lookup.function("primary", "0123456789abcdef") for _ in range(2)]
        sent = [send(**arguments, on_send=lambda: None).value for _ in range(2)]
        found += [lookup.function("primary", "0123456789abcdef").value for _ in range(2)]
        self.assertEqual(found, [None, None, *sent])
        self.assertEqual((sent[0], len(self.events())), (sent[1], 1))


class Deaths(CalendarToolCase):
    """A process is killed at every crash point; another takes over."""

    def arguments(self, hour: int) -> dict[str, Any]:
        times = {"start_datetime": f"2026-09-07T{hour:02}:00:00", "end_datetime": f"2026-09-07T{hour:02}:30:00"}
        return {"request": "case-1", **CALL, **times, "calendar_id": "primary"}

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
        for hour, point in enumerate(points):
            steps = [calls(self.arguments(hour))]
            if point == "after_proposed":
                steps.insert(0, proposes(self.arguments(hour)))
            jobs.append(self.job(point, *steps, journal=f"{point}.db"))
        self.die(*jobs)
        for hour, (point, requests) in enumerate(points.items()):
            with self.subTest(point):
                gate = self.open_gate(f"{point}.db")
                tool = self.tool(gate)
                gate.recover()
                times = {name: self.arguments(hour)[name] for name in ("start_datetime", "end_datetime")}
                message = self.book(tool, **times)
                self.assertEqual(message.artifact["outcome"], "COMMITTED", message.text)
                effect_id = message.artifact["effect_id"]
                made = [event for event in self.events() if event["id"] == effect_id]
                bodies = [
                    r for r in self.control.requests("POST", EVENTS) if r["body_sha256"] == self.body_of(effect_id)
                ]
                self.assertEqual((len(made), len(bodies)), (1, requests))
                self.assertGreaterEqual(self.dispatched(gate, effect_id), len(bodies))
        self.assertEqual(len(self.events()), len(points))
        self.assertEqual(self.count(), sum(points.values()))

    def body_of(self, effect_id: str) -> str:
        """Digest of the body that the requests for one event have; they all have the same."""
        import hashlib

        (event,) = [event for event in self.events() if event["id"] == effect_id]
        body = {
            "id": effect_id,
            "summary": event["summary"],
            "start": {"dateTime": event["start"].rstrip("Z"), "timeZone": "UTC"},
            "end": {"dateTime": event["end"].rstrip("Z"), "timeZone": "UTC"},
            "extendedProperties": event["extendedProperties"],
        }
        return hashlib.sha256(json.dumps(body).encode()).hexdigest()

    def test_a_second_death_during_recovery(self) -> None:
        points = ("recovery_started", "recovery_checked", "recovery_looked_up")
        options = {"collisions": "undetected"}
        self.die(
            *(
                self.job("before_bytes", calls(self.arguments(hour)), journal=f"{point}.db", **options)
                for hour, point in enumerate(points)
            ),
            *(self.job(point, RECOVERS, journal=f"{point}.db", **options) for point in points),
        )
        self.assertEqual(self.count(), 0)
        for point in points:
            with self.subTest(point):
                gate = self.open_gate(f"{point}.db")
                self.tool(gate, collisions="undetected")
                self.assertEqual([str(outcome) for outcome in gate.recover()], ["IN_FLIGHT:waiting"])
        self.clock.advance(121)
        for point in points:
            gate = self.open_gate(f"{point}.db")
            self.tool(gate, collisions="undetected")
            self.assertEqual([str(outcome) for outcome in gate.recover()], ["COMMITTED"])
        self.assertEqual((self.count(), len(self.events())), (3, 3))

    def test_what_happened_during_the_outage(self) -> None:
        dies = ((8, "after_dispatched"), (9, "in_flight"), (10, "after_response"))
        self.die(*(self.job(point, calls(self.arguments(hour)), journal=f"{point}.db") for hour, point in dies))
        self.control.received(2, *self.sends, stage="applied")
        for hour in (8, 9):
            self.person(start=f"2026-09-07T{hour:02}:15:00Z", end=f"2026-09-07T{hour:02}:45:00Z")
        (deleted,) = [event["id"] for event in self.events() if event["start"] == "2026-09-07T10:00:00Z"]
        self.control.action("delete", event=deleted)
        outcomes = {}
        for point in ("after_dispatched", "in_flight", "after_response"):
            gate = self.open_gate(f"{point}.db")
            self.tool(gate)
            (outcomes[point],) = gate.recover()
        self.assertEqual(str(outcomes["after_dispatched"]), "REFUSED:stale_premise", "not one byte was sent")
        self.assertEqual((str(outcomes["in_flight"]), outcomes["in_flight"].via), ("COMMITTED", "lookup"))
        self.assertEqual(
            (str(outcomes["after_response"]), outcomes["after_response"].result["status"]), ("COMMITTED", "cancelled")
        )
        self.assertEqual(len(self.events()), 2)

    def test_its_request_lands_after_the_next_one(self) -> None:
        self.control.hold("POST", EVENTS)
        self.die(self.job("in_flight", calls(self.arguments(10))))
        self.control.received(1, *self.sends, stage="held")
        self.tool()
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), outcome.via), ("COMMITTED", "resend"))
        self.control.release()
        self.assertEqual((self.count(), len(self.events())), (2, 1))

    def test_its_request_lands_after_a_look(self) -> None:
        self.control.hold("POST", EVENTS)
        self.die(self.job("in_flight", calls(self.arguments(10)), collisions="undetected"))
        self.control.received(1, *self.sends, stage="held")
        self.tool(collisions="undetected")
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["IN_FLIGHT:waiting"])
        self.control.release()
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["COMMITTED"])
        self.assertEqual((self.count(), len(self.events())), (1, 1))


class Configuration(CalendarToolCase):
    def environment(self, **changes: str | None) -> Any:
        wanted: dict[str, str | None] = {
            "GOOGLE_CALENDAR_TOKEN": TOKEN,
            "GOOGLE_CALENDAR_API": self.sandbox.url + "/calendar/v3/",
            "GOOGLE_APPLICATION_CREDENTIALS": None,
            "INTERLOCK_JOURNAL": str(self.folder / "environment.db"),
            **changes,
        }
        kept = {name: value for name, value in os.environ.items() if name not in wanted}
        return mock.patch.dict(os.environ, {**kept, **{n: v for n, v in wanted.items() if v is not None}}, clear=True)

    def test_a_tool_from_the_environment_recovers_what_was_left_open(self) -> None:
        self.control.fault("answer", "POST", EVENTS, status=429, headers={"Retry-After": "600"})
        with self.environment():
            first = CreateCalendarEvent(request=lambda: "case-1")
            self.assert_outcome(self.book(first), "IN_FLIGHT:rate_limited")
            first.effect._gate.close()
            second = CreateCalendarEvent(request=lambda: "case-1")
            self.addCleanup(second.effect._gate.close)
        self.assertEqual(len(self.events()), 1)

    def test_what_is_missing(self) -> None:
        with self.environment(GOOGLE_CALENDAR_TOKEN=None), self.assertRaisesRegex(DefinitionError, "GOOGLE_APP"):
            CreateCalendarEvent()
        path = self.folder / "credentials.json"
        with self.environment(GOOGLE_CALENDAR_TOKEN=None, GOOGLE_APPLICATION_CREDENTIALS=str(path)):
            self.assertRaisesRegex(DefinitionError, "cannot be used", calendar_from_environment)
            path.write_text('{"type": "external_account"}')
            self.assertRaisesRegex(DefinitionError, "cannot be used", calendar_from_environment)
            user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
            path.write_text(json.dumps(user))
            self.assertEqual(calendar_from_environment()._http.credentials.refresh_token, "r")
        with self.environment(INTERLOCK_JOURNAL=None), self.assertRaisesRegex(DefinitionError, "INTERLOCK_JOURNAL"):
            CreateCalendarEvent()

    def test_services_that_cannot_be_used(self) -> None:
        keyed = build("calendar", "v3", developerKey="k")
        other = build("storage", "v1", credentials=Credentials(token="t"))
        for service in (keyed, other, object()):
            self.assertRaises(DefinitionError, CalendarToolkit, self.gate, service=service)
        ours = gated_service(self.api())
        self.assertIs(gated_service(ours), ours)

    def test_the_application_s_service_is_left_as_it_is(self) -> None:
        theirs = self.api()
        http = theirs._http
        gated_service(theirs)
        self.assertIs(theirs._http, http)

    def test_a_token_is_in_no_record(self) -> None:
        self.control.fault(
            "answer",
            "POST",
            EVENTS,
            status=400,
            answer={
                "error": {
                    "code": 400,
                    "message": f"bad {TOKEN}",
                    "errors": [{"reason": "invalid", "domain": "global", "message": TOKEN}],
                }
            },
        )
        toolkit = self.toolkit()
        (tool,) = toolkit.get_tools()
        assert isinstance(tool, GatedTool)
        message = self.book(tool)
        self.assert_outcome(message, "REFUSED:rejected")
        seen = [message.text, json.dumps(message.artifact), repr(tool), repr(toolkit), json.dumps(tool.to_json())]
        for text in (*seen, self.everything_written().decode("latin-1")):
            self.assertNotIn("NotToBeSeen", text)

    def test_two_accounts_at_one_journal(self) -> None:
        self.toolkit()
        self.assertRaises(DefinitionError, self.toolkit)
        self.toolkit(name="calendar.other")
        self.assertEqual(self.gate.effects, ("calendar.event", "calendar.other"))


if __name__ == "__main__":
    unittest.main()
