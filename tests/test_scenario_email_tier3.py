"""The logic of the scenario email_tier3, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class EmailTier3(ScenarioCase):
    key = "email_tier3"

    def ledger(self, count: int) -> dict[str, Any]:
        mail = {"via": "api", "text": "Your refund is on the way.", "idempotency_key": "k"}
        return {"mails": [{**mail, "id": f"m{n}"} for n in range(count)]}

    def test_one_mail_or_none(self) -> None:
        for fault in ("crash_after_send", "refused_after_send", "past_key_window"):
            self.assert_held(fault, self.ledger(1))
            self.assert_broken(fault, self.ledger(2))
        self.assert_held("refused_before_send", self.ledger(0))
        self.assert_broken("refused_before_send", self.ledger(1))


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
