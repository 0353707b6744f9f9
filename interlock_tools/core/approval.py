"""A person's approval of one decision: what it is for, and whether it stands."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from .canonical import digest, encode

if TYPE_CHECKING:
    from .states import State


class Approval(NamedTuple):
    """The latest request for an approval of an effect, and its answer.

    ``expires_at_ms`` is UTC; neither an answer nor a send under it counts from then on.
    """

    digest: str
    asked_at_ms: int
    expires_at_ms: int
    answer: str = ""
    """``approved``, ``rejected``, or empty while nobody has answered."""
    by: str = ""
    why: str = ""
    answered_at_ms: int = 0


class Standing(str, Enum):
    """How an effect stands with its approval."""

    NOT_ASKED = "not_asked"
    AWAITING = "awaiting"
    APPROVED = "approved"
    REJECTED = "rejected"
    EXPIRED = "expired"
    """Its time is over, answered or not."""
    OTHER = "other"
    """What was asked about is not what would be sent."""


def approval_digest(state: State) -> str:
    """Return the digest of what a person approves: the effect, its request, its payload and the facts it rests on."""
    return digest(
        encode(
            {
                "effect": state.name,
                "key": state.request_key,
                "decision": state.decision,
                "payload_digest": state.payload_digest,
                "facts": state.facts,
            }
        )
    )


def standing(state: State, now_ms: int) -> Standing:
    """Return how an effect stands with its approval at a time, in UTC milliseconds."""
    approval = state.approval
    if approval is None:
        return Standing.NOT_ASKED
    if approval.answer == "rejected":
        return Standing.REJECTED
    if now_ms >= approval.expires_at_ms:
        return Standing.EXPIRED
    if approval.digest != approval_digest(state):
        return Standing.OTHER
    return Standing.APPROVED if approval.answer == "approved" else Standing.AWAITING
