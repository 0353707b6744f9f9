"""A few cells of the crash suite with the real LangGraph; ``python -m scenarios.graph`` plays all."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from interlock_tools import Gate
from interlock_tools.testing.postgres import NoServer, binaries
from scenarios.graph.__main__ import play
from scenarios.graph.agent import AMOUNT, JOURNAL, KEYS
from scenarios.graph.cells import Cell
from scenarios.graph.judge import HarnessError, Life, Told
from scenarios.graph.page import page

CELLS = (
    Cell("toolkit", "sqlite", "exit", "after_effect", "message", "other_done"),
    Cell("toolkit", "sqlite", "async", "first_checkpoint", "none", "two"),
    Cell("toolkit", "sqlite", "sync", "interrupt", "none", "other_waits"),
    Cell("middleware", "sqlite", "async", "after_tool", "none", "other_kept"),
    Cell("middleware", "sqlite", "sync", "in_tool", "message", "other_waits"),
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
        self.assert_once(Cell("toolkit", "postgres", "sync", "after_effect", "none", "other_done"))

    def test_without_the_gate_the_same_graph_pays_twice(self) -> None:
        (record,) = play([Cell("no_gate", "sqlite", "sync", "after_effect", "none", "other_kept")], jobs=1)
        self.assertEqual((record.get("error"), record["effects"]), (None, [2, 1]))

    def test_the_judge_sees_what_is_wrong(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            Gate(folder / JOURNAL, signing=folder / KEYS).close()
            told = Told(CELLS[0], ["pi_1", "pi_2"], folder)
            told.refunds = [{"id": f"re_{n}", "amount": AMOUNT, "payment_intent": "pi_1"} for n in (1, 2)]
            told.effect_ids = {"case:pi_1": {"a", "b"}, "case:pi_2": {"c"}}
            said = {"request": "case:pi_1", "outcome": "COMMITTED", "status": "success", "receipt": {"records": []}}
            told.messages = [
                {**said, "effect_id": "a", "content": "Done: re_1"},
                {**said, "effect_id": "b", "content": "Done.", "receipt": {"records": [1]}},
                {**said, "effect_id": "c", "content": "Not done.", "outcome": "FAILED", "request": "case:pi_3"},
            ]
            problems = "\n".join(told.judged()["problems"])
        for words in ("made [2, 0]", "not one effect", "none of the refunds", "not named", "different", "0 messages"):
            self.assertIn(words, problems)

    def test_a_death_in_another_place_has_no_result(self) -> None:
        with tempfile.TemporaryDirectory() as name, self.assertRaises(HarnessError):
            Told(CELLS[0], ["pi_1", "pi_2"], Path(name)).after(Life(1, "first", "after_effect"), None, [])

    def test_the_page_is_made_from_the_figures(self) -> None:
        results = Path(__file__).resolve().parents[1] / "results"
        figures = json.loads((results / "langgraph.json").read_text(encoding="utf-8"))
        self.assertEqual(page(figures), (results / "langgraph.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
