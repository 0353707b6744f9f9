"""The examples of an approval and of an effect of one's own, run as a newcomer would."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class ExampleCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_it(self, *command: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={**os.environ, "EXAMPLE_FOLDER": str(self.folder), "PYTHONPATH": f"{ROOT}:{ROOT / 'integrations'}"},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr

    def lines(self, name: str) -> list[str]:
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []


class Approval(ExampleCase):
    def test_left_open_approved_on_the_command_line_and_sent_by_the_next_run(self) -> None:
        code, out = self.run_it("examples/approval.py", "--answer", "later")
        self.assertEqual((code, self.lines("refunds.txt")), (0, []), out)
        asked = re.search(r"interlock approve (\w{32})", out)
        assert asked is not None, out
        program = "import sys; sys.argv[0] = 'interlock'; from interlock_tools.cli.main import main; main()"
        journal = str(self.folder / "approval.db")
        code, out = self.run_it("-c", program, "approve", asked[1], "--by", "ann", "--journal", journal)
        self.assertEqual((code, self.lines("refunds.txt")), (0, []), out)
        code, out = self.run_it("examples/approval.py")
        self.assertEqual((code, len(self.lines("refunds.txt"))), (0, 1), out)
        self.assertNotIn("Approve refund", out)

    def test_an_edit(self) -> None:
        code, out = self.run_it("examples/approval.py", "--answer", "edit")
        self.assertEqual((code, len(self.lines("refunds.txt"))), (0, 1), out)
        self.assertTrue(self.lines("refunds.txt")[0].endswith(" 10000"), out)


class CustomEffect(ExampleCase):
    def test_killed_and_recovered_at_once(self) -> None:
        self.assertEqual(self.run_it("examples/custom_effect.py", "--kill")[0], -signal.SIGKILL)
        code, out = self.run_it("examples/custom_effect.py")
        self.assertEqual((code, len(self.lines("restaurant.txt"))), (0, 1), out)
        self.assertIn("found at the service", out)

    def test_a_definite_no(self) -> None:
        code, out = self.run_it("examples/custom_effect.py", "--seats", "9")
        self.assertEqual((code, self.lines("restaurant.txt")), (1, []), out)
        self.assertIn("REFUSED:rejected", out)


if __name__ == "__main__":
    unittest.main()
