"""What may be done next about an effect: ``observe``, then ``next_step``.

The caller gathers a view in a fixed order (the dead session's lock, marks,
checks, lookup), asks ``next_step``, and carries the step out under the
journal's compare-and-set. A view that lacks something is answered with a step
that asks for it, so nothing is read that is not needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from .entries import Instant, Kind
from .states import Phase, Send, SendStatus, State

FOREVER = -1
"""In place of a number of milliseconds: without end."""


@dataclass(frozen=True, slots=True)
class ServiceContract:
    """What a service offers, as plain values. Durations in milliseconds.

    Attributes:
        dedupes_ms: how long after the first send the same key never has a
            second effect; 0 for not at all, ``FOREVER`` for ever.
        enforces: names of premises that the service checks atomically with the
            send and that the effect's own landing makes false for ever.
        never_true_again: those of ``enforces`` that nobody can make true again.
        has_lookup: whether a read by effect id exists.
        lookup_lag_ms: how stale that read can be.
        send_timeout_ms: longest time from hand-over until a request has landed
            or never will.
        clock_skew_ms: how far clocks of different machines may disagree.
        strict: never act after a lost session except on evidence.
    """

    dedupes_ms: int = 0
    enforces: frozenset[str] = frozenset()
    never_true_again: frozenset[str] = frozenset()
    has_lookup: bool = False
    lookup_lag_ms: int = 0
    send_timeout_ms: int = 90_000
    clock_skew_ms: int = 60_000
    strict: bool = False


# -- what has been seen of a send that nobody recorded the end of ---------------------------------


class Sender(str, Enum):
    """What is known about the process of a running send."""

    LIVE = "live"
    DEAD = "dead"
    LOST = "lost"
    RETURNED = "returned"
    """Alive, but the send is over and its end could not be recorded."""


class Mark(str, Enum):
    """Whether a send was handed to the network."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Sighting:
    """One look at a running send. ``written``: when its bytes had all been written, where known."""

    sender: Sender
    mark: Mark = Mark.MAYBE
    written: Instant | None = None
    lease_ms: int = 0


def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> list[tuple[Kind, dict[str, Any]]]:
    """Return the entries that record what was seen of the sends, oldest first.

    A dead sender's send whose mark says "no" has not landed. Any other send of
    a dead sender is orphaned as of now, or as of when its bytes were written.
    Waits that began in another boot start afresh in this one. Once the effect
    has come to an end there is nothing to wait for, and nothing is recorded.
    """
    if state.phase is not Phase.DISPATCHED:
        return []
    found: list[tuple[Kind, dict[str, Any]]] = []
    for send in state.sends:
        if send.status is SendStatus.RUNNING and send.number in sightings:
            found.extend(_observe_running(send, sightings[send.number], now))
        elif send.status is SendStatus.ORPHANED and not _moment_in_boot(send, now):
            found.append((Kind.ORPHANED, {"send": send.number, "clock": now.to_json()}))
        elif send.status is SendStatus.UNKNOWN and not _moment_in_boot(send, now):
            found.append((Kind.UNKNOWN, {"send": send.number, "cause": send.cause, "clock": now.to_json()}))
        elif send.status is SendStatus.LOST and not _moment_in_boot(send, now):
            body = {"send": send.number, "clock": now.to_json(), "lease_ms": send.lease_ms}
            found.append((Kind.SENDER_LOST, body))
    return found


def _observe_running(send: Send, seen: Sighting, now: Instant) -> list[tuple[Kind, dict[str, Any]]]:
    if seen.sender is Sender.LIVE:
        return []
    if seen.sender is Sender.LOST:
        return [(Kind.SENDER_LOST, {"send": send.number, "clock": now.to_json(), "lease_ms": seen.lease_ms})]
    believed = not (send.mark or {}).get("maybe")
    if believed and seen.mark is Mark.NO:
        return [(Kind.NOT_LANDED, {"sends": [send.number], "proof": "mark"})]
    written = seen.written if believed else None
    since = written if written is not None and written.boot == now.boot else now
    if seen.sender is Sender.RETURNED:
        return [(Kind.UNKNOWN, {"send": send.number, "cause": "unrecorded", "clock": since.to_json()})]
    return [(Kind.ORPHANED, {"send": send.number, "clock": since.to_json()})]


def _moment_in_boot(send: Send, now: Instant) -> Instant | None:
    """When the wait for this send began, on a clock that ``now`` can be compared with."""
    return next((moment for moment in send.since if moment.boot == now.boot), None)


