"""The scenario suite, played for real: a row for each thing that it shows. ``run.py --all`` plays the rest."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any

from interlock_tools import parse_policy, verify
from interlock_tools.receipts.keys import KeySigner, verifier_key
from interlock_tools.testing.receipts import STORIES, Book
from scenarios.suite import judging, lanes, races
from scenarios.suite.pages import overview
from scenarios.suite.play import Cell
from scenarios.suite.results import Store, rows
from scenarios.suite.tampering import CHANGES, tampered

ROOT = Path(__file__).resolve().parents[1]


class Quick(unittest.TestCase):
    def test_every_cell_is_played_and_interlock_holds_each(self) -> None:
        done = subprocess.run(
            [sys.executable, str(ROOT / "scenarios" / "run.py"), "--quick", "--arm", "interlock"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=420,
        )
        self.assertEqual(done.returncode, 0, done.stdout[-2000:] + done.stderr[-2000:])
        self.assertIn("0 could not be played, 0 of interlock's did not hold", done.stdout)

    def test_a_careful_hand_written_tool_does_what_it_can_and_no_more(self) -> None:
        """Where the service can only be looked at, a look at once does not see what is still on its way."""
        cells = [Cell("github_comment", "hand_check", fault) for fault in ("crash_after_send", "in_flight")]
        found: dict[str, dict[str, Any]] = {}

        def heard(cell: Cell, result: dict[str, Any] | None, error: str | None) -> None:
            self.assertIsNone(error)
            found[cell.fault] = result or {}

        lanes.run(cells, 2, 1, heard, threading.Event())
        self.assertEqual((found["crash_after_send"]["held"], found["in_flight"]["held"]), (True, False))
        self.assertEqual(found["in_flight"]["start_s"], 0.0)
        self.assertGreater(found["crash_after_send"]["start_s"], 0.0)

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
            "tamper": dict.fromkeys(CHANGES, "not caught"),
            "settle_s": 1.0,
            "start_s": 0.5,
            "waits": {},
            "waited_by_rule_s": 0.0,
            "raced": {},
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

    def test_cells_of_another_shape_are_to_be_played_again(self) -> None:
        cell = Cell("calendar", "interlock", "after_commit/none")
        Store(self.folder, seed=1).add(cell, self.result(), None)
        path = self.folder / "scenarios" / "calendar.json"
        path.write_text(path.read_text().replace('"format": 2', '"format": 1'))
        self.assertFalse(Store(self.folder, seed=1).has(cell))

    def test_waits_are_what_the_gate_said_and_a_retry_is_no_rule(self) -> None:
        pauses = [{"seconds": 0.5, "why": "rule 7: x"}, {"seconds": 1.0, "why": "rule 7: x"}]
        pauses += [{"seconds": 0.25, "why": "before another send of it"}]
        self.assertEqual(judging.waits(pauses), {"before another send of it": 0.25, "rule 7: x": 1.5})
        self.assertEqual(judging.waited_by_rule_s(pauses), 1.5)

    def test_settling_is_told_with_its_runs_and_without_the_start(self) -> None:
        store = Store(self.folder, seed=1)
        for number, settle in enumerate((1.0, 1.1, 9.0), 1):
            for arm, more in (("hand_check", 0.0), ("interlock", 0.55)):
                result = self.result(settle_s=settle + more)
                store.add(Cell("calendar", arm, "after_commit/none", number), result, None)
        said = overview({"calendar": store.of("calendar")}, self.folder)
        self.assertIn("took 1.50 times as long", said)
        self.assertIn("3 runs for 1 faults", said)
        self.assertIn("interlock adds 0.55 s", said)

    def test_every_kind_of_change_is_caught_and_a_forgery_by_its_signature(self) -> None:
        writer = KeySigner("writer", bytes(32))
        policy = f"writer {verifier_key(writer)}\nquorum none\n"
        for story in ("settled", "looked_up", "refused"):
            book = Book(writer, shared=True)
            receipt = json.loads(book.receipt(book.write(STORIES[story])))
            record = {"receipt": receipt, "policy": policy}
            self.assertEqual(tampered(record), dict.fromkeys(CHANGES, "caught"), story)
        for name in ("truncate", "append"):
            copy = json.loads(json.dumps(receipt))
            CHANGES[name](copy)
            self.assertIn("writer", verify(copy, parse_policy(policy)).failed)
        self.assertEqual(tampered({"steps": [{"claim": "landed"}]}), dict.fromkeys(CHANGES, "not caught"))
        another = f"writer {verifier_key(KeySigner('writer', bytes(31) + b'x'))}\nquorum none\n"
        self.assertNotIn("caught", tampered({**record, "policy": another}).values())

    def test_a_race_says_when_the_others_came(self) -> None:
        runs = [{"acted_s": 0.001, "other_landed_s": landed, "held": landed < 0} for landed in (-0.1, 1.2, 1.3)]
        said = races.words([{"fault": "before_send", "arm": "hand_check", "raced": runs}])
        self.assertIn("the other's refund came 1.20 s after the death", said)
        self.assertIn("hand_check held 1/3", said)

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
