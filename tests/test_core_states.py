"""``step``: every phase with every kind of entry, what an entry changes, and that nothing else can happen."""

from __future__ import annotations

import unittest
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools.core.entries import Entry, Instant, Kind
from interlock_tools.core.states import (
    OPEN_PHASES,
    TRANSITIONS,
    IllegalTransition,
    Phase,
    SendStatus,
    State,
    fold,
    step,
)
from tests import core_support as core
from tests.core_support import at, entries, state_of, then

EXAMPLES = {
    Kind.PROPOSED: core.proposed(),
    Kind.AUTHORIZED: core.authorized(),
    Kind.DISPATCHED: core.dispatched(),
    Kind.UNKNOWN: core.unknown(),
    Kind.NOT_LANDED: core.not_landed(1),
    Kind.ORPHANED: core.orphaned(),
    Kind.SENDER_LOST: core.sender_lost(),
    Kind.COMMITTED: core.committed(),
    Kind.REFUSED: core.refused(),
    Kind.AMBIGUOUS: core.ambiguous(),
    Kind.RESOLVED: core.resolved(True),
    Kind.REPLACED: core.REPLACED,
    Kind.APPROVAL_REQUESTED: core.REQUESTED,
    Kind.APPROVED: core.APPROVED,
    Kind.REJECTED: core.REJECTED,
    Kind.RELEASED: core.RELEASED,
    Kind.SETTLED: core.SETTLED,
    Kind.LATE: core.LATE,
}

FOLLOWS: dict[Phase, dict[Kind, Phase]] = {
    Phase.NEW: {Kind.PROPOSED: Phase.PROPOSED},
    Phase.PROPOSED: {
        Kind.AUTHORIZED: Phase.AUTHORIZED,
        Kind.REFUSED: Phase.REFUSED,
        Kind.APPROVAL_REQUESTED: Phase.PROPOSED,
        # An APPROVED and a REJECTED answer a request; see below.
    },
    Phase.AUTHORIZED: {Kind.DISPATCHED: Phase.DISPATCHED, Kind.REFUSED: Phase.REFUSED},
    Phase.DISPATCHED: {
        Kind.UNKNOWN: Phase.DISPATCHED,
        Kind.NOT_LANDED: Phase.DISPATCHED,
        Kind.ORPHANED: Phase.DISPATCHED,
        Kind.SENDER_LOST: Phase.DISPATCHED,
        Kind.COMMITTED: Phase.COMMITTED,
        Kind.AMBIGUOUS: Phase.AMBIGUOUS,
        # A further DISPATCHED and a REFUSED depend on the sends; see below.
    },
    Phase.COMMITTED: dict.fromkeys((Kind.SETTLED, Kind.RELEASED, Kind.LATE), Phase.COMMITTED),
    Phase.REFUSED: {Kind.REPLACED: Phase.REPLACED, Kind.LATE: Phase.REFUSED},
    Phase.AMBIGUOUS: {Kind.COMMITTED: Phase.COMMITTED, Kind.RESOLVED: Phase.RESOLVED, Kind.LATE: Phase.AMBIGUOUS},
    Phase.RESOLVED: dict.fromkeys((Kind.SETTLED, Kind.RELEASED, Kind.LATE), Phase.RESOLVED),
    Phase.REPLACED: {Kind.LATE: Phase.REPLACED},
}
"""What may follow the state of ``IN_PHASE``: one running send, a premise that failed, an effect that landed."""

CONDITIONAL = {
    (Phase.PROPOSED, Kind.APPROVED): state_of(core.proposed(), core.REQUESTED),
    (Phase.PROPOSED, Kind.REJECTED): state_of(core.proposed(), core.REQUESTED),
    (Phase.DISPATCHED, Kind.DISPATCHED): state_of(*core.SENT, core.unknown()),
    (Phase.DISPATCHED, Kind.REFUSED): state_of(*core.SENT, core.not_landed(1)),
    (Phase.REFUSED, Kind.DISPATCHED): state_of(*core.SENT, core.not_landed(1), core.refused("unreachable")),
    (Phase.REFUSED, Kind.REFUSED): state_of(*core.SENT, core.not_landed(1), core.refused("unreachable")),
    (Phase.REFUSED, Kind.RESOLVED): state_of(*core.SENT, core.not_landed(1), core.refused(), core.LATE_EVIDENCE),
    (Phase.RESOLVED, Kind.REPLACED): state_of(*core.SENT, core.unknown(), core.ambiguous(), core.resolved(False)),
}
"""What is legal in another state of the phase than that of ``IN_PHASE``."""


