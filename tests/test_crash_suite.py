"""The crash suite's pairwise selection, with real processes; and that the suite sees what is wrong.

All cells: ``python -m scenarios.crash --full``.
"""

from __future__ import annotations

import ast
import unittest
from pathlib import Path

from scenarios.crash import oracle
from scenarios.crash.cells import Cell, pairwise, parse, reachable
from scenarios.crash.cells import full as all_cells
from scenarios.crash.contracts import CONTRACTS, Contract
from scenarios.crash.judge import judge
from scenarios.crash.lane import carry_out
from scenarios.crash.runner import choose, replay, run_cells
from scenarios.sandbox import SandboxProcess

SEED = 1


class Pairwise(unittest.TestCase):
    def test_every_pair_of_crash_point_contract_facts_and_second_death_ends_right(self) -> None:
        names = choose(full=False, only=[], seed=SEED)
        summary = run_cells(names, seed=SEED, jobs=4)
        print(f"crash suite, pairwise: {summary.words()}")
        failed = [
            f"{found['cell']}: {found['problems']}\n{found.get('trace', '')}\n{replay(found['cell'], SEED)}"
            for found in summary.failed
        ]
        self.assertEqual(failed, [])
        self.assertEqual(summary.cells, len(names))
        self.assertGreater(summary.deaths, len(names))


class Selection(unittest.TestCase):
    def test_every_contract_point_and_state_of_facts_occurs_in_the_full_suite_and_in_the_selection(self) -> None:
        cells = list(reachable(all_cells()))
        for part in (cells, pairwise(cells, SEED)):
            self.assertEqual({cell.contract for cell in part}, set(CONTRACTS))
            for value in ("contract", "first", "facts", "second"):
                self.assertEqual({getattr(c, value) for c in part}, {getattr(c, value) for c in cells})
        self.assertEqual(len({cell.name for cell in cells}), len(cells))

    def test_a_cell_is_named_by_all_that_makes_it(self) -> None:
        cell = Cell("lookup", "in_flight", ("late", "now"), "moved", "recovery_checked")
        self.assertEqual(parse(cell.name), cell)


class Oracle(unittest.TestCase):
    def test_it_shares_no_code_with_the_gate(self) -> None:
        for module in ("oracle", "cells", "contracts"):
            path = Path(oracle.__file__).with_name(f"{module}.py")
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                self.assertFalse([name for name in names if name.startswith("interlock")], path)

    def test_no_right_result_has_two_effects_or_contradicts_the_service(self) -> None:
        for cell in reachable(all_cells()):
            for right in oracle.expected(cell):
                self.assertLessEqual(right.effects, 1, cell.name)
                if right.status in ("COMMITTED", "REFUSED"):
                    self.assertEqual(right.effects == 1, right.status == "COMMITTED", cell.name)
                self.assertIn(right.status, ("COMMITTED", "REFUSED", "AMBIGUOUS"), cell.name)


class SuiteSeesWhatIsWrong(unittest.TestCase):
    """A contract that the service does not keep must fail; a suite that lets it pass proves nothing."""

    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("generic").start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def problems(self, name: str, really: Contract) -> list[str]:
        cell = parse(name)
        right = oracle.expected(cell)
        return judge(cell, carry_out(self.sandbox, cell, SEED, 0, really=really), right)

    def test_a_key_that_is_not_remembered_makes_two_effects(self) -> None:
        found = self.problems("dedupes~in_flight~now,now~hold~none", Contract())
        self.assertIn("2 effects", found)

    def test_a_precondition_that_is_not_enforced_makes_two_effects(self) -> None:
        found = self.problems("enforces~after_response~now,now~hold~none", Contract())
        self.assertIn("2 effects", found)

    def test_a_lookup_that_is_staler_than_declared_makes_two_effects(self) -> None:
        found = self.problems("lookup~after_response~now,now~hold~none", Contract(lookup=True, lag_s=30.0))
        self.assertIn("2 effects", found)


if __name__ == "__main__":
    unittest.main()
