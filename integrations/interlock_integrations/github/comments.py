"""Comments: ``create_issue_comment(owner, repo, issue_number, body)``, on an issue or a pull request.

What a comment rests on, read at the decision and before every send:

* ``issue``: ``found``, or ``not found`` where there is none that may be seen;
* ``state``: ``open`` or ``closed``, which must stay as it was decided on;
* ``locked``: it must not be.

GitHub has neither an idempotency key nor a precondition for comments. Each one
carries the effect's id in a line that is not displayed, and is looked for among
all comments of the issue; after an unknown end the gate waits until the request
can no longer land before it believes that it is not there. A comment that a
person deleted, or whose last line was edited away, is not found either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from github import GithubException
from github.Issue import Issue
from github.IssueComment import IssueComment

from interlock_tools import BadArguments, Gate
from interlock_tools.effect import Effect

from ..declaring import with_more
from ..transport import sending
from .client import LOOKUP_LAG, SEND_TIMEOUT, GatedRequester, is_missing
from .errors import classified
from .reading import Unreadable, repo_path, subject
from .watch import watch_comment

MAX_CHARACTERS = 65_536
"""Longest body that GitHub takes (quoted: "body is too long (maximum is 65536 characters)")."""

MAX_COMMENTS = 10_000
"""Bound on one listing. Past it nothing can be said, and the reading fails."""


def marker(effect_id: str) -> str:
    """Return the last line of a comment, which Markdown does not display."""
    return f"<!-- interlock-effect: {effect_id} -->"


MAX_BODY = MAX_CHARACTERS - len(marker("0" * 32)) - 2
"""Longest text that leaves room for the marker."""


def declare_comment(
    gate: Gate,
    requester: GatedRequester,
    *,
    name: str = "github.comment",
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
    lookup_lag: timedelta = LOOKUP_LAG,
) -> Effect[Any]:
    """Declare the comment effect on a gate and return it.

    The functions take, by name, any of ``request``, ``owner``, ``repo``,
    ``issue_number`` and ``body``; premises may also take ``idempotency_key``.

    Args:
        gate: the gate.
        requester: made by ``gated_client``.
        name: the effect's stable name; another one for each account at one journal.
        approvals: returns the ``Grant`` that covers the comment, or None.
        premises: returns further facts, or ones to replace those above.
        expect: values that further facts must have.
        budget: returns a ``Budget`` or a list of them.
        send_timeout, lookup_lag: see ``client``.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def comment_facts(
        request: str, owner: str, repo: str, issue_number: int, body: str, idempotency_key: str
    ) -> dict[str, Any]:
        try:
            issue = _issue(requester, owner, repo, issue_number).complete().raw_data
        except GithubException as error:
            if not is_missing(error):
                raise
            return {"issue": "not found", "state": "", "locked": False}
        if issue.get("state") not in ("open", "closed") or not isinstance(issue.get("locked"), bool):
            raise Unreadable("GitHub's answer is no issue")
        return {"issue": "found", "state": issue["state"], "locked": issue["locked"]}

    def find_comment(owner: str, repo: str, issue_number: int, idempotency_key: str) -> dict[str, Any] | None:
        last_line = marker(idempotency_key)
        for count, comment in enumerate(_issue(requester, owner, repo, issue_number).get_comments()):
            if count >= MAX_COMMENTS:
                raise Unreadable(f"more than {MAX_COMMENTS} comments; what is not among them may still be there")
            if (comment.body or "").rstrip().rpartition("\n")[2].strip() == last_line:
                return _evidence(comment)
        return None

    def key(request: str, owner: str, repo: str, issue_number: int, body: str) -> str:
        if not body.strip() or len(body) > MAX_BODY:
            raise BadArguments(f"body must be 1 to {MAX_BODY:,} characters of text")
        return subject(request, owner, repo, issue_number)

    @gate.effect(
        name,
        key=key,
        premises=with_more(comment_facts, premises),
        expect={"issue": "found", "locked": False, **(expect or {})},
        allowed=approvals,
        budget=budget,
        lookup=find_comment,
        lookup_lag=lookup_lag,
        send_timeout=send_timeout,
        service={"name": "github", "kind": "comment"},
        watch=watch_comment(requester, marker),
    )
    def create_issue_comment(
        request: str, owner: str, repo: str, issue_number: int, body: str, *, idempotency_key: str, on_send: Any
    ) -> dict[str, Any] | None:
        with classified(), sending(on_send):
            made = _issue(requester, owner, repo, issue_number).create_comment(f"{body}\n\n{marker(idempotency_key)}")
        return _evidence(made)

    return create_issue_comment


def _issue(requester: GatedRequester, owner: str, repo: str, number: int) -> Issue:
    """An issue that has not been read: nothing is sent until something of it is asked for."""
    return Issue(requester, url=f"{repo_path(owner, repo)}/issues/{number}")


def _evidence(comment: IssueComment) -> dict[str, Any] | None:
    """Those fields of a comment that are kept; None if it has no id and so proves nothing."""
    if not comment.id:
        return None
    kept = {
        "id": str(comment.id),
        "url": comment.html_url,
        "author": comment.user.login if comment.user else None,
        "created_at": comment.created_at.isoformat() if comment.created_at else None,
    }
    return {name: value for name, value in kept.items() if value is not None}
