"""Reads calendars: what is busy, and this effect's own event."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any
from zoneinfo import ZoneInfo

import requests
from googleapiclient.errors import HttpError

from interlock_tools.errors import describe

from ..transport import root_cause
from .slots import Slot, rfc3339

EFFECT_ID = "interlock_effect_id"
"""Name of the private extended property that holds the effect's id."""

PAGE = 250
MAX_EVENTS = 10_000
"""Bound on one listing. Past it nothing can be said, and the reading fails."""


class Unreadable(RuntimeError):
    """A calendar's answer from which nothing follows; least of all that the calendar is free."""


@contextlib.contextmanager
def reachable() -> Generator[None, None, None]:
    """Say in plain words that Calendar cannot be reached. Raises ``ConnectionError`` for the transport's own."""
    try:
        yield
    except requests.RequestException as error:
        raise ConnectionError(f"Calendar cannot be reached: {describe(root_cause(error))}") from error


def is_missing(error: HttpError) -> bool:
    """Whether the answer is that there is no such thing, or none that the caller may see."""
    return int(error.resp.status) == 404


def busy_here(service: Any, calendar_id: str, slot: Slot, own_id: str) -> list[str]:
    """Return the times within a slot at which a calendar is taken, as ``start/end`` in UTC, this effect's own left out.

    Recurring events count by their instances, all-day ones by the calendar's
    zone. Transparent, cancelled and declined ones do not count.

    Raises:
        ConnectionError: Calendar cannot be reached.
        HttpError: its answer is an error.
        Unreadable: there are more events than can be read.
    """
    found = []
    parameters = {"timeMin": rfc3339(slot.start), "timeMax": rfc3339(slot.end), "singleEvents": True}
    for event, zone in _events(service, calendarId=calendar_id, maxResults=PAGE, **parameters):
        if event.get("id") != own_id and _takes_time(event):
            found.append(f"{_moment(event, 'start', zone)}/{_moment(event, 'end', zone)}")
    return sorted(found)


def busy_elsewhere(service: Any, calendars: Sequence[str], slot: Slot) -> list[str]:
    """Return the times within a slot at which other calendars are taken, each after the calendar's id.

    Raises:
        Unreadable: what is said of one of them is an error. That is not "free".
    """
    if not calendars:
        return []
    body = {"timeMin": rfc3339(slot.start), "timeMax": rfc3339(slot.end), "items": [{"id": name} for name in calendars]}
    with reachable():
        told = service.freebusy().query(body=body).execute().get("calendars") or {}
    found = []
    for name in calendars:
        one = told.get(name)
        if not isinstance(one, Mapping) or one.get("errors") or not isinstance(one.get("busy"), list):
            reasons = [str(error.get("reason")) for error in (one or {}).get("errors") or []]
            raise Unreadable(f"the free/busy time of {name} cannot be read ({', '.join(reasons) or 'no answer'})")
        found += [f"{name} {_plain(span['start'])}/{_plain(span['end'])}" for span in one["busy"]]
    return sorted(found)


def own_event(service: Any, calendar_id: str, own_id: str) -> dict[str, Any] | None:
    """Return this effect's event, deleted or not, with ``copies`` where there are several; None if there is none.

    A 404 alone does not say so, because a calendar that may not be seen any
    more answers the same.

    Raises:
        ConnectionError: Calendar cannot be reached.
        HttpError: its answer is an error, also that there is no such calendar.
    """
    event: dict[str, Any] | None = None
    try:
        with reachable():
            event = service.events().get(calendarId=calendar_id, eventId=own_id).execute()
    except HttpError as error:
        if not is_missing(error):
            raise
    same = copies(service, calendar_id, own_id)
    if event is None and same:
        event = same[0]
    if event is not None and len(same) > 1:
        event = {**event, "copies": len(same)}
    return event


def copies(service: Any, calendar_id: str, own_id: str) -> list[dict[str, Any]]:
    """Return every event with this id. There is one at most, but Google does not guarantee it."""
    listed = _events(service, calendarId=calendar_id, iCalUID=f"{own_id}@google.com", showDeleted=True, maxResults=PAGE)
    return [event for event, _ in listed if event.get("id") == own_id]


def _events(service: Any, **parameters: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Every event of a list, all pages, each with the calendar's zone."""
    count = 0
    request = service.events().list(**parameters)
    while request is not None:
        with reachable():
            page = request.execute()
        if not isinstance(page.get("items"), list):
            raise Unreadable("Calendar's answer is not a list of events, so it does not say that something is absent")
        for event in page["items"]:
            count += 1
            if count > MAX_EVENTS:
                raise Unreadable(f"more than {MAX_EVENTS} events")
            yield event, str(page.get("timeZone") or "UTC")
        request = service.events().list_next(request, page)


def _takes_time(event: Mapping[str, Any]) -> bool:
    declined = any(
        attendee.get("self") and attendee.get("responseStatus") == "declined"
        for attendee in event.get("attendees") or []
    )
    return event.get("status") != "cancelled" and event.get("transparency") != "transparent" and not declined


def _moment(event: Mapping[str, Any], name: str, zone: str) -> str:
    point = event[name]
    if "dateTime" in point:
        return _plain(point["dateTime"])
    return rfc3339(datetime.combine(date.fromisoformat(point["date"]), time(), ZoneInfo(zone)))


def _plain(text: str) -> str:
    moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return rfc3339(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
