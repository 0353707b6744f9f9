"""The scenario suite, played for real: a row for each thing that it shows. ``run.py --all`` plays the rest."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from scenarios.suite.pages import overview
from scenarios.suite.play import Cell
from scenarios.suite.results import Store, rows

ROOT = Path(__file__).resolve().parents[1]


class Quick(unittest.TestCase):
    def test_every_cell_is_played_and_interlock_holds_each(self) -> None:
        done = subprocess.run(
            [sys.executable, str(ROOT / "scenarios" / "run.py"), "--quick", "--arm", "hand_check", "interlock"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=420,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertIn("0 could not be played, 0 of interlock's did not hold", done.stdout)

    def test_a_name_that_is_not_there_is_said_before_anything_is_played(self) -> None:
        done = subprocess.run(
            [sys.executable, str(ROOT / "scenarios" / "run.py"), "--only", "calendar", "--arm", "nobody"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=60,
        )
        self.assertEqual(done.returncode, 1)
        self.assertIn("no arm nobody; there are hand_check", done.stderr)


class Results(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def result(self, held: bool = True, **changes: object) -> dict[str, object]:
        return {
            "held": held,
            "holds": "x",
            "answer": "matches",
            "final_state": "-",
            "proof": {"ok": True, "missing": []},
            "tamper": "not caught",
            "settle_s": 1.0,
            "waited_by_rule_s": 0.0,
            "attempts": 1,
            "ours": False,
            "notes": {},
            "record": {"kind": "log", "steps": []},
            **changes,
        }

    def test_what_is_done_is_kept_and_an_error_is_no_result(self) -> None:
        store = Store(self.folder, seed=1)
        first, second = (Cell("calendar", arm, "after_commit/none") for arm in ("hand_check", "interlock"))
        store.add(first, self.result(), None)
        store.add(second, None, "HarnessError: it did not die")
        again = Store(self.folder, seed=1)
        self.assertEqual((again.has(first), again.has(second)), (True, False))
        kept = json.loads((self.folder / "scenarios" / "calendar.json").read_text())
        found = {(row["arm"], row["held"], row["played"], row["errors"]) for row in rows(kept)}
        self.assertEqual(found, {("hand_check", 1, 1, 0), ("interlock", 0, 0, 1)})

    def test_the_overview_says_when_a_check_is_enough_and_when_it_is_not(self) -> None:
        for hand, wanted in (
            (self.result(), "then do"),
            (self.result(False), "the check does not hold"),
            (self.result(answer="contradicts"), "the check says what is not so"),
            (self.result(final_state="not told"), "does not say what became of it"),
        ):
            store = Store(self.folder, seed=1)
            store.add(Cell("calendar", "hand_check", "after_commit/none"), hand, None)
            store.add(Cell("calendar", "interlock", "after_commit/none"), self.result(), None)
            self.assertIn(wanted, overview({"calendar": store.of("calendar")}, self.folder))


if __name__ == "__main__":
    unittest.main()
