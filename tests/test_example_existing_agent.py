"""The example of an agent that is there already: it acts once, also when it is killed in the tool."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class ExistingAgent(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def run_it(self, *arguments: str) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, str(ROOT / "examples" / "existing_agent.py"), *arguments],
            cwd=ROOT,
            env={**os.environ, "EXAMPLE_FOLDER": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout + done.stderr

    def sent(self) -> list[str]:
        return (self.folder / "sent.txt").read_text().splitlines()

    def test_twice_bills_once(self) -> None:
        answers = [self.run_it() for _ in range(2)]
        self.assertEqual((answers[0], len(self.sent())), (answers[1], 1))
        self.assertIn("Invoice over 12.50", answers[0][1])

    def test_killed_in_the_tool_nobody_knows_and_nothing_is_done_again(self) -> None:
        self.assertEqual(self.run_it("--kill")[0], -signal.SIGKILL)
        code, out = self.run_it()
        self.assertEqual((code, len(self.sent())), (0, 1), out)
        self.assertIn("a person", out)

    def test_with_a_lookup_it_finds_what_it_did(self) -> None:
        self.assertEqual(self.run_it("--kill", "--lookup")[0], -signal.SIGKILL)
        code, out = self.run_it("--lookup")
        self.assertEqual((code, len(self.sent())), (0, 1), out)
        self.assertIn("found at the service", out)


if __name__ == "__main__":
    unittest.main()
