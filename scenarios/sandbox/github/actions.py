"""Control calls: what people do on the website or in their own clones, and the service's moods."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scenarios.sandbox.github import merging
from scenarios.sandbox.github.api import Api
from scenarios.sandbox.github.errors import GitHubError
from scenarios.sandbox.github.gitrepo import GitRepo
from scenarios.sandbox.github.world import Repo, World


class Actions:
    """Each method is one control call; keyword arguments come from JSON. What the service refuses is a ValueError."""

    def __init__(self, world: World, api: Api, root: Path) -> None:
        self._world = world
        self._api = api
        self._root = root

    def all(self) -> dict[str, Callable[..., Any]]:
        names = [name for name in vars(type(self)) if not name.startswith("_") and name != "all"]
        return {name: getattr(self, name) for name in names}

    async def create_repo(
        self,
        full_name: str,
        files: Mapping[str, str] | None = None,
        default_branch: str = "main",
        allow: Mapping[str, bool] | None = None,
        has_issues: bool = True,
    ) -> dict[str, Any]:
        """A repository with one commit: {"full_name", "files", "default_branch", "allow": {"squash": false}, …}."""
        owner, slash, name = full_name.partition("/")
        if not (owner and slash and name):
            raise ValueError("full_name is owner/name")
        world = self._world
        number = world.new_id()
        git = GitRepo(self._root / f"{number}.git")
        allowed = dict.fromkeys(merging.METHODS, True) | dict(allow or {})
        repo = Repo(number, world.user(owner), name, git, default_branch, world.now(), allowed, has_issues)
        world.add_repo(repo)
        async with repo.lock:
            await git.create(default_branch)
            tree = await git.write_tree(None, files if files is not None else {"README.md": f"# {name}\n"})
            sha = await git.commit_tree(tree, [], "Start", repo.owner.person, world.now())
            await git.update_ref(f"refs/heads/{default_branch}", sha)
            await merging.refresh(world, repo, repo.owner)
        return self._api.show.repo(repo)

    async def commit(
        self,
        repo: str,
        branch: str,
        files: Mapping[str, str | None],
        message: str = "Change files",
        author: str = "alice",
        start: str | None = None,
    ) -> dict[str, Any]:
        """Commit on a branch as if ``author`` pushed; a new one starts at ``start``, else at the default branch."""
        found = self._world.named(repo)
        who = self._world.user(author)
        async with found.lock:
            parent = found.branches.get(branch) or found.branches.get(start or found.default_branch)
            if parent is None:
                raise ValueError(f"no branch {start or found.default_branch!r} to start from")
            tree = await found.git.write_tree(parent, files)
            sha = await found.git.commit_tree(tree, [parent], message, who.person, self._world.now())
            await found.git.update_ref(f"refs/heads/{branch}", sha)
            await merging.refresh(self._world, found, who)
        return {"sha": sha, "parent": parent}

    async def force_push(self, repo: str, branch: str, sha: str, author: str = "alice") -> dict[str, Any]:
        """Point a branch at any commit."""
        found = self._world.named(repo)
        async with found.lock:
            await found.git.update_ref(f"refs/heads/{branch}", sha)
            await merging.refresh(self._world, found, self._world.user(author))
        return {"sha": sha}

    async def delete_branch(self, repo: str, branch: str, author: str = "alice") -> dict[str, Any]:
        """Delete a branch; open pull requests from it are closed."""
        found = self._world.named(repo)
        async with found.lock:
            await found.git.delete_ref(f"refs/heads/{branch}")
            await merging.refresh(self._world, found, self._world.user(author))
        return {"deleted": branch}

    async def open_pull(
        self,
        repo: str,
        head: str,
        base: str = "main",
        title: str = "A change",
        body: str = "",
        author: str = "alice",
        draft: bool = False,
    ) -> dict[str, Any]:
        """Open a pull request from a branch."""
        found = self._world.named(repo)
        async with found.lock:
            try:
                issue, pull = await self._api.open_pull(found, head, base, title, body, author, draft)
            except GitHubError as error:
                raise ValueError(str(error.body())) from None
        return {"number": issue.number, "head": pull.head_sha}

    async def merge(self, repo: str, number: int, method: str = "merge", author: str = "alice") -> dict[str, Any]:
        """A person merges a pull request on the website."""
        found = self._world.named(repo)
        async with found.lock:
            try:
                sha = await merging.merge(self._world, found, number, self._world.user(author), method, via="web")
            except GitHubError as error:
                raise ValueError(error.message) from None
        return {"sha": sha}

    async def retarget(self, repo: str, number: int, base: str) -> dict[str, Any]:
        """A person changes the branch that a pull request goes to."""
        found = self._world.named(repo)
        pull = found.pull(number)[1]
        self._api.retarget(found, pull, base)
        return {"base": base}

    def open_issue(self, repo: str, title: str = "A question", body: str = "", author: str = "alice") -> dict[str, Any]:
        """Open an issue."""
        found = self._world.named(repo)
        return {"number": self._world.add_issue(found, title, body, self._world.user(author)).number}

    def close(self, repo: str, number: int, author: str = "alice") -> dict[str, Any]:
        """Close an issue or a pull request without merging it."""
        issue = self._world.named(repo).issue(number)
        self._world.close(issue, self._world.user(author))
        return {"state": issue.state}

    async def reopen(self, repo: str, number: int) -> dict[str, Any]:
        """Open an issue or a pull request again."""
        found = self._world.named(repo)
        issue = found.issue(number)
        async with found.lock:
            try:
                await self._api.reopen(found, issue)
            except GitHubError as error:
                raise ValueError(str(error.body())) from None
        return {"state": issue.state}

    def lock(self, repo: str, number: int, locked: bool = True) -> dict[str, Any]:
        """Lock a conversation, or unlock it."""
        self._world.named(repo).issue(number).locked = locked
        return {"locked": locked}

    def comment(
        self, repo: str, number: int, body: str = "Thanks", author: str = "alice", count: int = 1
    ) -> dict[str, Any]:
        """Add ``count`` comments, past every rate limit."""
        if not 1 <= count <= 2000:
            raise ValueError("count is 1 to 2000")
        found, who = self._world.named(repo), self._world.user(author)
        return {"ids": [self._world.add_comment(found, number, body, who).id for _ in range(count)]}

    def edit_comment(self, repo: str, id: int, body: str) -> dict[str, Any]:
        """A person edits a comment."""
        comment = self._world.named(repo).comment(id)
        comment.body, comment.updated_at = body, self._world.now()
        return {"id": id}

    def delete_comment(self, repo: str, id: int) -> dict[str, Any]:
        """A person deletes a comment."""
        self._world.named(repo).comment(id).deleted = True
        return {"id": id}

    def protect(self, repo: str, branch: str = "main", message: str | None = None) -> dict[str, Any]:
        """Keep merges out of a branch with these words; without words, let them in again."""
        protected = self._world.named(repo).protected
        if message is None:
            protected.pop(branch, None)
        else:
            protected[branch] = message
        return dict(protected)

    def allow(self, repo: str, **methods: bool) -> dict[str, bool]:
        """Which merge methods the repository allows: {"repo", "merge", "squash", "rebase"}."""
        found = self._world.named(repo)
        if set(methods) - set(merging.METHODS):
            raise ValueError(f"methods are {', '.join(merging.METHODS)}")
        found.allow.update(methods)
        return found.allow

    def rename(self, repo: str, to: str) -> dict[str, Any]:
        """Give a repository another name; the old one is answered with a redirect."""
        found: Repo = self._world.named(repo)
        old = found.full_name.lower()
        del self._world.repos[old]
        found.name = to
        self._world.add_repo(found)
        self._world.moved[old] = found.full_name
        return {"full_name": found.full_name}

    def rate_limit(self, remaining: int = 0, reset_in_s: float = 60.0, status: int = 403) -> dict[str, Any]:
        """Set what is left of the primary rate limit, and the status of its refusal."""
        self._api.limits.set_primary(remaining, reset_in_s, status)
        return self._api.limits.shown()

    def secondary_limit(self, seconds: float = 60.0, status: int = 403, says_when: bool = True) -> dict[str, Any]:
        """Refuse writes for so long; without ``says_when`` no ``retry-after`` is given."""
        self._api.limits.set_secondary(seconds, status, says_when)
        return {"until": self._world.now() + seconds}
