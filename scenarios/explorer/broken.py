"""Broken versions of the core's functions, each a production function with one thing wrong about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from interlock_tools.core import decide, ends, states
from interlock_tools.core.decide import Action, Checks, Lookup, ServiceContract, Sighting, Step, View
from interlock_tools.core.ends import End, Ending
from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import Phase, SendStatus, State

from .bridge import Core

Bodies = list[tuple[Kind, dict[str, Any]]]


def _with_view(change: Callable[[View], View]) -> Core:
    """A core whose recovery sees a view that has been changed; so does the window check in ``on_send``."""

    def window(state: State, contract: ServiceContract, now: Instant) -> int:
        view = change(View(state, contract, now))
        return decide.dedup_window_left_ms(view.state, view.contract, view.now)

    return Core(next_step=lambda view: decide.next_step(change(view)), dedup_window_left_ms=window)


def with_contract(change: Callable[[View], Mapping[str, Any]]) -> Core:
    """A core that believes something else of the service."""
    return _with_view(lambda view: replace(view, contract=replace(view.contract, **change(view))))


def with_state(change: Callable[[State, Instant], State]) -> Core:
    """A core that remembers something else."""
    return _with_view(lambda view: replace(view, state=change(view.state, view.now)))


def closing(covers: Callable[[int, int], bool], *endings: Ending) -> Core:
    """A core in which some ends of send n prove that send m did not land either, if ``covers(n, m)``."""

    def conclude(state: State, number: int, end: End, now: Instant) -> Bodies:
        bodies = ends.conclude(state, number, end, now)
        if end.ending not in endings or state.phase is not Phase.DISPATCHED or not bodies:
            return bodies
        maybe = [send.number for send in state.maybe_landed]
        covered = [other for other in maybe if other == number or covers(number, other)]
        bodies = [(Kind.NOT_LANDED, {"sends": covered, "proof": end.ending.value})]
        return [*bodies, (Kind.REFUSED, {"reason": "rejected"})] if covered == maybe else bodies

    return Core(conclude=conclude)


def stored_errors_are_plain() -> Core:
    def conclude(state: State, number: int, end: End, now: Instant) -> Bodies:
        plain = End(Ending.UNKNOWN, cause="500") if end.ending is Ending.STORED_ERROR else end
        return ends.conclude(state, number, plain, now)

    return Core(conclude=conclude)


def late_evidence_is_filed() -> Core:
    def conclude(state: State, number: int, end: End, now: Instant) -> Bodies:
        if state.phase is Phase.AMBIGUOUS:
            return [(Kind.LATE, {"send": number, "result": {"ending": end.ending.value}})]
        return ends.conclude(state, number, end, now)

    return Core(conclude=conclude)


def last_mark_counts_for_all() -> Core:
    def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> Bodies:
        bodies = decide.observe(state, sightings, now)
        if any(kind is Kind.NOT_LANDED and body["sends"] == [len(state.sends)] for kind, body in bodies):
            return [(Kind.NOT_LANDED, {"sends": [send.number for send in state.maybe_landed], "proof": "mark"})]
        return bodies

    return Core(observe=observe)


def lost_without_lease() -> Core:
    def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> Bodies:
        bodies = decide.observe(state, sightings, now)
        return [(kind, {**body, "lease_ms": 0} if kind is Kind.SENDER_LOST else body) for kind, body in bodies]

    return Core(observe=observe)


def observes_what_has_ended() -> Core:
    def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> Bodies:
        return decide.observe(state._replace(phase=Phase.DISPATCHED), sightings, now)

    return Core(observe=observe)


def every_recovery_waits_anew() -> Core:
    def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> Bodies:
        bodies = decide.observe(state, sightings, now)
        if state.phase is not Phase.DISPATCHED:
            return bodies
        waits = [send for send in state.sends if send.status is SendStatus.ORPHANED]
        return bodies + [(Kind.ORPHANED, {"send": send.number, "clock": now.to_json()}) for send in waits]

    def step(state: State, entry: Entry) -> State:
        after = states.step(state, entry)
        if entry.kind is not Kind.ORPHANED:
            return after
        moment = Instant.from_json(entry.body["clock"])
        sends = tuple(s._replace(since=(moment,)) if s.number == entry.body["send"] else s for s in after.sends)
        return after._replace(sends=sends)

    return Core(observe=observe, step=step)


def returns_keep_the_old_wait() -> Core:
    def step(state: State, entry: Entry) -> State:
        after = states.step(state, entry)
        if entry.kind is not Kind.UNKNOWN:
            return after
        before = state.sends[entry.body["send"] - 1].since
        sends = tuple(s._replace(since=before or s.since) if s.number == entry.body["send"] else s for s in after.sends)
        return after._replace(sends=sends)

    return Core(step=step)


def waits_run_across_restarts() -> Core:
    """Neither observes a new boot nor tells boots apart."""

    def observe(state: State, sightings: Mapping[int, Sighting], now: Instant) -> Bodies:
        return [body for body in decide.observe(state, sightings, now) if body[1].get("send") in (None, *sightings)]

    def moved(state: State, now: Instant) -> State:
        return state._replace(
            sends=tuple(
                send._replace(since=tuple(moment._replace(boot=now.boot) for moment in send.since))
                for send in state.sends
            )
        )

    return replace(with_state(moved), observe=observe)


def decides(change: Callable[[View, Step], Step]) -> Core:
    """A core that says something else in some cases."""
    return Core(next_step=lambda view: change(view, decide.next_step(view)))


def refuses_at_once(view: View, step: Step) -> Step:
    if view.checks is Checks.FAIL and view.state.maybe_landed and step.action in (Action.LOOK_UP, Action.AMBIGUOUS):
        return Step(Action.REFUSE, 7, not_landed=tuple(send.number for send in view.state.maybe_landed))
    return step


def sends_whatever_fails(view: View, step: Step) -> Step:
    return decide.next_step(replace(view, checks=Checks.HOLD)) if view.checks is Checks.FAIL else step


def gives_up_instead_of_waiting(view: View, step: Step) -> Step:
    return Step(Action.AMBIGUOUS, 8, reason="no_evidence") if step.action is Action.WAIT else step


def useless_lookups_decide(view: View, step: Step) -> Step:
    if view.lookup is Lookup.CANNOT_KNOW and step.rule == 6 and step.action is Action.SEND:
        return Step(Action.AMBIGUOUS, 7, reason="no_evidence")
    return step


def forgets_what_was_counted(view: View, step: Step) -> Step:
    return replace(step, not_landed=())


def dispatched_of_the_latest(state: State, now: Instant) -> State:
    return state._replace(sends=tuple(send._replace(dispatched=state.sends[-1].dispatched) for send in state.sends))


def dispatched_of_the_first(state: State, now: Instant) -> State:
    """So that no lost send seems to have been dispatched after the window."""
    return state._replace(sends=tuple(send._replace(dispatched=state.sends[0].dispatched) for send in state.sends))


def waits_from_dispatch(state: State, now: Instant) -> State:
    return state._replace(sends=tuple(s._replace(since=(s.dispatched,) if s.since else ()) for s in state.sends))


def no_stored_error(state: State, now: Instant) -> State:
    return state._replace(stored_error=False)


def clock_behind_closes(view: View) -> dict[str, Any]:
    """A wall clock that is behind is taken for one that was set back."""
    first = next((send.dispatched for send in view.state.sends if send.handed_over), view.now)
    behind = first.boot != view.now.boot and view.now.wall_ms < first.wall_ms
    return {"dedupes_ms": 0} if behind else {}


def window_with_skew(view: View) -> dict[str, Any]:
    """What clocks may disagree by is not taken off the window."""
    return {"dedupes_ms": view.contract.dedupes_ms + view.contract.clock_skew_ms}
