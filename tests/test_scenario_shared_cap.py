"""The logic of the scenario shared_cap, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase

from scenarios.suite.model import Work
from scenarios.suite.wilson import interval


class SharedCap(ScenarioCase):
    key = "shared_cap"
    arguments: ClassVar[Mapping[str, Any]] = {"payment_intent": "pi_1", "amount": 2000}

    def ledger(self, *amounts: int) -> dict[str, Any]:
        made = {"payment_intent": "pi_1", "status": "succeeded", "metadata": {}}
        return {"refunds": [{**made, "id": f"re_{n}", "amount": amount} for n, amount in enumerate(amounts)]}

    def test_the_cap(self) -> None:
        for fault in self.scenario.faults:
            self.assert_held(fault, self.ledger(2000))
            self.assert_held(fault, self.ledger())
            self.assert_broken(fault, self.ledger(2000, 2000))

    def test_what_was_lost_of_it(self) -> None:
        work = Work(self.key, "hand_sql", "two_hosts/before_send", "case", "/nowhere", dict(self.arguments))
        fault = self.scenario.faults[work.fault]
        self.assertTrue(self.scenario.notes(self.ledger(), work, fault)["stranded"])
        self.assertFalse(self.scenario.notes(self.ledger(2000), work, fault)["stranded"])

    def test_a_rate_has_an_interval(self) -> None:
        low, high = interval(20, 20)
        self.assertTrue(0.8 < low < 1.0 and high == 1.0)
        self.assertEqual(interval(0, 0), (0.0, 1.0))
        self.assertTrue(interval(5, 20)[0] < 0.25 < interval(5, 20)[1])


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