def entry_of(state: State, kind: Kind) -> Entry:
    kind_of_body, body = EXAMPLES[kind]
    if kind is Kind.DISPATCHED:
        body = {**body, "send": len(state.sends) + 1}
    return Entry("x" * 32, state.seq + 1, kind_of_body, 0, body)


class TestEveryPair(unittest.TestCase):
    def test_every_phase_with_every_kind(self) -> None:
        """There is one expectation for each of the pairs, and the pair does that."""
        for phase, state in core.IN_PHASE.items():
            self.assertIs(state.phase, phase)
            for kind in Kind:
                with self.subTest(phase=phase.value, kind=kind.value):
                    expected = FOLLOWS[phase].get(kind)
                    if expected is None:
                        with self.assertRaises(IllegalTransition) as caught:
                            step(state, entry_of(state, kind))
                        self.assertEqual((caught.exception.phase, caught.exception.kind), (phase, kind))
                        self.assertTrue(caught.exception.why)
                    else:
                        after = step(state, entry_of(state, kind))
                        self.assertEqual((after.phase, after.seq), (expected, state.seq + 1))

    def test_pairs_that_depend_on_more_than_the_phase(self) -> None:
        for (phase, kind), state in CONDITIONAL.items():
            with self.subTest(phase=phase.value, kind=kind.value):
                self.assertIs(state.phase, phase)
                self.assertIs(step(state, entry_of(state, kind)).phase, TRANSITIONS[phase, kind])

    def test_the_table_holds_these_pairs_and_no_others(self) -> None:
        expected = {(phase, kind): after for phase, kinds in FOLLOWS.items() for kind, after in kinds.items()}
        expected |= {pair: TRANSITIONS[pair] for pair in CONDITIONAL}
        self.assertEqual(TRANSITIONS, expected)

    def test_every_phase_and_kind_occurs(self) -> None:
        self.assertEqual({phase for phase, _ in TRANSITIONS}, set(Phase))
        self.assertEqual({kind for _, kind in TRANSITIONS}, set(Kind))
        self.assertEqual({Phase.PROPOSED, Phase.AUTHORIZED, Phase.DISPATCHED}, OPEN_PHASES)

    def test_a_sequence_number_that_does_not_follow(self) -> None:
        state = core.IN_PHASE[Phase.DISPATCHED]
        for seq in (0, state.seq, state.seq + 2, -1):
            with self.subTest(seq=seq), self.assertRaises(IllegalTransition):
                step(state, Entry("x" * 32, seq, *split(core.unknown())))

    def test_an_illegal_entry_leaves_the_state_as_it_was(self) -> None:
        state = core.IN_PHASE[Phase.DISPATCHED]
        before = repr(state)
        with self.assertRaises(IllegalTransition):
            step(state, entry_of(state, Kind.REFUSED))
        self.assertEqual(repr(state), before)


def split(body: tuple[Kind, dict[str, Any]]) -> tuple[Kind, int, dict[str, Any]]:
    return body[0], 0, body[1]


