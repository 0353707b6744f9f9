"""``observe`` and ``next_step``: each rule of recovery, and that there is an answer to every view."""

from __future__ import annotations

import unittest
from dataclasses import replace
from typing import Any

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
from interlock_tools.core.entries import Instant, Kind
from interlock_tools.core.states import OPEN_PHASES, Phase, State
from tests import core_support as core
from tests.core_support import DAY_MS, LAG_MS, LEASE_MS, SKEW_MS, TIMEOUT_MS, at, contract, state_of, then

ORPHAN = state_of(*core.SENT, core.orphaned())
LOST = state_of(*core.SENT, core.sender_lost())
DEDUPES = contract(dedupes_ms=DAY_MS)
ENFORCES = contract(enforces=frozenset({"head"}))
LOOKUP = contract(has_lookup=True, lookup_lag_ms=LAG_MS)
NEITHER = contract()
LANDS_UNTIL = TIMEOUT_MS + LAG_MS
"""When a "not found" about ``ORPHAN`` begins to count."""


def step(state: State, offers: ServiceContract = NEITHER, now: int = 0, **view: Any) -> Step:
    """The step for a view with the checks holding, unless it says otherwise."""
    return next_step(View(state, offers, at(now), **{"checks": Checks.HOLD, **view}))


def looked(state: State, offers: ServiceContract, began: int, **view: Any) -> Step:
    """The step after a lookup that began then and found nothing."""
    return step(state, offers, began, lookup=Lookup.NOT_FOUND, lookup_began=at(began), **view)


