"""What the caller is told: ``Outcome``, a frozen value."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from enum import Enum
from functools import cached_property
from typing import Any

from .errors import OutcomeError


class Status(str, Enum):
    """Whether the effect happened."""

    COMMITTED = "COMMITTED"
    REFUSED = "REFUSED"
    AMBIGUOUS = "AMBIGUOUS"
    IN_FLIGHT = "IN_FLIGHT"


class Reason(str, Enum):
    """Why an outcome is not COMMITTED. A closed set."""

    # REFUSED
    CONFLICTING_PAYLOAD = "conflicting_payload"
    STALE_PREMISE = "stale_premise"
    PREMISE_NOT_MET = "premise_not_met"
    NOT_ALLOWED = "not_allowed"
    OVER_BUDGET = "over_budget"
    REJECTED = "rejected"
    PRECONDITION_FAILED = "precondition_failed"
    UNREACHABLE = "unreachable"
    ALREADY_DONE = "already_done"
    REPLACED = "replaced"
    # AMBIGUOUS
    NO_EVIDENCE = "no_evidence"
    STORED_ERROR = "stored_error"
    SENDER_LOST = "sender_lost"
    UNVERIFIABLE = "unverifiable"
    # IN_FLIGHT
    SENDING = "sending"
    WAITING = "waiting"
    RATE_LIMITED = "rate_limited"
    UNREADABLE = "unreadable"
    AWAITING_APPROVAL = "awaiting_approval"


APPROVAL = "approval"
"""``code`` of an effect that was refused because a person rejected it."""

DECIDED = "decided, and nothing was sent"
"""``detail`` of an effect that was proposed and not called yet."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one effect.

    Attributes:
        status: COMMITTED, REFUSED, AMBIGUOUS or IN_FLIGHT.
        effect_id: the effect; also the idempotency key at the service. Empty if nothing was recorded.
        effect: the effect's name.
        request_key: the request reference.
        reason: why, for all but COMMITTED.
        result: the evidence, for COMMITTED.
        via: how it was settled: ``send``, ``resend``, ``lookup`` or ``person``.
        by_us: for COMMITTED: ``yes``, ``no`` (someone else's identical action) or ``unknown``.
        at_recovery: it was settled, or found blocked, by recovery.
        changes: per failing premise what it ``was``, is ``now`` and was ``expected`` to be.
        code: the service's error code.
        detail: the service's words, or what could not be read.
        holder: for ``sending``: who runs the send (``host``, ``pid``, ``session``).
        retry_after_s: for IN_FLIGHT: in how many seconds to look again, where known.
        existing: for ``conflicting_payload``, ``already_done`` and ``replaced``: the outcome that stands.
        since_ms: UTC milliseconds of the entry that closed it; 0 if open.
        settlement: what became of it after the commit, where known.
    """

    status: Status
    effect_id: str
    effect: str
    request_key: str
    reason: Reason | None = None
    result: Any = None
    via: str | None = None
    by_us: str | None = None
    at_recovery: bool = False
    changes: dict[str, Any] = field(default_factory=dict)
    code: str | None = None
    detail: str | None = None
    holder: dict[str, Any] | None = None
    retry_after_s: float | None = None
    existing: Outcome | None = None
    since_ms: int = 0
    settlement: dict[str, Any] | None = None

    def __str__(self) -> str:
        return self.status.value if self.reason is None else f"{self.status.value}:{self.reason.value}"

    @property
    def committed(self) -> bool:
        """Whether the effect happened."""
        return self.status is Status.COMMITTED

    @cached_property
    def message(self) -> str:
        """One or two plain sentences for a model or a person. Holds no secret."""
        from .messages import sentences

        return sentences(self)

    @property
    def since(self) -> datetime | None:
        """When it was closed, UTC; None while it is open."""
        return datetime.fromtimestamp(self.since_ms / 1000, timezone.utc) if self.since_ms else None

    def raise_for_status(self) -> Outcome:
        """Return self if COMMITTED. Raises ``OutcomeError`` otherwise."""
        if self.status is not Status.COMMITTED:
            raise OutcomeError(self)
        return self

    def during_recovery(self) -> Outcome:
        """Return the same outcome with ``at_recovery`` set."""
        return self if self.at_recovery else replace(self, at_recovery=True)

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON values, without what does not apply."""
        plain: dict[str, Any] = {
            "outcome": str(self),
            "status": self.status.value,
            "effect": self.effect,
            "effect_id": self.effect_id,
            "request_key": self.request_key,
            "message": self.message,
        }
        if self.reason is not None:
            plain["reason"] = self.reason.value
        for name in ("result", "via", "by_us", "changes", "code", "detail", "holder", "settlement"):
            value = getattr(self, name)
            if value not in (None, {}):
                plain[name] = value
        if self.at_recovery:
            plain["at_recovery"] = True
        if self.retry_after_s is not None:
            plain["retry_after_ms"] = int(self.retry_after_s * 1000)
        if self.since is not None:
            plain["since"] = self.since.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self.existing is not None:
            plain["existing"] = self.existing.to_json()
        return plain
