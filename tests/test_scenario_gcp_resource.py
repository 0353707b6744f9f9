"""The logic of the scenario gcp_resource, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase

from scenarios.cases.gcp_resource import NAME


class GcpResource(ScenarioCase):
    key = "gcp_resource"

    def ledger(self, *via: str) -> dict[str, Any]:
        generations = [{"generation": n, "via": who} for n, who in enumerate(("person", "person", *via), 1)]
        return {"buckets": {"configs": {"objects": {NAME: {"generations": generations}}}}}

    def test_one_write_and_never_over_a_person_s(self) -> None:
        self.assert_held("crash_before_send_redeploy", self.ledger("person"))
        self.assert_broken("crash_before_send_redeploy", self.ledger("person", "api"))
        self.assert_held("crash_after_commit_redeploy", self.ledger("api", "person"))
        self.assert_broken("crash_after_commit_redeploy", self.ledger("api", "person", "api"))
        self.assert_held("crash_after_commit_no_change", self.ledger("api"))


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
