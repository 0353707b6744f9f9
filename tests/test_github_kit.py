"""The integration kit, run whole by ``merge_pull_request`` with each method and by ``create_issue_comment``."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from github import Auth, Github
from kit_support import SandboxKit

from interlock_integrations.github import declare_comment, declare_merge, gated_client
from interlock_integrations.github.client import GatedRequester
from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.testing.integration_kit import SENDING

REPO = "acme/shop"
TOKEN = "ghp_sandbox_interlock"
NUMBERS = range(1, len(SENDING) + 1)
WHERE = {"owner": "acme", "repo": "shop"}


class GithubKit(SandboxKit):
    service = "github"
    options: ClassVar[dict[str, str]] = {"github.mergeability_s": "0", "github.head_lag_s": "0"}
    rate_limit: ClassVar[dict[str, Any]] = {
        "status": 403,
        "headers": {"Retry-After": "0"},
        "answer": {"message": "You have exceeded a secondary rate limit.", "documentation_url": "https://docs"},
    }

    def setUp(self) -> None:
        super().setUp()
        self.control.action("create_repo", full_name=REPO)

    def requester(self) -> GatedRequester:
        auth = Auth.Token(TOKEN)
        return gated_client(
            Github(base_url=self.sandbox.url, auth=auth, seconds_between_requests=0, seconds_between_writes=0)
        )

    def ledger(self) -> Any:
        return self.control.ledger()["repos"][REPO]

    def secrets(self) -> Iterable[str]:
        return (TOKEN,)


class MergeKit(GithubKit):
    sends = ("PUT", f"/repos/{REPO}/pulls/[0-9]+/merge")
    method: ClassVar[str]

    def setUp(self) -> None:
        super().setUp()
        self.heads = {}
        for number in NUMBERS:
            branch = f"fix-{number}"
            made = self.control.action("commit", repo=REPO, branch=branch, files={f"{number}.txt": "x\n"})
            self.heads[number] = made["sha"]
            self.control.action("open_pull", repo=REPO, head=branch)

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_merge(gate, self.requester())

    def arguments(self, number: int) -> dict[str, Any]:
        asked = {"pull_number": number, "merge_method": self.method, "sha": self.heads[number]}
        return {"request": f"case-{number}", **WHERE, **asked}

    def landed(self, number: int) -> int:
        rows = [row for row in self.ledger()["merges"] if row["pull"] == number]
        for row in rows:
            self.assertEqual((row["head"], row["method"]), (self.heads[number], self.method))
        return len(rows)

    def disturb(self, number: int) -> None:
        self.control.action("commit", repo=REPO, branch=f"fix-{number}", files={f"{number}.txt": "unreviewed\n"})

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"sha": "abc123"}, {"sha": self.heads[1].upper()}, {"sha": self.heads[1] + "\n"})
        yield from ({"merge_method": "fast-forward"}, {"owner": "a/b"}, {"repo": ".."}, {"repo": "a?b"})
        yield from ({"pull_number": 0}, {"pull_number": "1"}, {"pull_number": True}, {"force": True})


class Merge(MergeKit, unittest.TestCase):
    method = "merge"


class Squash(MergeKit, unittest.TestCase):
    method = "squash"


class Rebase(MergeKit, unittest.TestCase):
    method = "rebase"


class Comment(GithubKit, unittest.TestCase):
    sends = ("POST", f"/repos/{REPO}/issues/[0-9]+/comments")

    def setUp(self) -> None:
        super().setUp()
        for _ in NUMBERS:
            self.control.action("open_issue", repo=REPO)

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_comment(gate, self.requester())

    def arguments(self, number: int) -> dict[str, Any]:
        return {"request": f"case-{number}", **WHERE, "issue_number": number, "body": f"Fixed in {number}."}

    def landed(self, number: int) -> int:
        mine = [c for c in self.ledger()["comments"] if (c["issue"], c["author"]) == (number, "interlock")]
        return len(mine)

    def disturb(self, number: int) -> None:
        self.control.action("close", repo=REPO, number=number)

    def crowd(self, number: int) -> None:
        comments = self.ledger()["comments"]
        self.control.action("comment", repo=REPO, number=number, count=250)
        self.assertEqual(len(comments), 1)

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"body": ""}, {"body": " \n"}, {"body": "x" * 65_536}, {"body": 5}, {"issue_number": -1})
        yield from ({"repo": "."}, {"owner": ""}, {"comment_id": 1})


if __name__ == "__main__":
    unittest.main()
