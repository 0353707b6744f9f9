"""Merges: ``merge_pull_request(owner, repo, pull_number, merge_method, sha)``.

What a merge rests on, read at the decision and before every send:

* ``pull_request``: ``open``, ``closed``, ``merged`` or ``not found``; it must be open;
* ``merged``: whether it is; it must not be;
* ``head``: the head commit, which must be ``sha``, the reviewed one;
* ``base``: the branch that it goes to, which must stay the same;
* ``draft``: it must not be one.

What GitHub does with these when the request arrives:

* It merges a pull request at most once, and nothing undoes that: ``merged`` is
  checked with the merge, and the merge makes it true for ever. That alone is
  what lets the gate send again at once after a crash (``enforces``).
* It compares the head with ``sha`` as it merges, so a commit that nobody
  reviewed is never merged, also where a stale read let the check pass. That
  does not make a second send harmless: the head can be put back.
* ``base`` and ``draft`` are what they were when they were read, milliseconds
  before.

A merge or squash commit carries the effect's id in its message. A rebase takes
no message: after a lost answer it can be seen that the pull request was merged
at ``sha`` and by whom, not that it was by this request (``by_us: unknown``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal, get_args

from github import GithubException

from interlock_tools import BadArguments, DefiniteNo, Evidence, Gate, PreconditionFailed, RateLimited
from interlock_tools.effect import Effect
from interlock_tools.evidence import ByUs

from ..declaring import with_more
from ..transport import sending
from .client import LOOKUP_LAG, SEND_TIMEOUT, GatedRequester, is_missing
from .errors import NotMergeable, classified
from .reading import OwnLogin, Unreadable, check_sha, pull_request, read_commit, read_pull, subject
from .watch import watch_merge

Method = Literal["merge", "squash", "rebase"]

KEPT_OUT = frozenset({"dirty", "blocked", "draft", "behind"})
"""Values of ``mergeable_state`` that say why a pull request is not merged (GraphQL reference, MergeStateStatus)."""

RETRY_S = 1.0
"""Pause before a merge is tried again that was turned away while mergeability was being computed."""

MARK = "Interlock-Effect: "
"""Begins the line of a merge or squash commit's message that holds the effect's id."""


def declare_merge(
    gate: Gate,
    requester: GatedRequester,
    *,
    name: str = "github.merge",
    login: str | None = None,
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
    lookup_lag: timedelta = LOOKUP_LAG,
) -> Effect[Any]:
    """Declare the merge effect on a gate and return it.

    The functions take, by name, any of ``request``, ``owner``, ``repo``,
    ``pull_number``, ``merge_method`` and ``sha``; premises may also take
    ``idempotency_key``.

    Args:
        gate: the gate.
        requester: made by ``gated_client``.
        name: the effect's stable name; another one for each account at one journal.
        login: whose the credentials are, where GitHub does not tell (an app's installation: ``name[bot]``).
        approvals: returns the ``Grant`` that covers the merge, or None.
        premises: returns further facts (checks, reviews), or ones to replace those above.
        expect: values that further facts must have.
        budget: returns a ``Budget`` or a list of them.
        send_timeout, lookup_lag: see ``client``.

    Raises:
        DefinitionError: something about it is wrong.
    """
    own_login = OwnLogin(requester, login)

    def merge_facts(
        request: str, owner: str, repo: str, pull_number: int, merge_method: str, sha: str, idempotency_key: str
    ) -> dict[str, Any]:
        try:
            pull = read_pull(requester, owner, repo, pull_number)
        except GithubException as error:
            if not is_missing(error):
                raise
            return {"pull_request": "not found", "merged": False, "head": "", "base": "", "draft": False}
        return {
            "pull_request": "merged" if pull["merged"] else pull["state"],
            "merged": pull["merged"],
            "head": pull["head"]["sha"],
            "base": pull["base"]["ref"],
            "draft": bool(pull.get("draft")),
        }

    def wanted(sha: str) -> dict[str, Any]:
        must = {"pull_request": "open", "merged": False, "head": sha, "draft": False}
        return {**must, **(expect or {})}

    def find_merge(owner: str, repo: str, pull_number: int, sha: str, idempotency_key: str) -> Evidence | None:
        pull = read_pull(requester, owner, repo, pull_number)
        return _evidence(requester, owner, repo, pull, sha, idempotency_key, own_login)

    def key(request: str, owner: str, repo: str, pull_number: int, merge_method: str, sha: str) -> str:
        check_sha(sha)
        if merge_method not in get_args(Method):
            raise BadArguments(f"merge_method must be one of {', '.join(get_args(Method))}")
        return subject(request, owner, repo, pull_number)

    @gate.effect(
        name,
        key=key,
        premises=with_more(merge_facts, premises),
        expect=wanted,
        allowed=approvals,
        budget=budget,
        enforces=("merged",),
        never_true_again=("merged",),
        lookup=find_merge,
        lookup_lag=lookup_lag,
        send_timeout=send_timeout,
        service={"name": "github", "kind": "merge"},
        watch=watch_merge(requester),
    )
    def merge_pull_request(
        request: str,
        owner: str,
        repo: str,
        pull_number: int,
        merge_method: str,
        sha: str,
        *,
        idempotency_key: str,
        on_send: Any,
    ) -> Evidence | None:
        options: dict[str, Any] = {"merge_method": merge_method, "sha": sha}
        if merge_method != "rebase":
            options["commit_message"] = MARK + idempotency_key
        try:
            with classified(), sending(on_send):
                status = pull_request(requester, owner, repo, pull_number).merge(**options)
        except NotMergeable as refusal:
            pull = read_pull(requester, owner, repo, pull_number)
            found = _evidence(requester, owner, repo, pull, sha, idempotency_key, own_login)
            if found is None:
                raise _why(pull, sha, refusal) from refusal
            return found
        if status.merged is not True or not status.sha:
            return None
        return Evidence({"id": status.sha, "pull_request": pull_number, "head": sha})

    return merge_pull_request


def _why(pull: Mapping[str, Any], sha: str, refusal: NotMergeable) -> Exception:
    """What a 405 proves, now that the pull request was read again and is not merged at the reviewed commit."""
    words = refusal.detail
    if pull["merged"]:
        return PreconditionFailed("the pull request was merged at another commit", code="merged")
    if pull["state"] != "open":
        return PreconditionFailed("the pull request is closed", code="closed")
    if pull["head"]["sha"] != sha:
        return PreconditionFailed("the head is not the reviewed commit", code="head_moved")
    state = pull.get("mergeable_state")
    if pull.get("draft") or pull.get("mergeable") is False or state in KEPT_OUT:
        return DefiniteNo(words, code=str(state) if state in KEPT_OUT else "not_mergeable")
    return RateLimited(f"{words} yet", code="mergeability_pending", retry_after=RETRY_S)


def _evidence(
    requester: GatedRequester,
    owner: str,
    repo: str,
    pull: Mapping[str, Any],
    sha: str,
    idempotency_key: str,
    own_login: OwnLogin,
) -> Evidence | None:
    """What a merged pull request proves of a merge at ``sha``; None where it is open, or was merged at another head."""
    if not pull["merged"]:
        return None
    made, by = pull.get("merge_commit_sha"), (pull.get("merged_by") or {}).get("login")
    if not isinstance(made, str) or not made:
        raise Unreadable("the pull request is merged and names no commit")
    commit = read_commit(requester, owner, repo, made)
    ours = f"{MARK}{idempotency_key}" in commit["message"].splitlines()
    if not ours and sha != pull["head"]["sha"] and sha not in commit["parents"]:
        return None
    by_us: ByUs = "yes" if ours else _by_whom(by, own_login)
    kept = {"id": made, "pull_request": pull.get("number"), "head": sha, "merged_by": by, "at": pull.get("merged_at")}
    return Evidence({name: value for name, value in kept.items() if value is not None}, by_us=by_us)


def _by_whom(merged_by: str | None, own_login: OwnLogin) -> ByUs:
    """Whether a merge without our mark was ours: no, if somebody else is known to have made it."""
    ours = own_login()
    if merged_by is None or ours is None or merged_by.lower() == ours.lower():
        return "unknown"
    return "no"