class TestRules(unittest.TestCase):
    """The table, rule by rule."""

    def test_rule_0_what_is_closed_is_left_alone(self) -> None:
        for phase, state in core.IN_PHASE.items():
            if phase not in OPEN_PHASES and phase is not Phase.AMBIGUOUS:
                for evidence in (False, True):
                    with self.subTest(phase=phase.value, evidence=evidence):
                        self.assertEqual(step(state, LOOKUP, evidence=evidence), Step(Action.NOTHING, 0))

    def test_rule_1_evidence_commits_whatever_else_is_so(self) -> None:
        for state in (ORPHAN, LOST, core.IN_PHASE[Phase.DISPATCHED], core.IN_PHASE[Phase.AMBIGUOUS]):
            for checks in Checks:
                self.assertEqual(step(state, checks=checks, evidence=True), Step(Action.COMMIT, 1))

    def test_rule_1_what_is_ambiguous_is_looked_up_once_more(self) -> None:
        state = core.IN_PHASE[Phase.AMBIGUOUS]
        self.assertEqual(step(state, LOOKUP), Step(Action.LOOK_UP, 1))
        for lookup in (Lookup.NOT_FOUND, Lookup.UNREADABLE, Lookup.CANNOT_KNOW):
            self.assertEqual(step(state, LOOKUP, lookup=lookup), Step(Action.NOTHING, 1))
        self.assertEqual(step(state, DEDUPES), Step(Action.NOTHING, 1))

    def test_rule_2_i6_a_running_send_is_never_taken_over(self) -> None:
        running = (
            core.IN_PHASE[Phase.DISPATCHED],
            state_of(*core.SENT, core.orphaned(), core.dispatched(2)),
            state_of(*core.SENT, core.not_landed(1), core.dispatched(2)),
        )
        for state in running:
            for offers in (NEITHER, DEDUPES, ENFORCES, LOOKUP):
                for checks in Checks:
                    self.assertEqual(step(state, offers, DAY_MS, checks=checks), Step(Action.IN_FLIGHT, 2))

    def test_rule_3_i3_what_cannot_be_read_neither_holds_nor_refuses(self) -> None:
        """Nothing is sent and nothing refused; evidence may still be found."""
        for state in (*(core.IN_PHASE[phase] for phase in (Phase.PROPOSED, Phase.AUTHORIZED)), ORPHAN, LOST):
            for offers in (NEITHER, DEDUPES, ENFORCES):
                self.assertEqual(step(state, offers, checks=Checks.UNREADABLE), Step(Action.STAY, 3))
                self.assertEqual(step(state, offers, checks=Checks.NOT_READ), Step(Action.READ_CHECKS, 3))
        self.assertEqual(step(ORPHAN, LOOKUP, checks=Checks.UNREADABLE), Step(Action.LOOK_UP, 3))
        self.assertEqual(looked(ORPHAN, LOOKUP, DAY_MS, checks=Checks.UNREADABLE), Step(Action.STAY, 3))

    def test_rule_4_nothing_was_handed_over(self) -> None:
        states = (
            core.IN_PHASE[Phase.PROPOSED],
            core.IN_PHASE[Phase.AUTHORIZED],
            state_of(*core.SENT, core.not_landed(1)),
            state_of(*core.SENT, core.orphaned(), core.dispatched(2), core.not_landed(1, 2, proof="lookup")),
        )
        for state in states:
            for offers in (NEITHER, DEDUPES, ENFORCES, LOOKUP):
                self.assertEqual(step(state, offers, DAY_MS), Step(Action.SEND, 4))
                self.assertEqual(step(state, offers, DAY_MS, checks=Checks.FAIL), Step(Action.REFUSE, 4))

    def test_rule_4_a_mark_of_one_send_says_nothing_of_another(self) -> None:
        both = state_of(*core.SENT, core.orphaned(), core.dispatched(2), core.not_landed(2))
        self.assertEqual(step(both, NEITHER).action, Action.AMBIGUOUS)
        self.assertEqual(step(both, NEITHER, checks=Checks.FAIL).action, Action.AMBIGUOUS)

    def test_rule_5_resend_at_once_while_the_service_dedupes(self) -> None:
        resend = Step(Action.SEND, 5, resend=True)
        last = DAY_MS - SKEW_MS - TIMEOUT_MS - 1
        for now in (0, 1, last):
            self.assertEqual(step(ORPHAN, DEDUPES, now), resend)
        self.assertEqual(step(ORPHAN, DEDUPES, last + 1), Step(Action.AMBIGUOUS, 8, reason="no_evidence"))
        self.assertEqual(step(ORPHAN, contract(dedupes_ms=FOREVER), 100 * DAY_MS), resend)
        self.assertEqual(step(ORPHAN, DEDUPES, checks=Checks.FAIL).action, Action.AMBIGUOUS)

    def test_rule_5_from_another_host_only_if_the_lost_sender_will_be_too_late(self) -> None:
        resend = Step(Action.SEND, 5, resend=True)
        enough = contract(dedupes_ms=LEASE_MS + TIMEOUT_MS + SKEW_MS + TIMEOUT_MS)
        self.assertEqual(step(LOST, enough), resend)
        lost_for_long = state_of(*core.SENT, core.sender_lost(1, at(0), DAY_MS - TIMEOUT_MS))
        self.assertEqual(step(lost_for_long, DEDUPES).action, Action.AMBIGUOUS)
        self.assertEqual(step(LOST, replace(DEDUPES, strict=True)).reason, "sender_lost")
        self.assertEqual(step(LOST, contract(dedupes_ms=FOREVER)), resend)
        self.assertEqual(step(LOST, contract(dedupes_ms=FOREVER, strict=True)).reason, "sender_lost")

    def test_rule_6_resend_at_once_where_the_service_enforces(self) -> None:
        resend = Step(Action.SEND, 6, resend=True)
        self.assertEqual(step(ORPHAN, ENFORCES), resend)
        self.assertEqual(step(ORPHAN, ENFORCES, checks=Checks.FAIL).action, Action.AMBIGUOUS)
        self.assertEqual(step(LOST, ENFORCES), Step(Action.WAIT, 6, wait_ms=TIMEOUT_MS + LEASE_MS))
        self.assertEqual(step(LOST, ENFORCES, TIMEOUT_MS + LEASE_MS), resend)
        self.assertEqual(step(LOST, replace(ENFORCES, strict=True)).reason, "sender_lost")
        self.assertEqual(step(LOST, replace(ENFORCES, has_lookup=True)), Step(Action.LOOK_UP, 7))

    def test_rule_7_i7_not_found_counts_once_nothing_can_land_and_the_lookup_can_show_it(self) -> None:
        self.assertEqual(step(ORPHAN, LOOKUP), Step(Action.LOOK_UP, 7))
        for began in (0, 1, LANDS_UNTIL - 1):
            self.assertEqual(looked(ORPHAN, LOOKUP, began), Step(Action.WAIT, 7, wait_ms=LANDS_UNTIL - began))
        self.assertEqual(looked(ORPHAN, LOOKUP, LANDS_UNTIL), Step(Action.SEND, 7, not_landed=(1,)))
        refuse = looked(ORPHAN, LOOKUP, LANDS_UNTIL, checks=Checks.FAIL)
        self.assertEqual(refuse, Step(Action.REFUSE, 7, not_landed=(1,)))

    def test_rule_7_i7_the_lookup_counts_from_when_it_began(self) -> None:
        view = View(ORPHAN, LOOKUP, at(10 * LANDS_UNTIL), checks=Checks.HOLD, lookup=Lookup.NOT_FOUND)
        self.assertEqual(next_step(replace(view, lookup_began=at(0))).action, Action.WAIT)
        self.assertEqual(next_step(view).action, Action.STAY)

    def test_rule_7_i7_the_wait_is_for_the_send_that_may_land_last(self) -> None:
        """It begins with what ended each, not with its dispatch; a lost session's lease comes on top."""
        two = state_of(*core.SENT, core.orphaned(1, at(0)), core.dispatched(2), core.unknown(2, at(50_000)))
        self.assertEqual(looked(two, LOOKUP, LANDS_UNTIL).wait_ms, 50_000)
        self.assertEqual(looked(two, LOOKUP, 50_000 + LANDS_UNTIL).not_landed, (1, 2))
        self.assertEqual(looked(LOST, LOOKUP, LANDS_UNTIL).wait_ms, LEASE_MS)
        slow = state_of(*core.DECIDED, core.dispatched(1, at(0)), core.orphaned(1, at(70_000)))
        self.assertEqual(looked(slow, LOOKUP, LANDS_UNTIL).wait_ms, 70_000)

    def test_rule_7_a_wait_of_another_boot_begins_afresh(self) -> None:
        old = state_of(*core.SENT, core.orphaned(1, at(-DAY_MS, "earlier")))
        self.assertEqual(looked(old, LOOKUP, 0).wait_ms, LANDS_UNTIL)
        both = then(old, core.orphaned(1, at(0)))
        self.assertEqual(looked(both, LOOKUP, LANDS_UNTIL).action, Action.SEND)

    def test_rule_7_an_unreadable_lookup_settles_nothing(self) -> None:
        self.assertEqual(step(ORPHAN, LOOKUP, DAY_MS, lookup=Lookup.UNREADABLE), Step(Action.STAY, 7))

    def test_rule_7_a_lookup_that_cannot_know_is_believed_when_it_would_count(self) -> None:
        early = step(ORPHAN, LOOKUP, lookup=Lookup.CANNOT_KNOW, lookup_began=at(0))
        late = step(ORPHAN, LOOKUP, DAY_MS, lookup=Lookup.CANNOT_KNOW, lookup_began=at(DAY_MS))
        self.assertEqual((early.action, late.action, late.reason), (Action.WAIT, Action.AMBIGUOUS, "no_evidence"))

    def test_rule_7_the_short_wait_needs_an_enforced_premise_that_stays_false(self) -> None:
        """``lookup_lag`` after the failing reading, and only where nobody can make it true again."""
        final = frozenset({"head"})
        offers = replace(LOOKUP, enforces=final, never_true_again=final)
        fails = {"checks": Checks.FAIL, "failing": final, "checks_at": at(1_000)}
        self.assertEqual(looked(ORPHAN, offers, 1_000, **fails).wait_ms, LAG_MS)
        self.assertEqual(looked(ORPHAN, offers, 1_000 + LAG_MS, **fails), Step(Action.REFUSE, 7, not_landed=(1,)))
        also = {**fails, "failing": frozenset({"head", "approval"})}
        self.assertEqual(looked(ORPHAN, offers, 1_000 + LAG_MS, **also).action, Action.REFUSE)
        long = {
            "another premise fails": looked(ORPHAN, offers, 1_000 + LAG_MS, **{**fails, "failing": frozenset({"x"})}),
            "the grant is gone": looked(ORPHAN, offers, 1_000 + LAG_MS, **{**fails, "failing": frozenset()}),
            "it may become true again": looked(ORPHAN, replace(offers, never_true_again=frozenset()), 5_000, **fails),
            "it is not enforced": looked(ORPHAN, replace(offers, enforces=frozenset()), 5_000, **fails),
            "no reading": looked(ORPHAN, offers, 5_000, **{**fails, "checks_at": None}),
            "read in another boot": looked(ORPHAN, offers, 5_000, **{**fails, "checks_at": at(1_000, "other")}),
        }
        for name, found in long.items():
            with self.subTest(name):
                self.assertEqual(found.action, Action.WAIT)
                self.assertGreater(found.wait_ms, LAG_MS)

    def test_rule_8_otherwise_nobody_can_know(self) -> None:
        for checks in (Checks.HOLD, Checks.FAIL):
            self.assertEqual(step(ORPHAN, checks=checks), Step(Action.AMBIGUOUS, 8, reason="no_evidence"))
            self.assertEqual(step(LOST, checks=checks), Step(Action.AMBIGUOUS, 8, reason="sender_lost"))


