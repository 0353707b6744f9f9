"""The logic of the scenario stripe_dispute, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class StripeDispute(ScenarioCase):
    key = "stripe_dispute"
    arguments: ClassVar[Mapping[str, Any]] = {"payment_intent": "pi_1", "amount": 2000}

    def refund(self, created_at: float = 10.0, **changes: Any) -> dict[str, Any]:
        made = {"id": "re_1", "payment_intent": "pi_1", "amount": 2000, "status": "succeeded"}
        return {**made, "created_at": created_at, **changes}

    def ledger(self, *refunds: dict[str, Any], posted_at: float | None = 20.0) -> dict[str, Any]:
        return {"refunds": list(refunds), "disputes": [{"posted_at": posted_at}]}

    def test_no_refund_after_the_chargeback(self) -> None:
        before = "crash_before_send_chargeback_during_outage"
        self.assert_held(before, self.ledger())
        self.assert_broken(before, self.ledger(self.refund(30.0)))

    def test_one_refund_from_before_it(self) -> None:
        after = "crash_after_send_chargeback_during_outage"
        self.assert_held(after, self.ledger(self.refund(status="failed")))
        self.assertTrue(self.verdict(after, self.ledger(self.refund(status="failed"))).failed)
        for ledger in (self.ledger(), self.ledger(self.refund(), self.refund()), self.ledger(self.refund(25.0))):
            self.assert_broken(after, ledger)
        self.assert_broken("redecided", self.ledger(self.refund(amount=3000), posted_at=None))


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
