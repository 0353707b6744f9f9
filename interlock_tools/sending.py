"""Makes sends: records each before it is made, and what its end proves after it."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from .backoff import pause_s
from .commands import Call, Sleep, Work
from .core.decide import FOREVER, Step, dedup_window_left_ms
from .core.ends import End, Ending, conclude
from .core.entries import Kind
from .core.states import Phase, SendStatus, State, fold
from .errors import Archived, BadArguments, JournalError, NotRecorded, describe
from .journal.protocol import Conflict, OverBudget, SendSlot
from .on_send import OnSend, end_of_error, end_of_result, retry_after_s
from .outcome import Reason
from .premises import Reading
from .recording import Body, Recorder, Steps, copy_of
from .testing.crash import CrashPoint, reach
from .witnessed import hold_back, waits_for_witnesses

log = logging.getLogger("interlock_tools")

Reservations: TypeAlias = "Sequence[dict[str, Any]] | None"

MAX_SENDS = 8
"""Bound on the sends that one call or recovery makes for one effect."""


class Sender(Recorder):
    """The part of a flow that sends."""

    sends = 0
    """How many sends this run has made."""
    retry_until = 0.0
    rested = False
    """Whether the pause before the next send is over."""
    on_send: OnSend | None = None
    """The hook of the latest send."""
    said: str | None = None
    """What the end of the latest send said, in words."""
    cancelled = False

    def cancel(self) -> None:
        """Say that the caller has gone: what has not been handed over is not sent any more."""
        self.cancelled = True
        if self.on_send is not None:
            self.on_send.revoke()

    def pause_before_send(self, state: State) -> float | None:
        """How long to pause before the next send, in seconds; None if this run has done enough."""
        if self.sends == 0 or self.rested:
            return 0.0
        if state.sends[-1].cause == "no_evidence":
            return None  # the send function returned nothing that counts, and would again
        now = time.monotonic()
        if not self.retry_until:
            self.retry_until = max(now + self.retry_s, self.wait_until)
        asked = self.retry_after_s
        pause = asked if asked is not None else pause_s(self.sends)
        return pause if self.sends < MAX_SENDS and now + pause <= self.retry_until else None

    def send_again(
        self, state: State, bodies: list[Body], step: Step, reading: Reading, budgets: Reservations
    ) -> Steps:
        """Record a further send together with ``bodies``, and make it.

        Returns the state after it; or, where it has to rest first, the state to
        look at again, or an outcome.
        """
        pause = self.pause_before_send(state)
        if pause is None:
            if bodies:
                state = yield from self.append(state, bodies)
            limited = state.sends[-1].cause == "rate_limited" and not state.maybe_landed
            return self.in_flight(state, Reason.RATE_LIMITED if limited else Reason.WAITING, detail=self.said)
        if pause > 0:
            yield Sleep(pause, "before another send of it")
            self.rested = True
            return (yield from self.load())
        if state.phase is Phase.PROPOSED:
            bodies = [*bodies, (Kind.AUTHORIZED, {"grant": reading.grant})]
        bodies = [*bodies, *counted(step)]
        before = fold(self.entries(state, bodies), state)
        if before.reserved or before.maybe_landed:
            budgets = ()  # a resend spends nothing anew
        elif budgets is None:
            try:
                budgets = self.definition.budgets(state.payload)
            except BadArguments as error:
                return self.in_flight(state, Reason.UNREADABLE, detail=describe(error))
        slot = self.journal.new_slot(self.effect_id)
        dispatched = self.dispatched(before, slot, budgets, step.resend, reading)
        try:
            state = yield from self.append(state, [*bodies, dispatched], slot)
        except OverBudget as over:
            return (yield from self.append(state, [*bodies, self.over_budget(over)]))
        return (yield from self.send(state, slot))

    def dispatched(
        self,
        state: State,
        slot: SendSlot,
        budgets: Sequence[dict[str, Any]],
        resend: bool,
        reading: Reading | None,
    ) -> Body:
        body: dict[str, Any] = {
            "send": len(state.sends) + 1,
            "session": slot.session,
            "mark": slot.mark if self.definition.declared.marks or slot.mark is None else {**slot.mark, "maybe": True},
            "clock": self.journal.now().to_json(),
        }
        if budgets:
            body["budgets"] = list(budgets)
        if resend:
            body["resend"] = True
        if reading is not None:  # a first send rests on the reading of its decision
            body["facts"] = reading.facts
            body["grant"] = reading.grant
        return Kind.DISPATCHED, body

    def send(self, state: State, slot: SendSlot) -> Steps:
        """Make the send that was just recorded, and record its end. Returns the state after it."""
        pid = os.getpid()
        number = len(state.sends)
        definition = self.definition
        on_send = self.on_send = OnSend(self.journal, slot, self._deadline_ms(state))
        if self.cancelled:
            on_send.revoke()
        self.sends += 1
        self.rested = False
        self.retry_after_s = None
        arguments = copy_of(state.payload)
        if definition.takes_key:
            arguments["idempotency_key"] = self.effect_id
        if definition.takes_on_send:
            arguments["on_send"] = on_send
        if definition.takes_facts:
            arguments["facts"] = copy_of(state.facts or {})
        raised: BaseException | None = None
        recorded = False
        try:
            try:
                reach(CrashPoint.AFTER_DISPATCHED)
                end = (yield from hold_back(self, state)) if waits_for_witnesses(self.journal) else None
                if end is None:
                    if not definition.takes_on_send:
                        on_send()
                    end = end_of_result((yield Call(definition.function, arguments)))
            except GeneratorExit:
                raise
            except BaseException as error:
                raised = error
                self.retry_after_s = retry_after_s(error)
                end = end_of_error(error, definition.declared.marks and not on_send.handed_over)
            self.said = end.detail
            if os.getpid() != pid:  # the send function has forked, and its end is the parent's to record
                recorded = True
                raise NotRecorded(self.effect_id, "this is a fork of the process that sends it; that one records it")
            if end.stored and not self._stored_for_all(state, on_send):
                end = replace(end, stored=False)
            reach(CrashPoint.AFTER_RESPONSE)
            state = yield from self._record_end(state, number, end)
            recorded = True
        finally:
            if not recorded:
                slot.give_up()
            elif not state.is_open:
                slot.close()
        if raised is not None and not isinstance(raised, Exception):
            raise raised
        return state

    def _deadline_ms(self, state: State) -> int | None:
        """Until when this send may rely on the service to know its key, on this boot's clock; None without end."""
        contract = self.definition.contract_for(state.facts)
        if contract.dedupes_ms in (0, FOREVER):
            return None
        now = self.journal.now()
        left = dedup_window_left_ms(state, contract, now)
        entry = state.dispatched_entry
        relies_on_it = entry is not None and bool(entry.body.get("resend")) and not contract.enforces
        began_in_it = dedup_window_left_ms(state, contract, state.sends[-1].dispatched) > 0
        if not relies_on_it and not began_in_it:
            return None  # it was decided on other grounds
        return now.boottime_ms + left

    def _stored_for_all(self, state: State, on_send: OnSend) -> bool:
        """Whether the answer that the service stored for the key speaks for every send under it.

        Not where the key may have been forgotten since the first one: then it
        is the answer to those after that.
        """
        return self.definition.contract_for(state.facts).dedupes_ms == FOREVER or on_send.deadline_ms is not None

    def _have_it_looked_at(self) -> Steps:
        """Put it on the list of what somebody has to look at. Its record says so too, whatever becomes of the list."""
        try:
            yield Work(self.journal.look_at, (self.effect_id, self.journal.now().wall_ms))
        except JournalError as error:
            log.error("effect %s: it could not be put before a person: %s", self.effect_id, describe(error))

    def _record_end(self, state: State, number: int, end: End) -> Steps:
        """Append what the end of a send proves. Another's entries in between are taken into account."""
        failure: JournalError | None = None
        for attempt in range(1, 6):
            bodies = conclude(state, number, end, self.journal.now())
            if not bodies:
                return state
            bodies = [(kind, self.closing(body)) if kind is Kind.REFUSED else (kind, body) for kind, body in bodies]
            if bodies[-1][0] is Kind.LATE and end.ending is Ending.EVIDENCE and state.phase is Phase.REFUSED:
                log.error("effect %s was refused, and a later answer shows that it happened", self.effect_id)
            try:
                after = yield from self.append(state, bodies)
                if after.contradicted and after.phase is Phase.REFUSED:
                    yield from self._have_it_looked_at()
                return after
            except Conflict:
                pass
            except JournalError as error:
                failure = error
                yield Sleep(pause_s(attempt, 0.05, 0.5), "the journal could not be written")
            try:
                after = yield from self.load()
            except Archived as gone:
                raise NotRecorded(self.effect_id, describe(gone)) from gone
            except JournalError as error:
                failure = error
                continue
            if after.send(number) is None:
                why = "the journal has forgotten that send, as after a failover or a restore that lost its last commits"
                log.error("effect %s: %s; the service answered: %s", self.effect_id, why, end.ending.value)
                raise NotRecorded(self.effect_id, why)
            if failure is not None and after.seq == state.seq + len(bodies) and _same_end(after, number, end):
                return after  # the commit whose answer was lost had come through
            state = after
        raise NotRecorded(self.effect_id, describe(failure) if failure else "lost too many races")


def counted(step: Step) -> list[Body]:
    """The record of a "not found" that counts, for every send that it proves not to have landed."""
    return [(Kind.NOT_LANDED, {"sends": list(step.not_landed), "proof": "lookup"})] if step.not_landed else []


def _same_end(state: State, number: int, end: End) -> bool:
    """Whether the state shows this very end of this very send."""
    send = state.send(number)
    if end.ending is Ending.EVIDENCE:
        closing = state.closing
        return closing is not None and closing.kind is Kind.COMMITTED and closing.body.get("send") == number
    return send is not None and send.status in (SendStatus.UNKNOWN, SendStatus.NOT_LANDED)
