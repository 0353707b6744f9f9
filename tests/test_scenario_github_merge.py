"""The logic of the scenario github_merge, offline. ``scenarios/run.py`` plays it for real."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from scenario_support import ScenarioCase


class GithubMerge(ScenarioCase):
    key = "github_merge"
    arguments: ClassVar[Mapping[str, Any]] = {"sha": "a" * 40, "pull_number": 1}

    def ledger(self, *heads: str) -> dict[str, Any]:
        pulls = [{"number": 1, "merge_commit_sha": "c" * 40}]
        return {"repos": {"acme/shop": {"merges": [{"pull": 1, "head": head} for head in heads], "pulls": pulls}}}

    def test_only_the_reviewed_head(self) -> None:
        self.assert_held("before_send", self.ledger())
        self.assert_broken("before_send", self.ledger("b" * 40))
        self.assert_held("after_commit", self.ledger("a" * 40))
        self.assert_broken("after_commit_squash", self.ledger("b" * 40))
        self.assert_broken("after_commit", self.ledger())


del ScenarioCase  # or it would be run as a test of its own

if __name__ == "__main__":
    unittest.main()
