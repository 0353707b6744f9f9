"""Smart HTTP for ``git clone``, ``fetch`` and ``push``, by git's own ``http-backend``. Source: git-http-backend(1)."""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from pathlib import Path

from scenarios.sandbox.base import Incoming, Reply, json_reply
from scenarios.sandbox.github import merging
from scenarios.sandbox.github.gitrepo import git_environment
from scenarios.sandbox.github.world import User, World

PATH = re.compile(r"/(?P<owner>[^/]+)/(?P<repo>[^/]+?)\.git/(?P<tail>info/refs|git-upload-pack|git-receive-pack)")


class GitHttp:
    """Serves the repositories of a world to git itself."""

    def __init__(self, world: World, root: Path) -> None:
        self._world = world
        self._root = root

    async def answer(self, incoming: Incoming) -> Reply | None:
        """The reply to a request of git's, or None if the path is not one of git's."""
        match = PATH.fullmatch(incoming.record.path)
        if match is None:
            return None
        repo = self._world.find(f"{match['owner']}/{match['repo']}")
        if repo is None:
            return json_reply(404, "Repository not found.")
        query = incoming.scope["query_string"].decode("latin-1")
        tail = match["tail"]
        pushes = tail == "git-receive-pack" or (tail == "info/refs" and "service=git-receive-pack" in query)
        user = self._user(incoming)
        if pushes and user is None:
            return json_reply(401, "Authentication required.", {"WWW-Authenticate": 'Basic realm="GitHub"'})
        environment = {
            **git_environment(self._root),
            "GIT_PROJECT_ROOT": str(self._root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{repo.git.path.name}/{tail}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": incoming.record.method,
            "CONTENT_TYPE": incoming.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(incoming.body)),
            "HTTP_CONTENT_ENCODING": incoming.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": incoming.headers.get("git-protocol", ""),
            "REMOTE_USER": user.login if user is not None else "",
            "REMOTE_ADDR": "127.0.0.1",
        }
        async with repo.lock:
            reply = await _backend(environment, incoming.body)
            if tail == "git-receive-pack" and user is not None:
                await merging.refresh(self._world, repo, user)
        return reply

    def _user(self, incoming: Incoming) -> User | None:
        """Whom the name in a Basic authorization stands for; the password may be any token."""
        scheme, _, value = incoming.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "basic":
            return None
        try:
            login = base64.b64decode(value.strip(), validate=True).decode("utf-8").partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            return None
        return self._world.user(login) if login else None


async def _backend(environment: dict[str, str], body: bytes) -> Reply:
    """Run the CGI program once and read its response."""
    process = await asyncio.create_subprocess_exec(
        "git",
        "http-backend",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    out, err = await process.communicate(body)
    head, _, content = out.partition(b"\r\n\r\n")
    if process.returncode != 0 or not head:
        return json_reply(500, f"git http-backend: {err.decode('utf-8', 'replace')}")
    status = 200
    headers: list[tuple[bytes, bytes]] = []
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b": ")
        if name.lower() == b"status":
            status = int(value.split(b" ", 1)[0])
        else:
            headers.append((name.lower(), value))
    headers.append((b"content-length", str(len(content)).encode("ascii")))
    return Reply(status, headers, content)