class TestAfterAnAnswer(unittest.TestCase):
    """Where an answer has shown that resending on the contract's word is not safe or not useful."""

    def test_after_a_definite_no_rules_5_and_6_are_off(self) -> None:
        for proof in ("definite_no", "precondition_failed"):
            state = state_of(*core.SENT, core.orphaned(), core.dispatched(2), core.not_landed(2, proof=proof))
            for offers in (DEDUPES, ENFORCES):
                self.assertEqual(step(state, offers), Step(Action.AMBIGUOUS, 8, reason="no_evidence"))
                self.assertEqual(step(state, replace(offers, has_lookup=True)), Step(Action.LOOK_UP, 7))
            again = then(state, core.not_landed(1, proof="lookup"), core.dispatched(3), core.orphaned(3))
            self.assertEqual(step(again, DEDUPES).action, Action.AMBIGUOUS)

    def test_a_stored_error_is_looked_up_and_never_sent_again(self) -> None:
        state = state_of(*core.SENT, core.unknown(stored=True))
        self.assertEqual(step(state, DEDUPES), Step(Action.AMBIGUOUS, 8, reason="stored_error"))
        both = replace(DEDUPES, has_lookup=True)
        self.assertEqual(step(state, both), Step(Action.LOOK_UP, 7))
        self.assertEqual(looked(state, both, 0).action, Action.WAIT)
        for checks in (Checks.HOLD, Checks.FAIL):
            ended = looked(state, both, DAY_MS, checks=checks)
            self.assertEqual(ended, Step(Action.AMBIGUOUS, 7, reason="stored_error"))

    def test_a_rate_limit_or_a_send_that_did_not_leave_ends_nothing_else(self) -> None:
        for proof in ("rate_limited", "not_sent", "mark"):
            alone = state_of(*core.SENT, core.not_landed(1, proof=proof))
            self.assertEqual(step(alone, NEITHER), Step(Action.SEND, 4))
            other = state_of(*core.SENT, core.orphaned(), core.dispatched(2), core.not_landed(2, proof=proof))
            self.assertEqual(step(other, DEDUPES), Step(Action.SEND, 5, resend=True))

    def test_strict_acts_on_evidence_alone_after_a_lost_session(self) -> None:
        for offers in (DEDUPES, ENFORCES, LOOKUP, contract(dedupes_ms=FOREVER, has_lookup=True)):
            for checks in (Checks.HOLD, Checks.FAIL):
                found = looked(LOST, replace(offers, strict=True), DAY_MS, checks=checks)
                self.assertEqual((found.action, found.reason), (Action.AMBIGUOUS, "sender_lost"))


