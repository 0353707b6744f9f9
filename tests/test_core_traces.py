"""Shortest traces that once led somewhere wrong, as the explorer found them."""

from __future__ import annotations

import unittest

from interlock_tools.core.decide import Action, Checks, Lookup, Sighting, Step, View, next_step, observe
from interlock_tools.core.decide import Sender as SenderIs
from interlock_tools.core.states import Phase
from tests import core_support as core
from tests.core_support import DAY_MS, LEASE_MS, SKEW_MS, TIMEOUT_MS, at, contract, state_of, then

DEDUPES = contract(dedupes_ms=DAY_MS)


class TestEndedEffects(unittest.TestCase):
    """Asked about again in another boot, an effect that has ended had waits recorded that may not follow its end."""

    def test_an_ambiguous_effect_is_looked_at_after_a_restart(self) -> None:
        """dispatch; the sender dies; AMBIGUOUS; the machine restarts; ``recover()``."""
        for end in (core.orphaned(), core.unknown(), core.sender_lost()):
            state = state_of(*core.SENT, end, core.ambiguous())
            self.assertEqual(observe(state, {}, at(0, "next boot")), [])

    def test_a_committed_effect_is_called_again_from_another_host(self) -> None:
        """dispatch; the sender dies; a resend commits; the same call is made where the clock is another."""
        state = state_of(*core.SENT, core.orphaned(), core.dispatched(2), core.committed(2))
        self.assertEqual(observe(state, {}, at(0, "other host")), [])
        self.assertIs(next_step(View(state, DEDUPES, at(0, "other host"))).action, Action.NOTHING)

    def test_found_by_a_lookup(self) -> None:
        state = state_of(*core.SENT, core.sender_lost(), core.committed(None))
        self.assertEqual(observe(state, {1: Sighting(SenderIs.LOST)}, at(0, "other host")), [])
        self.assertIs(state.phase, Phase.COMMITTED)


class TestDisagreeingClocks(unittest.TestCase):
    """Two hosts whose wall clocks differ by no more than the contract allows."""

    def test_a_clock_that_is_behind_does_not_make_an_effect_ambiguous(self) -> None:
        """dispatch on one host; its session is lost at once; recovery on a host whose clock is a second behind."""
        state = state_of(*core.DECIDED, core.dispatched(1, at(0)), core.sender_lost(1, at(0, "other", wall=-1_000)))
        found = next_step(View(state, DEDUPES, at(0, "other", wall=-1_000), checks=Checks.HOLD))
        self.assertEqual((found.action, found.rule), (Action.SEND, 5))

    def test_a_lost_send_that_was_dispatched_after_the_window_is_not_answered_with_a_resend(self) -> None:
        """A rate limit; the window ends; a second send, not held to it; its session is lost; a clock that is behind.

        By the first host's clock the window is over, so the second send's hook
        does not check it. By the second host's clock it is open for a moment
        more. A resend would land in time, and the second send after it, when
        the service has forgotten the key.
        """
        over = DAY_MS - SKEW_MS - TIMEOUT_MS
        state = state_of(
            *core.DECIDED,
            core.dispatched(1, at(0)),
            core.not_landed(1, proof="rate_limited"),
            core.dispatched(2, at(over)),
            core.sender_lost(2, at(over, "other", wall=over - 1_000), LEASE_MS),
        )
        now = at(over, "other", wall=over - 1_000)
        self.assertIs(next_step(View(state, DEDUPES, now, checks=Checks.HOLD)).action, Action.AMBIGUOUS)
        in_time = then(
            state_of(*core.DECIDED, core.dispatched(1, at(0)), core.not_landed(1, proof="rate_limited")),
            core.dispatched(2, at(over - 1)),
            core.sender_lost(2, at(over - 1, "other", wall=over - 1_000), LEASE_MS),
        )
        self.assertEqual(next_step(View(in_time, DEDUPES, now, checks=Checks.HOLD)).rule, 5)


class TestLookupsThatCannotTell(unittest.TestCase):
    def test_a_lookup_that_cannot_know_does_not_take_away_what_the_service_enforces(self) -> None:
        """dispatch; its session is lost; a lookup settles nothing; the wait is over; the enforced premise holds.

        Without any lookup it would be sent again then, so it is with a useless one.
        """
        offers = contract(enforces=frozenset({"head"}), has_lookup=True)
        state = state_of(*core.SENT, core.sender_lost())
        wait = View(state, offers, at(1), checks=Checks.HOLD, lookup=Lookup.CANNOT_KNOW, lookup_began=at(1))
        self.assertEqual(next_step(wait).action, Action.WAIT)
        later = at(LEASE_MS + TIMEOUT_MS)
        over = View(state, offers, later, checks=Checks.HOLD, lookup=Lookup.CANNOT_KNOW, lookup_began=later)
        self.assertEqual(next_step(over), Step(Action.SEND, 6, resend=True))


if __name__ == "__main__":
    unittest.main()
