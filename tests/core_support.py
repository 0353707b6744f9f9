"""Builders of entries, states and views for the tests of the core."""

from __future__ import annotations

from typing import Any

from interlock_tools.core.decide import ServiceContract
from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import Phase, State, fold

Body = tuple[Kind, dict[str, Any]]

TIMEOUT_MS = 90_000
LAG_MS = 2_000
SKEW_MS = 60_000
LEASE_MS = 15_000
DAY_MS = 24 * 3_600_000


def at(ms: int, boot: str = "boot", wall: int | None = None) -> Instant:
    """A reading ``ms`` after the start; the wall clock agrees unless it is given."""
    return Instant(boot, 1_000_000 + ms, 1_700_000_000_000 + (ms if wall is None else wall))


def proposed(**changes: Any) -> Body:
    body = {"effect": "e", "key": "k", "decision": 1, "payload": {"amount": 1}, "payload_digest": "d", "facts": {}}
    return Kind.PROPOSED, {**body, "decided_by": "call", **changes}


def authorized(grant: dict[str, Any] | None = None) -> Body:
    return Kind.AUTHORIZED, {"grant": grant}


def dispatched(send: int = 1, clock: Instant | None = None, **more: Any) -> Body:
    moment = clock if clock is not None else at(0)
    return Kind.DISPATCHED, {"send": send, "session": "s", "mark": {"slot": send}, "clock": moment.to_json(), **more}


def unknown(send: int = 1, clock: Instant | None = None, **more: Any) -> Body:
    moment = clock if clock is not None else at(0)
    return Kind.UNKNOWN, {"send": send, "cause": "timeout", "clock": moment.to_json(), **more}


def orphaned(send: int = 1, clock: Instant | None = None) -> Body:
    return Kind.ORPHANED, {"send": send, "clock": (clock if clock is not None else at(0)).to_json()}


def sender_lost(send: int = 1, clock: Instant | None = None, lease_ms: int = LEASE_MS) -> Body:
    moment = clock if clock is not None else at(0)
    return Kind.SENDER_LOST, {"send": send, "clock": moment.to_json(), "lease_ms": lease_ms}


def not_landed(*sends: int, proof: str = "mark") -> Body:
    return Kind.NOT_LANDED, {"sends": list(sends), "proof": proof}


def committed(send: int | None = 1) -> Body:
    body: dict[str, Any] = {"evidence": "re_1", "by_us": "yes", "via": "send"}
    return Kind.COMMITTED, body if send is None else {**body, "send": send}


def refused(reason: str = "stale_premise") -> Body:
    return Kind.REFUSED, {"reason": reason}


def ambiguous(reason: str = "no_evidence") -> Body:
    return Kind.AMBIGUOUS, {"reason": reason}


def resolved(landed: bool) -> Body:
    return Kind.RESOLVED, {"landed": landed, "by": "ops", "why": "looked"}


REPLACED: Body = (Kind.REPLACED, {"effect_id": "e2", "by": "ops"})
SETTLED: Body = (Kind.SETTLED, {"state": "reversed", "detail": ""})
RELEASED: Body = (Kind.RELEASED, {"why": "reversed"})
LATE: Body = (Kind.LATE, {"send": 1, "result": {"ending": "unknown"}})
LATE_EVIDENCE: Body = (Kind.LATE, {"send": 1, "result": {"ending": "evidence", "evidence": "re_1", "by_us": "yes"}})
REQUESTED: Body = (Kind.APPROVAL_REQUESTED, {"digest": "d", "expires_at_ms": 1})
APPROVED: Body = (Kind.APPROVED, {"digest": "d", "by": "ops", "why": ""})
REJECTED: Body = (Kind.REJECTED, {"digest": "d", "by": "ops", "why": ""})

DECIDED = (proposed(), authorized())
SENT = (*DECIDED, dispatched())


def entries(bodies: tuple[Body, ...] | list[Body], after: State | None = None) -> list[Entry]:
    """The bodies as consecutive entries of one effect."""
    start = after.seq if after is not None else 0
    return [Entry("x" * 32, start + count, kind, 0, body) for count, (kind, body) in enumerate(bodies, start=1)]


def state_of(*bodies: Body) -> State:
    """The fold of the bodies."""
    return fold(entries(bodies))


def then(state: State, *bodies: Body) -> State:
    """The fold of further bodies."""
    return fold(entries(bodies, state), state)


def contract(**changes: Any) -> ServiceContract:
    """A service that offers nothing but what is asked for."""
    return ServiceContract(send_timeout_ms=TIMEOUT_MS, clock_skew_ms=SKEW_MS, **changes)


IN_PHASE: dict[Phase, State] = {
    Phase.NEW: State(),
    Phase.PROPOSED: state_of(proposed()),
    Phase.AUTHORIZED: state_of(*DECIDED),
    Phase.DISPATCHED: state_of(*SENT),
    Phase.COMMITTED: state_of(*SENT, committed()),
    Phase.REFUSED: state_of(*SENT, not_landed(1), refused()),
    Phase.AMBIGUOUS: state_of(*SENT, unknown(), ambiguous()),
    Phase.RESOLVED: state_of(*SENT, unknown(), ambiguous(), resolved(True)),
    Phase.REPLACED: state_of(proposed(), refused(), REPLACED),
}
"""One state in every phase."""
