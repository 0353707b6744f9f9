"""Asks Google Calendar whether it agrees with a receipt.

Strong: that there is, or was, an event whose id is the effect's id. An id is
given once and for ever, and a deleted event still answers. What the event says
(summary, times) can be edited, so a difference there contradicts nothing.
"""

from __future__ import annotations

from typing import Any

from interlock_tools.receipts.report import ServiceFinding, Subject

from ..confirming import evidence_id, finding, other, text
from .client import calendar_from_environment, gated_service
from .reading import own_event


def confirm(subject: Subject, service: Any = None) -> ServiceFinding:
    """Ask Calendar about an event.

    Args:
        subject: what the receipt is about.
        service: by default configured by the environment. Credentials that may only read are enough.

    Raises:
        CannotTell, HttpError, ConnectionError: Calendar cannot be asked, or does not tell.
    """
    service = gated_service(service) if service is not None else calendar_from_environment()
    calendar = text(subject, "calendar_id")
    wanted = evidence_id(subject)
    if wanted is not None and wanted != subject.effect_id:
        return other(f"The receipt names event {wanted}; this effect's event can only be {subject.effect_id}.")
    event = own_event(service, calendar, subject.effect_id)
    if event is None:
        return finding(subject, False, f"Calendar {calendar} has never had an event with this effect's id.")
    now = "deleted since" if event.get("status") == "cancelled" else "still there"
    made = f", made at {event['created']}" if event.get("created") else ""
    return finding(subject, True, f"Calendar {calendar} has an event with this effect's id{made}, {now}.")
