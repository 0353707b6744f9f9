"""The logic of the scenario billing_credit, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase

from scenarios.suite.model import Work


class BillingCredit(ScenarioCase):
    key = "billing_credit"
    arguments: ClassVar[Mapping[str, Any]] = {"customer": "cus_1", "amount": 1000}

    def entry(self, by: str = "", **changes: Any) -> dict[str, Any]:
        metadata = {"incident": "INC-7", **({"by": by} if by else {})}
        return {"id": "cbtxn_1", "type": "adjustment", "amount": -1000, "metadata": metadata, **changes}

    def test_one_credit_or_none(self) -> None:
        applied = self.entry(type="applied_to_invoice", amount=1000, metadata={})
        self.assert_held("before_send/renewal", {"credits": [self.entry(), applied]})
        self.assert_broken("before_send/renewal", {"credits": []})
        self.assert_broken("after_send/renewal", {"credits": [self.entry(), self.entry()]})
        self.assert_held("before_send/billing_credit", {"credits": [self.entry("billing")]})
        self.assert_broken("before_send/billing_credit", {"credits": [self.entry("billing"), self.entry()]})

    def test_coarser_premises_refuse_what_they_should_not(self) -> None:
        other = self.entry("billing", metadata={"incident": "INC-8", "by": "billing"})
        work = Work(self.key, "interlock", "before_send/unrelated_credit", "case", "/nowhere", {})
        notes = self.scenario.notes({"credits": [other]}, work, self.scenario.faults[work.fault])
        self.assertEqual(notes["premise_this_incident"], "holds")
        self.assertEqual(notes["premise_customer_balance"], "refuses")
        self.assertEqual(notes["premise_all_compensation_by_others"], "refuses")


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
