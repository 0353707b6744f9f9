"""The Calendar client that gated tools use: the official library, on this package's transport.

The library itself rests on ``httplib2``, which sends a POST again when its
connection breaks, also where no retries are asked for (seen in 0.32:
``Http._conn_request`` tries ``RETRIES`` times). It takes any object with
``httplib2``'s ``request`` in its place, and is given one here.
"""

from __future__ import annotations

import functools
import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import httplib2
from google.auth.transport.requests import Request as AuthRequest
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build, build_from_document

from interlock_tools import DefinitionError

from ..transport import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, TCP_USER_TIMEOUT_S, new_session, session_for_reads

SEND_TIMEOUT = timedelta(seconds=TCP_USER_TIMEOUT_S + 90)
"""Longest time from hand-over until a request has landed at Google or never will: what the kernel may still deliver of
a dead process's request, and 90 s for Google itself. Google promises no such time; proxies that hold requests come on
top."""

SCOPE = "https://www.googleapis.com/auth/calendar"

READING_POSTS = ("/freeBusy",)
"""Ends of paths that are asked by POST and change nothing."""


class GatedHttp:
    """What the library uses in place of an ``httplib2.Http``: credentials, and one request on this package's transport.

    Unlike the library's own it neither follows redirects nor sends a request
    again with a refreshed token: a token is refreshed before the request, on a
    session of its own.
    """

    def __init__(self, credentials: Any) -> None:
        self.credentials = credentials
        self._session = new_session()
        self._reads = session_for_reads()
        self._tokens = AuthRequest(session_for_reads())

    def request(
        self,
        uri: str,
        method: str = "GET",
        body: Any = None,
        headers: dict[str, str] | None = None,
        redirections: int = 0,
        connection_type: Any = None,
    ) -> tuple[httplib2.Response, bytes]:
        """Make one request. Raises what ``transport`` and google-auth raise."""
        given = dict(headers or {})
        self.credentials.before_request(self._tokens, method, uri, given)
        reads = uri.partition("?")[0].endswith(READING_POSTS)
        answer = (self._reads if reads else self._session).request(
            method,
            uri,
            data=body,
            headers=given,
            allow_redirects=False,
            timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
        )
        response = httplib2.Response({**answer.headers, "status": str(answer.status_code)})
        response.reason = answer.reason
        return response, answer.content

    def close(self) -> None:
        """Close idle connections."""
        self._session.close()
        self._reads.close()


def gated_service(service: Any) -> Any:
    """Return a Calendar service with the same credentials and address on the gated transport.

    The given one, made by ``googleapiclient.discovery.build``, is left as it is.

    Raises:
        DefinitionError: it is not a Calendar service, or it was made without credentials.
    """
    http, document = getattr(service, "_http", None), getattr(service, "_rootDesc", None)
    if not isinstance(document, dict) or document.get("name") != "calendar":
        raise DefinitionError('service= takes googleapiclient.discovery.build("calendar", "v3", credentials=...)')
    if isinstance(http, GatedHttp):
        return service
    credentials = getattr(http, "credentials", None)
    if not hasattr(credentials, "before_request"):
        raise DefinitionError("this Calendar service was made without credentials; build it with credentials=")
    options = {"api_endpoint": service._baseUrl}
    gated = build_from_document(document, http=GatedHttp(credentials), client_options=options)
    # The client builds a resource, with the words of all its methods, at every call: longer than a request takes here.
    gated.events, gated.freebusy = functools.cache(gated.events), functools.cache(gated.freebusy)
    return gated


def calendar_from_environment() -> Any:
    """Return a Calendar service configured by the environment.

    ``GOOGLE_APPLICATION_CREDENTIALS`` names a credentials file, of a service
    account or an authorized user; or ``GOOGLE_CALENDAR_TOKEN`` is an access token. ``GOOGLE_CALENDAR_API`` is the
    API's base address where it is a sandbox's. No metadata server is asked.

    Raises:
        DefinitionError: neither is set, or the file cannot be used.
    """
    token, path = os.environ.get("GOOGLE_CALENDAR_TOKEN"), os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if token:
        credentials = _untyped(Credentials)(token=token)
    elif path:
        credentials = _from_file(path)
    else:
        raise DefinitionError("set GOOGLE_APPLICATION_CREDENTIALS, or pass service=build('calendar', 'v3', ...)")
    address = os.environ.get("GOOGLE_CALENDAR_API")
    options = {"api_endpoint": address} if address else None
    return build("calendar", "v3", http=GatedHttp(credentials), client_options=options, static_discovery=True)


def _from_file(path: str) -> Any:
    """Credentials from a file. Other kinds, which run programs or ask addresses that the file names, are left out."""
    makers: dict[str, Any] = {
        "service_account": service_account.Credentials.from_service_account_info,
        "authorized_user": Credentials.from_authorized_user_info,
    }
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
        return makers[told["type"]](told, scopes=[SCOPE])
    except Exception as error:
        raise DefinitionError(
            f"GOOGLE_APPLICATION_CREDENTIALS names a file that cannot be used ({type(error).__name__}); it takes a "
            "service account's or an authorized user's. For others pass service=build('calendar', 'v3', ...)"
        ) from None


def _untyped(function: Any) -> Any:
    """google-auth has types for some of its names and not for others."""
    return function
