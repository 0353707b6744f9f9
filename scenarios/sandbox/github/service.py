"""The GitHub sandbox as a service: authentication, limits, dispatch, ledger and control actions."""

from __future__ import annotations

import base64
import binascii
import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, incoming_of, json_reply
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.github.actions import Actions
from scenarios.sandbox.github.api import Api, creates_content
from scenarios.sandbox.github.call import Call, Caller, etag
from scenarios.sandbox.github.errors import GitHubError, not_found, server_error
from scenarios.sandbox.github.githttp import GitHttp
from scenarios.sandbox.github.limits import Limits
from scenarios.sandbox.github.render import Renderer
from scenarios.sandbox.github.world import Timing, User, World

SANDBOX_TOKEN = "ghp_sandbox_interlock"
"""The token that the sandbox exports; it stands for the user ``interlock``."""

METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class GitHubService(Service):
    """github.com's REST API and smart HTTP. Options: every field of :class:`Timing`.

    Tokens: ``ghp_sandbox_LOGIN`` stands for that user, ``ghp_readonly_LOGIN`` for one who may not push,
    ``ghs_LOGIN`` for an app's installation (``LOGIN[bot]``), one with ``invalid`` in it is refused, and any other
    stands for ``octocat``. Git itself takes any user name, which is who pushes.
    """

    name = "github"
    kept_headers = frozenset({"accept", "x-github-api-version"})

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        unknown = sorted(set(options) - set(Timing.names()))
        if unknown:
            raise ValueError(f"unknown option(s) {', '.join(unknown)}; known: {', '.join(Timing.names())}")
        if shutil.which("git") is None:
            raise ValueError("the GitHub sandbox needs git 2.38 or later on the PATH")
        self._folder = tempfile.TemporaryDirectory(prefix="sandbox-github-", ignore_cleanup_errors=True)
        self._runs = 0
        self.reset()

    def reset(self) -> None:
        # A request that is still being worked on keeps the folder that it began with; close() removes them all.
        self._runs += 1
        root = Path(self._folder.name) / str(self._runs)
        root.mkdir()
        self.world = World(self.clock, Timing.of(self.options))
        self.limits = Limits(self.world)
        self._root = root
        self._wired_to = ""

    def _wire(self) -> None:
        """Build what needs the base URL, which is known from the first request on."""
        if self._wired_to != self.url:
            self._wired_to = self.url
            self._api = Api(self.world, Renderer(self.world, self.url), self.limits)
            self._git = GitHttp(self.world, self._root)
            self._actions = Actions(self.world, self._api, self._root)

    def app(self) -> ASGIApp:
        return Router([Route("/{path:path}", self._endpoint, methods=METHODS)])

    def environment(self, url: str) -> dict[str, str]:
        return {"GITHUB_API_URL": url, "GITHUB_TOKEN": SANDBOX_TOKEN}

    def actions(self) -> dict[str, Callable[..., Any]]:
        self._wire()
        return self._actions.all()

    def ledger(self) -> dict[str, Any]:
        repos = {}
        for repo in self.world.repos.values():
            repos[repo.full_name] = {
                "branches": {
                    name: {"sha": sha, "commits": repo.history.get(name, [])} for name, sha in repo.branches.items()
                },
                "pulls": [
                    {
                        "number": issue.number,
                        "state": issue.state,
                        "merged": pull.merged,
                        "head": pull.head_sha,
                        "base": pull.base_ref,
                        "merged_by": pull.merged_by.login if pull.merged_by else None,
                        "merge_commit_sha": pull.merge_commit_sha,
                    }
                    for issue, pull in repo.pulls()
                ],
                "merges": repo.merges,
                "issues": [{"number": i.number, "state": i.state} for i in repo.issues.values() if i.pull is None],
                "comments": [{**vars(c), "author": c.author.login} for c in repo.comments.values()],
                "pushes": repo.pushes,
            }
        return {"now": self.clock.now(), "repos": repos}

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        error = server_error(status) if status >= 500 else GitHubError(status, f"Sandbox fault: answered {status}.")
        return self._with_headers(json_reply(error.status, error.body()))

    async def close(self) -> None:
        self._folder.cleanup()

    async def _endpoint(self, request: Request) -> Response:
        self._wire()
        incoming = incoming_of(request.scope)
        reply = await self._git.answer(incoming) or await self._answer(incoming)
        response = Response(reply.body, reply.status)
        response.raw_headers = reply.headers
        return response

    async def _answer(self, incoming: Incoming) -> Reply:
        record = incoming.record
        try:
            reply = await self._dispatch(incoming)
        except GitHubError as error:
            reply = json_reply(error.status, error.body(), error.headers)
        reply = self._with_headers(reply)
        if record.method == "GET" and reply.status == 200:
            tag = etag(reply)
            reply.headers.append((b"etag", tag.encode("ascii")))
            if incoming.headers.get("if-none-match", "").removeprefix("W/") == tag:
                reply = Reply(304, [h for h in reply.headers if h[0] not in (b"content-length", b"content-type")], b"")
        return reply

    async def _dispatch(self, incoming: Incoming) -> Reply:
        """Answer one call of the API. Raises GitHubError."""
        record = incoming.record
        method = "GET" if record.method == "HEAD" else record.method
        if not incoming.headers.get("user-agent"):
            raise GitHubError(
                403, "Request forbidden by administrative rules. Please make sure your request has a User-Agent header."
            )
        caller = self._caller(incoming.headers.get("authorization"))
        if record.path != "/rate_limit":
            self.limits.take(caller.user.id if caller else 0)
        if method != "GET":
            self.limits.write(creates_content(method, record.path))
        moved = self._moved(incoming, method)
        if moved is not None:
            return moved
        found = self._api.find(method, record.path)
        if found is None:
            raise not_found()
        handler, args = found
        query = dict(parse_qsl(incoming.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        return await handler(Call(method, self.url + record.path, query, incoming.body, caller, args))

    def _moved(self, incoming: Incoming, method: str) -> Reply | None:
        """The redirect from a repository's old name: 301 for reads, 307 for the rest (REST API, "Best practices")."""
        parts = incoming.record.path.split("/")
        if len(parts) < 4 or parts[1] != "repos":
            return None
        new = self.world.moved.get(f"{parts[2]}/{parts[3]}".lower())
        if new is None:
            return None
        status = 301 if method == "GET" else 307
        location = "/".join([f"{self.url}/repos/{new}", *parts[4:]])
        body = {"message": "Moved Permanently" if status == 301 else "Temporary Redirect", "url": location}
        return json_reply(status, {**body, "documentation_url": "https://docs.github.com/rest"}, {"Location": location})

    def _caller(self, header: str | None) -> Caller | None:
        """Whom the Authorization header stands for, None for nobody. No message ever repeats a token."""
        if header is None:
            return None
        scheme, _, token = header.partition(" ")
        token = token.strip()
        if scheme.lower() == "basic":
            try:
                token = base64.b64decode(token, validate=True).decode("utf-8").partition(":")[2]
            except (binascii.Error, UnicodeDecodeError):
                token = ""
        if not token or "invalid" in token:
            raise GitHubError(401, "Bad credentials")
        for prefix in ("ghp_sandbox_", "ghp_readonly_"):
            if token.startswith(prefix) and token != prefix:
                return Caller(self._user(token.removeprefix(prefix)), writes=prefix == "ghp_sandbox_")
        if token.startswith("ghs_"):
            return Caller(self._user(token.removeprefix("ghs_") + "[bot]"), installation=True)
        return Caller(self._user("octocat"))

    def _user(self, login: str) -> User:
        return self.world.user(login)

    def _with_headers(self, reply: Reply) -> Reply:
        extra = {"X-GitHub-Media-Type": "github.v3; format=json", **self.limits.headers()}
        headers = [(name.lower().encode("ascii"), value.encode("latin-1")) for name, value in extra.items()]
        return Reply(reply.status, [*reply.headers, *headers], reply.body)
