"""The state of an effect is a fold of ``step`` over its entries, and nothing else is state."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, NamedTuple

from .approval import Approval
from .entries import Entry, Instant, Kind


class Phase(str, Enum):
    """Where an effect stands."""

    NEW = "new"
    PROPOSED = "proposed"
    AUTHORIZED = "authorized"
    DISPATCHED = "dispatched"
    COMMITTED = "committed"
    REFUSED = "refused"
    AMBIGUOUS = "ambiguous"
    RESOLVED = "resolved"
    REPLACED = "replaced"


class SendStatus(str, Enum):
    """What is known about one send."""

    RUNNING = "running"
    """Dispatched, and nobody has recorded its end. Its sender may be dead."""
    UNKNOWN = "unknown"
    ORPHANED = "orphaned"
    LOST = "lost"
    NOT_LANDED = "not_landed"
    LANDED = "landed"


NOT_HANDED_OVER = frozenset({"mark", "not_sent", "withheld"})
"""Proofs of NOT_LANDED that also say that not one byte left the process."""

ENDS_SHORTCUTS = frozenset({"definite_no", "precondition_failed"})
"""Proofs after which an effect is no longer resent on the word of the service contract (rules 5 and 6)."""


class Send(NamedTuple):
    """One hand-over of a request to the network. ``number`` counts from 1 within the effect."""

    number: int
    session: str
    mark: dict[str, Any] | None
    dispatched: Instant
    status: SendStatus = SendStatus.RUNNING
    since: tuple[Instant, ...] = ()
    """When it ended, was orphaned or lost: the first reading in each boot that recorded one."""
    lease_ms: int = 0
    handed_over: bool = True
    """False only where it is proven that no byte left."""
    cause: str | None = None

    @property
    def may_have_landed(self) -> bool:
        return self.status is not SendStatus.NOT_LANDED


class State(NamedTuple):
    """The fold of an effect's entries."""

    phase: Phase = Phase.NEW
    seq: int = 0
    name: str = ""
    request_key: str = ""
    decision: int = 0
    payload: dict[str, Any] = {}  # noqa: RUF012 - nobody writes to it
    payload_digest: str = ""
    facts: dict[str, Any] | None = None
    grant: dict[str, Any] | None = None
    approval: Approval | None = None
    """The latest request for a person's approval; once there is one, nothing is sent without it."""
    sends: tuple[Send, ...] = ()
    shortcuts_off: bool = False
    """Rules 5 and 6 are off for this effect, for good."""
    stored_error: bool = False
    """The service keeps an error as its answer to this effect's key."""
    reserved: tuple[dict[str, Any], ...] = ()
    """Budgets that this effect holds now."""
    closing: Entry | None = None
    """The entry that closed it (or made it ambiguous)."""
    decided: Entry | None = None
    dispatched_entry: Entry | None = None
    settled: Entry | None = None
    late: Entry | None = None

    @property
    def is_open(self) -> bool:
        return self.phase in OPEN_PHASES

    @property
    def is_closed(self) -> bool:
        return self.phase in CLOSED_PHASES

    @property
    def contradicted(self) -> bool:
        """Whether a late answer of the service shows that it landed, though it was refused."""
        return self.late is not None and self.late.body.get("result", {}).get("ending") == "evidence"

    @property
    def maybe_landed(self) -> tuple[Send, ...]:
        return tuple(send for send in self.sends if send.may_have_landed)

    def send(self, number: int) -> Send | None:
        return self.sends[number - 1] if 0 < number <= len(self.sends) else None


OPEN_PHASES = frozenset({Phase.PROPOSED, Phase.AUTHORIZED, Phase.DISPATCHED})
CLOSED_PHASES = frozenset({Phase.COMMITTED, Phase.REFUSED, Phase.RESOLVED, Phase.REPLACED})


class IllegalTransition(ValueError):
    """An entry that must not follow. Attributes: ``phase``, ``kind``, ``why``."""

    def __init__(self, phase: Phase, kind: Kind, why: str) -> None:
        super().__init__(f"{kind.value} may not follow in phase {phase.value}: {why}")
        self.phase = phase
        self.kind = kind
        self.why = why


P, K = Phase, Kind

