"""What the tools of this package share: names, markers, and how pull requests and commits are read."""

from __future__ import annotations

import re
import threading
from typing import Any

from github import GithubException
from github.Commit import Commit
from github.PullRequest import PullRequest

from interlock_tools import BadArguments

from .client import GatedRequester, is_missing

OWNER = r"^[A-Za-z0-9](?:[A-Za-z0-9_-]{0,98}[A-Za-z0-9_])?$"
"""Logins of users and organisations; an underscore is in those of managed users."""
REPO = r"^[A-Za-z0-9._-]{1,100}$"
SHA = r"^(?:[0-9a-f]{40}|[0-9a-f]{64})$"
MAX_NUMBER = 2**31 - 1


class Unreadable(RuntimeError):
    """GitHub's answer does not say what was asked."""


def repo_path(owner: str, repo: str) -> str:
    """Return the path of a repository. Raises ``BadArguments`` for what is no name of one."""
    if not (_fits(OWNER, owner) and _fits(REPO, repo)) or repo in (".", ".."):
        raise BadArguments("owner and repo are names as in github.com/owner/repo, without anything around them")
    return f"/repos/{owner}/{repo}"


def check_sha(sha: str) -> None:
    """Raise ``BadArguments`` for what is no whole commit id."""
    if not _fits(SHA, sha):
        raise BadArguments("sha must be a whole commit id, 40 hexadecimal digits in lower case")


def _fits(pattern: str, text: str) -> bool:
    return re.match(pattern, text) is not None and not text.endswith("\n")  # $ also matches before a last line end


def subject(request: str, owner: str, repo: str, number: int) -> str:
    """Return the request key: the reference and its subject. GitHub does not tell apart upper and lower case in names.

    Raises:
        BadArguments: an argument is no name or number.
    """
    repo_path(owner, repo)
    if not 1 <= number <= MAX_NUMBER:
        raise BadArguments(f"{number} is no number of a pull request or an issue")
    return f"{request}:{owner.lower()}/{repo.lower()}#{number}"


def pull_request(requester: GatedRequester, owner: str, repo: str, number: int) -> PullRequest:
    """Return a pull request that has not been read: nothing is sent until something of it is asked for."""
    return PullRequest(requester, url=f"{repo_path(owner, repo)}/pulls/{number}")


def read_pull(requester: GatedRequester, owner: str, repo: str, number: int) -> dict[str, Any]:
    """Read a pull request.

    Raises:
        GithubException: it cannot be read, or there is none.
        Unreadable: the answer lacks what is needed.
    """
    pull = pull_request(requester, owner, repo, number).complete().raw_data
    try:
        known = isinstance(pull["merged"], bool) and pull["state"] in ("open", "closed")
        known = known and isinstance(pull["head"]["sha"], str) and isinstance(pull["base"]["ref"], str)
    except (KeyError, TypeError):
        known = False
    if not known:
        raise Unreadable("GitHub's answer is no pull request")
    return pull


def read_commit(requester: GatedRequester, owner: str, repo: str, sha: str) -> dict[str, Any]:
    """Read a commit: its message and its parents. Raises as ``read_pull`` does."""
    commit = Commit(requester, url=f"{repo_path(owner, repo)}/commits/{sha}").complete().raw_data
    try:
        return {
            "message": str(commit["commit"]["message"]),
            "parents": [str(parent["sha"]) for parent in commit["parents"]],
        }
    except (KeyError, TypeError):
        raise Unreadable("GitHub's answer is no commit") from None


class OwnLogin:
    """Whose credentials these are, read once; None where GitHub does not tell (an app's installation)."""

    def __init__(self, requester: GatedRequester, login: str | None) -> None:
        self._requester = requester
        self._login = login
        self._asked = login is not None
        self._lock = threading.Lock()

    def __call__(self) -> str | None:
        """Raises what reading it raises, other than that it may not be read."""
        with self._lock:
            if not self._asked:
                try:
                    _, user = self._requester.requestJsonAndCheck("GET", "/user")
                    self._login = user.get("login") if isinstance(user, dict) else None
                except GithubException as error:
                    if error.status != 403 and not is_missing(error):
                        raise
                self._asked = True
            return self._login
