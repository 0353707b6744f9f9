"""``next_step`` over generated views, odd ones too: it always answers, and its answers keep the invariants."""

from __future__ import annotations

import unittest
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools.core.decide import (
    FOREVER,
    Action,
    Checks,
    Lookup,
    Mark,
    Sender,
    ServiceContract,
    Sighting,
    Step,
    View,
    dedup_window_left_ms,
    next_step,
    observe,
)
from interlock_tools.core.ends import End, Ending, conclude
from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import IllegalTransition, Phase, Send, SendStatus, State, fold, step
from tests import core_support as core
from tests.core_support import at, then

TIMES = st.integers(-10, 30)
INSTANTS = st.builds(at, TIMES, st.sampled_from(("boot", "other")), st.one_of(st.none(), TIMES))
NAMES = st.frozensets(st.sampled_from(("head", "price")), max_size=2)
CONTRACTS = st.builds(
    ServiceContract,
    dedupes_ms=st.sampled_from((0, FOREVER, 3, 12)),
    enforces=NAMES,
    never_true_again=NAMES,
    has_lookup=st.booleans(),
    lookup_lag_ms=st.integers(0, 3),
    send_timeout_ms=st.integers(1, 5),
    clock_skew_ms=st.integers(0, 3),
    strict=st.booleans(),
)
SENDS = st.tuples(
    INSTANTS,
    st.sampled_from(SendStatus),
    st.lists(INSTANTS, max_size=2),
    st.integers(0, 4),
    st.booleans(),
)


def odd_state(phase: Phase, sends: list[Any], shortcuts_off: bool, stored_error: bool) -> State:
    numbered = tuple(
        Send(number, "s", None, dispatched, status, tuple(since), lease_ms, handed_over)
        for number, (dispatched, status, since, lease_ms, handed_over) in enumerate(sends, start=1)
    )
    return State(phase=phase, sends=numbered, shortcuts_off=shortcuts_off, stored_error=stored_error)


STATES = st.builds(odd_state, st.sampled_from(Phase), st.lists(SENDS, max_size=3), st.booleans(), st.booleans())
"""States of any shape, also such as no journal leads to."""

VIEWS = st.builds(
    View,
    state=STATES,
    contract=CONTRACTS,
    now=INSTANTS,
    evidence=st.booleans(),
    checks=st.sampled_from(Checks),
    failing=NAMES,
    checks_at=st.one_of(st.none(), INSTANTS),
    lookup=st.sampled_from(Lookup),
    lookup_began=st.one_of(st.none(), INSTANTS),
)

NO_END = (SendStatus.RUNNING, SendStatus.LANDED)

thorough = settings(max_examples=400, derandomize=True, deadline=None, database=None)


def waited(send: Send, at_moment: Instant, contract: ServiceContract) -> bool:
    """Whether this send can have landed, if at all, only before ``at_moment`` less the lookup's lag."""
    began = [moment for moment in send.since if moment.boot == at_moment.boot]
    needed = contract.send_timeout_ms + send.lease_ms + contract.lookup_lag_ms
    return bool(began) and at_moment.boottime_ms - began[0].boottime_ms >= needed


