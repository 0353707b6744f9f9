"""A few cells of the crash suite with the real LangGraph; ``python -m scenarios.graph`` plays all."""

from __future__ import annotations

import unittest

from interlock_tools.testing.postgres import NoServer, binaries
from scenarios.graph.__main__ import play
from scenarios.graph.cells import Cell

CELLS = (
    Cell("toolkit", "sqlite", "exit", "after_effect", "message", 2),
    Cell("toolkit", "sqlite", "async", "first_checkpoint", "none", 2),
    Cell("toolkit", "sqlite", "sync", "interrupt", "none", 2),
    Cell("middleware", "sqlite", "async", "after_tool", "none", 1),
    Cell("middleware", "sqlite", "sync", "in_tool", "message", 2),
)


class Crashes(unittest.TestCase):
    def assert_once(self, *cells: Cell) -> None:
        for record in play(list(cells), jobs=1):
            with self.subTest(record["cell"]):
                self.assertNotIn("error", record, record.get("error"))
                self.assertEqual(record["problems"], [])

    def test_one_effect_the_same_receipt_and_the_truth(self) -> None:
        self.assert_once(*CELLS)

    def test_with_checkpoints_in_postgresql(self) -> None:
        try:
            binaries()
        except NoServer as error:
            self.skipTest(str(error))
        self.assert_once(Cell("toolkit", "postgres", "sync", "after_effect", "none", 2))

    def test_without_the_gate_the_same_graph_pays_twice(self) -> None:
        (record,) = play([Cell("no_gate", "sqlite", "sync", "after_effect", "none", 1)], jobs=1)
        self.assertEqual((record.get("error"), record["effects"]), (None, [2]))


if __name__ == "__main__":
    unittest.main()