# -- the view ------------------------------------------------------------------------------------------


class Checks(str, Enum):
    """What reading the premises and the grant again showed."""

    NOT_READ = "not_read"
    HOLD = "hold"
    FAIL = "fail"
    UNREADABLE = "unreadable"


class Lookup(str, Enum):
    """What the lookup answered."""

    NOT_ASKED = "not_asked"
    NOT_FOUND = "not_found"
    UNREADABLE = "unreadable"
    CANNOT_KNOW = "cannot_know"
    """The service answered, and its answer neither shows the effect nor rules it out."""


@dataclass(frozen=True, slots=True)
class View:
    """Everything a decision about one open effect rests on.

    Attributes:
        state: the fold of the effect's entries and of what ``observe`` returned.
        contract: what the service offers.
        now: when the view was gathered.
        evidence: whether evidence was found, by a lookup or otherwise.
        checks: premises and grant, read again.
        failing: names of the premises that fail; empty if it is the grant.
        checks_at: when the reading of the checks ended; while the same premise goes
            on failing, the end of the first such reading.
        lookup: the lookup's answer, where it is not evidence.
        lookup_began: when that lookup began.
    """

    state: State
    contract: ServiceContract
    now: Instant
    evidence: bool = False
    checks: Checks = Checks.NOT_READ
    failing: frozenset[str] = frozenset()
    checks_at: Instant | None = None
    lookup: Lookup = Lookup.NOT_ASKED
    lookup_began: Instant | None = None


# -- steps --------------------------------------------------------------------------------------------


class Action(str, Enum):
    """What to do next."""

    NOTHING = "nothing"
    """The effect is closed, or ambiguous and nothing new was found."""
    COMMIT = "commit"
    IN_FLIGHT = "in_flight"
    """A send of it is running in a live session."""
    READ_CHECKS = "read_checks"
    STAY = "stay"
    """Something could not be read; leave the effect open as it is."""
    SEND = "send"
    REFUSE = "refuse"
    LOOK_UP = "look_up"
    WAIT = "wait"
    AMBIGUOUS = "ambiguous"


@dataclass(frozen=True, slots=True)
class Step:
    """One step, which rule it comes from, and its particulars.

    Attributes:
        action: what to do.
        rule: number of the rule of recovery that decided, for the record.
        resend: for SEND: an earlier send may have landed (same key, same payload).
        not_landed: for SEND and REFUSE: sends that a counted "not found" proves not to have landed.
        wait_ms: for WAIT: how long until the next view can count.
        reason: for AMBIGUOUS: ``no_evidence``, ``stored_error`` or ``sender_lost``.
    """

    action: Action
    rule: int
    resend: bool = False
    not_landed: tuple[int, ...] = field(default=())
    wait_ms: int = 0
    reason: str = ""


def next_step(view: View) -> Step:
    """Return what to do next about an effect. The first rule that fits wins. Total over its inputs."""
    state = view.state
    if state.is_closed or state.phase is Phase.NEW:
        return Step(Action.NOTHING, 0)
    if view.evidence:
        return Step(Action.COMMIT, 1)
    if state.phase is Phase.AMBIGUOUS:
        may_look = view.contract.has_lookup and view.lookup is Lookup.NOT_ASKED
        return Step(Action.LOOK_UP if may_look else Action.NOTHING, 1)
    if any(send.status is SendStatus.RUNNING for send in state.sends):
        return Step(Action.IN_FLIGHT, 2)
    if view.checks is Checks.NOT_READ:
        return Step(Action.READ_CHECKS, 3)
    maybe = state.maybe_landed
    if view.checks is Checks.UNREADABLE:
        may_look = bool(maybe) and view.contract.has_lookup and view.lookup is Lookup.NOT_ASKED
        return Step(Action.LOOK_UP if may_look else Action.STAY, 3)
    holds = view.checks is Checks.HOLD
    if not maybe:
        return Step(Action.SEND if holds else Action.REFUSE, 4)
    if holds and not state.shortcuts_off:
        if _dedupes_now(view):
            return Step(Action.SEND, 5, resend=True)
        if view.contract.enforces and not _any_lost(maybe):
            return Step(Action.SEND, 6, resend=True)
        lookup_can_tell = view.contract.has_lookup and view.lookup is not Lookup.CANNOT_KNOW
        if view.contract.enforces and not lookup_can_tell and not view.contract.strict:
            left = _landing_left_ms(view)
            return Step(Action.WAIT, 6, wait_ms=left) if left > 0 else Step(Action.SEND, 6, resend=True)
    if view.contract.has_lookup:
        return _by_lookup(view, holds)
    return Step(Action.AMBIGUOUS, 8, reason=_why_ambiguous(state))


