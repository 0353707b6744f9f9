"""What a call and a proposal do. The protocol is written once, as generators of commands (see ``commands``).

Decisions are the core's; entries reach the journal under its compare-and-set,
and whoever loses a race reads the effect again and starts over.
"""

from __future__ import annotations

from typing import Any

from .core.canonical import digest, effect_id, encode
from .core.decide import Checks
from .core.entries import Kind
from .core.states import Phase, State
from .definition import Request
from .errors import Archived, JournalError
from .journal.protocol import Conflict, OverBudget
from .outcome import Outcome, Reason, Status
from .reading import read_checks
from .recording import MAX_ROUNDS, Body, Steps
from .reporting import outcome_of_tombstone
from .settling import Settling
from .testing.crash import CrashPoint, reach


class EffectFlow(Settling):
    """One call, proposal or recovery of one effect."""

    def call(self, request: Request, context: dict[str, Any] | None = None) -> Steps:
        """A plain call: decide and send if it is new, else tell, refuse or recover what there is."""
        try:
            return (yield from self._call(request, context))
        except Archived as gone:
            return self._archived(gone, request)

    def _call(self, request: Request, context: dict[str, Any] | None) -> Steps:
        budgets = self.definition.budgets(request.payload)
        for _ in range(MAX_ROUNDS):
            state = yield from self.load()
            try:
                if state.phase is Phase.NEW:
                    return (yield from self._begin(request, budgets, context))
                break
            except Conflict:
                continue
        else:
            raise _lost_races(self.effect_id)
        state = yield from self.follow(state)
        if state.payload_digest != request.digest:
            return _conflicting((yield from self.settle(state)))
        return (yield from self.settle(state, called=True, budgets=budgets))

    def _begin(self, request: Request, budgets: list[dict[str, Any]], context: dict[str, Any] | None) -> Steps:
        """A new request: read, then record the decision and its first send in one commit, then send."""
        reading = yield from read_checks(
            self.journal, self.definition, self.effect_id, request.payload, request.digest, None
        )
        reach(CrashPoint.BEFORE_JOURNAL)
        if reading.checks is Checks.UNREADABLE:
            return self.in_flight(State(), Reason.UNREADABLE, request.key, detail=reading.why)
        decided_by = "grant" if reading.grant and reading.decided != reading.facts else "call"
        proposed = proposed_body(self.definition.name, request, 1, reading.decided, decided_by, context)
        if reading.checks is Checks.FAIL:
            state = yield from self.append(State(), [proposed, self.refused(reading)])
            return self.outcome(state)
        if self.definition.needs_approval(request.payload):
            state = yield from self.append(State(), self.ask(State(), [proposed]))
            reach(CrashPoint.AFTER_PROPOSED)
            return (yield from self.settle(state, called=True, budgets=budgets))
        slot = self.journal.new_slot(self.effect_id)
        dispatched = self.dispatched(State(), slot, budgets, False, None)
        bodies = [proposed, (Kind.AUTHORIZED, {"grant": reading.grant}), dispatched]
        try:
            state = yield from self.append(State(), bodies, slot)
        except OverBudget as over:
            state = yield from self.append(State(), [proposed, self.over_budget(over)])
            return self.outcome(state)
        state = yield from self.send(state, slot)
        return (yield from self.settle(state, called=True, budgets=budgets))

    def propose(self, request: Request, facts: dict[str, Any] | None, by: str | None) -> Steps:
        """Record a decision with the facts of this moment; a later call is held to them."""
        try:
            return (yield from self._propose(request, facts, by))
        except Archived as gone:
            return self._archived(gone, request)

    def _propose(self, request: Request, facts: dict[str, Any] | None, by: str | None) -> Steps:
        for _ in range(MAX_ROUNDS):
            state = yield from self.load()
            if state.phase is not Phase.NEW:
                state = yield from self.follow(state)
                outcome = self.outcome(state)
                return outcome if state.payload_digest == request.digest else _conflicting(outcome)
            reading = yield from read_checks(
                self.journal,
                self.definition,
                self.effect_id,
                request.payload,
                request.digest,
                facts,
                grant_may_be_missing=True,
            )
            if reading.checks is Checks.UNREADABLE:
                return self.in_flight(State(), Reason.UNREADABLE, request.key, detail=reading.why)
            decided = facts if facts is not None else reading.decided
            proposed = proposed_body(self.definition.name, request, 1, decided, "propose", {"by": by} if by else None)
            bodies = [proposed] if reading.checks is Checks.HOLD else [proposed, self.refused(reading)]
            if reading.checks is Checks.HOLD and self.definition.needs_approval(request.payload):
                bodies = self.ask(State(), bodies)
            try:
                state = yield from self.append(State(), bodies)
            except Conflict:
                continue
            reach(CrashPoint.AFTER_PROPOSED)
            return self.outcome(state)
        raise _lost_races(self.effect_id)

    def _archived(self, gone: Archived, request: Request) -> Outcome:
        """What a call is told whose request was over long ago: how it ended, or that it asks for something else."""
        outcome = outcome_of_tombstone(gone, self.definition.name, request.key)
        return outcome if gone.tombstone["payload_digest"] == request.digest else _conflicting(outcome)


def _conflicting(existing: Outcome) -> Outcome:
    """What a call with another payload is told: first of all what became of the recorded one."""
    return Outcome(
        Status.REFUSED,
        existing.effect_id,
        existing.effect,
        existing.request_key,
        reason=Reason.CONFLICTING_PAYLOAD,
        existing=existing,
    )


def _lost_races(effect_id: str) -> JournalError:
    return JournalError(f"effect {effect_id}: lost {MAX_ROUNDS} races in a row; try again")


def proposed_body(
    name: str,
    request: Request,
    decision: int,
    facts: dict[str, Any],
    decided_by: str,
    context: dict[str, Any] | None = None,
) -> Body:
    """The PROPOSED entry of a decision."""
    body: dict[str, Any] = {
        "effect": name,
        "key": request.key,
        "decision": decision,
        "payload": request.payload,
        "payload_digest": request.digest,
        "facts": facts,
        "decided_by": decided_by,
    }
    if context:
        body["context"] = context
    return Kind.PROPOSED, body


def next_decision(state: State) -> tuple[int, str]:
    """Return the number and the effect id of the decision that may follow this one."""
    number = state.decision + 1
    return number, effect_id(state.name, state.request_key, number)


def request_of(state: State, effect: str) -> Request:
    """Return the request that a recorded decision was made about."""
    text = encode(state.payload)
    return Request(dict(state.payload), text, digest(text), state.request_key, effect)
