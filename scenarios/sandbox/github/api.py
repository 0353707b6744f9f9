"""The endpoints of the REST API that the sandbox has."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import datetime

from scenarios.sandbox.base import Reply, json_reply
from scenarios.sandbox.github import merging
from scenarios.sandbox.github.call import Call
from scenarios.sandbox.github.errors import GitHubError, invalid, not_found
from scenarios.sandbox.github.limits import Limits
from scenarios.sandbox.github.render import Renderer
from scenarios.sandbox.github.world import Issue, Pull, Repo, World

MAX_BODY = 65_536
"""Characters of a comment or an issue's body (seen in the service's own error)."""

Handler = Callable[[Call], Awaitable[Reply]]


class Api:
    """Handlers by method and path. Git objects are read and changed under the repository's lock."""

    def __init__(self, world: World, renderer: Renderer, limits: Limits) -> None:
        self.world = world
        self.show = renderer
        self.limits = limits
        repo = r"/repos/(?P<owner>[^/]+)/(?P<repo>[^/]+)"
        routes: list[tuple[str, str, Handler]] = [
            ("GET", r"/rate_limit", self._rate_limit),
            ("GET", r"/user", self._user),
            ("GET", r"/users/(?P<login>[^/]+)", self._login),
            ("GET", repo, self._repo),
            ("GET", repo + r"/branches/(?P<branch>.+)", self._branch),
            ("GET", repo + r"/git/refs?/heads/(?P<branch>.+)", self._ref),
            ("GET", repo + r"/commits", self._commits),
            ("GET", repo + r"/(?:git/)?commits/(?P<sha>[^/]+)", self._commit),
            ("GET", repo + r"/pulls", self._pulls),
            ("POST", repo + r"/pulls", self._open_pull),
            ("GET", repo + r"/pulls/(?P<n>\d+)", self._pull),
            ("PATCH", repo + r"/pulls/(?P<n>\d+)", self._edit),
            ("GET", repo + r"/pulls/(?P<n>\d+)/commits", self._pull_commits),
            ("GET", repo + r"/pulls/(?P<n>\d+)/merge", self._is_merged),
            ("PUT", repo + r"/pulls/(?P<n>\d+)/merge", self._merge),
            ("GET", repo + r"/issues", self._issues),
            ("POST", repo + r"/issues", self._open_issue),
            ("GET", repo + r"/issues/(?P<n>\d+)", self._issue),
            ("PATCH", repo + r"/issues/(?P<n>\d+)", self._edit),
            ("PUT", repo + r"/issues/(?P<n>\d+)/lock", self._lock),
            ("DELETE", repo + r"/issues/(?P<n>\d+)/lock", self._unlock),
            ("GET", repo + r"/issues/(?P<n>\d+)/comments", self._comments),
            ("POST", repo + r"/issues/(?P<n>\d+)/comments", self._add_comment),
            ("GET", repo + r"/issues/comments/(?P<id>\d+)", self._comment),
            ("PATCH", repo + r"/issues/comments/(?P<id>\d+)", self._edit_comment),
            ("DELETE", repo + r"/issues/comments/(?P<id>\d+)", self._delete_comment),
        ]
        self._routes = [(method, re.compile(pattern), handler) for method, pattern, handler in routes]

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        for known, pattern, handler in self._routes:
            match = pattern.fullmatch(path)
            if known == method and match:
                return handler, match.groupdict()
        return None

    def _at(self, call: Call) -> Repo:
        return self.world.repo(call.args["owner"], call.args["repo"])

    def _issue_at(self, call: Call) -> tuple[Repo, Issue]:
        repo = self._at(call)
        return repo, repo.issue(int(call.args["n"]))

    # -- who and what ---------------------------------------------------------------------------------

    async def _rate_limit(self, call: Call) -> Reply:
        return json_reply(200, {"resources": {"core": self.limits.shown()}, "rate": self.limits.shown()})

    async def _user(self, call: Call) -> Reply:
        user = call.user
        if call.caller is not None and call.caller.installation:
            raise GitHubError(403, "Resource not accessible by integration")
        return json_reply(200, self.show.user(user))

    async def _login(self, call: Call) -> Reply:
        found = self.world.users.get(call.args["login"])
        if found is None:
            raise not_found()
        return json_reply(200, self.show.user(found))

    async def _repo(self, call: Call) -> Reply:
        return json_reply(200, self.show.repo(self._at(call)))

    async def _branch(self, call: Call) -> Reply:
        repo = self._at(call)
        sha = repo.branches.get(call.args["branch"])
        if sha is None:
            raise GitHubError(404, "Branch not found")
        return json_reply(200, self.show.branch(repo, call.args["branch"], sha))

    async def _ref(self, call: Call) -> Reply:
        repo = self._at(call)
        sha = repo.branches.get(call.args["branch"])
        if sha is None:
            raise not_found()
        return json_reply(200, self.show.ref(repo, call.args["branch"], sha))

    async def _commits(self, call: Call) -> Reply:
        repo = self._at(call)
        async with repo.lock:
            tip = await repo.git.resolve(call.query.get("sha", repo.default_branch))
            if tip is None:
                raise not_found()
            infos = [await repo.git.show(sha) for sha in await repo.git.log(tip, limit=250)]
        return call.page([self.show.commit(repo, info) for info in infos])

    async def _commit(self, call: Call) -> Reply:
        repo = self._at(call)
        async with repo.lock:
            sha = await repo.git.resolve(call.args["sha"])
            if sha is None:
                raise GitHubError(422, f"No commit found for SHA: {call.args['sha']}")
            info = await repo.git.show(sha)
        return json_reply(200, self.show.commit(repo, info))

    # -- pull requests ---------------------------------------------------------------------------------

    async def _pulls(self, call: Call) -> Reply:
        repo = self._at(call)
        state, head, base = call.query.get("state", "open"), call.query.get("head"), call.query.get("base")
        found = [
            (issue, pull)
            for issue, pull in repo.pulls()
            if state in ("all", issue.state)
            and (head is None or head.rpartition(":")[2] == pull.head_ref)
            and (base is None or base == pull.base_ref)
        ]
        return call.page([self.show.pull_in_list(repo, issue, pull) for issue, pull in reversed(found)])

    async def _open_pull(self, call: Call) -> Reply:
        repo, body = self._at(call), call.body()
        author = call.user
        head, base = (call.text(body, name, "PullRequest", True) or "" for name in ("head", "base"))
        title = call.text(body, "title", "PullRequest", True) or ""
        async with repo.lock:
            issue, pull = await self.open_pull(
                repo,
                head,
                base,
                title,
                call.text(body, "body", "PullRequest") or "",
                author.login,
                bool(body.get("draft")),
            )
        return json_reply(201, self.show.pull(repo, issue, pull))

    async def open_pull(
        self, repo: Repo, head: str, base: str, title: str, body: str, author: str, draft: bool = False
    ) -> tuple[Issue, Pull]:
        """Open a pull request; the caller holds the lock. Raises the service's 422."""
        head = head.rpartition(":")[2]
        for name, branch in (("head", head), ("base", base)):
            if branch not in repo.branches:
                raise invalid("PullRequest", name, "invalid")
        if any(p.head_ref == head and p.base_ref == base and i.closed_at is None for i, p in repo.pulls()):
            raise invalid(
                "PullRequest", "head", "custom", f"A pull request already exists for {repo.owner.login}:{head}."
            )
        sha, onto = repo.branches[head], repo.branches[base]
        if await repo.git.is_ancestor(sha, onto):
            raise invalid("PullRequest", "head", "custom", f"No commits between {base} and {head}")
        pull = Pull(head, base, sha, onto, draft, pending_until=self.world.now() + self.world.timing.mergeability_s)
        issue = self.world.add_issue(repo, title, body, self.world.user(author), pull)
        await repo.git.update_ref(f"refs/pull/{issue.number}/head", sha)
        return issue, pull

    async def _pull(self, call: Call) -> Reply:
        repo = self._at(call)
        issue, pull = repo.pull(int(call.args["n"]))
        async with repo.lock:
            await merging.compute(self.world, repo, issue, pull)
        return json_reply(200, self.show.pull(repo, issue, pull))

    async def _pull_commits(self, call: Call) -> Reply:
        repo = self._at(call)
        _, pull = repo.pull(int(call.args["n"]))
        async with repo.lock:
            shas = await repo.git.log(pull.shown_head(self.world.now()), pull.base_sha, 250)
            infos = [await repo.git.show(sha) for sha in reversed(shas)]
        return call.page([self.show.commit(repo, info) for info in infos])

    async def _is_merged(self, call: Call) -> Reply:
        _, pull = self._at(call).pull(int(call.args["n"]))
        if not pull.merged:
            raise not_found()
        return json_reply(204, b"")

    async def _merge(self, call: Call) -> Reply:
        repo, body = self._at(call), call.body()
        repo.pull(int(call.args["n"]))
        call.may_write()
        method = call.text(body, "merge_method", "PullRequest") or "merge"
        if method not in merging.METHODS:
            raise GitHubError(422, f"Invalid request.\n\n{method} is not a member of {list(merging.METHODS)}.")
        title, message, sha = (
            call.text(body, name, "PullRequest") for name in ("commit_title", "commit_message", "sha")
        )
        async with repo.lock:
            made = await merging.merge(
                self.world, repo, int(call.args["n"]), call.user, method, sha=sha, title=title, message=message
            )
        return json_reply(200, {"sha": made, "merged": True, "message": "Pull Request successfully merged"})

    # -- issues and comments --------------------------------------------------------------------------------

    async def _issues(self, call: Call) -> Reply:
        repo, state = self._at(call), call.query.get("state", "open")
        found = [issue for issue in repo.issues.values() if state in ("all", issue.state)]
        return call.page([self.show.issue(repo, issue) for issue in reversed(found)])

    async def _open_issue(self, call: Call) -> Reply:
        repo, body = self._at(call), call.body()
        if not repo.has_issues:
            raise GitHubError(410, "Issues are disabled for this repo")
        title = call.text(body, "title", "Issue", True) or ""
        issue = self.world.add_issue(repo, title, call.text(body, "body", "Issue") or "", call.user)
        return json_reply(201, self.show.issue(repo, issue), {"Location": self.show.issue(repo, issue)["url"]})

    async def _issue(self, call: Call) -> Reply:
        repo, issue = self._issue_at(call)
        if not repo.has_issues and issue.pull is None:
            raise GitHubError(410, "Issues are disabled for this repo")
        return json_reply(200, self.show.issue(repo, issue))

    async def _edit(self, call: Call) -> Reply:
        """PATCH of an issue or a pull request: title, body, state, base."""
        (repo, issue), body = self._issue_at(call), call.body()
        call.may_write()
        issue.title = call.text(body, "title", "Issue") or issue.title
        issue.body = body.get("body", issue.body)
        state, base = call.text(body, "state", "Issue"), call.text(body, "base", "PullRequest")
        async with repo.lock:
            if base is not None and issue.pull is not None:
                self.retarget(repo, issue.pull, base)
            if state == "closed":
                self.world.close(issue, call.user)
            elif state == "open":
                await self.reopen(repo, issue)
        if issue.pull is not None and "/pulls/" in call.url:
            return json_reply(200, self.show.pull(repo, issue, issue.pull))
        return json_reply(200, self.show.issue(repo, issue))

    def retarget(self, repo: Repo, pull: Pull, base: str) -> None:
        """Change the branch that a pull request goes to. Raises the service's 422."""
        if base not in repo.branches:
            raise invalid("PullRequest", "base", "invalid")
        pull.base_ref, pull.base_sha = base, repo.branches[base]
        pull.pending_until = self.world.now() + self.world.timing.mergeability_s

    async def reopen(self, repo: Repo, issue: Issue) -> None:
        """Open again, at whatever the head branch is now; the caller holds the lock. Raises the service's 422."""
        self.world.reopen(issue)
        if issue.pull is not None:
            sha = repo.branches.get(issue.pull.head_ref)
            if sha is None:
                raise GitHubError(422, "Validation Failed", errors=["state cannot be changed. The branch was deleted."])
            await merging.head_moved(self.world, repo, issue, issue.pull, sha)

    async def _lock(self, call: Call) -> Reply:
        call.may_write()
        self._issue_at(call)[1].locked = True
        return json_reply(204, b"")

    async def _unlock(self, call: Call) -> Reply:
        call.may_write()
        self._issue_at(call)[1].locked = False
        return json_reply(204, b"")

    async def _comments(self, call: Call) -> Reply:
        repo, issue = self._issue_at(call)
        found = repo.comments_of(issue.number)
        since = call.query.get("since")
        if since:
            at = datetime.fromisoformat(since.replace("Z", "+00:00")).timestamp()
            found = [comment for comment in found if comment.updated_at >= at]
        return call.page([self.show.comment(repo, comment) for comment in found])

    async def _add_comment(self, call: Call) -> Reply:
        (repo, issue), body = self._issue_at(call), call.body()
        user = call.user
        text = call.text(body, "body", "IssueComment", True) or ""
        if issue.locked:
            raise GitHubError(403, "Unable to create comment because issue is locked.", page="/issues/comments")
        if not text.strip():
            raise invalid("IssueComment", "body", "missing_field")
        if len(text) > MAX_BODY:
            message = f"body is too long (maximum is {MAX_BODY} characters)"
            raise invalid("IssueComment", "body", "custom", message)
        shown = self.show.comment(repo, self.world.add_comment(repo, issue.number, text, user))
        return json_reply(201, shown, {"Location": shown["url"]})

    async def _comment(self, call: Call) -> Reply:
        repo = self._at(call)
        return json_reply(200, self.show.comment(repo, repo.comment(int(call.args["id"]))))

    async def _edit_comment(self, call: Call) -> Reply:
        repo, body = self._at(call), call.body()
        comment = repo.comment(int(call.args["id"]))
        call.may_write()
        comment.body = call.text(body, "body", "IssueComment", True) or ""
        comment.updated_at = self.world.now()
        return json_reply(200, self.show.comment(repo, comment))

    async def _delete_comment(self, call: Call) -> Reply:
        comment = self._at(call).comment(int(call.args["id"]))
        call.may_write()
        comment.deleted = True
        return json_reply(204, b"")


CREATES_CONTENT = re.compile(r"/repos/[^/]+/[^/]+/(?:issues|pulls|issues/\d+/comments)")


def creates_content(method: str, path: str) -> bool:
    """Whether a request counts against the limit on content that is created."""
    return method == "POST" and CREATES_CONTENT.fullmatch(path) is not None
