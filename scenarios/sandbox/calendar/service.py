"""The Calendar sandbox as a service: dispatch, ledger and control actions.

Paths and parameters are those of ``calendar.v3.json``, as the client library asks for them with
``client_options={"api_endpoint": URL + "/calendar/v3/"}``. Assumed, because neither the description nor the guide says:
free/busy times are cut to the range asked for; an inaccessible calendar has ``busy: []`` next to its ``errors``.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, incoming_of, json_reply
from scenarios.sandbox.calendar.errors import CalendarError, invalid, of_status
from scenarios.sandbox.calendar.store import ROLES, Calendar, Event, Store, event_json, ledger_row
from scenarios.sandbox.calendar.times import in_zone, moment, point, zone_of
from scenarios.sandbox.clock import Clock

OPTIONS = ("collisions", "max_page", "me", "zone")
ME = "agent@example.com"
MAX_PAGE = 2500
DEFAULT_PAGE = 250
MAX_FREE_BUSY = 50
BASE = "/calendar/v3"
WRITES = ("POST", "DELETE")

Query = dict[str, str]
Handler = Callable[[Incoming, Query, dict[str, str]], Reply]


class CalendarService(Service):
    """Google Calendar. Options: ``me`` (the caller's address, whose calendar is ``primary``), ``zone`` (its time zone),
    ``max_page`` (events in one page of a list at most, as the service may choose), and ``collisions`` (``undetected``:
    a second insert with an id that was used makes a second event, which the API's description allows for).

    Any bearer token will do; ``invalid`` in it is refused, and with ``readonly`` in it nothing may be changed.
    """

    name = "calendar"

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ValueError(f"unknown option(s) {', '.join(unknown)}; known: {', '.join(OPTIONS)}")
        if options.get("collisions", "detected") not in ("detected", "undetected"):
            raise ValueError("collisions is detected or undetected")
        self._max_page = int(options.get("max_page", MAX_PAGE))
        self._zone = options.get("zone", "UTC")
        try:
            zone_of(self._zone)
        except CalendarError as error:
            raise ValueError(error.message) from None
        names = {"calendar": r"/calendars/(?P<calendar>[^/]+)", "event": r"/(?P<event>[^/]+)"}
        events = BASE + names["calendar"] + "/events"
        routes: list[tuple[str, str, Handler]] = [
            ("POST", events, self._insert),
            ("GET", events, self._list),
            ("GET", events + names["event"], self._get),
            ("DELETE", events + names["event"], self._delete),
            ("POST", BASE + "/freeBusy", self._free_busy),
            ("GET", BASE + names["calendar"], self._calendar),
            ("GET", BASE + "/users/me/calendarList", self._calendar_list),
        ]
        self._routes = [(method, re.compile(pattern), handler) for method, pattern, handler in routes]
        self.reset()

    def reset(self) -> None:
        detected = self.options.get("collisions", "detected") == "detected"
        self.store = Store(self.clock, self.options.get("me", ME), self._zone, detected)

    def app(self) -> ASGIApp:
        return Router([Route("/{path:path}", self._endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])])

    def environment(self, url: str) -> dict[str, str]:
        return {"GOOGLE_CALENDAR_API": url + BASE + "/", "GOOGLE_CALENDAR_TOKEN": "sandbox-token"}

    def ledger(self) -> dict[str, Any]:
        calendars = self.store.calendars.values()
        rows = [(event.order, ledger_row(event, calendar)) for calendar in calendars for event in calendar.events]
        return {
            "now": self.clock.now(),
            "calendars": {calendar.id: {"role": calendar.role, "zone": calendar.zone} for calendar in calendars},
            "events": [row for _, row in sorted(rows, key=lambda pair: pair[0])],
        }

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        return json_reply(status, of_status(status).body())

    async def _endpoint(self, request: Request) -> Response:
        reply = self._answer(incoming_of(request.scope))
        response = Response(reply.body, reply.status)
        response.raw_headers = reply.headers
        return response

    def _answer(self, incoming: Incoming) -> Reply:
        """Answer one request. Nothing here awaits, so what it does is done as a whole."""
        path = incoming.scope["raw_path"].decode("latin-1").partition("?")[0]
        query = dict(parse_qsl(incoming.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        method = incoming.record.method
        try:
            self._authenticate(incoming, method, path)
            for known, pattern, handler in self._routes:
                match = pattern.fullmatch(path)
                if known == method and match:
                    return handler(incoming, query, {name: unquote(text) for name, text in match.groupdict().items()})
            raise of_status(404)
        except CalendarError as error:
            return json_reply(error.status, error.body())

    def _authenticate(self, incoming: Incoming, method: str, path: str) -> None:
        token = incoming.headers.get("authorization", "")
        if not token.lower().startswith("bearer ") or "invalid" in token:
            raise of_status(401)
        if "readonly" in token and method in WRITES and not path.endswith("/freeBusy"):
            words = "Request had insufficient authentication scopes."
            raise CalendarError(403, "insufficientPermissions", words)

    # -- the API ----------------------------------------------------------------------------------------

    def _insert(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        calendar = self.store.calendar(names["calendar"], "writer")
        event = self.store.insert(calendar, _object(incoming.body), "api")
        return self._event(event, calendar)

    def _get(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        calendar = self.store.calendar(names["calendar"], "freeBusyReader")
        return self._event(self.store.get(calendar, names["event"]), calendar)

    def _delete(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        self.store.delete(self.store.calendar(names["calendar"], "writer"), names["event"])
        return json_reply(204, b"")

    def _list(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        calendar = self.store.calendar(names["calendar"], "freeBusyReader")
        low = moment(query["timeMin"], None, "timeMin") if "timeMin" in query else None
        high = moment(query["timeMax"], None, "timeMax") if "timeMax" in query else None
        if low and high and low >= high:
            raise CalendarError(400, "timeRangeEmpty", "The specified time range is empty.", "calendar", "timeMax")
        single, deleted = query.get("singleEvents") == "true", query.get("showDeleted") == "true"
        if query.get("orderBy") == "startTime" and not single:
            raise invalid("The requested ordering is not available for the particular query.", "orderBy")
        found = self._found(calendar, low, high, single)
        found = [event for event in found if deleted or event.status != "cancelled"]
        if "iCalUID" in query:
            found = [event for event in found if f"{event.parent or event.id}@google.com" == query["iCalUID"]]
        size = min(int(query.get("maxResults", DEFAULT_PAGE)), MAX_PAGE, self._max_page)
        begin = _offset(query.get("pageToken"))
        body = {
            "kind": "calendar#events",
            "etag": f'"{len(found)}"',
            "summary": calendar.id,
            "timeZone": calendar.zone,
            "accessRole": calendar.role,
            "defaultReminders": [],
            "items": [event_json(event, calendar, self.url) for event in found[begin : begin + size]],
        }
        if begin + size < len(found):
            body["nextPageToken"] = base64.urlsafe_b64encode(str(begin + size).encode()).decode()
        else:
            body["nextSyncToken"] = "none"
        return json_reply(200, body)

    def _found(self, calendar: Calendar, low: datetime | None, high: datetime | None, single: bool) -> list[Event]:
        if single:
            return self.store.occurring(calendar, low, high)
        overlapping = {event.parent or event.id for event in self.store.occurring(calendar, low, high)}
        return [event for event in calendar.events if event.id in overlapping or (low is None and high is None)]

    def _free_busy(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        given = _object(incoming.body)
        low, high = moment(given.get("timeMin"), "UTC"), moment(given.get("timeMax"), "UTC")
        if low >= high:
            raise CalendarError(400, "timeRangeEmpty", "The specified time range is empty.", "calendar", "timeMax")
        zone = given.get("timeZone", "UTC")
        wanted = [str(item.get("id", "")) for item in given.get("items") or []]
        found: dict[str, Any] = {}
        for number, name in enumerate(wanted):
            calendar = self.store.calendars.get(self.store.me if name == "primary" else name)
            reason = ""
            if number >= MAX_FREE_BUSY:
                reason = "tooManyCalendarsRequested"
            elif calendar is None or not calendar.may("freeBusyReader"):
                reason = "notFound"
            elif calendar.free_busy_error:
                reason = calendar.free_busy_error
            if reason or calendar is None:
                found[name] = {"errors": [{"domain": "global", "reason": reason}], "busy": []}
                continue
            spans = self.store.busy(calendar, low, high)
            found[name] = {"busy": [{"start": in_zone(a, zone), "end": in_zone(b, zone)} for a, b in spans]}
        body = {"kind": "calendar#freeBusy", "timeMin": in_zone(low, "UTC"), "timeMax": in_zone(high, "UTC")}
        return json_reply(200, {**body, "calendars": found})

    def _calendar(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        calendar = self.store.calendar(names["calendar"])
        body = {"kind": "calendar#calendar", "id": calendar.id, "summary": calendar.id, "timeZone": calendar.zone}
        return json_reply(200, body)

    def _calendar_list(self, incoming: Incoming, query: Query, names: dict[str, str]) -> Reply:
        items = [
            {
                "kind": "calendar#calendarListEntry",
                "id": calendar.id,
                "summary": calendar.id,
                "timeZone": calendar.zone,
                "accessRole": calendar.role,
                "primary": calendar.id == self.store.me,
            }
            for calendar in self.store.calendars.values()
            if calendar.may("freeBusyReader")
        ]
        return json_reply(200, {"kind": "calendar#calendarList", "items": items})

    def _event(self, event: Event, calendar: Calendar) -> Reply:
        return json_reply(200, event_json(event, calendar, self.url))

    # -- control calls -------------------------------------------------------------------------------------

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {
            "calendar": self._add_calendar,
            "event": self._person_adds,
            "delete": self._person_deletes,
            "move": self._person_moves,
            "collisions": self._collisions,
            "free_busy_error": self._free_busy_error,
        }

    def _add_calendar(self, id: str, role: str = "reader", zone: str = "UTC") -> dict[str, Any]:
        """Another person's calendar, or another role on one: {"id", "role": none to owner, "zone"}."""
        if role not in ROLES:
            raise ValueError(f"role is one of {', '.join(ROLES)}")
        _plainly(lambda: zone_of(zone))
        calendar = self.store.calendars.setdefault(id, Calendar(id, zone, role))
        calendar.role, calendar.zone = role, zone
        return {"id": id, "role": role, "zone": zone}

    def _person_adds(self, calendar: str = "primary", **event: Any) -> dict[str, Any]:
        """A person makes an event: {"calendar", and fields of the Event resource; start and end may be plain times}."""
        for name in ("start", "end"):
            if isinstance(event.get(name), str):
                event[name] = {"dateTime" if "T" in event[name] else "date": event[name]}
        found = self._any(calendar)
        made: Event = _plainly(lambda: self.store.insert(found, event, "person"))
        return ledger_row(made, found)

    def _person_deletes(self, event: str, calendar: str = "primary") -> dict[str, Any]:
        """A person deletes an event or one instance: {"event": id, "calendar"}."""
        _plainly(lambda: self.store.delete(self._any(calendar), event))
        return {"deleted": event}

    def _person_moves(self, event: str, start: str, end: str, calendar: str = "primary") -> dict[str, Any]:
        """A person moves an event: {"event", "start", "end", "calendar"}."""
        found = self._any(calendar)
        moved: Event = _plainly(lambda: self.store.get(found, event))
        moved.start = _plainly(lambda: point({"dateTime": start}, "start", found.zone))
        moved.end = _plainly(lambda: point({"dateTime": end}, "end", found.zone))
        moved.updated = self.clock.now()
        return ledger_row(moved, found)

    def _collisions(self, detected: bool) -> dict[str, Any]:
        """Whether a second insert with a used id is noticed: {"detected": bool}. Until the next reset."""
        self.store.collisions_detected = bool(detected)
        return {"detected": self.store.collisions_detected}

    def _free_busy_error(self, calendar: str, reason: str = "internalError") -> dict[str, Any]:
        """What free/busy says in place of a calendar's busy time; an empty reason ends it."""
        self._any(calendar).free_busy_error = reason
        return {"calendar": calendar, "reason": reason}

    def _any(self, name: str) -> Calendar:
        found = self.store.calendars.get(self.store.me if name == "primary" else name)
        if found is None:
            raise ValueError(f"no calendar {name}; add it with the action calendar")
        return found


def _plainly(call: Callable[[], Any]) -> Any:
    """Carry out a person's step; what the service would refuse is the control call's error."""
    try:
        return call()
    except CalendarError as error:
        raise ValueError(f"{error.status} {error.reason}: {error.message}") from None


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise CalendarError(400, "parseError", "Parse Error")
    return given


def _offset(token: str | None) -> int:
    try:
        return int(base64.urlsafe_b64decode(token)) if token else 0
    except (ValueError, binascii.Error):
        raise invalid("Invalid page token value.", "pageToken") from None