TRANSITIONS: dict[tuple[Phase, Kind], Phase] = {
    # -- nothing recorded yet
    (P.NEW, K.PROPOSED): P.PROPOSED,
    # -- decided, nothing sent
    (P.PROPOSED, K.AUTHORIZED): P.AUTHORIZED,
    (P.PROPOSED, K.APPROVAL_REQUESTED): P.PROPOSED,
    (P.PROPOSED, K.APPROVED): P.PROPOSED,
    (P.PROPOSED, K.REJECTED): P.PROPOSED,
    (P.PROPOSED, K.REFUSED): P.REFUSED,
    (P.AUTHORIZED, K.DISPATCHED): P.DISPATCHED,
    (P.AUTHORIZED, K.REFUSED): P.REFUSED,
    # -- at least one send
    (P.DISPATCHED, K.DISPATCHED): P.DISPATCHED,
    (P.DISPATCHED, K.UNKNOWN): P.DISPATCHED,
    (P.DISPATCHED, K.NOT_LANDED): P.DISPATCHED,
    (P.DISPATCHED, K.ORPHANED): P.DISPATCHED,
    (P.DISPATCHED, K.SENDER_LOST): P.DISPATCHED,
    (P.DISPATCHED, K.COMMITTED): P.COMMITTED,
    (P.DISPATCHED, K.REFUSED): P.REFUSED,
    (P.DISPATCHED, K.AMBIGUOUS): P.AMBIGUOUS,
    # -- nobody can know: later evidence or a person
    (P.AMBIGUOUS, K.COMMITTED): P.COMMITTED,
    (P.AMBIGUOUS, K.RESOLVED): P.RESOLVED,
    (P.AMBIGUOUS, K.LATE): P.AMBIGUOUS,
    # -- closed
    (P.COMMITTED, K.SETTLED): P.COMMITTED,
    (P.COMMITTED, K.RELEASED): P.COMMITTED,
    (P.COMMITTED, K.LATE): P.COMMITTED,
    (P.REFUSED, K.DISPATCHED): P.DISPATCHED,  # only where it was unreachable
    (P.REFUSED, K.REFUSED): P.REFUSED,  # likewise: tried again, and its premises no longer hold
    (P.REFUSED, K.REPLACED): P.REPLACED,
    (P.REFUSED, K.LATE): P.REFUSED,
    (P.REFUSED, K.RESOLVED): P.RESOLVED,  # only where a late answer contradicts it
    (P.RESOLVED, K.REPLACED): P.REPLACED,  # only where it did not land
    (P.RESOLVED, K.SETTLED): P.RESOLVED,
    (P.RESOLVED, K.RELEASED): P.RESOLVED,
    (P.RESOLVED, K.LATE): P.RESOLVED,
    (P.REPLACED, K.LATE): P.REPLACED,
}
"""Every legal (phase, kind) and the phase it leads to. All others are illegal."""


def step(state: State, entry: Entry) -> State:
    """Return the state after ``entry``.

    Raises:
        IllegalTransition: when the entry must not follow; the state is as it was.
    """
    after = TRANSITIONS.get((state.phase, entry.kind))
    if after is None:
        raise IllegalTransition(state.phase, entry.kind, "not in the transition table")
    if entry.seq != state.seq + 1:
        raise IllegalTransition(state.phase, entry.kind, f"sequence number {entry.seq} follows {state.seq}")
    try:
        return _HANDLERS[entry.kind](state, entry, after)
    except (KeyError, TypeError, AttributeError) as error:
        raise IllegalTransition(state.phase, entry.kind, f"its body is malformed ({error!r})") from None


def fold(entries: Iterable[Entry], start: State | None = None) -> State:
    """Fold ``step`` over entries, from nothing or from ``start``."""
    state = start if start is not None else State()
    for entry in entries:
        state = step(state, entry)
    return state


def _proposed(state: State, entry: Entry, after: Phase) -> State:
    body = entry.body
    return state._replace(
        phase=after,
        seq=entry.seq,
        name=body["effect"],
        request_key=body["key"],
        decision=body["decision"],
        payload=body["payload"],
        payload_digest=body["payload_digest"],
        facts=body.get("facts"),
        decided=entry,
    )


