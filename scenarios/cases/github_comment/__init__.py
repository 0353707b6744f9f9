"""An answer to a customer's issue was approved; the agent dies; restart. The service can only be looked at."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar

from scenarios.cases.github_comment.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

REPO = os.environ.get("GITHUB_REPOSITORY", "acme/shop")
CASE = "ticket-88"


class GithubComment(Scenario):
    """See the module."""

    key = "github_comment"
    title = "A comment at a service that can only be looked at"
    invariant = "The approved comment is there once, and not at all if the issue was locked first."
    services = ("github",)
    options: ClassVar[Mapping[str, str]] = {"github.head_lag_s": "0", "github.mergeability_s": "0"}
    sends = ("POST", f"/repos/{REPO}/issues/[0-9]+/comments")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "crash_before_send": Fault(BEFORE_SEND, ours=True),
        "crash_after_send": Fault(AFTER_SEND, landed=True, ours=True),
        "crash_before_send_locked": Fault(BEFORE_SEND, outage="locked", wanted=0, ours=True),
        **common_faults(),
    }
    premises = ("state", "locked")
    authority = ("APR-7", "Approver One")
    live_needs = ("GITHUB_TOKEN", "GITHUB_REPOSITORY")

    def setup(self, world: World, fault: str) -> Work:
        world.control.action("create_repo", full_name=REPO)
        number = world.control.action("open_issue", repo=REPO)["number"]
        owner, repo = REPO.split("/")
        world.approve(CASE, id="APR-7", by="Approver One")
        arguments = {"owner": owner, "repo": repo, "issue_number": number, "body": "It ships on Monday."}
        return Work(self.key, "", fault, CASE, str(world.folder), arguments)

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "locked":
            world.control.action("lock", repo=REPO, number=work.arguments["issue_number"])

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "body": "It ships on Tuesday."}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        made = [one for one in ledger["repos"][REPO]["comments"] if one["author"] == "interlock"]
        held = len(made) == fault.wanted and all("Monday" in one["body"] for one in made)
        return Verdict(held, f"{len(made)} comment(s)", tuple(str(one["id"]) for one in made))


SCENARIO = GithubComment()
