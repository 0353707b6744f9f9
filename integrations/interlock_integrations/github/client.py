"""The GitHub client that gated tools use: PyGithub, on this package's transport, without retries.

PyGithub's objects work over any ``Requester``, and a requester makes a request
on whatever connection it is given (both public). The one here gives it one on
the gated transport, one for each thread: PyGithub keeps the request that it is
about to make on the connection itself, so that two threads on one connection
can send each other's requests (read in 2.10, ``Requester.__requestRaw``).
"""

from __future__ import annotations

import json
import os
import threading
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

from github import Auth, Github, GithubException
from github.Requester import HTTPRequestsConnectionClass, HTTPSRequestsConnectionClass, Requester

from interlock_tools import DefinitionError

from ..transport import TCP_USER_TIMEOUT_S, mount

SEND_TIMEOUT = timedelta(seconds=TCP_USER_TIMEOUT_S + 90)
"""Longest time from hand-over until a request has landed at GitHub or never will: what the kernel may still deliver of
a dead process's request, and 90 s for GitHub itself, which ends a request after 10 s (REST API, "Troubleshooting",
"Timeouts"). Proxies that hold requests come on top."""

LOOKUP_LAG = timedelta(seconds=5)
"""How stale a read can be. Seen: 0.5 s after a push; taken ten times."""

PER_PAGE = 100
"""Largest page that GitHub gives (REST API, "Pagination")."""


class _NoRedirects:
    """PyGithub follows a 301 by itself, with a PUT or POST as well; here a redirected send is an error."""

    verb: str

    def getresponse(self) -> Any:
        answer: Any = super().getresponse()  # type: ignore[misc]
        if 300 <= answer.status < 400 and self.verb != "GET":
            headers = {str(name).lower(): str(value) for name, value in answer.getheaders()}
            raise GithubException(answer.status, _json_or_nothing(answer.read()), headers)
        return answer


class _Http(_NoRedirects, HTTPRequestsConnectionClass):
    pass


class _Https(_NoRedirects, HTTPSRequestsConnectionClass):
    pass


class GatedRequester(Requester):
    """PyGithub's requester on the gated transport: no retries, no redirected sends, a connection for each thread."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._local = threading.local()

    def requestJsonAndCheck(
        self,
        verb: str,
        url: str,
        parameters: dict[str, Any] | None = None,
        headers: dict[str, str] | None = None,
        input: Any | None = None,
        follow_302_redirect: bool = False,
    ) -> tuple[dict[str, Any], Any]:
        """Make one request and return headers and JSON.

        Raises:
            GithubException: GitHub's answer is an error or a redirect.
            ValueError: the answer is not JSON.
            RuntimeError: the URL is not one of this API's.
        """
        where, ours = urlsplit(url), urlsplit(self.base_url)
        if where.netloc and (where.hostname, where.port) != (ours.hostname, ours.port):
            raise RuntimeError(f"GitHub's answer leads to another address: {where.hostname}")
        status, answered, body = self.requestJson(verb, url, parameters, headers, input, self._connection())
        if status >= 300:
            raise self.createException(status, answered, _json_or_nothing(body))
        found = json.loads(body) if body else None
        if verb == "GET" and isinstance(found, dict):
            found.setdefault("url", url)
        return answered, found

    def _connection(self) -> _Http | _Https:
        """This thread's connection. Time-outs are the transport's."""
        connection: _Http | _Https | None = getattr(self._local, "connection", None)
        if connection is None:
            where = urlsplit(self.base_url)
            kind = _Https if where.scheme == "https" else _Http
            connection = kind(where.hostname or "", where.port, verify=self.kwargs["verify"])
            mount(connection.session)
            self._local.connection = connection
        return connection


def _json_or_nothing(body: str) -> Any:
    """The object that an error's body is, or nothing: PyGithub takes no other."""
    try:
        found = json.loads(body)
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("message", ""), str) else None


def gated_client(client: Github) -> GatedRequester:
    """Return a requester with a client's credentials, address and API version on the gated transport.

    The client is left as it is. Its retries, its proxies' settings and its time-outs are not taken over.

    Raises:
        DefinitionError: it is no PyGithub client, or has no credentials.
    """
    if isinstance(client, GatedRequester):
        return client
    if not isinstance(client, Github):
        raise DefinitionError(f"client= takes a github.Github, not a {type(client).__name__}")
    if client.requester.auth is None:
        raise DefinitionError("this GitHub client has no credentials; make it with auth=Auth.Token(...)")
    return GatedRequester(**{**client.requester.kwargs, "retry": None, "lazy": True, "per_page": PER_PAGE})


def github_from_environment() -> Github:
    """Return a client configured by ``GITHUB_TOKEN`` and, for a server of one's own or a sandbox, ``GITHUB_API_URL``.

    PyGithub pauses for 0.25 s between any two requests unless told otherwise. This one does not, because a recovery
    reads several times in a row; it keeps the pause between writes, which GitHub asks for (REST API, "Best practices").

    Raises:
        DefinitionError: the token is missing.
    """
    token = os.environ.get("GITHUB_TOKEN")
    if not token:
        raise DefinitionError("set GITHUB_TOKEN, or pass client=Github(auth=Auth.Token(...))")
    base = os.environ.get("GITHUB_API_URL")
    at: dict[str, Any] = {"base_url": base} if base else {}
    return Github(auth=Auth.Token(token), retry=None, seconds_between_requests=0, **at)


def is_missing(error: GithubException) -> bool:
    """Whether GitHub says that there is no such thing, or that these credentials may not see it."""
    return error.status in (404, 410)
