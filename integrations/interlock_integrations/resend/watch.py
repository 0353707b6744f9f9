"""What became of an email, by its last event. A key that may only send cannot be asked.

The events are those of Resend's documentation, "Event types".
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from interlock_tools.settlement import Settlement
from interlock_tools.watching import unknown_status

from .client import ResendClient

ON_ITS_WAY = frozenset({"queued", "scheduled", "sent", "delivery_delayed", "processed"})
ARRIVED = frozenset({"delivered", "opened", "clicked"})
LOST = frozenset({"bounced", "failed", "suppressed", "canceled"})
PAUSE, COMPLAINTS = timedelta(minutes=10), timedelta(days=1)


def mail_settlement(event: str) -> Settlement:
    """What an email's last event comes to. Pure."""
    if event in ON_ITS_WAY:
        return Settlement("pending", event, look_again=PAUSE)
    if event in ARRIVED:
        return Settlement("settled", event, look_again=None)
    if event in LOST:
        return Settlement("failed", event)
    if event == "complained":
        return Settlement("at_risk", "the reader reported it as unwanted")
    return unknown_status(event)


def watch_mail(client: ResendClient) -> Callable[..., Settlement]:
    """Look at one email: one request."""

    def watch(evidence: dict[str, Any]) -> Settlement:
        name = evidence.get("id")
        if not name:
            return Settlement("settled", "its key was used; which email it was is not known")
        return mail_settlement(str(client.email(str(name)).get("last_event")))

    return watch
