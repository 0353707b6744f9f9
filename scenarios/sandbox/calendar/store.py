"""Calendars and their events.

From the API description that the client library ships (``calendar.v3.json``): ids, ``status``, ``transparency``, list
filters, free/busy. Client-chosen ids: a second insert is 409 ``duplicate`` for ever, also after a delete; it does not
guarantee that collisions are found at creation, so this can be turned off (two events with one id). Observed against
the service: ``get`` on a deleted event answers 200 with ``status: cancelled``. ``created`` has whole seconds.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta, timezone
from typing import Any

from scenarios.sandbox.calendar.errors import CalendarError, duplicate, gone, invalid, not_found, required
from scenarios.sandbox.calendar.times import Point, Rule, in_zone, point, rule
from scenarios.sandbox.clock import Clock

ROLES = ("none", "freeBusyReader", "reader", "writer", "owner")
"""What the caller may do with a calendar, least first. ``none``: it exists, and the caller cannot tell."""
ID_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuv")
KEPT = (
    "summary",
    "description",
    "location",
    "transparency",
    "visibility",
    "eventType",
    "extendedProperties",
    "attendees",
)
"""Fields of an event that are kept as they were given."""


@dataclass
class Event:
    """One event, or (as a view of one) an instance of a recurring event."""

    id: str
    start: Point
    end: Point
    fields: dict[str, Any]
    created: float
    updated: float
    via: str
    order: int
    status: str = "confirmed"
    recurrence: list[str] = field(default_factory=list)
    rule: Rule | None = None
    cancelled: set[datetime] = field(default_factory=set)
    """Starts of those instances that were deleted."""
    parent: str | None = None

    @property
    def busy(self) -> bool:
        """Whether it takes up time: not deleted, not transparent, not declined by the caller."""
        declined = any(
            attendee.get("self") and attendee.get("responseStatus") == "declined"
            for attendee in self.fields.get("attendees") or []
        )
        return self.status != "cancelled" and self.fields.get("transparency") != "transparent" and not declined


@dataclass
class Calendar:
    id: str
    zone: str
    role: str
    events: list[Event] = field(default_factory=list)
    free_busy_error: str = ""

    def may(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)


class Store:
    """All calendars that there are, and who the caller is."""

    def __init__(self, clock: Clock, me: str, zone: str, collisions_detected: bool) -> None:
        self.clock = clock
        self.me = me
        self.collisions_detected = collisions_detected
        self.calendars = {me: Calendar(me, zone, "owner")}
        self._orders = itertools.count(1)

    def calendar(self, name: str, role: str = "reader") -> Calendar:
        """A calendar that the caller may use in this way. Raises the 404 where it may not even be seen."""
        found = self.calendars.get(self.me if name == "primary" else name)
        if found is None or not found.may("freeBusyReader"):
            raise not_found()
        if not found.may(role):
            raise CalendarError(
                403, "requiredAccessLevel", f"You need to have {role} access to this calendar.", domain="calendar"
            )
        return found

    def insert(self, calendar: Calendar, given: dict[str, Any], via: str) -> Event:
        """A new event. Raises the 400, or the 409 for an id that was used before."""
        name = given.get("id")
        if name is None:
            name = uuid.uuid4().hex[:26].translate(str.maketrans("wxyz", "0000"))
        elif not (isinstance(name, str) and 5 <= len(name) <= 1024 and set(name) <= ID_CHARACTERS):
            raise invalid("Invalid resource id value.")
        start, end = point(given.get("start"), "start", calendar.zone), point(given.get("end"), "end", calendar.zone)
        if (start.day is None) != (end.day is None):
            raise invalid("Start and end times must either both be date or both be dateTime.")
        if end.at < start.at or (end.at == start.at and start.day is not None):
            raise CalendarError(400, "timeRangeEmpty", "The specified time range is empty.", domain="calendar")
        recurrence = given.get("recurrence") or []
        if recurrence and start.day is None and not (given["start"].get("timeZone") and given["end"].get("timeZone")):
            raise required("Missing time zone definition for start time.")
        if self.collisions_detected and any(event.id == name for event in calendar.events):
            raise duplicate()
        now = float(int(self.clock.now()))
        event = Event(
            name,
            start,
            end,
            {key: given[key] for key in KEPT if given.get(key) is not None},
            now,
            now,
            via,
            next(self._orders),
            status=given.get("status", "confirmed"),
            recurrence=list(recurrence),
            rule=rule(recurrence, start.zone),
        )
        calendar.events.append(event)
        return event

    def get(self, calendar: Calendar, name: str) -> Event:
        """An event or instance, deleted or not; of two events with one id the first. Raises the 404."""
        for event in calendar.events:
            if event.id == name:
                return event
        parent, separator, when = name.rpartition("_")
        for event in calendar.events:
            if separator and event.id == parent and event.rule is not None:
                before = event.start.at + timedelta(days=3660)
                for one in instances(event, before, with_cancelled=True):
                    if one.id.endswith(f"_{when}"):
                        return one
        raise not_found()

    def delete(self, calendar: Calendar, name: str) -> None:
        """Delete an event, or one instance. Raises the 404, and the 410 the second time."""
        event = self.get(calendar, name)
        if event.status == "cancelled":
            raise gone()
        if event.parent is not None:
            series = next(one for one in calendar.events if one.id == event.parent)
            series.cancelled.add(event.start.at)
            return
        event.status = "cancelled"
        event.updated = self.clock.now()

    def occurring(self, calendar: Calendar, low: datetime | None, high: datetime | None) -> list[Event]:
        """Single events and instances that overlap a time range, by start."""
        found = [one for event in calendar.events for one in instances(event, high)]
        found = [one for one in found if (low is None or one.end.at > low) and (high is None or one.start.at < high)]
        return sorted(found, key=lambda one: (one.start.at, one.order))

    def busy(self, calendar: Calendar, low: datetime, high: datetime) -> list[tuple[datetime, datetime]]:
        """Busy time within a range, merged and cut to it."""
        merged: list[tuple[datetime, datetime]] = []
        for one in self.occurring(calendar, low, high):
            if not one.busy:
                continue
            start, end = max(one.start.at, low), min(one.end.at, high)
            if merged and start <= merged[-1][1]:
                merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
            else:
                merged.append((start, end))
        return merged


def instances(event: Event, before: datetime | None, with_cancelled: bool = False) -> Iterator[Event]:
    """The event itself, or the instances of a recurring one that start before a moment (two years on without one)."""
    if event.rule is None:
        yield event
        return
    length, days = event.end.at - event.start.at, _days(event)
    for start in event.rule.starts(event.start, before or event.start.at + timedelta(days=730)):
        cancelled = start.at in event.cancelled or event.status == "cancelled"
        if cancelled and not with_cancelled:
            continue
        end_day = start.day + timedelta(days=days) if start.day is not None else None
        end = Point(_end(start, length, end_day), start.zone, end_day)
        yield replace(
            event,
            id=f"{event.id}_{_stamp(start)}",
            start=start,
            end=end,
            status="cancelled" if cancelled else event.status,
            recurrence=[],
            rule=None,
            parent=event.id,
        )


def _days(event: Event) -> int:
    return (event.end.day - event.start.day).days if event.start.day and event.end.day else 0


def _end(start: Point, length: timedelta, end_day: date | None) -> datetime:
    if end_day is None:
        return start.at + length
    return point({"date": end_day.isoformat()}, "end", start.zone).at


def _stamp(start: Point) -> str:
    return start.day.strftime("%Y%m%d") if start.day is not None else start.at.strftime("%Y%m%dT%H%M%SZ")


def event_json(event: Event, calendar: Calendar, base: str) -> dict[str, Any]:
    """The ``Event`` resource. Who may see free/busy alone sees times and no words."""
    made = {
        "kind": "calendar#event",
        "etag": f'"{int(event.updated * 1000)}"',
        "id": event.id,
        "status": event.status,
        "htmlLink": f"{base}/event?eid={event.id}",
        "created": _utc(event.created),
        "updated": _utc(event.updated),
        "creator": {"email": calendar.id, "self": True},
        "organizer": {"email": calendar.id, "self": True},
        "start": event.start.body(),
        "end": event.end.body(),
        "iCalUID": f"{event.parent or event.id}@google.com",
        "sequence": 0,
        "reminders": {"useDefault": True},
        "eventType": "default",
    }
    if calendar.may("reader"):
        made |= event.fields
    else:
        made |= {"visibility": "private", "transparency": event.fields.get("transparency", "opaque")}
    if event.recurrence:
        made["recurrence"] = event.recurrence
    if event.parent is not None:
        made |= {"recurringEventId": event.parent, "originalStartTime": event.start.body()}
    return made


def ledger_row(event: Event, calendar: Calendar) -> dict[str, Any]:
    """An event as the ledger shows it."""
    return {
        "id": event.id,
        "calendar": calendar.id,
        "status": event.status,
        "start": in_zone(event.start.at, "UTC"),
        "end": in_zone(event.end.at, "UTC"),
        "all_day": event.start.day is not None,
        "created": event.created,
        "via": event.via,
        "recurrence": event.recurrence,
        **event.fields,
    }


def _utc(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