def _by_lookup(view: View, holds: bool) -> Step:
    """Rule 7: evidence was not found; does that count?"""
    if view.lookup is Lookup.NOT_ASKED:
        return Step(Action.LOOK_UP, 7)
    if view.lookup is Lookup.UNREADABLE or view.lookup_began is None:
        return Step(Action.STAY, 7)
    left = _until_counted_ms(view, holds)
    if left > 0:
        return Step(Action.WAIT, 7, wait_ms=left)
    state = view.state
    unclear = view.lookup is Lookup.CANNOT_KNOW or state.stored_error
    if unclear or (view.contract.strict and _any_lost(state.maybe_landed)):
        return Step(Action.AMBIGUOUS, 7, reason=_why_ambiguous(state))
    numbers = tuple(send.number for send in state.maybe_landed)
    return Step(Action.SEND if holds else Action.REFUSE, 7, not_landed=numbers)


def _until_counted_ms(view: View, holds: bool) -> int:
    """How long after the lookup began a lookup would have to begin for its "not found" to count; 0 if it counts."""
    assert view.lookup_began is not None
    contract = view.contract
    began = view.lookup_began
    left = max(_landing_end_ms(send, began, contract) for send in view.state.maybe_landed)
    final = contract.enforces & contract.never_true_again
    failed_at = view.checks_at
    if not holds and failed_at is not None and failed_at.boot == began.boot and view.failing & final:
        # The service refuses every send of it since that reading, and nobody can change that.
        left = min(left, failed_at.boottime_ms - began.boottime_ms)
    return max(0, left + contract.lookup_lag_ms)


def _landing_end_ms(send: Send, at: Instant, contract: ServiceContract) -> int:
    """How long after ``at`` this send may still land. Negative where that is past."""
    began = _moment_in_boot(send, at)
    elapsed = at.boottime_ms - began.boottime_ms if began is not None else 0
    return contract.send_timeout_ms + send.lease_ms - elapsed


def _landing_left_ms(view: View) -> int:
    return max(0, max(_landing_end_ms(send, view.now, view.contract) for send in view.state.maybe_landed))


def _any_lost(sends: tuple[Send, ...]) -> bool:
    return any(send.status is SendStatus.LOST for send in sends)


def _dedupes_now(view: View) -> bool:
    contract = view.contract
    if contract.dedupes_ms == 0:
        return False
    lost = [send for send in view.state.maybe_landed if send.status is SendStatus.LOST]
    if lost and contract.strict:
        return False
    if contract.dedupes_ms == FOREVER:
        return True
    if any(send.lease_ms + contract.send_timeout_ms >= contract.dedupes_ms for send in lost):
        return False
    # What was dispatched after the window is not held to it by its hook; it may go out when the key is forgotten.
    if any(dedup_window_left_ms(view.state, contract, send.dispatched) <= 0 for send in lost):
        return False
    return dedup_window_left_ms(view.state, contract, view.now) > 0


def dedup_window_left_ms(state: State, contract: ServiceContract, now: Instant) -> int:
    """How long the service is still sure to answer this effect's key with its first answer, in milliseconds.

    Counted from the first send that may have been handed over, less what clocks
    may disagree by and less the time that a request may travel. 0 or less: not
    any more. ``FOREVER`` where the key never expires.
    """
    if contract.dedupes_ms == FOREVER:
        return FOREVER
    first = next((send.dispatched for send in state.sends if send.handed_over), now)
    if first.boot == now.boot:
        elapsed, behind = now.boottime_ms - first.boottime_ms, 0
    else:
        elapsed, behind = now.wall_ms - first.wall_ms, contract.clock_skew_ms
    if elapsed < -behind:
        return 0  # a clock was set back: how much of the window is left cannot be known
    return contract.dedupes_ms - contract.clock_skew_ms - contract.send_timeout_ms - elapsed


def _why_ambiguous(state: State) -> str:
    if state.stored_error:
        return "stored_error"
    return "sender_lost" if _any_lost(state.maybe_landed) else "no_evidence"
