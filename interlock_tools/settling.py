"""Brings an open effect to an end: looks, asks the core what may be done next, carries it out."""

from __future__ import annotations

import time

from .approving import Approving
from .backoff import pause_s
from .commands import Sleep
from .core.decide import Action, Checks, Sighting, Step, View, next_step, observe
from .core.entries import Instant, Kind
from .core.states import Phase, SendStatus, State, fold
from .errors import JournalError
from .journal.protocol import Conflict, Holder
from .outcome import Outcome, Reason
from .reading import Looked, look_up, read_checks, under_approval
from .recording import MAX_ROUNDS, Body, Steps
from .sending import Reservations, counted
from .testing.crash import CrashPoint, reach


class Settling(Approving):
    """The part of a flow that settles what is open."""

    pauses = 0
    failing: frozenset[str] = frozenset()
    failing_since: Instant | None = None
    """Since when the same premises have been failing, as far as this run has seen."""

    def settle(self, state: State, *, called: bool = False, budgets: Reservations = None) -> Steps:
        """Bring the effect to an end if that can be done now, and return its outcome.

        Args:
            state: what is known of it.
            called: the application asks for it now, so that what was only
                decided, or never left the machine, is sent.
            budgets: its reservations, where none is held yet; None: as declared.
        """
        if self.sends == 0 and state.phase is Phase.DISPATCHED:
            reach(CrashPoint.RECOVERY_STARTED)
        if called and self.sends == 0 and _unreachable(state):
            state = yield from self._reopen(state, budgets)
        looked = Looked()
        for _ in range(MAX_ROUNDS):
            if state.is_closed or (not called and _only_decided(state)):
                return self.outcome(state)
            try:
                result = yield from self.hold_for_approval(state, called)
                if result is None:
                    result = yield from self._round(state, looked, budgets)
            except Conflict:
                result = yield from self.load()
            if isinstance(result, Outcome):
                return result
            if result is not None:
                state = yield from self.follow(result)
                looked = Looked()
        raise JournalError(f"effect {self.effect_id} came to no end within {MAX_ROUNDS} rounds; try again")

    def _round(self, state: State, looked: Looked, budgets: Reservations) -> Steps:
        """One look and one step. Returns an outcome, a new state, or None to look further at the same."""
        now = self.journal.now()
        sightings, holder = self._sight(state)
        bodies = observe(state, sightings, now)
        view = View(
            state=fold(self.entries(state, bodies), state),
            contract=self.definition.contract_for(state.facts),
            now=now,
            evidence=looked.evidence is not None,
            checks=looked.reading.checks if looked.reading else Checks.NOT_READ,
            failing=looked.reading.failing if looked.reading else frozenset(),
            checks_at=self.failing_since,
            lookup=looked.lookup,
            lookup_began=looked.began,
        )
        step = next_step(view)
        if step.action is Action.READ_CHECKS:
            yield from self._read_again(state, looked)
            return None
        if step.action is Action.LOOK_UP:
            yield from look_up(self.journal, self.definition, self.effect_id, state.payload, looked, state.facts)
            reach(CrashPoint.RECOVERY_LOOKED_UP)
            return None
        if step.action is Action.SEND:
            assert looked.reading is not None
            return (yield from self.send_again(state, bodies, step, looked.reading, budgets))
        return (yield from self._carry_out(state, bodies, step, looked, holder))

    def _carry_out(self, state: State, bodies: list[Body], step: Step, looked: Looked, holder: Holder | None) -> Steps:
        action = step.action
        if action is Action.COMMIT:
            assert looked.evidence is not None
            evidence, by_us = looked.evidence
            bodies = [*bodies, (Kind.COMMITTED, {"evidence": evidence, "by_us": by_us, "via": "lookup"})]
        elif action is Action.REFUSE:
            assert looked.reading is not None
            bodies = [*bodies, *counted(step), self.refused(looked.reading)]
        elif action is Action.AMBIGUOUS:
            said = looked.lookup_why or self.said
            body = {"reason": step.reason} if said is None else {"reason": step.reason, "detail": said}
            bodies = [*bodies, (Kind.AMBIGUOUS, self.closing(body))]
        if bodies:
            state = yield from self.append(state, bodies)
        if action is Action.IN_FLIGHT:
            return (yield from self._wait(state, step, None, holder))
        if action is Action.WAIT:
            return (yield from self._wait(state, step, step.wait_ms / 1000, None))
        if action is Action.STAY:
            before = "; an earlier send of it may have taken effect" if state.maybe_landed else ""
            return self.in_flight(state, Reason.UNREADABLE, detail=looked.why + before)
        return self.outcome(state)

    def _sight(self, state: State) -> tuple[dict[int, Sighting], Holder | None]:
        sightings: dict[int, Sighting] = {}
        holder = None
        for send in state.sends:
            if send.status is SendStatus.RUNNING:
                sightings[send.number], holder = self.journal.sight(send)
        return sightings, holder

    def _wait(self, state: State, step: Step, left_s: float | None, holder: Holder | None) -> Steps:
        """Pause within what the caller allows, then look afresh; or say that it is in flight."""
        allowed = self.wait_until - time.monotonic()
        if allowed <= 0:
            reason = Reason.WAITING if left_s is not None else Reason.SENDING
            detail = self.said if reason is Reason.WAITING else None
            return self.in_flight(state, reason, detail=detail, holder=holder, retry_after_s=left_s)
        self.pauses += 1
        first, most = (0.02, 1.0) if left_s is None else (0.25, 10.0)
        pause = min(pause_s(self.pauses, first, most), allowed)
        what = "a live process is sending it" if left_s is None else "an earlier send of it may still land"
        yield Sleep(pause if left_s is None else min(pause, left_s), f"rule {step.rule}: {what}")
        return (yield from self.load())

    def _read_again(self, state: State, looked: Looked) -> Steps:
        """Read the checks again, held to the decision, and remember since when they fail."""
        reading = yield from read_checks(
            self.journal, self.definition, self.effect_id, state.payload, state.payload_digest, state.facts or {}
        )
        reading = looked.reading = under_approval(state, reading)
        if reading.checks is not Checks.FAIL:
            self.failing_since = None
        elif self.failing_since is None or self.failing != reading.failing:
            self.failing, self.failing_since = reading.failing, reading.at
        if state.sends:
            reach(CrashPoint.RECOVERY_CHECKED)

    def _reopen(self, state: State, budgets: Reservations) -> Steps:
        """Try again what never left the machine, with everything read again."""
        looked = Looked()
        yield from self._read_again(state, looked)
        reading = looked.reading
        assert reading is not None
        try:
            if reading.checks is Checks.FAIL:
                return (yield from self.append(state, [self.refused(reading)]))
            if reading.checks is Checks.HOLD:
                return (yield from self.send_again(state, [], Step(Action.SEND, 4), reading, budgets))
        except Conflict:
            return (yield from self.load())
        return state


def _only_decided(state: State) -> bool:
    """Whether it waits for the call that carries it out. What a person has approved waits for nobody any more."""
    if state.phase not in (Phase.PROPOSED, Phase.AUTHORIZED):
        return False
    return state.approval is None or state.approval.answer == ""


def _unreachable(state: State) -> bool:
    return (
        state.phase is Phase.REFUSED
        and state.closing is not None
        and state.closing.body.get("reason") == Reason.UNREACHABLE.value
        and not state.contradicted
    )
