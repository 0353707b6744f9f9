"""Calls the production core for the model, and numbers the states that it returns.

The model holds the number of a ``State``; time is relative, so that a state
that is as old as another is the same one: "now" is always the same instant and
a tick makes every recorded instant one older. Ages are capped where the core
can no longer tell them apart. What the core is asked is remembered, since it
is a function of its arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from interlock_tools.core import decide as production_decide
from interlock_tools.core import ends as production_ends
from interlock_tools.core import states as production_states
from interlock_tools.core.decide import Action, Checks, Lookup, Mark, Sender, Sighting, Step, View
from interlock_tools.core.ends import End, Ending
from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import Phase, Send, SendStatus, State

from .setup import Setup

_OPEN_END = frozenset({SendStatus.ORPHANED, SendStatus.UNKNOWN, SendStatus.LOST})

NOW = 1_000
OTHER_BOOT = Instant("earlier boot", -9_000, NOW)
"""CLOCK_BOOTTIME of an earlier boot, as misleading as it can be."""

Seen = tuple[int, str, str, int]
"""A send, its sender, its mark, and how many ticks ago its bytes were written; -1: not stored."""

Bodies = tuple[tuple[Kind, dict[str, Any]], ...]


@dataclass(frozen=True)
class Core:
    """The functions under test; a mutant replaces some."""

    step: Callable[[State, Entry], State] = production_states.step
    observe: Callable[..., list[tuple[Kind, dict[str, Any]]]] = production_decide.observe
    next_step: Callable[[View], Step] = production_decide.next_step
    conclude: Callable[..., list[tuple[Kind, dict[str, Any]]]] = production_ends.conclude
    dedup_window_left_ms: Callable[..., int] = production_decide.dedup_window_left_ms


PRODUCTION = Core()

ENDS = {
    "evidence": End(Ending.EVIDENCE, evidence="re_1"),
    "no": End(Ending.DEFINITE_NO),
    "no_stored": End(Ending.DEFINITE_NO, stored=True),
    "precondition": End(Ending.PRECONDITION_FAILED),
    "not_sent": End(Ending.NOT_SENT),
    "limited": End(Ending.RATE_LIMITED),
    "error_stored": End(Ending.STORED_ERROR),
    "unknown": End(Ending.UNKNOWN, cause="timeout"),
}


class NotRecordable(Exception):
    """The journal refuses an entry that a worker wants to append."""


class Bridge:
    """The core, for one setup."""

    def __init__(self, setup: Setup, core: Core) -> None:
        self.setup = setup
        self.core = core
        self.states: list[State] = []
        self.taken: set[tuple[int, str]] = set()
        self._numbers: dict[Any, int] = {}
        self._memory: dict[Any, Any] = {}
        contract = setup.contract
        self._window = contract.dedupes_ms > 0
        self._waits = contract.has_lookup
        self._waits_for_lost = bool(contract.enforces) and setup.hosts > 1 and not contract.strict
        self._dispatched_cap = max(contract.dedupes_ms, 0) - contract.send_timeout_ms + contract.clock_skew_ms
        patience = setup.patience if setup.slow else 0
        self.wait_cap = contract.send_timeout_ms + contract.lookup_lag_ms + patience
        self.memory_cap = contract.lookup_lag_ms + patience
        if setup.exact:
            most = max(self.wait_cap + setup.lease, contract.dedupes_ms + patience)
            self.wait_cap = self.memory_cap = self._dispatched_cap = most

    def now(self, host: int, age: int = 0) -> Instant:
        """A reading on a host, ``age`` ticks ago. The second host's wall clock is behind by the allowed skew."""
        wall = NOW - age - (self.setup.contract.clock_skew_ms if host else 0)
        return Instant(f"host {host}", NOW - age, wall)

    # -- numbering ----------------------------------------------------------------------------

    def first(self) -> int:
        """The state of an effect that was proposed, and of which nothing has been sent."""
        body = {"effect": "e", "key": "k", "decision": 1, "payload": {}, "payload_digest": "", "facts": {}}
        return self._number(self._fold(State(), ((Kind.PROPOSED, body),)))

    def _fold(self, state: State, bodies: Iterable[tuple[Kind, dict[str, Any]]]) -> State:
        try:
            for kind, body in bodies:
                state = self.core.step(state, Entry("e", state.seq + 1, kind, 0, body))
        except production_states.IllegalTransition as error:
            raise NotRecordable(str(error)) from None
        return state

    def _number(self, state: State) -> int:
        sends = self._plain_sends(state)
        reason = state.closing.body.get("reason", "") if state.closing is not None else ""
        key = (
            state.phase,
            state.shortcuts_off,
            state.stored_error,
            reason,
            tuple((s.status, s.dispatched, s.since, s.lease_ms, s.handed_over) for s in sends),
        )
        number = self._numbers.get(key)
        if number is None:
            plain = state._replace(
                seq=0, sends=sends, decided=None, dispatched_entry=None, grant=None, late=None, settled=None
            )
            number = self._numbers[key] = len(self.states)
            self.states.append(plain)
        return number

    def _plain_sends(self, state: State) -> tuple[Send, ...]:
        """The sends without what no rule looks at."""
        blank = self.now(0)
        exact = self.setup.exact
        waits = self._waits or (self._waits_for_lost and not state.shortcuts_off)
        waits = exact or (waits and state.phase is Phase.DISPATCHED)
        window = exact or self._window
        plain = []
        for send in state.sends:
            dispatched, handed_over = blank, True
            if window:
                handed_over = send.handed_over
                if handed_over:
                    dispatched = self._capped(send.dispatched, self._dispatched_cap)
                    # The window begins at the first hand-over; later ones count only if this one may be taken back.
                    window = exact or send.status in (SendStatus.RUNNING, SendStatus.LOST)
            since: tuple[Instant, ...] = ()
            if send.status in _OPEN_END:
                cap = self.wait_cap + send.lease_ms if waits else 0
                since = tuple(self._capped(moment, cap) for moment in send.since)
            lease_ms = send.lease_ms if send.status is SendStatus.LOST else 0
            plain.append(Send(send.number, "", None, dispatched, send.status, since, lease_ms, handed_over))
        return tuple(plain)

    def _capped(self, moment: Instant, cap: int) -> Instant:
        wall = max(moment.wall_ms, NOW - cap) if self._window else NOW
        if moment.boot == OTHER_BOOT.boot:
            return Instant(moment.boot, OTHER_BOOT.boottime_ms, wall)
        return Instant(moment.boot, max(moment.boottime_ms, NOW - cap), wall)

    # -- time -----------------------------------------------------------------------------------

    def older(self, number: int) -> int:
        """The same state a tick later."""
        older: int = self._remember(("older", number), lambda: self._moved(number, _older))
        return older

    def rebooted(self, number: int, host: int) -> int:
        """The same state after a restart of the machine, whose clock came up late by the allowed skew."""
        skew = self.setup.contract.clock_skew_ms

        def reboot(moment: Instant) -> Instant:
            if moment.boot != f"host {host}":
                return moment
            return Instant(OTHER_BOOT.boot, OTHER_BOOT.boottime_ms, moment.wall_ms + skew)

        rebooted: int = self._remember(("rebooted", number, host), lambda: self._moved(number, reboot))
        return rebooted

    def undispatched(self, number: int) -> int:
        """The same state without its last send, as after a commit that was not durable."""
        state = self.states[number]
        return self._number(
            state._replace(phase=Phase.DISPATCHED if state.sends[:-1] else Phase.PROPOSED, sends=state.sends[:-1])
        )

    def _moved(self, number: int, move: Callable[[Instant], Instant]) -> int:
        state = self.states[number]
        sends = tuple(
            send._replace(dispatched=move(send.dispatched), since=tuple(move(moment) for moment in send.since))
            for send in state.sends
        )
        return self._number(state._replace(sends=sends))

    def _remember(self, key: Any, compute: Callable[[], Any]) -> Any:
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = compute()
        return found

    # -- the core's questions -------------------------------------------------------------------

    def observe(self, number: int, host: int, seen: tuple[Seen, ...]) -> tuple[int, Bodies]:
        """The state after the entries that record what was seen, and those entries."""

        def compute() -> tuple[int, Bodies]:
            state = self.states[number]
            sightings = {
                send: Sighting(
                    Sender(sender),
                    Mark(mark),
                    self.now(host, written) if written >= 0 else None,
                    self.setup.lease if sender == "lost" else 0,
                )
                for send, sender, mark, written in seen
            }
            bodies = tuple(self.core.observe(state, sightings, self.now(host)))
            return self._number(self._fold(state, bodies)), bodies

        found: tuple[int, Bodies] = self._remember(("observe", number, host, seen), compute)
        return found

    def step_of(
        self,
        number: int,
        host: int,
        checks: str = "not_read",
        failing: frozenset[str] = frozenset(),
        failed_age: int = -1,
        lookup: str = "not_asked",
        began_age: int = -1,
        evidence: bool = False,
    ) -> Step:
        """What may be done now on ``host``. Ages are of readings there; -1: none."""

        def compute() -> Step:
            view = View(
                state=self.states[number],
                contract=self.setup.contract,
                now=self.now(host),
                evidence=evidence,
                checks=Checks(checks),
                failing=failing,
                checks_at=self.now(host, failed_age) if failed_age >= 0 else None,
                lookup=Lookup(lookup),
                lookup_began=self.now(host, began_age) if began_age >= 0 else None,
            )
            step = self.core.next_step(view)
            self.taken.add((step.rule, step.action.value))
            return step

        key = ("next", number, host, checks, failing, failed_age, lookup, began_age, evidence)
        found: Step = self._remember(key, compute)
        return found

    def append(self, number: int, bodies: Bodies) -> int:
        """The state after entries. Raises ``NotRecordable``."""
        return self._number(self._fold(self.states[number], bodies))

    def conclude(self, number: int, send: int, answer: str, host: int) -> tuple[int, tuple[Kind, ...]]:
        """The state after the end of a send was recorded, and the kinds of what was appended."""

        def compute() -> tuple[int, tuple[Kind, ...]]:
            state = self.states[number]
            bodies = tuple(self.core.conclude(state, send, ENDS[answer], self.now(host)))
            return self._number(self._fold(state, bodies)), tuple(kind for kind, _ in bodies)

        found: tuple[int, tuple[Kind, ...]] = self._remember(("conclude", number, send, answer, host), compute)
        return found

    def dispatched(self, number: int, host: int, resend: bool, not_landed: tuple[int, ...]) -> int:
        """The state after one more send was dispatched, with what is recorded along with it."""

        def compute() -> int:
            state = self.states[number]
            bodies: list[tuple[Kind, dict[str, Any]]] = []
            if state.phase is Phase.PROPOSED:
                bodies.append((Kind.AUTHORIZED, {"grant": None}))
            if not_landed:
                bodies.append((Kind.NOT_LANDED, {"sends": list(not_landed), "proof": "lookup"}))
            send = len(state.sends) + 1
            body = {"send": send, "session": f"host {host}", "mark": {}, "clock": self.now(host).to_json()}
            bodies.append((Kind.DISPATCHED, {**body, "resend": True} if resend else body))
            return self.append(number, tuple(bodies))

        found: int = self._remember(("dispatched", number, host, resend, not_landed), compute)
        return found

    def closed(self, number: int, step: Step) -> int:
        """The state after a step that ends the effect, with what is recorded along with it."""

        def compute() -> int:
            bodies: list[tuple[Kind, dict[str, Any]]] = []
            if step.action is Action.COMMIT:
                bodies.append((Kind.COMMITTED, {"evidence": "re_1", "by_us": "unknown", "via": "lookup"}))
            elif step.action is Action.AMBIGUOUS:
                bodies.append((Kind.AMBIGUOUS, {"reason": step.reason}))
            else:
                if step.not_landed:
                    bodies.append((Kind.NOT_LANDED, {"sends": list(step.not_landed), "proof": "lookup"}))
                bodies.append((Kind.REFUSED, {"reason": "stale_premise"}))
            return self.append(number, tuple(bodies))

        found: int = self._remember(("closed", number, step), compute)
        return found

    def tried_again(self, checks: str) -> Step:
        """What is done about a refused effect that never left the machine and is asked for again."""
        return Step(Action.SEND if checks == "hold" else Action.REFUSE, 4)

    def window_left(self, number: int, host: int) -> int:
        """How much of the dedup window is left by the clocks of ``host``."""

        def compute() -> int:
            return self.core.dedup_window_left_ms(self.states[number], self.setup.contract, self.now(host))

        left: int = self._remember(("window", number, host), compute)
        return left

    def settled_changes_nothing(self, number: int) -> bool:
        """Whether a SETTLED entry leaves every decision about this closed effect as it was (I9)."""
        state = self.states[number]
        body = {"state": "reversed", "detail": ""}
        after = self.core.step(state, Entry("e", state.seq + 1, Kind.SETTLED, 0, body))
        for host in range(self.setup.hosts):
            now = self.now(host)
            for evidence in (False, True):
                views = [View(s, self.setup.contract, now, evidence, Checks.HOLD) for s in (state, after)]
                if self.core.next_step(views[0]) != self.core.next_step(views[1]):
                    return False
            for send in state.sends:
                for end in ENDS.values():
                    if self.core.conclude(state, send.number, end, now) != self.core.conclude(
                        after, send.number, end, now
                    ):
                        return False
        return True


def _older(moment: Instant) -> Instant:
    if moment.boot == OTHER_BOOT.boot:
        return moment._replace(wall_ms=moment.wall_ms - 1)
    return Instant(moment.boot, moment.boottime_ms - 1, moment.wall_ms - 1)