class TestTotal(unittest.TestCase):
    """Whatever an entry holds, ``step`` returns a state or raises ``IllegalTransition``."""

    def test_bodies_that_lack_something(self) -> None:
        for phase, state in core.IN_PHASE.items():
            for kind in Kind:
                whole = entry_of(state, kind)
                for left_out in (*whole.body, None):
                    body = {} if left_out is None else {k: v for k, v in whole.body.items() if k != left_out}
                    with self.subTest(phase=phase.value, kind=kind.value, left_out=left_out):
                        self.assert_total(state, Entry(whole.effect_id, whole.seq, kind, 0, body))

    def test_bodies_of_the_wrong_shape(self) -> None:
        for state in core.IN_PHASE.values():
            for kind in Kind:
                whole = entry_of(state, kind)
                wrongs: tuple[Any, ...] = (None, "text", -1, 10**9, [], {}, ["1"], [None], True)
                for name in whole.body:
                    for wrong in wrongs:
                        with self.subTest(kind=kind.value, name=name, wrong=wrong):
                            body = {**whole.body, name: wrong}
                            self.assert_total(state, Entry(whole.effect_id, whole.seq, kind, 0, body))

    def assert_total(self, state: State, entry: Entry) -> None:
        try:
            after = step(state, entry)
        except IllegalTransition:
            return
        self.assertIsInstance(after, State)


class TestSends(unittest.TestCase):
    def test_sends_count_from_one_without_a_gap(self) -> None:
        state = state_of(*core.DECIDED)
        for number in (0, 2, -1):
            with self.subTest(number=number), self.assertRaises(IllegalTransition):
                then(state, core.dispatched(number))

    def test_i2_i6_no_send_is_dispatched_while_another_one_is_running(self) -> None:
        running = state_of(*core.SENT)
        with self.assertRaises(IllegalTransition):
            then(running, core.dispatched(2))
        self.assertEqual(len(then(running, core.orphaned(), core.dispatched(2)).sends), 2)

    def test_the_end_of_a_send_is_recorded_once(self) -> None:
        over = state_of(*core.SENT, core.not_landed(1))
        for body in (core.unknown(), core.orphaned(), core.sender_lost(), core.not_landed(1)):
            with self.subTest(kind=body[0].value), self.assertRaises(IllegalTransition):
                then(over, body)

    def test_an_end_of_a_send_that_does_not_exist(self) -> None:
        for body in (
            core.unknown(2),
            core.orphaned(2),
            core.sender_lost(0),
            core.not_landed(1, 2),
            core.not_landed(-1),
        ):
            with self.subTest(kind=body[0].value), self.assertRaises(IllegalTransition):
                state_of(*core.SENT, body)

    def test_i8_a_refusal_needs_proof_for_every_send(self) -> None:
        """REFUSED closes only what cannot have landed."""
        for end in (core.unknown(), core.orphaned(), core.sender_lost()):
            with self.subTest(kind=end[0].value), self.assertRaises(IllegalTransition):
                state_of(*core.SENT, end, core.refused())
        with self.assertRaises(IllegalTransition):
            state_of(*core.SENT, core.unknown(), core.dispatched(2), core.not_landed(2), core.refused())

    def test_what_proves_that_no_byte_left(self) -> None:
        proofs = ("mark", "not_sent", "rate_limited", "definite_no", "precondition_failed", "lookup")
        for proof in proofs:
            with self.subTest(proof=proof):
                send = state_of(*core.SENT, core.not_landed(1, proof=proof)).sends[0]
                self.assertIs(send.status, SendStatus.NOT_LANDED)
                self.assertIs(send.handed_over, proof not in ("mark", "not_sent"))

    def test_what_ends_the_shortcuts_ends_them_for_good(self) -> None:
        """After a definite no, a failed precondition or a stored error there is no resend on the contract's word."""
        for proof in ("definite_no", "precondition_failed"):
            state = state_of(*core.SENT, core.unknown(), core.dispatched(2), core.not_landed(2, proof=proof))
            self.assertTrue(state.shortcuts_off)
        for proof in ("mark", "not_sent", "rate_limited", "lookup"):
            self.assertFalse(state_of(*core.SENT, core.not_landed(1, proof=proof)).shortcuts_off)
        state = state_of(*core.SENT, core.unknown(stored=True))
        self.assertTrue(state.shortcuts_off and state.stored_error)
        later = then(state, core.dispatched(2), core.unknown(2), core.dispatched(3), core.not_landed(3, proof="mark"))
        self.assertTrue(later.shortcuts_off and later.stored_error)


