"""What a person decides: approve, reject, settle what is ambiguous, decide a refusal again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from .approving import rejected
from .commands import run
from .core.approval import Standing, approval_digest, standing
from .core.decide import Checks
from .core.entries import Entry, Kind
from .core.states import IllegalTransition, Phase, State, fold
from .definition import Definition
from .effect import words
from .errors import BadArguments, NotDecidable, NotRegistered
from .flow import next_decision, proposed_body, request_of
from .journal.protocol import Conflict, Write
from .reading import read_checks
from .recording import Body

if TYPE_CHECKING:
    from .gate import Gate


@dataclass(frozen=True)
class ApprovalRequest:
    """What a person is asked to approve.

    Attributes:
        effect_id: the effect.
        effect: its name.
        request_key: the request reference.
        arguments: what would be sent.
        facts: what the decision rests on, as it was read.
        digest: names all of these; an approval is of this digest.
        asked_at, expires_at: UTC. No answer, and no send, counts after ``expires_at``.
        answer: ``approved``, ``rejected``, or empty while nobody has answered.
        by, why: who answered, and why.
    """

    effect_id: str
    effect: str
    request_key: str
    arguments: dict[str, Any]
    facts: dict[str, Any]
    digest: str
    asked_at: datetime
    expires_at: datetime
    answer: str = ""
    by: str = ""
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON values."""
        plain = {name: getattr(self, name) for name in ("effect_id", "effect", "request_key", "arguments", "facts")}
        plain["digest"] = self.digest
        for name in ("asked_at", "expires_at"):
            plain[name] = getattr(self, name).isoformat(timespec="seconds").replace("+00:00", "Z")
        return {**plain, **({"answer": self.answer, "by": self.by, "why": self.why} if self.answer else {})}


def asked(effect_id: str, state: State) -> ApprovalRequest | None:
    """Return what was asked for an effect; None if nothing was."""
    approval = state.approval
    if approval is None:
        return None
    return ApprovalRequest(
        effect_id,
        state.name,
        state.request_key,
        dict(state.payload),
        dict(state.facts or {}),
        approval.digest,
        _utc(approval.asked_at_ms),
        _utc(approval.expires_at_ms),
        approval.answer,
        approval.by,
        approval.why,
    )


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)


def answer(gate: Gate, effect_id: str, approve: bool, by: str, why: str, digest: str | None) -> None:
    """Record a person's answer. Raises ``NotDecidable`` if nothing waits for it, or it was for something else."""
    by, why = words("by", by), words("why", why)
    state = state_of(gate, effect_id)
    body = {"digest": _asked_digest(gate, effect_id, state, approve, digest), "by": by, "why": why}
    bodies = [(Kind.APPROVED, body)] if approve else [(Kind.REJECTED, body), rejected(by, why)]
    write(gate, effect_id, state, bodies)


def approve_edited(gate: Gate, effect_id: str, arguments: Mapping[str, Any], by: str, why: str) -> str:
    """Reject what was asked and approve it with other arguments, as the next decision. Returns its effect id."""
    by, why = words("by", by), words("why", why)
    state = state_of(gate, effect_id)
    old = _asked_digest(gate, effect_id, state, False, None)
    definition = registered(gate, state)
    request = definition.request((), {**state.payload, **arguments})
    if request.key != state.request_key:
        raise BadArguments(f"these arguments name request {request.key!r}, the effect is of {state.request_key!r}")
    if request.digest == state.payload_digest:
        raise BadArguments("these are the arguments that were asked for; approve them as they are")
    number, new_id = next_decision(state)
    facts = _read_facts(gate, definition, request, new_id)
    now_ms = gate.journal.now().wall_ms
    proposed = proposed_body(definition.name, request, number, facts, "redecide", {"by": by})
    digest = approval_digest(fold([Entry(new_id, 1, proposed[0], now_ms, proposed[1])]))
    new: list[Body] = [
        proposed,
        (Kind.APPROVAL_REQUESTED, {"digest": digest, "expires_at_ms": now_ms + definition.approval_expires_ms}),
        (Kind.APPROVED, {"digest": digest, "by": by, "why": why}),
    ]
    edited = f"approved with other arguments, as effect {new_id} ({why})"
    bodies = [
        (Kind.REJECTED, {"digest": old, "by": by, "why": edited}),
        rejected(by, edited),
        (Kind.REPLACED, {"effect_id": new_id, "by": by}),
    ]
    write(gate, effect_id, state, bodies, (new_id, new))
    return new_id


def _asked_digest(gate: Gate, effect_id: str, state: State, approve: bool, seen: str | None) -> str:
    """The digest that an answer is of. Raises ``NotDecidable`` where none is wanted."""
    stands = standing(state, gate.journal.now().wall_ms)
    fits = {Standing.AWAITING} if approve else {Standing.AWAITING, Standing.APPROVED, Standing.EXPIRED}
    if state.phase is not Phase.PROPOSED or state.approval is None or stands not in fits:
        how = {
            Standing.NOT_ASKED: "nobody has asked for an approval of it",
            Standing.APPROVED: "it is approved already",
            Standing.REJECTED: "it was rejected already",
            Standing.EXPIRED: "the request for its approval has expired; the next call of it asks anew",
        }.get(stands, "what was asked is not what would be sent")
        if state.phase is not Phase.PROPOSED:
            how = f"it is {state.phase.value} already"
        raise NotDecidable(f"effect {effect_id} cannot be {'approved' if approve else 'rejected'}: {how}")
    if seen is not None and seen != state.approval.digest:
        raise NotDecidable(f"effect {effect_id} is not what was seen (digest {seen!r:.80}); look at it again")
    return state.approval.digest


