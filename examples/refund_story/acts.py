"""What happens in each act: where the agent dies, and what others do while it is dead."""

from __future__ import annotations

from dataclasses import dataclass

OUTAGES = {
    "none": "nothing",
    "hand_refund": "somebody refunds the $20 by hand",
    "approval_revoked": "the approval is revoked",
    "chargeback": "the bank takes the $100 back",
}
"""What can happen while the agent is dead."""

POINTS = {
    "before_journal": "nothing is written down yet",
    "after_proposed": "the decision is written down",
    "after_dispatched": "the send is written down, and not begun",
    "before_mark": "connected to Stripe, nothing marked",
    "before_bytes": "marked as sent, and not one byte has left",
    "in_flight": "the request has left, no answer is read",
    "after_response": "the answer is read, and not written down",
    "after_committed": "all is written down, nobody has been told",
    "recovery_started": "dead again, just after recovery began",
    "recovery_checked": "dead again, after the facts were read again",
    "recovery_looked_up": "dead again, after the refund was found at Stripe",
}
"""Where it can be killed, in the order in which it passes them."""

WITHOUT_GATE = ("before_bytes", "in_flight", "after_response")
"""The points that are there without a gate, too."""

LANDED = ("in_flight", "after_response", "after_committed")
"""Points at which the request has left, so that Stripe carries it out."""


@dataclass(frozen=True)
class Act:
    """One payment, one approved refund, one or two deaths."""

    point: str
    outage: str
    gated: bool = True

    @property
    def deaths(self) -> tuple[str, ...]:
        """Where it dies, first and perhaps again."""
        return ("in_flight", self.point) if self.point.startswith("recovery_") else (self.point,)

    @property
    def landed(self) -> bool:
        """Whether the refund was made before anything else happened."""
        return self.deaths[0] in LANDED


def acts(point: str | None, outage: str, gated: bool) -> list[Act]:
    """The acts of one run: all points, or one."""
    points = [point] if point else list(POINTS if gated else WITHOUT_GATE)
    return [Act(name, _outage(name, outage), gated) for name in points]


def _outage(point: str, outage: str) -> str:
    """A refund is looked up only where it may not simply be sent again, so something has to have changed."""
    return "approval_revoked" if point == "recovery_looked_up" and outage == "none" else outage