class TestClocks(unittest.TestCase):
    """Since when a send has been waited for."""

    def since(self, *bodies: tuple[Kind, dict[str, Any]]) -> tuple[Instant, ...]:
        return state_of(*core.SENT, *bodies).sends[0].since

    def test_the_first_reading_in_a_boot_counts(self) -> None:
        self.assertEqual(self.since(core.orphaned(1, at(5)), core.orphaned(1, at(9))), (at(5),))

    def test_another_boot_has_a_beginning_of_its_own(self) -> None:
        other = at(1, "other")
        self.assertEqual(self.since(core.orphaned(1, at(5)), core.orphaned(1, other)), (at(5), other))

    def test_a_send_that_comes_back_starts_anew(self) -> None:
        """It may have been handed over later than was thought when it was given up."""
        for given_up in (core.orphaned(1, at(5)), core.sender_lost(1, at(5))):
            self.assertEqual(self.since(given_up, core.unknown(1, at(50))), (at(50),))
        self.assertEqual(self.since(core.unknown(1, at(5)), core.unknown(1, at(50))), (at(5),))

    def test_a_lost_session_has_its_lease_until_the_send_comes_back(self) -> None:
        lost = state_of(*core.SENT, core.sender_lost(1, at(5), 7))
        self.assertEqual(lost.sends[0].lease_ms, 7)
        self.assertEqual(then(lost, core.unknown(1, at(9))).sends[0].lease_ms, 0)


class TestDecisions(unittest.TestCase):
    def test_i4_the_first_proposed_entry_binds_the_payload(self) -> None:
        """No later entry of the effect changes it, and there is no second PROPOSED in any phase."""
        for phase, state in core.IN_PHASE.items():
            if phase is not Phase.NEW:
                self.assertEqual((state.payload, state.payload_digest), ({"amount": 1}, "d"))
                with self.assertRaises(IllegalTransition):
                    then(state, core.proposed(payload={"amount": 2}, payload_digest="other"))

    def test_i5_a_reservation_is_made_by_the_dispatch_and_freed_by_an_entry(self) -> None:
        budgets = [{"name": "case:1", "amount": 5, "limit": 9}]
        sent = state_of(*core.DECIDED, core.dispatched(budgets=budgets))
        self.assertEqual(sent.reserved, tuple(budgets))
        held = {
            "unknown": (core.unknown(),),
            "orphaned": (core.orphaned(),),
            "lost": (core.sender_lost(),),
            "not landed, and open": (core.not_landed(1),),
            "sent again": (core.unknown(), core.dispatched(2)),
            "committed": (core.committed(),),
            "settled": (core.committed(), core.SETTLED),
            "ambiguous": (core.unknown(), core.ambiguous()),
            "resolved as landed": (core.unknown(), core.ambiguous(), core.resolved(True)),
        }
        freed = {
            "refused": (core.not_landed(1), core.refused()),
            "released": (core.committed(), core.RELEASED),
            "resolved as not landed": (core.unknown(), core.ambiguous(), core.resolved(False)),
        }
        for name, bodies in held.items():
            with self.subTest(held=name):
                self.assertEqual(then(sent, *bodies).reserved, tuple(budgets))
        for name, bodies in freed.items():
            with self.subTest(freed=name):
                self.assertEqual(then(sent, *bodies).reserved, ())
        with self.assertRaises(IllegalTransition):
            then(sent, core.unknown(), core.dispatched(2, budgets=budgets))
        again = then(sent, core.not_landed(1), core.refused("unreachable"), core.dispatched(2, budgets=budgets))
        self.assertEqual(again.reserved, tuple(budgets))

    def test_only_what_was_unreachable_is_sent_again_after_a_refusal(self) -> None:
        for reason in ("stale_premise", "rejected", "precondition_failed", "over_budget"):
            refused = state_of(*core.SENT, core.not_landed(1), core.refused(reason))
            for body in (core.dispatched(2), core.refused("unreachable")):
                with self.subTest(reason=reason, kind=body[0].value), self.assertRaises(IllegalTransition):
                    then(refused, body)

    def test_a_decision_that_may_have_landed_is_not_replaced(self) -> None:
        landed = core.IN_PHASE[Phase.RESOLVED]
        contradicted = then(core.IN_PHASE[Phase.REFUSED], core.LATE_EVIDENCE)
        for state in (landed, contradicted, core.IN_PHASE[Phase.COMMITTED], core.IN_PHASE[Phase.AMBIGUOUS]):
            with self.subTest(phase=state.phase.value), self.assertRaises(IllegalTransition):
                then(state, core.REPLACED)

    def test_the_send_that_is_committed_is_the_one_that_landed(self) -> None:
        twice = state_of(*core.SENT, core.unknown(), core.dispatched(2))
        self.assertIs(then(twice, core.committed(2)).sends[1].status, SendStatus.LANDED)
        self.assertIs(then(twice, core.committed(None)).phase, Phase.COMMITTED)