def resolve(gate: Gate, effect_id: str, landed: bool, by: str, why: str) -> None:
    """Settle an ambiguous effect."""
    if type(landed) is not bool:
        raise BadArguments(f"landed must be True or False, not {landed!r}")
    body = {"landed": landed, "by": words("by", by), "why": words("why", why)}
    write(gate, effect_id, state_of(gate, effect_id), [(Kind.RESOLVED, body)])


def redecide(
    gate: Gate,
    definition: Definition | None,
    effect_id: str,
    by: str,
    facts: dict[str, Any] | None,
    arguments: Mapping[str, Any] | None,
) -> str:
    """Decide a refused request again. Returns the new decision's effect id.

    Without ``definition`` and facts, the new decision rests on what was read when it was refused.
    """
    by = words("by", by)
    state = state_of(gate, effect_id)
    if definition is not None and state.name != definition.name:
        raise NotDecidable(f"effect {effect_id} is a {state.name!r}, not a {definition.name!r}")
    request = request_of(state, effect_id)
    if arguments is not None:
        asked_for = (definition or registered(gate, state)).request((), dict(arguments))
        if asked_for.key != request.key:
            raise BadArguments(f"these arguments name request {asked_for.key!r}, the effect is of {request.key!r}")
        request = asked_for
    number, new_id = next_decision(state)
    if facts is None:
        facts = (
            facts_at_refusal(effect_id, state) if definition is None else _read_facts(gate, definition, request, new_id)
        )
    proposed = proposed_body(state.name, request, number, facts, "redecide", {"by": by})
    write(gate, effect_id, state, [(Kind.REPLACED, {"effect_id": new_id, "by": by})], (new_id, [proposed]))
    return new_id


def facts_at_refusal(effect_id: str, state: State) -> dict[str, Any]:
    """Return what was read when an effect was refused, or last read before. Raises ``NotDecidable``."""
    for entry in (state.closing, state.dispatched_entry, state.decided):
        if entry is not None and isinstance(entry.body.get("facts"), dict):
            return dict(entry.body["facts"])
    raise NotDecidable(f"effect {effect_id} holds no reading of its premises; say on which facts it is decided")


def _read_facts(gate: Gate, definition: Definition, request: Any, effect_id: str) -> dict[str, Any]:
    flow = read_checks(
        gate.journal, definition, effect_id, request.payload, request.digest, None, grant_may_be_missing=True
    )
    reading = run(flow)
    if reading.checks is Checks.UNREADABLE:
        raise NotDecidable(f"the premises could not be read ({reading.why}); decide again when they can be")
    facts: dict[str, Any] = reading.decided
    return facts


def registered(gate: Gate, state: State) -> Definition:
    """Return the declaration of an effect. Raises ``NotRegistered``."""
    definition = gate.definition(state.name)
    if definition is None:
        raise NotRegistered(f"effect {state.name!r} is not declared in this process; import the code that does")
    return definition


def state_of(gate: Gate, effect_id: str) -> State:
    """Return the state of an effect. Raises ``NotDecidable`` if there is none."""
    entries = gate.journal.entries(effect_id)
    if not entries:
        raise NotDecidable(f"there is no effect {effect_id} in this journal")
    return fold(entries)


def write(
    gate: Gate, effect_id: str, state: State, bodies: list[Body], then: tuple[str, list[Body]] | None = None
) -> None:
    """Append to an effect, and to a new one, in one transaction. Raises ``NotDecidable`` where it must not be."""
    at_ms = gate.journal.now().wall_ms
    try:
        entries = _entries(effect_id, state.seq, at_ms, bodies)
        after = fold(entries, state)
        writes = [Write(effect_id, state.seq, entries)]
        if then is not None:
            new_id, more = then
            new = _entries(new_id, 0, at_ms, more)
            fold(new)
            writes.append(Write(new_id, 0, new))
        gate.journal.append(writes)
    except IllegalTransition as error:
        next_step = _NEXT.get(error.kind, "Look at it again.")
        raise NotDecidable(
            f"effect {effect_id} is {state.phase.value}, so it cannot be {error.kind.value}. {next_step}"
        ) from None
    except Conflict:
        raise NotDecidable(f"effect {effect_id} changed at the same moment; look at it and decide again") from None
    if gate.observer is not None:
        gate.observer.decided(effect_id, state, after)


def _entries(effect_id: str, seq: int, at_ms: int, bodies: list[Body]) -> tuple[Entry, ...]:
    return tuple(Entry(effect_id, seq + index, kind, at_ms, body) for index, (kind, body) in enumerate(bodies, 1))


_NEXT = {
    Kind.RESOLVED: "A person settles what is ambiguous; recover() settles what is open.",
    Kind.REPLACED: "Only a refused effect is decided again, once no send of it can land any more.",
}
