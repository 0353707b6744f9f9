"""What pushes do to pull requests, whether one can be merged, and merging it. Callers hold the repository's lock."""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.github.errors import HEAD_MODIFIED, METHOD_REFUSED, NOT_MERGEABLE, merge_refused
from scenarios.sandbox.github.gitrepo import Person
from scenarios.sandbox.github.world import WEB_FLOW, Issue, Pull, Repo, User, World

METHODS = ("merge", "squash", "rebase")


async def refresh(world: World, repo: Repo, pusher: User, via: str = "push") -> None:
    """Take note of every branch that has changed since the last look, and of what that does to pull requests."""
    before = repo.branches
    repo.branches = await repo.git.branches()
    changed = sorted(name for name in {**before, **repo.branches} if before.get(name) != repo.branches.get(name))
    for name in changed:
        old, new = before.get(name), repo.branches.get(name)
        repo.history[name] = await repo.git.log(new) if new else []
        repo.pushes.append(
            {"branch": name, "before": old, "after": new, "by": pusher.login, "at": world.now(), "via": via}
        )
        for issue, pull in repo.pulls():
            if issue.closed_at is None:
                await _branch_moved(world, repo, issue, pull, name, new, pusher)


async def _branch_moved(
    world: World, repo: Repo, issue: Issue, pull: Pull, branch: str, new: str | None, pusher: User
) -> None:
    if branch == pull.head_ref and new is None:
        world.close(issue, pusher)
    elif branch == pull.head_ref and new is not None:
        await head_moved(world, repo, issue, pull, new)
    elif branch == pull.base_ref and new is not None:
        pull.pending_until = world.now() + world.timing.mergeability_s
        if await repo.git.is_ancestor(pull.head_sha, new):
            # Its commits are on the base branch: GitHub shows such a pull request as merged, by who pushed.
            _merged(world, issue, pull, pusher, new)
            repo.merges.append(await _ledger_row(world, repo, issue, pull, pusher, "push", "push", new, pull.base_sha))


async def head_moved(world: World, repo: Repo, issue: Issue, pull: Pull, new: str) -> None:
    """The head is ``new`` now; reads show that a moment later, and mergeability is computed afresh."""
    now = world.now()
    shown = (pull.shown_head(now), shown_mergeable(pull, now))
    pull.stale, pull.stale_until = shown, now + world.timing.head_lag_s
    pull.pending_until = now + world.timing.mergeability_s
    pull.head_sha = new
    pull.base_sha = repo.branches.get(pull.base_ref, pull.base_sha)
    issue.updated_at = now
    await repo.git.update_ref(f"refs/pull/{issue.number}/head", new)


def shown_mergeable(pull: Pull, now: float) -> bool | None:
    """``mergeable`` as a read shows it, from what was computed last."""
    if now < pull.stale_until:
        return pull.stale[1]
    if now < pull.pending_until or pull.tested is None or pull.merged:
        return None
    return pull.test_commit is not None


async def compute(world: World, repo: Repo, issue: Issue, pull: Pull) -> None:
    """Make the test merge, if it is due: what ``mergeable`` and ``merge_commit_sha`` of an open one tell."""
    base = repo.branches.get(pull.base_ref)
    if issue.closed_at is not None or base is None or world.now() < pull.pending_until:
        return
    if pull.tested == (base, pull.head_sha):
        return
    tree = await repo.git.merge_tree(base, pull.head_sha)
    pull.test_commit = None
    if tree is not None:
        message = f"Merge {pull.head_sha} into {base}"
        pull.test_commit = await repo.git.commit_tree(tree, [base, pull.head_sha], message, WEB_FLOW, world.now())
        await repo.git.update_ref(f"refs/pull/{issue.number}/merge", pull.test_commit)
    pull.tested = (base, pull.head_sha)


