"""A pull request was reviewed at a head; the agent decides to merge and dies; a person pushes; restart."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from scenarios.cases.github_merge.arms import ARMS
from scenarios.sandbox.github.person import Clone
from scenarios.suite.live_base import LiveControl
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

REPO = os.environ.get("GITHUB_REPOSITORY", "acme/shop")
CASE = "review-12"
OURS = {name: fault for name, fault in common_faults().items() if name != "redecided"}


class GithubMerge(Scenario):
    """See the module."""

    key = "github_merge"
    title = "A reviewed head and an unreviewed push"
    invariant = "Only the reviewed head is merged, once; a later commit is not on main."
    services = ("github",)
    sends = ("PUT", f"/repos/{REPO}/pulls/[0-9]+/merge")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "before_send": Fault(BEFORE_SEND, outage="push", wanted=0),
        "after_commit": Fault(AFTER_SEND, outage="push", landed=True),
        "after_commit_squash": Fault(AFTER_SEND, outage="push", landed=True, ours=True),
        "after_commit_rebase": Fault(AFTER_SEND, outage="push", landed=True, ours=True),
        **OURS,
    }
    premises = ("head",)
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {"no_check": "3/6", "hand_check": "6/6", "interlock": "6/6"}
    repetitions = 3
    live_needs = ("GITHUB_TOKEN", "GITHUB_REPOSITORY")

    def repetitions_of(self, fault: str) -> int:
        return self.repetitions if fault in ("before_send", "after_commit") else 1

    def setup(self, world: World, fault: str) -> Work:
        control = world.control
        control.action("create_repo", full_name=REPO, files={"price.txt": "10\n"})
        branch = f"fix-{uuid.uuid4().hex[:8]}"
        head = self._push(world, "alice", branch, {"price.txt": f"12 {branch}\n"}, "Fix the price", start="main")
        number = control.action("open_pull", repo=REPO, head=branch)["number"]
        control.advance(10)
        world.approve(CASE, id="APR-7", by="Approver One")
        method = {"after_commit_squash": "squash", "after_commit_rebase": "rebase"}.get(fault, "merge")
        owner, repo = REPO.split("/")
        arguments = {"owner": owner, "repo": repo, "pull_number": number, "merge_method": method, "sha": head}
        return Work(self.key, "", fault, CASE, str(world.folder), arguments, {"branch": branch})

    def _push(self, world: World, who: str, branch: str, files: dict[str, str], message: str, start: str = "") -> str:
        """A person pushes: by git to the sandbox, by the API to GitHub itself."""
        if isinstance(world.control, LiveControl):
            return str(world.control.action("push", branch=branch, files=files, message=message, start=start))
        with Clone(world.sandbox.url, REPO, who) as clone:
            head = clone.commit(branch, files, message=message, start=start)
            clone.push(branch)
        return head

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "push":
            self._push(world, "bob", work.facts["branch"], {"price.txt": "99\n"}, "Not reviewed")

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        repo = ledger["repos"][REPO]
        merges = [merge for merge in repo["merges"] if merge["pull"] == work.arguments["pull_number"]]
        held = len(merges) == fault.wanted and all(merge["head"] == work.arguments["sha"] for merge in merges)
        which = ", ".join("the reviewed head" if m["head"] == work.arguments["sha"] else "another head" for m in merges)
        shown = f"merged {which}" if merges else "not merged"
        (pull,) = [one for one in repo["pulls"] if one["number"] == work.arguments["pull_number"]]
        return Verdict(held, shown, (pull["merge_commit_sha"],) if merges else ())


SCENARIO = GithubMerge()
