"""Every reachable state of every contract at one crash, and a mutant for everything that could be wrong.

The large plan, with two crashes and longer times, runs by ``python -m scenarios.explorer --full``.
"""

from __future__ import annotations

import contextlib
import io
import os
import unittest
from dataclasses import replace

from scenarios.explorer.__main__ import explore_mutant, explore_setup, in_parallel, main
from scenarios.explorer.bridge import PRODUCTION
from scenarios.explorer.model import Model
from scenarios.explorer.mutants import MUTANTS
from scenarios.explorer.search import explore, walk
from scenarios.explorer.setup import CONTRACTS, find, quick, roomy

PROCESSES = min(2, os.cpu_count() or 1)

NAMED = {
    "a resend's definite no closes the effect though an earlier send landed": "resend_no_closes",
    "a no mark of the last send taken for the effect's": "last_mark_for_all",
    "a mark cleared or its slot reused": "mark_cleared",
    "refusing at once when a premise failed that the service does not enforce": "refuses_at_once",
    "enforces on create-only writes": "create_only",
    "not found counted from DISPATCHED": "counted_from_dispatched",
    "lookup lag ignored": "lag_ignored",
    "the dedup window counted from the latest send": "window_from_latest",
    "a lost session taken for death": "lost_is_death",
    "an append without the compare-and-set": "no_compare_and_set",
    "a stored 500 retried for ever": "stored_error_retried",
    "unreadable checks taken for failed ones": "unreadable_is_failed",
    "a late definite no of an old send closes the effect under a newer one": "late_no_closes",
    "UNKNOWN appended while a shielded send still lives": "cancelled_is_over",
    "a lost session starting the clock of a death": "lost_starts_a_death_clock",
    "the dedup window unchecked on a first send": "window_unchecked_on_first",
}
"""The mistakes that must be caught whatever else is."""

RULES = {
    (0, "nothing"),
    (1, "commit"),
    (1, "look_up"),
    (1, "nothing"),
    (2, "in_flight"),
    (3, "read_checks"),
    (3, "look_up"),
    (3, "stay"),
    (4, "send"),
    (4, "refuse"),
    (5, "send"),
    (6, "send"),
    (6, "wait"),
    (7, "look_up"),
    (7, "stay"),
    (7, "wait"),
    (7, "send"),
    (7, "refuse"),
    (7, "ambiguous"),
    (8, "ambiguous"),
}
"""Every rule with everything that it can lead to."""


class TestExplorer(unittest.TestCase):
    def test_every_contract_is_clean_and_the_frontier_empties(self) -> None:
        plan = quick()
        self.assertEqual({setup.name for setup in plan if setup.hosts == 1 and setup.crashes}, set(CONTRACTS))
        self.assertEqual({setup.name.removesuffix("+strict") for setup in plan if setup.hosts == 2}, set(CONTRACTS))
        states, taken = 0, set()
        for setup, found in zip(plan, in_parallel(explore_setup, plan, PROCESSES), strict=True):
            with self.subTest(setup.title):
                self.assertIsNone(found.trace, f"{found}\n{found.trace}")
                self.assertTrue(found.emptied, str(found))
                self.assertTrue(found.clean)
            states += found.states
            taken |= found.taken
        self.assertGreater(states, 300_000)
        self.assertEqual(taken, RULES, "a rule of recovery that was never reached was not tested")

    def test_every_mutant_is_killed(self) -> None:
        names = list(MUTANTS)
        self.assertLessEqual(set(NAMED.values()), set(names))
        for name, found in zip(names, in_parallel(explore_mutant, names, PROCESSES), strict=True):
            with self.subTest(name):
                assert found.trace is not None, f"{name} survived: {found}"
                self.assertTrue(found.trace.broken.startswith(MUTANTS[name].breaks), found.trace.broken)
                self.assertGreater(found.trace.length, 0)
                self.assertIn("1. ", found.trace.lines[0])

    def test_the_worlds_of_the_mutants_are_clean_without_them(self) -> None:
        """What kills a mutant is the mutation. Worlds in which less goes wrong than in the plan are not repeated."""
        broken = [m for m in MUTANTS.values() if m.flaws or m.core is not PRODUCTION]
        worlds = {m.setup for m in broken if m.setup.exact or m.setup.slow}
        self.assertGreaterEqual(len(worlds), 5)
        for setup in worlds:
            with self.subTest(setup.title):
                found = explore(Model(setup))
                self.assertTrue(found.clean, f"{found}\n{found.trace}")

    def test_truncation_fails(self) -> None:
        found = explore(Model(find("lookup")), most_states=100)
        self.assertFalse(found.emptied)
        self.assertFalse(found.clean)
        self.assertIn("TRUNCATED", str(found))

    def test_a_trace_is_as_short_as_can_be(self) -> None:
        """Decide, append and send, crash, see a mark that is not there any more: nothing shorter shows that one."""
        trace = MUTANTS["mark_cleared"].model()
        found = explore(trace)
        assert found.trace is not None
        self.assertEqual(found.trace.length, 6)
        self.assertIn("send 1: dies, ended", "\n".join(found.trace.lines))


class TestWalks(unittest.TestCase):
    def test_random_walks_with_much_going_wrong(self) -> None:
        for setup in roomy():
            for seed in range(3):
                with self.subTest(setup.title, seed=seed):
                    self.assertIsNone(walk(Model(setup), seed))

    def test_a_walk_can_be_repeated_and_finds_a_mutant(self) -> None:
        mutant = MUTANTS["lag_ignored"]
        model = Model(replace(mutant.setup, faults=2), mutant.core)
        found = {seed: walk(model, seed) for seed in range(200)}
        broken = {seed: trace for seed, trace in found.items() if trace is not None}
        self.assertGreater(len(broken), 0)
        seed, trace = next(iter(broken.items()))
        self.assertEqual(walk(Model(replace(mutant.setup, faults=2), mutant.core), seed), trace)


class TestCommand(unittest.TestCase):
    def run_command(self, *arguments: str) -> tuple[int, str]:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = main([*arguments, "--processes", "1"])
        return code, printed.getvalue()

    def test_exploring(self) -> None:
        code, printed = self.run_command("--contract", "neither", "--hosts", "1")
        self.assertEqual(code, 0)
        self.assertIn("frontier emptied", printed)
        self.assertIn("0 not clean", printed)

    def test_truncation_is_a_failure(self) -> None:
        code, printed = self.run_command("--contract", "lookup", "--hosts", "1", "--most-states", "10")
        self.assertEqual(code, 1)
        self.assertIn("TRUNCATED", printed)

    def test_a_mutant_prints_its_trace(self) -> None:
        code, printed = self.run_command("--mutant", "late_no_closes")
        self.assertEqual(code, 0)
        self.assertIn("send 1: records the end, no, NOT_LANDED and REFUSED", printed)
        self.assertIn("1 mutants, 0 survived", printed)

    def test_walking(self) -> None:
        code, printed = self.run_command("--seed", "5", "--walks", "1", "--contract", "lookup")
        self.assertEqual(code, 0)
        self.assertIn("3 walks from seed 5, 0 not clean", printed)

    def test_names_that_do_not_exist(self) -> None:
        for arguments in (["--contract", "x"], ["--mutant", "x"]):
            with self.assertRaises(SystemExit):
                self.run_command(*arguments)


if __name__ == "__main__":
    unittest.main()
