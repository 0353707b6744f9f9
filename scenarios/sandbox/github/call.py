"""One API call: who makes it, its JSON body and query; and how lists are paged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from scenarios.sandbox.base import Reply, json_reply
from scenarios.sandbox.github.errors import GitHubError, invalid
from scenarios.sandbox.github.world import User

DEFAULT_PER_PAGE = 30
MAX_PER_PAGE = 100


@dataclass
class Caller:
    """Whom a token stands for."""

    user: User
    writes: bool = True
    """May push and merge."""
    installation: bool = False
    """A GitHub App's installation token: it is no user."""


@dataclass
class Call:
    method: str
    url: str
    """The full URL without its query."""
    query: dict[str, str]
    raw: bytes
    caller: Caller | None
    args: dict[str, str] = field(default_factory=dict)

    @property
    def user(self) -> User:
        """The caller. Raises the service's 401 for an anonymous one."""
        if self.caller is None:
            raise GitHubError(401, "Requires authentication")
        return self.caller.user

    def may_write(self) -> None:
        """Raises the service's 401 or 403 unless the caller may push."""
        assert self.user
        if self.caller is not None and not self.caller.writes:
            raise GitHubError(403, "Resource not accessible by personal access token")

    def body(self) -> dict[str, Any]:
        """The JSON object that was sent; raises the service's 400."""
        if not self.raw:
            return {}
        try:
            value = json.loads(self.raw)
        except ValueError:
            raise GitHubError(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise GitHubError(400, "Body should be a JSON object")
        return value

    def text(self, body: dict[str, Any], name: str, resource: str, required: bool = False) -> str | None:
        """A text field of the body. Raises the service's 422."""
        value = body.get(name)
        if value is None:
            if required:
                raise invalid(resource, name)
            return None
        if not isinstance(value, str):
            raise GitHubError(422, f"Invalid request.\n\nFor 'properties/{name}', {value!r} is not a string.")
        return value

    def page(self, shown: Sequence[Any]) -> Reply:
        """One page of a list, with the ``Link`` header that leads to the others."""
        per_page = min(self._number("per_page", DEFAULT_PER_PAGE), MAX_PER_PAGE)
        number = self._number("page", 1)
        last = max(1, -(-len(shown) // per_page))
        links = []
        if number < last:
            links += [self._link("next", number + 1), self._link("last", last)]
        if number > 1:
            links += [self._link("first", 1), self._link("prev", min(number - 1, last))]
        headers = {"Link": ", ".join(links)} if links else {}
        start = (number - 1) * per_page
        return json_reply(200, list(shown[start : start + per_page]), headers)

    def _number(self, name: str, default: int) -> int:
        given = self.query.get(name, "")
        return int(given) if given.isascii() and given.isdigit() and int(given) > 0 else default

    def _link(self, rel: str, number: int) -> str:
        query = {**self.query, "page": str(number)}
        return f'<{self.url}?{urlencode(query)}>; rel="{rel}"'


def etag(reply: Reply) -> str:
    return f'"{hashlib.sha256(reply.body).hexdigest()}"'