class TestWindow(unittest.TestCase):
    """How much of the dedup window is left."""

    def left(self, now: Instant, *bodies: tuple[Kind, dict[str, Any]], offers: ServiceContract = DEDUPES) -> int:
        return dedup_window_left_ms(state_of(*core.DECIDED, *bodies), offers, now)

    WHOLE = DAY_MS - SKEW_MS - TIMEOUT_MS

    def test_it_begins_at_the_first_send_that_may_have_been_handed_over(self) -> None:
        first, second = core.dispatched(1, at(0)), core.dispatched(2, at(5_000))
        self.assertEqual(self.left(at(7_000), first), self.WHOLE - 7_000)
        self.assertEqual(self.left(at(7_000), first, core.unknown(), second), self.WHOLE - 7_000)
        for proof in ("mark", "not_sent"):
            self.assertEqual(self.left(at(7_000), first, core.not_landed(1, proof=proof), second), self.WHOLE - 2_000)
        for proof in ("rate_limited", "definite_no", "lookup"):
            self.assertEqual(self.left(at(7_000), first, core.not_landed(1, proof=proof), second), self.WHOLE - 7_000)
        self.assertEqual(self.left(at(7_000)), self.WHOLE)
        self.assertEqual(self.left(at(10 * DAY_MS), first), self.WHOLE - 10 * DAY_MS)

    def test_within_a_boot_the_clock_that_cannot_be_set_counts(self) -> None:
        self.assertEqual(self.left(at(7_000, wall=-DAY_MS), core.dispatched(1, at(0))), self.WHOLE - 7_000)

    def test_across_boots_and_hosts_the_wall_clock_counts(self) -> None:
        sent = core.dispatched(1, at(0))
        self.assertEqual(self.left(at(-DAY_MS, "other", wall=7_000), sent), self.WHOLE - 7_000)

    def test_a_clock_that_is_behind_within_the_skew_closes_nothing(self) -> None:
        """Two hosts disagree by less than they may; the skew has been taken off already."""
        sent = core.dispatched(1, at(0))
        self.assertEqual(self.left(at(0, "other", wall=-SKEW_MS), sent), self.WHOLE + SKEW_MS)
        self.assertEqual(self.left(at(0, "other", wall=-SKEW_MS - 1), sent), 0)
        self.assertEqual(self.left(at(-1), sent), 0)

    def test_for_ever(self) -> None:
        offers = contract(dedupes_ms=FOREVER)
        self.assertEqual(self.left(at(99 * DAY_MS), core.dispatched(), offers=offers), FOREVER)