class TestNextStep(unittest.TestCase):
    @thorough
    @given(VIEWS)
    def test_total_and_a_function(self, view: View) -> None:
        found = next_step(view)
        self.assertIsInstance(found, Step)
        self.assertEqual(next_step(replace(view)), found)
        self.assertEqual(found.wait_ms > 0, found.action is Action.WAIT)
        self.assertEqual(bool(found.reason), found.action is Action.AMBIGUOUS)
        if found.not_landed or found.resend:
            self.assertIn(found.action, (Action.SEND, Action.REFUSE))

    @thorough
    @given(VIEWS)
    def test_i3_only_checks_that_hold_let_a_request_out(self, view: View) -> None:
        found = next_step(view)
        if found.action is Action.SEND:
            self.assertIs(view.checks, Checks.HOLD)
        if found.action is Action.REFUSE:
            self.assertIs(view.checks, Checks.FAIL)

    @thorough
    @given(VIEWS)
    def test_i2_i6_nothing_is_sent_beside_a_running_send(self, view: View) -> None:
        found = next_step(view)
        if any(send.status is SendStatus.RUNNING for send in view.state.sends):
            self.assertIn(found.action, (Action.NOTHING, Action.COMMIT, Action.LOOK_UP, Action.IN_FLIGHT))
            if found.action is Action.LOOK_UP:
                self.assertIs(view.state.phase, Phase.AMBIGUOUS)

    @thorough
    @given(VIEWS)
    def test_i2_a_second_request_needs_proof_or_protection(self, view: View) -> None:
        found = next_step(view)
        maybe = view.state.maybe_landed
        if found.action is not Action.SEND or not maybe:
            return
        contract = view.contract
        if found.rule == 7:
            self.assertEqual(found.not_landed, tuple(send.number for send in maybe))
        elif found.rule == 5:
            self.assertNotEqual(contract.dedupes_ms, 0)
            if contract.dedupes_ms != FOREVER:
                self.assertGreater(dedup_window_left_ms(view.state, contract, view.now), 0)
        else:
            self.assertEqual((found.rule, bool(contract.enforces)), (6, True))
        if found.rule in (5, 6):
            self.assertTrue(found.resend)
            self.assertFalse(view.state.shortcuts_off)

    @thorough
    @given(VIEWS)
    def test_i7_not_found_counts_only_when_nothing_can_land_any_more(self, view: View) -> None:
        found = next_step(view)
        if found.rule != 7 or found.action not in (Action.SEND, Action.REFUSE):
            return
        contract, began = view.contract, view.lookup_began
        self.assertIs(view.lookup, Lookup.NOT_FOUND)
        assert began is not None
        counted = all(waited(send, began, contract) for send in view.state.maybe_landed)
        final = view.failing & contract.enforces & contract.never_true_again
        if not counted:
            self.assertIs(found.action, Action.REFUSE)
            self.assertTrue(final)
            assert view.checks_at is not None
            self.assertGreaterEqual(began.boottime_ms - view.checks_at.boottime_ms, contract.lookup_lag_ms)

    @thorough
    @given(VIEWS)
    def test_i8_refused_only_with_proof_for_every_send(self, view: View) -> None:
        found = next_step(view)
        if found.action is Action.REFUSE:
            self.assertEqual(found.not_landed, tuple(send.number for send in view.state.maybe_landed))
        if found.action is Action.COMMIT:
            self.assertTrue(view.evidence)

    @thorough
    @given(VIEWS)
    def test_strict_never_acts_without_evidence_after_a_lost_session(self, view: View) -> None:
        strict = replace(view, contract=replace(view.contract, strict=True))
        if any(send.status is SendStatus.LOST for send in view.state.sends):
            self.assertNotIn(next_step(strict).action, (Action.SEND, Action.REFUSE))

    @thorough
    @given(VIEWS, st.integers(0, 5))
    def test_i10_what_has_to_be_waited_for_comes(self, view: View, asks: int) -> None:
        """Following the steps of a service that answers, an end is reached in a few rounds."""
        phase = Phase.DISPATCHED if view.state.sends else Phase.AUTHORIZED
        sends = tuple(
            send._replace(status=SendStatus.ORPHANED) if send.status in NO_END else send for send in view.state.sends
        )
        view = replace(view, state=view.state._replace(phase=phase, sends=sends))
        for _ in range(8):
            bodies = observe(view.state, {}, view.now)
            view = replace(view, state=then(view.state, *bodies))
            found = next_step(view)
            if found.action is Action.READ_CHECKS or (found.action is Action.STAY and found.rule == 3):
                view = replace(view, checks=Checks.FAIL if asks % 2 else Checks.HOLD)
            elif found.action is Action.LOOK_UP or found.action is Action.STAY:
                view = replace(view, lookup=Lookup.NOT_FOUND, lookup_began=view.now)
            elif found.action is Action.WAIT:
                boot, boottime, wall = view.now
                began = view.lookup_began
                if began is not None and began.boot != boot:
                    began = view.now
                later = max(boottime, began.boottime_ms if began is not None else boottime) + found.wait_ms
                now = Instant(boot, later, wall + later - boottime)
                view = replace(view, now=now, lookup=Lookup.NOT_ASKED, lookup_began=None)
            else:
                self.assertIn(found.action, (Action.SEND, Action.REFUSE, Action.AMBIGUOUS, Action.COMMIT))
                return
        self.fail(f"no end in sight: {found}")


