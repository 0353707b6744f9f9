"""What every flow over one effect shares: read it, append to it, tell its outcome."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Sequence
from typing import Any

from .commands import Command, Work
from .core.canonical import encode
from .core.entries import Entry, Kind
from .core.states import IllegalTransition, Phase, State, fold
from .definition import Definition
from .errors import JournalError, describe
from .journal.protocol import Conflict, Holder, Journal, OverBudget, SendSlot, Write
from .observer import Observation
from .outcome import Outcome, Reason, Status
from .premises import Reading
from .reporting import outcome_of
from .testing.crash import CrashPoint, reach

MAX_ROUNDS = 1000
"""Bound on the rounds of one call or recovery; every round waits, reads or writes something."""

Body = tuple[Kind, dict[str, Any]]
Steps = Generator[Command, Any, Any]


class Contradiction(JournalError):
    """The entries of one effect do not follow from each other: somebody else wrote to the journal."""


class Recorder:
    """One run over one effect: its journal, what it is, and how long the caller allows.

    Args:
        journal: where its entries are.
        definition: what it is.
        effect_id: which one.
        wait_s: how long to wait for what others have to finish (a live sender, a request that may still land).
        retry_s: how long to go on after rate limits and answers that say nothing, under the same key.
        at_recovery: whether it was taken up by recovery.
    """

    observation: Observation | None = None
    """Who is told what this run appends, if anybody is."""

    def __init__(
        self,
        journal: Journal,
        definition: Definition,
        effect_id: str,
        *,
        wait_s: float = 0.0,
        retry_s: float = 10.0,
        at_recovery: bool = False,
    ) -> None:
        self.journal = journal
        self.definition = definition
        self.effect_id = effect_id
        self.retry_s = retry_s
        self.at_recovery = at_recovery
        self.wait_until = time.monotonic() + wait_s if wait_s > 0 else 0.0
        self.retry_after_s: float | None = None
        """What the service asked to wait before the next try, in seconds."""

    def load(self) -> Steps:
        """Read the effect and fold its entries. Raises ``Contradiction``."""
        entries = yield Work(self.journal.entries, (self.effect_id,))
        try:
            return fold(entries)
        except (IllegalTransition, KeyError, TypeError) as error:
            raise Contradiction(
                f"effect {self.effect_id}: its entries contradict each other ({describe(error)}). Nothing was sent; "
                "have a person look at the service, and restore the journal from a copy"
            ) from error

    def follow(self, state: State) -> Steps:
        """Go on to the decision that replaced this one, if any did."""
        for _ in range(MAX_ROUNDS):
            if state.phase is not Phase.REPLACED or state.closing is None:
                return state
            self.effect_id = state.closing.body["effect_id"]
            state = yield from self.load()
        raise JournalError(f"effect {self.effect_id}: a chain of more than {MAX_ROUNDS} decisions")

    def entries(self, state: State, bodies: Sequence[Body]) -> tuple[Entry, ...]:
        at_ms = self.journal.now().wall_ms
        return tuple(
            Entry(self.effect_id, state.seq + index, kind, at_ms, body)
            for index, (kind, body) in enumerate(bodies, start=1)
        )

    def append(self, state: State, bodies: Sequence[Body], slot: SendSlot | None = None) -> Steps:
        """Append entries in one durable commit and return the state after them.

        ``slot`` is that of a send that the entries dispatch; it is given back if they are refused.
        """
        entries = self.entries(state, [self._watched(kind, body) for kind, body in bodies])
        after = fold(entries, state)
        written = False
        try:
            yield Work(self.journal.append, ((Write(self.effect_id, state.seq, entries),),))
            written = True
        except (Conflict, OverBudget):
            if slot is not None:
                slot.close()
            slot = None
            raise
        finally:
            if slot is not None and not written:
                slot.give_up()  # whether it was recorded is not known
        if self.observation is not None:
            self.observation.appended(state, after)
        if after.phase is Phase.COMMITTED and state.phase is not Phase.COMMITTED:
            reach(CrashPoint.AFTER_COMMITTED)
        return after

    def _watched(self, kind: Kind, body: dict[str, Any]) -> Body:
        """Have somebody look at what becomes of it; and what is ambiguous told to those who can settle it."""
        if kind is Kind.AMBIGUOUS or (kind is Kind.COMMITTED and self.definition.watch is not None):
            return kind, {**body, "look_at_ms": self.journal.now().wall_ms}
        return kind, body

    def refused(self, reading: Reading) -> Body:
        body: dict[str, Any] = {"reason": reading.reason, "facts": reading.facts}
        if reading.changes:
            body["changes"] = reading.changes
        if reading.grant is not None:
            body["grant"] = reading.grant  # under which authority it would have been done
        if reading.why:
            body["detail"] = reading.why
        return Kind.REFUSED, self.closing(body)

    def over_budget(self, over: OverBudget) -> Body:
        detail = f"{over.used} of {over.limit} is taken, {over.amount} more does not fit"
        body = {"reason": Reason.OVER_BUDGET.value, "code": over.budget, "detail": detail}
        return Kind.REFUSED, self.closing(body)

    def closing(self, body: dict[str, Any]) -> dict[str, Any]:
        if self.at_recovery:
            body["at_recovery"] = True
        return body

    def outcome(self, state: State) -> Outcome:
        outcome = outcome_of(self.effect_id, state)
        return outcome.during_recovery() if self.at_recovery else outcome

    def in_flight(
        self,
        state: State,
        reason: Reason,
        request_key: str = "",
        *,
        detail: str | None = None,
        holder: Holder | None = None,
        retry_after_s: float | None = None,
    ) -> Outcome:
        who = None
        if holder is not None:
            who = {"host": holder.host, "pid": holder.pid, "session": holder.session, "started_ms": holder.started_ms}
        return Outcome(
            Status.IN_FLIGHT,
            self.effect_id if state.seq else "",
            self.definition.name,
            state.request_key or request_key,
            reason=reason,
            detail=detail,
            holder=who,
            retry_after_s=retry_after_s if retry_after_s is not None else self.retry_after_s,
            at_recovery=self.at_recovery,
        )


def copy_of(payload: dict[str, Any]) -> dict[str, Any]:
    """A copy that a function may change without changing what was journalled."""
    if all(type(value) in (str, int, bool) or value is None for value in payload.values()):
        return dict(payload)
    copied: dict[str, Any] = json.loads(encode(payload))
    return copied
