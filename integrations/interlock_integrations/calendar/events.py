"""The event effect: how it is booked, found again, and what it rests on.

What a booking rests on, read at the decision and before every send:

* ``calendar``: ``found``, or ``not found`` where there is none that may be seen;
* ``busy``: times within the slot at which the calendar, or another that has to
  be free, is taken; this effect's own event is left out.

Calendar does not book conditionally, so what is booked between the reading and
the send, milliseconds, is not seen.

The event's id is the effect's id, whose hex digits are among the characters
that Calendar allows. An id is used up for ever, so a booking that is sent again
is answered 409; whether it is still booked is then read.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Literal

from googleapiclient.errors import HttpError

from interlock_tools import Evidence, Gate
from interlock_tools.effect import Effect
from interlock_tools.errors import describe

from ..declaring import check_text, with_more
from ..transport import sending
from .client import SEND_TIMEOUT
from .errors import AlreadyThere, classified
from .reading import EFFECT_ID, busy_elsewhere, busy_here, copies, is_missing, own_event
from .slots import CALENDAR_ID, MAX_SUMMARY, SUMMARY, rfc3339, slot_of
from .watch import utc_now, watch_event

log = logging.getLogger("interlock_tools")


def declare_event(
    gate: Gate,
    service: Any,
    *,
    name: str = "calendar.event",
    approvals: Callable[..., Any] | None = None,
    slot: Literal["empty", "unchanged"] = "empty",
    others: Sequence[str] = (),
    collisions: Literal["detected", "undetected"] = "detected",
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the event effect on a gate and return it.

    The functions take, by name, any of ``request``, ``summary``,
    ``start_datetime``, ``end_datetime``, ``timezone`` and ``calendar_id``;
    premises may also take ``idempotency_key``.

    Args:
        gate: the gate.
        service: a service made by ``gated_service``.
        name: the effect's stable name; another one for each Google account at one journal.
        approvals: returns the ``Grant`` that covers the booking, or None.
        slot: ``unchanged`` where the slot may be taken already, as long as that does not change.
        others: ids of further calendars that have to be free at the time: guests, rooms. An error in
            place of one's free/busy time is never "free"; nothing is booked then.
        collisions: Google does not guarantee to notice a second insert with an id. ``undetected``: rely on reading
            alone. After an unknown end the gate then waits until the request can no longer land.
        premises: returns further facts, or ones to replace those above.
        expect: values that further facts must have.
        budget: returns a ``Budget`` or a list of them.
        send_timeout: see ``client.SEND_TIMEOUT``.

    Raises:
        DefinitionError: something about it is wrong.
    """
    wanted: dict[str, Any] = {"calendar": "found"}
    if slot == "empty":
        wanted["busy"] = []

    def event_facts(
        request: str,
        summary: str,
        start_datetime: str,
        end_datetime: str,
        timezone: str,
        calendar_id: str,
        idempotency_key: str,
    ) -> dict[str, Any]:
        span = slot_of(start_datetime, end_datetime, timezone)
        try:
            here = busy_here(service, calendar_id, span, idempotency_key)
        except HttpError as error:
            if not is_missing(error):
                raise
            return {"calendar": "not found", "busy": []}
        return {"calendar": "found", "busy": here + busy_elsewhere(service, others, span)}

    def find_event(calendar_id: str, idempotency_key: str) -> Evidence | None:
        return _evidence(own_event(service, calendar_id, idempotency_key), idempotency_key)

    def key(request: str, summary: str, start_datetime: str, end_datetime: str, timezone: str, calendar_id: str) -> str:
        check_text("summary", summary, SUMMARY, MAX_SUMMARY)
        check_text("calendar_id", calendar_id, CALENDAR_ID)
        return f"{request}:{calendar_id}:{rfc3339(slot_of(start_datetime, end_datetime, timezone).start)}"

    @gate.effect(
        name,
        key=key,
        premises=with_more(event_facts, premises),
        expect={**wanted, **(expect or {})},
        allowed=approvals,
        budget=budget,
        dedupes=True if collisions == "detected" else None,
        lookup=find_event,
        send_timeout=send_timeout,
        service={"name": "calendar", "kind": "event"},
        watch=watch_event(service, utc_now),
    )
    def create_calendar_event(
        request: str,
        summary: str,
        start_datetime: str,
        end_datetime: str,
        timezone: str,
        calendar_id: str,
        *,
        idempotency_key: str,
        on_send: Any,
    ) -> Evidence | None:
        body = {
            "id": idempotency_key,
            "summary": summary,
            "start": {"dateTime": start_datetime, "timeZone": timezone},
            "end": {"dateTime": end_datetime, "timeZone": timezone},
            "extendedProperties": {"private": {EFFECT_ID: idempotency_key}},
        }
        try:
            with classified(), sending(on_send):
                made = service.events().insert(calendarId=calendar_id, body=body).execute(num_retries=0)
        except AlreadyThere:
            found = _evidence(own_event(service, calendar_id, idempotency_key), idempotency_key)
            if found is None:
                raise
            return found
        return _evidence(_counted(service, calendar_id, made), idempotency_key)

    return create_calendar_event


def _counted(service: Any, calendar_id: str, made: dict[str, Any]) -> dict[str, Any]:
    """What was made, with the number of its copies if there are several. It stands whether or not they can be read."""
    try:
        same = copies(service, calendar_id, str(made["id"]))
    except Exception as error:
        log.warning(
            "calendar: event %s was made; whether it is there once could not be read: %s",
            made.get("id"),
            describe(error),
        )
        return made
    return {**made, "copies": len(same)} if len(same) > 1 else made


def _evidence(event: Mapping[str, Any] | None, idempotency_key: str) -> Evidence | None:
    """Those fields of an event that are kept."""
    if event is None or not event.get("id"):
        return None
    names = ("id", "status", "start", "end", "created", "htmlLink", "copies")
    marked = ((event.get("extendedProperties") or {}).get("private") or {}).get(EFFECT_ID)
    kept = {name: event[name] for name in names if event.get(name) is not None}
    return Evidence(kept, by_us="yes" if marked == idempotency_key else "unknown")
