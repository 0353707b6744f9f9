"""What must hold at every moment of a schedule, and in the end. Named after the invariants."""

from __future__ import annotations

from typing import Any

from interlock_tools.core.states import Phase, SendStatus, State, fold
from scenarios.random_run.machine import LIMIT, Machine, Run
from scenarios.random_run.world import World


class Violation(AssertionError):
    """An invariant is broken."""


def require(holds: bool, words: str) -> None:
    if not holds:
        raise Violation(words)


class Checks:
    """The checks of one schedule."""

    def __init__(self, world: World, machine: Machine) -> None:
        self.world = world
        self.machine = machine
        self.refused: dict[str, str] = {}
        """Effect ids that somebody was told are refused for good."""

    def state(self, effect_id: str) -> State:
        return fold(self.machine.living()[0].gate.history(effect_id))

    # -- before bytes leave --------------------------------------------------------------------------

    def before_bytes(self, run: Run) -> None:
        """Called right before a request leaves."""
        arguments = run.command.arguments
        key, case = arguments["idempotency_key"], arguments["case"]
        state = fold(run.process.gate.history(key))
        running = [send for send in state.sends if send.status is SendStatus.RUNNING]
        require(
            len(running) == 1, f"I1: {run} sends under {key[:6]}, and the journal shows {len(running)} running sends"
        )
        sent = {name: arguments[name] for name in state.payload}
        require(sent == state.payload, f"I4: {run} sends {sent}, decided was {state.payload}")
        others = [other for other in self.machine.runs() if other is not run and other.sending and other.key == key]
        require(not others, f"I2, I6: {run} sends while {others} do")
        self._nothing_else_may_land(run, key, case)
        facts = run.seen.get("facts")
        require(facts == state.facts, f"I3: {run} sends on facts {facts}, decided were {state.facts}")
        require(bool(run.seen.get("approval")), f"I3: {run} sends without having seen the approval")
        if self.world.declared.enforces:
            require(facts["version"] == arguments["version"], f"I3: {run} sends for another version than it read")

    def _nothing_else_may_land(self, run: Run, key: str, case: str) -> None:
        """I2: an earlier request may only be on its way where the service's promise covers both."""
        world = self.world
        earlier = [
            flight
            for flight in world.flights
            if flight.call.key == key and flight.sender is not run and flight.answer is None and world.may_land(flight)
        ]
        if not earlier or world.declared.enforces or world.declared.dedupes_ms == -1:
            return
        require(world.declared.dedupes_ms > 0, f"I2: {run} sends while {len(earlier)} earlier requests may land")
        known = world.account(case).remembered.get(key)
        first = known.first if known is not None else world.seconds
        require(
            world.seconds - first < world.account(case).terms.dedupes_s,
            f"I2: {run} sends while an earlier request may land and the key has been forgotten",
        )

    # -- at every moment -----------------------------------------------------------------------------

    def landed_once(self) -> None:
        for case, account in self.world.accounts.items():
            require(len(account.effects) <= 1, f"{case} has {len(account.effects)} effects")
            for held in account.effects:
                require(held.key not in self.refused, f"I8: {case} landed after {self.refused.get(held.key)} was told")

    def told(self, run: Run, outcome: Any) -> None:
        """I8: an answer that somebody was given."""
        if outcome.existing is not None:
            self.told(run, outcome.existing)
        word, effect_id = str(outcome), outcome.effect_id
        if word in ("REFUSED:conflicting_payload", "REFUSED:unreachable", "REFUSED:replaced"):
            return
        effects = [
            held for account in self.world.accounts.values() for held in account.effects if held.key == effect_id
        ]
        if word == "COMMITTED":
            require(
                outcome.via == "person" or [held.id for held in effects] == [outcome.result["id"]], f"I8: {run} {word}"
            )
        elif outcome.status.value == "REFUSED":
            require(not effects, f"I8: {run} told {word}, and it landed")
            if outcome.via != "person":
                self.refused[effect_id] = word
        elif word == "IN_FLIGHT:sending":
            require(not run.alone, f"I6: {run} told that somebody is sending, and nobody was")
        elif word == "IN_FLIGHT:unreadable":
            require(run.unreadable, f"I8: {run} told {word}, and all could be read")
        elif outcome.status.value == "AMBIGUOUS":
            reason_fits = not self.world.declared.lookup or word == "AMBIGUOUS:stored_error"
            require(reason_fits, f"I10: {run} told {word} though it can be looked up")

    def budgets(self) -> None:
        """I5: what is in flight, committed or ambiguous is within the limit, and the journal's figure is theirs."""
        gate = self.machine.living()[0].gate
        used = 0
        for row in gate.journal.effects(0, 100):
            state = self.state(row.effect_id)
            sent = state.phase in (Phase.DISPATCHED, Phase.COMMITTED, Phase.AMBIGUOUS)
            landed = state.phase is Phase.RESOLVED and bool(state.closing and state.closing.body["landed"])
            if sent or landed:
                used += int(state.payload["amount"])
        require(used <= LIMIT, f"I5: {used} is taken, the limit is {LIMIT}")
        figure = gate.budget("all").used
        require(figure == used, f"I5: the journal says {figure} is taken, the effects take {used}")