async def merge(
    world: World,
    repo: Repo,
    number: int,
    by: User,
    method: str,
    *,
    sha: str | None = None,
    title: str | None = None,
    message: str | None = None,
    via: str = "api",
) -> str:
    """Merge a pull request; the commit that the base branch is at then.

    Raises:
        GitHubError: 405 if it is closed, merged, a draft, in conflict, kept out by a rule, or if its mergeability is
            still being computed; 409 if ``sha`` is not its head. The head is compared first: a merge right after a
            push was answered by ``sha`` (seen).
    """
    issue, pull = repo.pull(number)
    if issue.closed_at is not None:
        raise merge_refused(NOT_MERGEABLE)
    if sha is not None and sha != pull.head_sha:
        raise merge_refused(HEAD_MODIFIED, 409)
    if pull.draft:
        raise merge_refused("Pull Request is still a draft")
    if not repo.allow[method]:
        raise merge_refused(METHOD_REFUSED[method])
    if pull.base_ref in repo.protected:
        raise merge_refused(repo.protected[pull.base_ref])
    if world.now() < pull.pending_until:
        raise merge_refused(NOT_MERGEABLE)
    await compute(world, repo, issue, pull)
    if pull.test_commit is None:
        raise merge_refused(NOT_MERGEABLE)
    base = repo.branches[pull.base_ref]
    made = await _make(world, repo, issue, pull, by, method, title, message)
    if made is None:
        raise merge_refused(NOT_MERGEABLE)
    await repo.git.update_ref(f"refs/heads/{pull.base_ref}", made, base)
    _merged(world, issue, pull, by, made)
    repo.merges.append(await _ledger_row(world, repo, issue, pull, by, method, via, made, base))
    await refresh(world, repo, by, "merge")
    return made


async def _make(
    world: World,
    repo: Repo,
    issue: Issue,
    pull: Pull,
    by: User,
    method: str,
    title: str | None,
    message: str | None,
) -> str | None:
    """The commit (or commits) that a merge puts on the base branch, or None on a conflict."""
    base, head, now = repo.branches[pull.base_ref], pull.head_sha, world.now()
    if method == "rebase":
        return await repo.git.rebase(base, head, by.person, now)
    assert pull.test_commit is not None
    tree = await repo.git.tree(pull.test_commit)
    author: Person
    if method == "merge":
        subject = f"Merge pull request #{issue.number} from {repo.owner.login}/{pull.head_ref}"
        text, author, parents = issue.title, by.person, [base, head]
    else:
        subject = f"{issue.title} (#{issue.number})"
        text, author, parents = await _squashed_text(repo, base, head), issue.author.person, [base]
    subject = title if title is not None else subject
    text = message if message is not None else text
    full = f"{subject}\n\n{text}" if text else subject
    return await repo.git.commit_tree(tree, parents, full, author, now, committer=WEB_FLOW)


async def _squashed_text(repo: Repo, base: str, head: str) -> str:
    """What the message of a squashed commit says by default: its commits, where there are several."""
    commits = [await repo.git.show(sha) for sha in reversed(await repo.git.log(head, base, 250))]
    return "\n\n".join(f"* {info.message}" for info in commits) if len(commits) > 1 else ""


def _merged(world: World, issue: Issue, pull: Pull, by: User, commit: str) -> None:
    pull.merged_at = world.now()
    pull.merged_by = by
    pull.merge_commit_sha = commit
    world.close(issue, by)


async def _ledger_row(
    world: World, repo: Repo, issue: Issue, pull: Pull, by: User, method: str, via: str, made: str, base: str
) -> dict[str, Any]:
    info = await repo.git.show(made)
    return {
        "pull": issue.number,
        "method": method,
        "via": via,
        "by": by.login,
        "at": world.now(),
        "head": pull.head_sha,
        "base": pull.base_ref,
        "base_before": base,
        "sha": made,
        "parents": list(info.parents),
        "message": info.message,
        "commits": await repo.git.log(made, base),
    }
