"""The logic of the scenario connect_payout, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class ConnectPayout(ScenarioCase):
    key = "connect_payout"
    arguments: ClassVar[Mapping[str, Any]] = {"destination": "acct_1"}

    def test_one_transfer_or_none(self) -> None:
        made = {"id": "tr_1", "destination": "acct_1", "amount": 2000}
        self.assert_held("crash_after_commit", {"transfers": [made]})
        self.assert_broken("crash_after_commit", {"transfers": []})
        self.assert_broken("crash_after_commit", {"transfers": [made, made]})
        self.assert_held("crash_before_send_order_reversed", {"transfers": []})
        self.assert_broken("crash_before_send_seller_restricted", {"transfers": [made]})


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