KINDS = st.sampled_from([body for body in EXAMPLES.values() if body[0] is not Kind.DISPATCHED])
NUMBERS = st.integers(1, 3)
INSTANTS = st.builds(at, st.integers(0, 200_000), st.sampled_from(("boot", "other")))
BODIES = st.one_of(
    KINDS,
    st.builds(core.dispatched, NUMBERS, INSTANTS),
    st.builds(core.unknown, NUMBERS, INSTANTS),
    st.builds(core.orphaned, NUMBERS, INSTANTS),
    st.builds(core.sender_lost, NUMBERS, INSTANTS),
    st.builds(core.not_landed, NUMBERS, proof=st.sampled_from(("mark", "definite_no", "lookup"))),
    st.builds(core.refused, st.sampled_from(("unreachable", "stale_premise"))),
    st.builds(core.resolved, st.booleans()),
    st.just(core.LATE_EVIDENCE),
)


def journal_of(bodies: list[tuple[Kind, dict[str, Any]]]) -> list[Entry]:
    """A journal that holds those of the bodies that may follow one another, after a first send."""
    state = state_of(*core.SENT)
    written = entries(core.SENT)
    for kind, body in bodies:
        entry = Entry("x" * 32, state.seq + 1, kind, 0, body)
        try:
            state = step(state, entry)
        except IllegalTransition:
            continue
        written.append(entry)
    return written


class TestFold(unittest.TestCase):
    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(st.lists(BODIES, max_size=25))
    def test_whatever_is_written_the_state_makes_sense(self, bodies: list[tuple[Kind, dict[str, Any]]]) -> None:
        journal = journal_of(bodies)
        state = fold(journal)
        self.assertEqual(state.seq, len(journal))
        self.assertEqual([send.number for send in state.sends], list(range(1, len(state.sends) + 1)))
        running = [send.number for send in state.sends if send.status is SendStatus.RUNNING]
        self.assertLessEqual(len(running), 1)
        self.assertEqual(running, running and [len(state.sends)])
        self.assertEqual(state.maybe_landed, tuple(send for send in state.sends if send.may_have_landed))
        for send in state.sends:
            self.assertEqual(len({moment.boot for moment in send.since}), len(send.since))
            self.assertIs(state.send(send.number), send)
        if state.phase is Phase.REFUSED:
            self.assertEqual(state.maybe_landed, ())
        if state.phase not in OPEN_PHASES:
            self.assertFalse(state.is_open)
            self.assertIsNotNone(state.closing)

    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(st.lists(BODIES, max_size=20), st.integers(0, 20))
    def test_a_fold_can_be_taken_up_anywhere(self, bodies: list[tuple[Kind, dict[str, Any]]], cut: int) -> None:
        journal = journal_of(bodies)
        self.assertEqual(fold(journal[cut:], fold(journal[:cut])), fold(journal))

    def test_nothing_folds_to_new(self) -> None:
        self.assertEqual(fold([]), State())
        self.assertIs(State().phase, Phase.NEW)


if __name__ == "__main__":
    unittest.main()
