"""The Resend client that gated tools use: the official SDK's requests, on this package's transport.

The SDK keeps its API key, address and HTTP client in module globals
(``resend.api_key``, ``api_url``, ``default_http_client``), which belong to the
application. Its ``Request`` builds headers and body and words the errors; here
one is given another way to the network, with a key of its own.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import requests
from resend.request import Request

from interlock_tools import DefinitionError

from ..transport import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, TCP_USER_TIMEOUT_S, new_session, session_for_reads

SEND_TIMEOUT = timedelta(seconds=TCP_USER_TIMEOUT_S + 90)
"""Longest time from hand-over until a request has landed at Resend or never will: what the kernel may still deliver of
a dead process's request, and 90 s for Resend itself. Resend promises no such time; proxies that hold requests come on
top."""

DEDUPES = timedelta(hours=24)
"""How long Resend remembers an idempotency key (documentation, "Idempotency keys")."""

ADDRESS = "https://api.resend.com"


class ResendClient:
    """One Resend account: its API key and address.

    Args:
        api_key: the key. It appears in no message and no record.
        api_url: the API's address; another one for a sandbox.

    Raises:
        DefinitionError: the key is missing.
    """

    def __init__(self, api_key: str, api_url: str = ADDRESS) -> None:
        if not isinstance(api_key, str) or not api_key.strip():
            raise DefinitionError("set RESEND_API_KEY, or pass api_key=")
        self._api_key = api_key
        self._api_url = api_url.rstrip("/")
        self._session = new_session()
        self._reads = session_for_reads()

    def __repr__(self) -> str:
        return f"ResendClient({self._api_url})"

    def send(self, mail: dict[str, Any], idempotency_key: str) -> dict[str, Any]:
        """``POST /emails``, within ``sending``. Raises ``ResendError`` and what the transport raises."""
        return self._perform(self._session, "/emails", mail, "post", idempotency_key)

    def probe(self, mail: dict[str, Any], idempotency_key: str) -> dict[str, Any]:
        """``POST /emails`` with a body that is meant to be refused, to hear about its key."""
        return self._perform(self._reads, "/emails", mail, "post", idempotency_key)

    def page(self, limit: int, after: str | None) -> dict[str, Any]:
        """``GET /emails``: one page, newest first, without bodies."""
        path = f"/emails?limit={limit}" + (f"&after={quote(after, safe='')}" if after else "")
        return self._perform(self._session, path, {}, "get", None)

    def email(self, name: str) -> dict[str, Any]:
        """``GET /emails/{id}``."""
        return self._perform(self._session, f"/emails/{quote(name, safe='')}", {}, "get", None)

    def _perform(
        self, session: requests.Session, path: str, params: dict[str, Any], verb: Any, key: str | None
    ) -> dict[str, Any]:
        options = {"idempotency_key": key} if key is not None else None
        found: dict[str, Any] = _Request(self, session, path, params, verb, options).perform_with_content()
        return found


class _Request(Request[Any]):
    """A request of the SDK's on a session of ours."""

    def __init__(
        self,
        client: ResendClient,
        session: requests.Session,
        path: str,
        params: dict[str, Any],
        verb: Any,
        options: dict[str, Any] | None,
    ) -> None:
        super().__init__(path, params, verb, options)
        self._client = client
        self._session = session

    def make_request(self, url: str) -> Any:
        """Send it; the parsed body. ``url`` has the application's address in it and is not used."""
        headers = self._Request__get_headers()  # type: ignore[attr-defined]
        headers["Authorization"] = f"Bearer {self._client._api_key}"
        answer = self._session.request(
            self.verb,
            self._client._api_url + self.path,
            headers=headers,
            json=self.params if self.verb == "post" else None,
            allow_redirects=False,
            timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
        )
        self._response_headers = {name.lower(): value for name, value in answer.headers.items()}
        self._response_status_code = answer.status_code
        try:
            parsed = answer.json()
        except requests.JSONDecodeError:
            parsed = None
        if not isinstance(parsed, dict):
            raise NotResend(answer.status_code)
        return {**parsed, "http_headers": dict(self._response_headers)}


class NotResend(Exception):
    """The body of an answer is no JSON object, so it is not Resend's. Attributes: ``status``."""

    def __init__(self, status: int) -> None:
        super().__init__(f"the answer (status {status}) is not one of Resend's")
        self.status = status


def resend_from_environment(api_key: str | None = None) -> ResendClient:
    """Return a client configured by ``RESEND_API_KEY`` and, for a sandbox, ``RESEND_API_URL``.

    Raises:
        DefinitionError: the key is missing.
    """
    return ResendClient(api_key or os.environ.get("RESEND_API_KEY") or "", os.environ.get("RESEND_API_URL") or ADDRESS)
