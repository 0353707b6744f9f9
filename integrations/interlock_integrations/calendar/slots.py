"""Slots: local times in a named zone, checked before anything is recorded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from interlock_tools import BadArguments

LOCAL = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$"
"""The one way to write a local time, so that the same slot is never two."""

CALENDAR_ID = r"^[^\s/:?#]{1,254}$"
SUMMARY = r"^[^\x00]+$"
MAX_SUMMARY = 1000
MAX_LENGTH = timedelta(days=31)


@dataclass(frozen=True)
class Slot:
    """A time span, UTC."""

    start: datetime
    end: datetime


def slot_of(start_datetime: str, end_datetime: str, zone_name: str) -> Slot:
    """Return the slot that the arguments name.

    Raises:
        BadArguments: not a time, not a zone, an end that is not after its start, more than 31 days, or a
            local time that the zone skips or has twice because its clocks change.
    """
    start = _utc("start_datetime", start_datetime, zone_name)
    end = _utc("end_datetime", end_datetime, zone_name)
    if not start < end <= start + MAX_LENGTH:
        raise BadArguments("end_datetime must be after start_datetime, and at most 31 days later")
    return Slot(start, end)


def _utc(name: str, text: str, zone_name: str) -> datetime:
    try:
        zone = ZoneInfo(zone_name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise BadArguments("timezone must be a name such as Europe/Berlin or UTC") from None
    try:
        if not re.fullmatch(LOCAL, text):
            raise ValueError(text)
        local = datetime.fromisoformat(text)
    except ValueError:
        raise BadArguments(f"{name} must be a local time like 2026-09-07T10:00:00, without an offset") from None
    first, second = (local.replace(tzinfo=zone, fold=fold).astimezone(timezone.utc) for fold in (0, 1))
    if first.astimezone(zone).replace(tzinfo=None) != local:
        raise BadArguments(f"{name}: the clocks of {zone_name} are put forward over {text}; there is no such time")
    if first != second:
        raise BadArguments(
            f"{name}: {text} comes twice in {zone_name}, whose clocks are put back then; use timezone UTC"
        )
    return first


def rfc3339(moment: datetime) -> str:
    """Return a moment as the API takes it, UTC."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