def _approval_requested(state: State, entry: Entry, after: Phase) -> State:
    body, earlier = entry.body, state.approval
    if earlier is not None and (earlier.answer == "rejected" or entry.at_ms < earlier.expires_at_ms):
        raise IllegalTransition(state.phase, entry.kind, "it was asked before, and that still counts")
    asked = Approval(body["digest"], entry.at_ms, body["expires_at_ms"])
    return state._replace(phase=after, seq=entry.seq, approval=asked)


def _answered(state: State, entry: Entry, after: Phase) -> State:
    body, asked = entry.body, state.approval
    if asked is None or asked.answer == "rejected":
        raise IllegalTransition(state.phase, entry.kind, "nobody asked, or it was rejected already")
    if asked.answer and entry.kind is K.APPROVED:
        raise IllegalTransition(state.phase, entry.kind, "it was approved already")
    if body["digest"] != asked.digest:
        raise IllegalTransition(state.phase, entry.kind, "it answers another request")
    if entry.kind is K.APPROVED and entry.at_ms >= asked.expires_at_ms:
        raise IllegalTransition(state.phase, entry.kind, "the request for it has expired")
    answer = asked._replace(answer=entry.kind.value, by=body["by"], why=body["why"], answered_at_ms=entry.at_ms)
    return state._replace(phase=after, seq=entry.seq, approval=answer)


def _authorized(state: State, entry: Entry, after: Phase) -> State:
    if state.approval is not None and state.approval.answer != "approved":
        raise IllegalTransition(state.phase, entry.kind, "a person has not approved it")
    return state._replace(phase=after, seq=entry.seq, grant=entry.body.get("grant"))


def _dispatched(state: State, entry: Entry, after: Phase) -> State:
    body = entry.body
    if state.phase is P.REFUSED and (state.contradicted or not _was_unreachable(state)):
        raise IllegalTransition(state.phase, entry.kind, "refused for good")
    if body["send"] != len(state.sends) + 1:
        raise IllegalTransition(state.phase, entry.kind, f"send {body['send']} follows {len(state.sends)} sends")
    if any(send.status is SendStatus.RUNNING for send in state.sends):
        raise IllegalTransition(state.phase, entry.kind, "an earlier send is still running")
    budgets = tuple(body.get("budgets") or ())
    if budgets and state.reserved:
        raise IllegalTransition(state.phase, entry.kind, "its budgets are reserved already")
    send = Send(body["send"], body["session"], body.get("mark"), Instant.from_json(body["clock"]))
    return state._replace(
        phase=after,
        seq=entry.seq,
        sends=(*state.sends, send),
        reserved=budgets or state.reserved,
        grant=body.get("grant", state.grant),
        closing=None,
        dispatched_entry=entry,
    )


def _was_unreachable(state: State) -> bool:
    return state.closing is not None and state.closing.body.get("reason") == "unreachable"


def _ended(state: State, entry: Entry, number: int, **changes: Any) -> tuple[Send, ...]:
    """The sends with one of them changed by an entry about it."""
    send = state.send(number)
    if send is None or not send.may_have_landed:
        raise IllegalTransition(state.phase, entry.kind, f"send {number} is not one whose end is unknown")
    return tuple(s._replace(**changes) if s.number == number else s for s in state.sends)


def _since(send: Send | None, moment: Instant, fresh: bool) -> tuple[Instant, ...]:
    """The beginnings of a send's wait, one a boot. The first in a boot counts, unless what it rested on is void."""
    if send is None or fresh:
        return (moment,)
    known = any(earlier.boot == moment.boot for earlier in send.since)
    return send.since if known else (*send.since, moment)


def _unknown(state: State, entry: Entry, after: Phase) -> State:
    body = entry.body
    send = state.send(body["send"])
    # A send that was given up and has now come back may have been handed over later than was thought.
    fresh = send is not None and send.status is not SendStatus.UNKNOWN
    since = _since(send, Instant.from_json(body["clock"]), fresh)
    sends = _ended(state, entry, body["send"], status=SendStatus.UNKNOWN, since=since, lease_ms=0, cause=body["cause"])
    stored = bool(body.get("stored"))
    return state._replace(
        phase=after,
        seq=entry.seq,
        sends=sends,
        stored_error=state.stored_error or stored,
        shortcuts_off=state.shortcuts_off or stored,
    )


