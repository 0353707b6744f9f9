"""Moments, all-day dates and recurrence rules as Calendar has them (API reference, ``Event`` and ``EventDateTime``).

A moment is ``dateTime`` with an offset, or with ``timeZone``, or in the calendar's own zone; an all-day event has
``date`` and its end is exclusive. A recurring event is expanded in its zone, so 10:00 stays 10:00 over a change of
the clocks (RFC 5545). Rules here: ``FREQ=DAILY`` and ``WEEKLY`` with ``INTERVAL``, ``COUNT``, ``UNTIL`` and
``BYDAY``; ``EXDATE``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from scenarios.sandbox.calendar.errors import CalendarError, invalid, required

DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
MAX_INSTANCES = 5000
"""Bound on one expansion."""
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.\d+)?([Zz]|[+-]\d\d:\d\d)?")


@dataclass(frozen=True)
class Point:
    """One end of an event: an instant, or the beginning of a day in the calendar's zone."""

    at: datetime
    zone: str
    day: date | None = None

    def body(self) -> dict[str, str]:
        if self.day is not None:
            return {"date": self.day.isoformat()}
        return {"dateTime": in_zone(self.at, self.zone), "timeZone": self.zone}


def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise invalid(f"Invalid time zone definition for {name}.") from None


def in_zone(moment: datetime, zone: str) -> str:
    return moment.astimezone(zone_of(zone)).isoformat(timespec="seconds").replace("+00:00", "Z")


def moment(text: Any, zone: str | None = None, location: str = "") -> datetime:
    """An RFC 3339 time; without an offset only where ``zone`` is given. Raises the 400."""
    found = _MOMENT.fullmatch(text) if isinstance(text, str) else None
    if found is None or (found[3] is None and zone is None):
        raise CalendarError(400, "badRequest", "Bad Request", location=location)
    try:
        plain = datetime.fromisoformat(f"{found[1]}T{found[2]}")
        if found[3] is None:
            assert zone is not None
            return plain.replace(tzinfo=zone_of(zone)).astimezone(timezone.utc)
        offset = "+00:00" if found[3] in "Zz" else found[3]
        return datetime.fromisoformat(plain.isoformat() + offset).astimezone(timezone.utc)
    except ValueError:
        raise CalendarError(400, "badRequest", "Bad Request", location=location) from None


def point(given: Any, name: str, calendar_zone: str) -> Point:
    """One end of an event from its JSON. Raises the 400."""
    if not isinstance(given, Mapping) or not (given.get("date") or given.get("dateTime")):
        raise required(f"Missing {name} time.")
    if given.get("date") and given.get("dateTime"):
        raise invalid("Event cannot have both a date and a dateTime.")
    zone = given.get("timeZone") or calendar_zone
    zone_of(zone)
    if given.get("date"):
        try:
            day = date.fromisoformat(str(given["date"]))
        except ValueError:
            raise CalendarError(400, "badRequest", "Bad Request") from None
        return Point(_midnight(day, calendar_zone), calendar_zone, day)
    return Point(moment(given["dateTime"], zone), zone)


def _midnight(day: date, zone: str) -> datetime:
    return datetime.combine(day, time(), zone_of(zone)).astimezone(timezone.utc)


@dataclass(frozen=True)
class Rule:
    """A recurrence rule. ``until`` is inclusive."""

    days: int
    """Days from one period to the next: INTERVAL, times seven for WEEKLY."""
    by_day: tuple[int, ...]
    count: int | None
    until: datetime | None
    excluded: frozenset[datetime]

    def starts(self, first: Point, before: datetime) -> Iterator[Point]:
        """Every start before a moment, oldest first."""
        local = first.at.astimezone(zone_of(first.zone))
        monday = local.date() - timedelta(days=local.weekday())
        days = [monday + timedelta(days=n) for n in self.by_day] if self.by_day else [local.date()]
        made = 0
        for period in range(MAX_INSTANCES):
            for begin in days:
                day = begin + timedelta(days=self.days * period)
                if day < local.date():
                    continue
                made += 1
                at = datetime.combine(day, local.timetz()).astimezone(timezone.utc)
                past = self.until is not None and at > self.until
                if at >= before or past or (self.count is not None and made > self.count):
                    return
                if at not in self.excluded:
                    yield Point(at, first.zone, day if first.day is not None else None)


def rule(lines: Any, zone: str) -> Rule | None:
    """The rule of an event's ``recurrence``; None without one. Raises the 400, also for what is not reproduced."""
    if not lines:
        return None
    excluded: set[datetime] = set()
    parts: dict[str, str] = {}
    for line in lines:
        name, _, value = str(line).partition(":")
        if name == "RRULE" and not parts:
            parts = dict(item.partition("=")[::2] for item in value.split(";"))
        elif name.startswith("EXDATE"):
            excluded |= {_basic(item, zone) for item in value.split(",")}
        else:
            raise invalid("Invalid recurrence rule.")
    period = {"DAILY": 1, "WEEKLY": 7}.get(parts.get("FREQ", ""))
    if period is None or set(parts) - {"FREQ", "INTERVAL", "COUNT", "UNTIL", "BYDAY", "WKST"}:
        raise invalid("Invalid recurrence rule.")
    try:
        by_day = tuple(sorted(DAYS.index(day) for day in parts["BYDAY"].split(","))) if "BYDAY" in parts else ()
        count = int(parts["COUNT"]) if "COUNT" in parts else None
        interval = int(parts.get("INTERVAL", "1"))
    except ValueError:
        raise invalid("Invalid recurrence rule.") from None
    if by_day and period == 1:
        raise invalid("Invalid recurrence rule.")
    until = _basic(parts["UNTIL"], zone) if "UNTIL" in parts else None
    return Rule(period * interval, by_day, count, until, frozenset(excluded))


def _basic(text: str, zone: str) -> datetime:
    """A time or date in RFC 5545's basic format."""
    try:
        if text.endswith("Z"):
            return datetime.strptime(text, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        shape = "%Y%m%dT%H%M%S" if "T" in text else "%Y%m%d"
        return datetime.strptime(text, shape).replace(tzinfo=zone_of(zone)).astimezone(timezone.utc)
    except ValueError:
        raise invalid("Invalid recurrence rule.") from None
