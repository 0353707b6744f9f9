"""The tool ``merge_pull_request``, made in three ways."""

from __future__ import annotations

from typing import Any

from github import GithubException
from langchain_core.tools import BaseTool

from interlock_integrations.github import GithubToolkit
from scenarios.suite import github_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Again, Files, hand_tool, settled, with_retries
from scenarios.suite.model import Arm, Work

Said = tuple[str, dict[str, Any]]


def no_check(work: Work) -> BaseTool:
    """Merge the pull request that was reviewed, and try again while GitHub answers 405, as it does for a moment."""
    files = Files(work)

    def merge_pull_request(owner: str, repo: str, pull_number: int, merge_method: str, sha: str) -> Said:
        """Merge a pull request."""
        files.decision(lambda: {"pull_number": pull_number})
        pull = hand.repository(owner, repo).get_pull(pull_number)

        def once() -> Said:
            try:
                merged = hand.send(lambda: pull.merge(merge_method=merge_method))
            except GithubException as error:
                if error.status == 405:
                    raise Again("not mergeable yet") from error
                return files.finish("not_landed", f"GitHub refused it: {error.status}")
            return files.finish("landed", f"Merged as {merged.sha}.", id=merged.sha)

        try:
            done: Said = with_retries(once, tries=5, first_s=0.5)
        except Again as error:
            return files.finish("not_landed", f"Not merged: {error}.")
        return done

    return hand_tool("merge_pull_request", merge_pull_request)


def hand_check(work: Work) -> BaseTool:
    """Re-read the pull request; merged at the reviewed head is done; another head is refused; else merge with ``sha``.

    GitHub compares ``sha`` as it merges, so what is pushed after the look is
    caught, too. A 405 is not final before the pull request has been read again.
    """
    files = Files(work)

    def merge_pull_request(owner: str, repo: str, pull_number: int, merge_method: str, sha: str) -> Said:
        """Merge a pull request."""
        here = hand.repository(owner, repo)
        files.decision(lambda: {"pull_number": pull_number, "head": sha, "approval": files.approval()})

        def once() -> Said:
            pull = here.get_pull(pull_number)
            approval = files.approval()
            files.log("checked", head=pull.head.sha, state=pull.state, merged=pull.merged, approval=approval)
            if pull.merged:
                return files.finish("landed", f"Merged as {pull.merge_commit_sha}.", id=pull.merge_commit_sha)
            if pull.head.sha != sha or pull.state != "open" or approval is None:
                return files.finish("not_landed", f"Not merged: the head is {pull.head.sha}, not {sha}.")
            try:
                merged = hand.send(lambda: pull.merge(merge_method=merge_method, sha=sha))
            except GithubException as error:
                if error.status == 405:
                    raise Again("not mergeable yet") from error
                return files.finish("not_landed", f"GitHub refused it: {error.status}")
            return files.finish("landed", f"Merged as {merged.sha}.", id=merged.sha)

        return settled(files, once, tries=5, first_s=0.5)

    return hand_tool("merge_pull_request", merge_pull_request)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    merges = {"approvals": approvals(work)}
    kit = GithubToolkit(gate, tools=["merge_pull_request"], merges=merges, **options(work))
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
}