def _not_landed(state: State, entry: Entry, after: Phase) -> State:
    proof = entry.body["proof"]
    sends = state.sends
    for number in entry.body["sends"]:
        sends = _ended(
            state._replace(sends=sends),
            entry,
            number,
            status=SendStatus.NOT_LANDED,
            handed_over=proof not in NOT_HANDED_OVER,
            cause=proof,
        )
    off = state.shortcuts_off or proof in ENDS_SHORTCUTS
    return state._replace(phase=after, seq=entry.seq, sends=sends, shortcuts_off=off)


def _orphaned(state: State, entry: Entry, after: Phase) -> State:
    send = state.send(entry.body["send"])
    since = _since(send, Instant.from_json(entry.body["clock"]), False)
    sends = _ended(state, entry, entry.body["send"], status=SendStatus.ORPHANED, since=since, lease_ms=0)
    return state._replace(phase=after, seq=entry.seq, sends=sends)


def _sender_lost(state: State, entry: Entry, after: Phase) -> State:
    body = entry.body
    since = _since(state.send(body["send"]), Instant.from_json(body["clock"]), False)
    sends = _ended(state, entry, body["send"], status=SendStatus.LOST, since=since, lease_ms=body["lease_ms"])
    return state._replace(phase=after, seq=entry.seq, sends=sends)


def _committed(state: State, entry: Entry, after: Phase) -> State:
    number = entry.body.get("send")
    sends = state.sends
    if number is not None and state.send(number) is not None:
        sends = tuple(s._replace(status=SendStatus.LANDED) if s.number == number else s for s in sends)
    return state._replace(phase=after, seq=entry.seq, sends=sends, closing=entry)


def _refused(state: State, entry: Entry, after: Phase) -> State:
    if any(send.may_have_landed for send in state.sends):
        raise IllegalTransition(state.phase, entry.kind, "a send of it may have landed")
    if state.phase is P.REFUSED and not _was_unreachable(state):
        raise IllegalTransition(state.phase, entry.kind, "refused for good")
    return state._replace(phase=after, seq=entry.seq, closing=entry, reserved=())


def _ambiguous(state: State, entry: Entry, after: Phase) -> State:
    return state._replace(phase=after, seq=entry.seq, closing=entry)


def _resolved(state: State, entry: Entry, after: Phase) -> State:
    if state.phase is P.REFUSED and not state.contradicted:
        raise IllegalTransition(state.phase, entry.kind, "refused, and nothing contradicts that")
    reserved = state.reserved if entry.body["landed"] else ()
    return state._replace(phase=after, seq=entry.seq, closing=entry, reserved=reserved)


def _replaced(state: State, entry: Entry, after: Phase) -> State:
    if state.phase is P.REFUSED and state.contradicted:
        raise IllegalTransition(state.phase, entry.kind, "a late answer shows that it landed")
    if state.phase is P.RESOLVED and state.closing is not None and state.closing.body["landed"]:
        raise IllegalTransition(state.phase, entry.kind, "it landed")
    return state._replace(phase=after, seq=entry.seq, closing=entry)


def _released(state: State, entry: Entry, after: Phase) -> State:
    return state._replace(phase=after, seq=entry.seq, reserved=())


def _settled(state: State, entry: Entry, after: Phase) -> State:
    return state._replace(phase=after, seq=entry.seq, settled=entry)


def _late(state: State, entry: Entry, after: Phase) -> State:
    late = state.late if state.contradicted else entry  # evidence outweighs what comes after it
    return state._replace(phase=after, seq=entry.seq, late=late)


_HANDLERS = {
    K.PROPOSED: _proposed,
    K.APPROVAL_REQUESTED: _approval_requested,
    K.APPROVED: _answered,
    K.REJECTED: _answered,
    K.AUTHORIZED: _authorized,
    K.DISPATCHED: _dispatched,
    K.UNKNOWN: _unknown,
    K.NOT_LANDED: _not_landed,
    K.ORPHANED: _orphaned,
    K.SENDER_LOST: _sender_lost,
    K.COMMITTED: _committed,
    K.REFUSED: _refused,
    K.AMBIGUOUS: _ambiguous,
    K.RESOLVED: _resolved,
    K.REPLACED: _replaced,
    K.RELEASED: _released,
    K.SETTLED: _settled,
    K.LATE: _late,
}
