"""The Calendar sandbox, driven by the official client library over HTTP."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from googleapiclient.errors import HttpError

from scenarios.sandbox.cases import SandboxCase

EVENTS = r".*/events"
ID = "0123456789abcdefv"


def slot(hour: int, length_h: int = 1, day: int = 7) -> dict[str, Any]:
    """A time in September 2026. The 7th is a Monday."""
    return {
        "start": {"dateTime": f"2026-09-{day:02}T{hour:02}:00:00Z"},
        "end": {"dateTime": f"2026-09-{day:02}T{hour + length_h:02}:00:00Z"},
    }


class CalendarCase(SandboxCase):
    services = ("calendar",)

    def setUp(self) -> None:
        super().setUp()
        self.api = self.connect()

    def connect(self, token: str = "t") -> Any:
        options = {"api_endpoint": self.sandbox.url + "/calendar/v3/"}
        api = build("calendar", "v3", credentials=Credentials(token=token), client_options=options)
        self.addCleanup(api.close)
        return api

    def insert(self, calendar: str = "primary", **body: Any) -> dict[str, Any]:
        made: dict[str, Any] = self.api.events().insert(calendarId=calendar, body=body).execute()
        return made

    def list(self, calendar: str = "primary", **parameters: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        request = self.api.events().list(calendarId=calendar, **parameters)
        while request is not None:
            page = request.execute()
            found.extend(page["items"])
            request = self.api.events().list_next(request, page)
        return found

    def day(self, day: int, **parameters: Any) -> list[str]:
        """Starts of what is on one day."""
        low, high = f"2026-09-{day:02}T00:00:00Z", f"2026-09-{day + 1:02}T00:00:00Z"
        found = self.list(singleEvents=True, timeMin=low, timeMax=high, orderBy="startTime", **parameters)
        return [event["start"].get("dateTime") or event["start"]["date"] for event in found]

    def free_busy(self, *calendars: str, low: str = "2026-09-07T00:00:00Z", high: str = "2026-09-08T00:00:00Z") -> Any:
        body = {"timeMin": low, "timeMax": high, "items": [{"id": name} for name in calendars]}
        return self.api.freebusy().query(body=body).execute()["calendars"]

    def refused(self, status: int, reason: str, call: Callable[[], Any]) -> None:
        with self.assertRaises(HttpError) as caught:
            call()
        details: Any = caught.exception.error_details
        self.assertEqual((caught.exception.status_code, details[0]["reason"]), (status, reason))


class Events(CalendarCase):
    def test_an_event_is_made_read_and_deleted(self) -> None:
        made = self.insert(id=ID, summary="Call", extendedProperties={"private": {"k": "v"}}, **slot(10))
        self.assertEqual((made["id"], made["status"], made["kind"]), (ID, "confirmed", "calendar#event"))
        self.assertTrue(made["created"].endswith(".000Z"), "whole seconds")
        self.assertEqual(self.api.events().get(calendarId="agent@example.com", eventId=ID).execute(), made)
        self.api.events().delete(calendarId="primary", eventId=ID).execute()
        self.assertEqual(self.api.events().get(calendarId="primary", eventId=ID).execute()["status"], "cancelled")
        self.refused(410, "deleted", lambda: self.api.events().delete(calendarId="primary", eventId=ID).execute())
        self.refused(409, "duplicate", lambda: self.insert(id=ID, **slot(12)))
        self.assertEqual((self.list(), len(self.list(showDeleted=True))), ([], 1))
        (row,) = self.control.ledger()["events"]
        self.assertEqual((row["id"], row["status"], row["via"]), (ID, "cancelled", "api"))

    def test_ids(self) -> None:
        for bad in ("abcd", "a" * 1025, "0123w", "ABCDE", "abc-de", "aäbcd"):
            self.refused(400, "invalid", lambda bad=bad: self.insert(id=bad, **slot(10)))
        for good in ("abcde", "v" * 1024, "0" * 5):
            self.insert(id=good, **slot(10))
        self.refused(409, "duplicate", lambda: self.insert(id="abcde", **slot(10)))
        self.assertTrue(set(self.insert(**slot(10))["id"]) <= set("0123456789abcdefghijklmnopqrstuv"))

    def test_a_collision_that_goes_unnoticed(self) -> None:
        self.control.action("collisions", detected=False)
        first, second = self.insert(id=ID, summary="1", **slot(10)), self.insert(id=ID, summary="2", **slot(10))
        self.assertEqual((first["id"], second["summary"]), (second["id"], "2"))
        self.assertEqual(len(self.list(iCalUID=f"{ID}@google.com")), 2)
        self.control.reset()
        self.insert(id=ID, **slot(10))
        self.refused(409, "duplicate", lambda: self.insert(id=ID, **slot(10)))

    def test_times(self) -> None:
        zoned = {"dateTime": "2026-09-07T10:00:00", "timeZone": "Europe/Berlin"}
        end = {"dateTime": "2026-09-07T11:00:00", "timeZone": "Europe/Berlin"}
        self.assertEqual(self.insert(start=zoned, end=end)["start"]["dateTime"], "2026-09-07T10:00:00+02:00")
        self.assertEqual(self.control.ledger()["events"][0]["start"], "2026-09-07T08:00:00Z")
        self.refused(400, "timeRangeEmpty", lambda: self.insert(start=end, end=zoned))
        self.refused(400, "required", lambda: self.insert(start=zoned))
        self.refused(400, "badRequest", lambda: self.insert(start={"dateTime": "tomorrow"}, end=end))
        self.refused(400, "invalid", lambda: self.insert(start={**zoned, "timeZone": "Mars/Base"}, end=end))
        self.refused(400, "invalid", lambda: self.insert(start={"date": "2026-09-07"}, end=end))

    def test_a_list_filters_by_time_and_pages(self) -> None:
        for hour in range(8, 18):
            self.insert(**slot(hour))
        bounds = {"timeMin": "2026-09-07T10:00:00Z", "timeMax": "2026-09-07T12:00:00Z"}
        self.assertEqual(len(self.list(singleEvents=True, **bounds)), 2, "both bounds are exclusive")
        self.assertEqual(len(self.list(singleEvents=True, maxResults=3)), 10)
        self.assertEqual(self.control.count("GET", EVENTS), 5)
        self.refused(400, "badRequest", lambda: self.list(timeMin="2026-09-07T10:00:00"))
        self.refused(400, "invalid", lambda: self.list(orderBy="startTime"))
        self.refused(400, "timeRangeEmpty", lambda: self.list(timeMin=bounds["timeMax"], timeMax=bounds["timeMin"]))

    def test_recurring_events_are_expanded(self) -> None:
        zone = "Europe/Berlin"
        at = (
            {"dateTime": "2026-09-07T10:00:00", "timeZone": zone},
            {"dateTime": "2026-09-07T11:00:00", "timeZone": zone},
        )
        weekly = self.insert(start=at[0], end=at[1], recurrence=["RRULE:FREQ=WEEKLY;BYDAY=MO,WE"])
        self.assertEqual([self.day(day) for day in (8, 9)], [[], ["2026-09-09T10:00:00+02:00"]])
        self.assertEqual(self.day(14), ["2026-09-14T10:00:00+02:00"])
        winter = self.list(singleEvents=True, timeMin="2026-11-02T00:00:00Z", timeMax="2026-11-03T00:00:00Z")
        self.assertEqual(winter[0]["start"]["dateTime"], "2026-11-02T10:00:00+01:00", "it stays at ten")
        self.assertEqual([event["id"] for event in self.list()], [weekly["id"]], "unexpanded it is one")
        instance = f"{weekly['id']}_20260909T080000Z"
        self.assertEqual(winter[0]["recurringEventId"], weekly["id"])
        self.api.events().delete(calendarId="primary", eventId=instance).execute()
        self.assertEqual(self.api.events().get(calendarId="primary", eventId=instance).execute()["status"], "cancelled")
        self.assertEqual((self.day(9), len(self.day(14))), ([], 1))

    def test_recurrence_rules(self) -> None:
        def days(*lines: str) -> list[int]:
            self.control.reset()
            start = {"dateTime": "2026-09-07T10:00:00Z", "timeZone": "UTC"}
            end = {"dateTime": "2026-09-07T10:30:00Z", "timeZone": "UTC"}
            self.insert(start=start, end=end, recurrence=list(lines))
            return [day for day in range(6, 30) if self.day(day)]

        self.assertEqual(days("RRULE:FREQ=DAILY;COUNT=3"), [7, 8, 9])
        self.assertEqual(days("RRULE:FREQ=DAILY;INTERVAL=2;UNTIL=20260911T100000Z"), [7, 9, 11])
        self.assertEqual(days("RRULE:FREQ=WEEKLY;COUNT=3"), [7, 14, 21])
        self.assertEqual(days("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=MO,FR;COUNT=4"), [7, 11, 21, 25])
        self.assertEqual(days("RRULE:FREQ=DAILY;COUNT=3", "EXDATE:20260908T100000Z"), [7, 9])
        self.refused(400, "invalid", lambda: days("RRULE:FREQ=SECONDLY"))
        self.refused(400, "required", lambda: self.insert(recurrence=["RRULE:FREQ=DAILY"], **slot(10)))

    def test_all_day_events(self) -> None:
        self.control.reset()
        self.control.action("calendar", id="berlin", role="owner", zone="Europe/Berlin")
        self.insert("berlin", start={"date": "2026-09-07"}, end={"date": "2026-09-08"})
        (row,) = self.control.ledger()["events"]
        self.assertEqual((row["start"], row["end"]), ("2026-09-06T22:00:00Z", "2026-09-07T22:00:00Z"))
        yearly = self.insert(start={"date": "2026-09-07"}, end={"date": "2026-09-09"}, recurrence=["RRULE:FREQ=WEEKLY"])
        self.assertEqual(self.day(15), ["2026-09-14"], "two days long")
        self.assertTrue(yearly["recurrence"])


class FreeBusy(CalendarCase):
    def test_what_is_busy(self) -> None:
        self.insert(**slot(10))
        self.insert(**slot(11))
        self.insert(**slot(14), transparency="transparent")
        deleted = self.insert(**slot(16))
        self.api.events().delete(calendarId="primary", eventId=deleted["id"]).execute()
        busy = [{"start": "2026-09-07T10:00:00Z", "end": "2026-09-07T12:00:00Z"}]
        self.assertEqual(self.free_busy("primary"), {"primary": {"busy": busy}})
        self.insert(start={"date": "2026-09-07"}, end={"date": "2026-09-08"})
        self.assertEqual(self.free_busy("primary")["primary"]["busy"][0]["start"], "2026-09-07T00:00:00Z")

    def test_other_people_s_calendars(self) -> None:
        self.control.action("calendar", id="anna@example.com", role="freeBusyReader")
        self.control.action("calendar", id="board@example.com", role="none")
        self.control.action("event", calendar="anna@example.com", summary="Doctor", **slot(10))
        self.control.action("event", calendar="board@example.com", **slot(10))
        found = self.free_busy("anna@example.com", "board@example.com", "nobody@example.com", "primary")
        self.assertEqual(len(found["anna@example.com"]["busy"]), 1)
        for name in ("board@example.com", "nobody@example.com"):
            self.assertEqual(found[name], {"errors": [{"domain": "global", "reason": "notFound"}], "busy": []})
        self.assertEqual(found["primary"], {"busy": []})
        self.control.action("free_busy_error", calendar="anna@example.com")
        self.assertEqual(self.free_busy("anna@example.com")["anna@example.com"]["errors"][0]["reason"], "internalError")
        (event,) = self.list("anna@example.com")
        self.assertNotIn("summary", event)
        self.refused(403, "requiredAccessLevel", lambda: self.insert("anna@example.com", **slot(12)))
        self.refused(404, "notFound", lambda: self.list("board@example.com"))
        self.refused(404, "notFound", lambda: self.insert("board@example.com", **slot(12)))


class Requests(CalendarCase):
    def test_credentials(self) -> None:
        readonly = self.connect("readonly")
        self.assertEqual(readonly.events().list(calendarId="primary").execute()["items"], [])
        self.refused(
            403, "insufficientPermissions", lambda: readonly.events().insert(calendarId="primary", body={}).execute()
        )

    def test_quota_errors(self) -> None:
        for status in (403, 429):
            self.control.fault("answer", "POST", EVENTS, status=status)
            self.refused(status, "rateLimitExceeded", lambda: self.insert(**slot(10)))
        self.control.fault("answer", "POST", EVENTS, status=503)
        self.refused(503, "backendError", lambda: self.insert(**slot(10)))
        self.assertEqual(self.control.ledger()["events"], [])

    def test_the_stock_transport_repeats_a_post_whose_connection_broke(self) -> None:
        self.control.fault("cut_before", "POST", EVENTS)
        self.insert(**slot(10))
        self.assertEqual(self.control.count("POST", EVENTS), 2)

    def test_a_request_that_lands_late(self) -> None:
        self.control.hold("POST", EVENTS)
        thread = threading.Thread(
            target=lambda: self.connect().events().insert(calendarId="primary", body={"id": ID, **slot(10)}).execute()
        )
        thread.start()
        self.control.received(1, "POST", EVENTS, stage="held")
        self.refused(404, "notFound", lambda: self.api.events().get(calendarId="primary", eventId=ID).execute())
        self.control.release()
        thread.join(20)
        self.assertEqual(self.api.events().get(calendarId="primary", eventId=ID).execute()["status"], "confirmed")

    def test_a_person_s_steps(self) -> None:
        made = self.control.action("event", summary="Lunch", start="2026-09-07T12:00:00Z", end="2026-09-07T13:00:00Z")
        self.control.action("move", event=made["id"], start="2026-09-07T13:00:00Z", end="2026-09-07T14:00:00Z")
        self.assertEqual(self.day(7), ["2026-09-07T13:00:00Z"])
        self.control.action("delete", event=made["id"])
        self.assertEqual(self.day(7), [])
        self.assertEqual(
            sorted(self.control.actions()),
            sorted(["calendar", "event", "delete", "move", "collisions", "free_busy_error"]),
        )
