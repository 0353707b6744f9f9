"""The logic of the scenario github_comment, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class GithubComment(ScenarioCase):
    key = "github_comment"

    def ledger(self, *bodies: str) -> dict[str, Any]:
        made = [{"id": n, "author": "interlock", "body": body} for n, body in enumerate(bodies, 1)]
        return {"repos": {"acme/shop": {"comments": [*made, {"id": 9, "author": "alice", "body": "?"}]}}}

    def test_one_comment(self) -> None:
        for fault in ("in_flight", "stopped", "two_restarts"):
            self.assert_held(fault, self.ledger("It ships on Monday."))
            self.assert_broken(fault, self.ledger("It ships on Monday.", "It ships on Monday."))
        self.assert_broken("redecided", self.ledger("It ships on Tuesday."))
        self.assert_held("crash_before_send_locked", self.ledger())


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
