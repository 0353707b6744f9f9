"""What became of an event: a person may delete it or move it. It is looked at until it is over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from interlock_tools.settlement import Settlement
from interlock_tools.watching import unknown_status

from .reading import own_event
from .slots import Slot, slot_of

PAUSE = timedelta(hours=1)


def event_settlement(event: Mapping[str, Any] | None, slot: Slot, now: datetime) -> Settlement:
    """What an event comes to that was booked for a slot. Pure; ``now`` is UTC."""
    if event is None:
        return Settlement("reversed", "the event is gone")
    status = str(event.get("status"))
    if status == "cancelled":
        return Settlement("reversed", "cancelled")
    if status not in ("confirmed", "tentative"):
        return unknown_status(status)
    again = PAUSE if now < slot.end else None
    start = datetime.fromisoformat(str((event.get("start") or {}).get("dateTime", "")).replace("Z", "+00:00"))
    if start.tzinfo is not None and start != slot.start:
        return Settlement("settled", f"moved to {start.astimezone(timezone.utc).isoformat()}", look_again=again)
    return Settlement("settled", status, look_again=again)


def watch_event(service: Any, now: Callable[[], datetime]) -> Callable[..., Settlement]:
    """Look at one event: two requests."""

    def watch(
        start_datetime: str, end_datetime: str, timezone: str, calendar_id: str, idempotency_key: str
    ) -> Settlement:
        slot = slot_of(start_datetime, end_datetime, timezone)
        return event_settlement(own_event(service, calendar_id, idempotency_key), slot, now())

    return watch


def utc_now() -> datetime:
    return datetime.now(timezone.utc)
