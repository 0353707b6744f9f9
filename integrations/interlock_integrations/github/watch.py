"""What became of merges and comments: a merge can be reverted by a later commit, a comment edited or deleted.

A merge itself is never undone. What is seen is a revert as git and GitHub write
it ("This reverts commit ..."), among the newest hundred commits of the branch;
one that somebody does by hand, in other words, is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

from github import GithubException
from github.Issue import Issue
from github.Repository import Repository

from interlock_tools.settlement import Settlement

from .client import PER_PAGE, GatedRequester, is_missing

PAUSE = timedelta(days=1)
LAST_LOOK = timedelta(days=30)


def merge_settlement(commit: str, later: Iterable[tuple[str, str]]) -> Settlement:
    """What a merge comes to. Pure.

    Args:
        commit: the merge commit.
        later: sha and message of commits of the branch, newest first.
    """
    for sha, message in later:
        if f"This reverts commit {commit}" in message:
            return Settlement("reversed", f"reverted by {sha}")
    return Settlement("settled", "merged", look_again=PAUSE)


def watch_merge(requester: GatedRequester) -> Callable[..., Settlement]:
    """Look at one merge: two requests."""

    def watch(owner: str, repo: str, pull_number: int, evidence: dict[str, Any]) -> Settlement:
        here = Repository(requester, url=f"/repos/{owner}/{repo}")
        base = here.get_pull(pull_number).base.ref
        newest = here.get_commits(sha=base).get_page(0)[:PER_PAGE]
        return merge_settlement(str(evidence["id"]), ((one.sha, one.commit.message) for one in newest))

    return watch


def watch_comment(requester: GatedRequester, marker: Callable[[str], str]) -> Callable[..., Settlement]:
    """Look at one comment: one request."""

    def watch(owner: str, repo: str, issue_number: int, evidence: dict[str, Any], idempotency_key: str) -> Settlement:
        issue = Issue(requester, url=f"/repos/{owner}/{repo}/issues/{issue_number}")
        try:
            body = issue.get_comment(int(evidence["id"])).body or ""
        except GithubException as error:
            if not is_missing(error):
                raise
            return Settlement("reversed", "the comment was deleted")
        if marker(idempotency_key) not in body:
            return Settlement("settled", "the comment was edited")
        return Settlement("settled", "the comment is there", look_again=PAUSE)

    return watch
