"""The explorer, in its quick plan: every state is visited and right, and every mutant is caught.

The large plan: ``python -m scenarios.explorer --full``.
"""

from __future__ import annotations

import unittest

from scenarios.explorer import setup as setups
from scenarios.explorer.__main__ import explore_mutant, explore_setup, in_parallel
from scenarios.explorer.mutants import MUTANTS

PROCESSES = 2
NAMED = {
    "resend_no_closes",
    "last_mark_for_all",
    "mark_cleared",
    "lost_is_death",
    "no_compare_and_set",
    "stored_error_retried",
    "late_no_closes",
    "cancelled_is_over",
    "lost_starts_a_death_clock",
}


class ExplorerTest(unittest.TestCase):
    def test_every_state_is_reached_and_every_invariant_holds(self) -> None:
        for found in in_parallel(explore_setup, setups.quick(), PROCESSES):
            with self.subTest(setup=found.title):
                self.assertTrue(found.emptied, "truncated")
                self.assertIsNone(found.trace, str(found))
                self.assertGreater(found.states, 50)

    def test_every_mutant_is_caught(self) -> None:
        names = sorted(MUTANTS)
        self.assertGreaterEqual(set(names), NAMED)
        for name, found in zip(names, in_parallel(explore_mutant, names, PROCESSES), strict=True):
            with self.subTest(mutant=name):
                self.assertIsNotNone(found.trace, "it survived")


if __name__ == "__main__":
    unittest.main()
