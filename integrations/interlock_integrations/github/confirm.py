"""Asks GitHub whether it agrees with a receipt.

Strong: a merge. The commit that GitHub made holds the effect's id in its
message and the reviewed commit among its parents, and a commit cannot be
edited. A rebase merge carries no id: that the pull request was merged at the
reviewed commit is strong all the same, that this effect did it is not shown.
Weak: a comment, which can be edited and deleted.
"""

from __future__ import annotations

from typing import Any

from github import Github, GithubException

from interlock_tools.receipts.report import Carrier, ServiceFinding, Subject

from ..confirming import CannotTell, evidence_id, finding, other, text, what
from .client import GatedRequester, gated_client, github_from_environment, is_missing
from .comments import marker
from .merges import MARK
from .reading import read_commit, read_pull, repo_path


def confirm(subject: Subject, client: Github | None = None) -> ServiceFinding:
    """Ask GitHub about a merge or a comment.

    Args:
        subject: what the receipt is about.
        client: by default configured by ``GITHUB_TOKEN``. A token that may only read is enough.

    Raises:
        CannotTell, GithubException: GitHub cannot be asked, or does not tell.
    """
    requester = gated_client(client if client is not None else github_from_environment())
    kind = what(subject)
    if kind == "merge":
        return _merge(subject, requester)
    if kind == "comment":
        return _comment(subject, requester)
    raise CannotTell(f"nothing is known here about {subject.name}")


def _merge(subject: Subject, requester: GatedRequester) -> ServiceFinding:
    owner, repo, sha = text(subject, "owner"), text(subject, "repo"), text(subject, "sha")
    number = subject.payload.get("pull_number")
    if not isinstance(number, int):
        raise CannotTell("the receipt does not tell pull_number")
    pull = read_pull(requester, owner, repo, number)
    where = f"{owner}/{repo}#{number}"
    if not pull["merged"]:
        return finding(subject, False, f"GitHub shows {where} as not merged.")
    made = str(pull.get("merge_commit_sha"))
    commit = read_commit(requester, owner, repo, made)
    ours = f"{MARK}{subject.effect_id}" in commit["message"].splitlines()
    wanted = evidence_id(subject)
    if ours:
        if wanted is not None and wanted != made:
            return other(f"GitHub merged {where} as {made}, not {wanted}.")
        return finding(subject, True, f"GitHub shows {where} as merged by commit {made}, which names this effect.")
    if subject.phase == "committed":
        if wanted == made and (sha in commit["parents"] or sha == pull["head"]["sha"]):
            says = f"GitHub shows {where} as merged at {sha} by commit {made}; the commit does not name this effect."
            return finding(subject, True, says)
        return other(f"GitHub shows {where} as merged by commit {made}, which is not what the receipt says.")
    return finding(subject, False, f"GitHub shows {where} as merged by commit {made}, which names no effect like this.")


def _comment(subject: Subject, requester: GatedRequester) -> ServiceFinding:
    owner, repo, wanted = text(subject, "owner"), text(subject, "repo"), evidence_id(subject)
    if wanted is None or not wanted.isdecimal():
        raise CannotTell("the receipt names no comment")
    try:
        found: Any
        _, found = requester.requestJsonAndCheck("GET", f"{repo_path(owner, repo)}/issues/comments/{wanted}")
    except GithubException as error:
        if is_missing(error):
            says = f"GitHub shows no comment {wanted}; comments can be deleted."
            return finding(subject, False, says, Carrier.WEAK)
        raise
    last_line = str(found.get("body") or "").rstrip().rpartition("\n")[2].strip()
    if last_line == marker(subject.effect_id):
        return finding(subject, True, f"GitHub shows comment {wanted}, which names this effect.", Carrier.WEAK)
    return other(f"GitHub shows comment {wanted}, and it does not name this effect.", Carrier.WEAK)
