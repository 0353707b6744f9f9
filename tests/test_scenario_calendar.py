"""The logic of the scenario calendar, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class Calendar(ScenarioCase):
    key = "calendar"

    def ledger(self, own: int, others: int = 0, status: str = "confirmed") -> dict[str, Any]:
        mine = [{"id": f"e{n}", "via": "api", "summary": "Call", "status": status} for n in range(own)]
        theirs = [{"id": f"p{n}", "via": "person", "summary": "x", "status": "confirmed"} for n in range(others)]
        return {"events": mine + theirs}

    def test_as_often_as_wanted(self) -> None:
        self.assert_held("after_commit/slot_busy", self.ledger(1, 1))
        self.assert_broken("after_commit/none", self.ledger(2))
        self.assert_held("before_send/pre_busy", self.ledger(0, 1))
        self.assert_broken("before_send/slot_busy", self.ledger(1, 1))

    def test_a_deleted_event_is_not_booked_again(self) -> None:
        deleted = self.ledger(1, status="cancelled")
        self.assert_held("after_commit/deleted", deleted)
        self.assertTrue(self.verdict("after_commit/deleted", deleted).failed)


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