class TestObserve(unittest.TestCase):
    """What is recorded of a running send when somebody looks."""

    RUNNING = core.IN_PHASE[Phase.DISPATCHED]

    def seen(self, sender: Sender, mark: Mark = Mark.MAYBE, **more: Any) -> list[tuple[Kind, dict[str, Any]]]:
        return observe(self.RUNNING, {1: Sighting(sender, mark, **more)}, at(9))

    def test_i6_a_living_sender_is_not_taken_over_whatever_its_mark(self) -> None:
        for mark in Mark:
            self.assertEqual(self.seen(Sender.LIVE, mark), [])
        self.assertEqual(observe(self.RUNNING, {}, at(9)), [])

    def test_a_dead_sender(self) -> None:
        orphaned = [(Kind.ORPHANED, {"send": 1, "clock": at(9).to_json()})]
        self.assertEqual(self.seen(Sender.DEAD, Mark.NO), [core.not_landed(1)])
        self.assertEqual(self.seen(Sender.DEAD, Mark.YES), orphaned)
        self.assertEqual(self.seen(Sender.DEAD, Mark.MAYBE), orphaned)

    def test_the_wait_begins_when_the_bytes_were_written_if_that_is_known_in_this_boot(self) -> None:
        written = [(Kind.ORPHANED, {"send": 1, "clock": at(3).to_json()})]
        self.assertEqual(self.seen(Sender.DEAD, Mark.YES, written=at(3)), written)
        foreign = self.seen(Sender.DEAD, Mark.YES, written=at(3, "other"))
        self.assertEqual(foreign, [(Kind.ORPHANED, {"send": 1, "clock": at(9).to_json()})])

    def test_a_mark_that_proves_nothing_is_not_believed(self) -> None:
        kind, body = core.dispatched()
        unmarked = state_of(*core.DECIDED, (kind, {**body, "mark": {"slot": 1, "maybe": True}}))
        for sender in (Sender.DEAD, Sender.RETURNED):
            sightings = {1: Sighting(sender, Mark.NO, written=at(3))}
            ((found, recorded),) = observe(unmarked, sightings, at(9))
            self.assertIsNot(found, Kind.NOT_LANDED)
            self.assertEqual(recorded["clock"], at(9).to_json())

    def test_a_lost_session_is_not_a_death(self) -> None:
        """A clock and a lease of its own, and its mark is not believed: the process may still go on."""
        lost = [(Kind.SENDER_LOST, {"send": 1, "clock": at(9).to_json(), "lease_ms": LEASE_MS})]
        for mark in Mark:
            self.assertEqual(self.seen(Sender.LOST, mark, written=at(3), lease_ms=LEASE_MS), lost)

    def test_a_send_that_returned_and_could_not_be_recorded(self) -> None:
        ((kind, body),) = self.seen(Sender.RETURNED, Mark.YES)
        self.assertEqual((kind, body["send"], body["clock"]), (Kind.UNKNOWN, 1, at(9).to_json()))
        self.assertEqual(self.seen(Sender.RETURNED, Mark.NO), [core.not_landed(1)])

    def test_waits_begin_afresh_in_another_boot_and_only_there(self) -> None:
        now = at(9, "other")
        for end in (core.orphaned(), core.unknown(), core.sender_lost()):
            state = state_of(*core.SENT, end)
            with self.subTest(kind=end[0].value):
                self.assertEqual(observe(state, {}, at(9)), [])
                bodies = observe(state, {}, now)
                self.assertEqual([kind for kind, _ in bodies], [end[0]])
                after = then(state, *bodies)
                self.assertEqual(after.sends[0].lease_ms, state.sends[0].lease_ms)
                self.assertEqual(observe(after, {}, now), [])
        self.assertEqual(observe(state_of(*core.SENT, core.not_landed(1)), {}, now), [])

    def test_what_is_seen_can_be_recorded(self) -> None:
        state = state_of(*core.SENT, core.sender_lost(), core.dispatched(2), core.unknown(2), core.dispatched(3))
        for sender in Sender:
            for mark in Mark:
                bodies = observe(state, {3: Sighting(sender, mark)}, at(9, "other"))
                self.assertGreaterEqual(len(bodies), 2)
                then(state, *bodies)


if __name__ == "__main__":
    unittest.main()