NUMBERS = st.integers(1, 3)
BODIES = st.one_of(
    st.builds(core.dispatched, NUMBERS, INSTANTS),
    st.builds(core.unknown, NUMBERS, INSTANTS),
    st.builds(core.unknown, NUMBERS, INSTANTS, stored=st.just(True)),
    st.builds(core.orphaned, NUMBERS, INSTANTS),
    st.builds(core.sender_lost, NUMBERS, INSTANTS, st.integers(0, 4)),
    st.builds(core.not_landed, NUMBERS, proof=st.sampled_from(("mark", "definite_no", "lookup", "not_sent"))),
    st.builds(core.committed, st.one_of(st.none(), NUMBERS)),
    st.sampled_from((core.refused("unreachable"), core.refused(), core.ambiguous(), core.LATE, core.LATE_EVIDENCE)),
    st.builds(core.resolved, st.booleans()),
    st.sampled_from((core.SETTLED, core.RELEASED, core.REPLACED)),
)


def written(bodies: list[tuple[Kind, dict[str, Any]]]) -> list[tuple[Kind, dict[str, Any]]]:
    """Those of the bodies that may follow one another, after a first send."""
    state = core.IN_PHASE[Phase.DISPATCHED]
    found = list(core.SENT)
    for kind, body in bodies:
        try:
            state = step(state, Entry("x" * 32, state.seq + 1, kind, 0, body))
        except IllegalTransition:
            continue
        found.append((kind, body))
    return found


class TestJournals(unittest.TestCase):
    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(st.lists(BODIES, max_size=12), CONTRACTS, INSTANTS, st.sampled_from(Checks), st.sampled_from(Ending))
    def test_i9_settled_entries_change_no_decision(
        self,
        bodies: list[tuple[Kind, dict[str, Any]]],
        contract: ServiceContract,
        now: Instant,
        checks: Checks,
        ending: Ending,
    ) -> None:
        journal = written([*bodies, core.SETTLED])
        without = [body for body in journal if body[0] is not Kind.SETTLED]
        with_state, without_state = fold(core.entries(journal)), fold(core.entries(without))
        self.assertEqual(
            with_state._replace(seq=0, settled=None, closing=None, late=None, decided=None, dispatched_entry=None),
            without_state._replace(seq=0, settled=None, closing=None, late=None, decided=None, dispatched_entry=None),
        )
        for evidence in (False, True):
            steps = [next_step(View(s, contract, now, evidence, checks)) for s in (with_state, without_state)]
            self.assertEqual(*steps)
        self.assertEqual(observe(with_state, {}, now), observe(without_state, {}, now))
        for send in with_state.sends:
            ends = [conclude(s, send.number, End(ending), now) for s in (with_state, without_state)]
            self.assertEqual(*ends)
        for kind, body in (core.REPLACED, core.RELEASED, core.dispatched(len(with_state.sends) + 1)):
            self.assertEqual(self.may_follow(with_state, kind, body), self.may_follow(without_state, kind, body))

    def may_follow(self, state: State, kind: Kind, body: dict[str, Any]) -> bool:
        try:
            step(state, Entry("x" * 32, state.seq + 1, kind, 0, body))
        except IllegalTransition:
            return False
        return True

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(
        st.lists(BODIES, max_size=12),
        CONTRACTS,
        INSTANTS,
        st.sampled_from(Sender),
        st.sampled_from(Mark),
        st.sampled_from(Checks),
    )
    def test_what_is_seen_and_done_can_always_be_recorded(
        self,
        bodies: list[tuple[Kind, dict[str, Any]]],
        contract: ServiceContract,
        now: Instant,
        sender: Sender,
        mark: Mark,
        checks: Checks,
    ) -> None:
        """Whatever a journal holds, the entries of ``observe`` and of the step that follows are legal."""
        state = fold(core.entries(written(bodies)))
        sightings = {send.number: Sighting(sender, mark) for send in state.sends}
        seen = then(state, *observe(state, sightings, now))
        found = next_step(View(seen, contract, now, checks=checks, lookup=Lookup.NOT_FOUND, lookup_began=now))
        counted = [core.not_landed(*found.not_landed, proof="lookup")] if found.not_landed else []
        if found.action is Action.SEND:
            self.assertIs(then(seen, *counted, core.dispatched(len(seen.sends) + 1)).phase, Phase.DISPATCHED)
        elif found.action is Action.REFUSE:
            self.assertIs(then(seen, *counted, core.refused()).phase, Phase.REFUSED)
        elif found.action is Action.AMBIGUOUS:
            self.assertIs(then(seen, core.ambiguous(found.reason)).phase, Phase.AMBIGUOUS)
        committed = next_step(View(seen, contract, now, evidence=True))
        if committed.action is Action.COMMIT:
            self.assertIs(then(seen, core.committed(None)).phase, Phase.COMMITTED)


if __name__ == "__main__":
    unittest.main()
