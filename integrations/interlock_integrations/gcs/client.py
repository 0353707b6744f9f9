"""The Cloud Storage client that gated tools use: the official one, on this package's transport, without retries.

The client re-sends uploads by itself unless each call says ``retry=None`` (read
in 3.17, ``Blob.upload_from_string``), and its session sends a request again
after a 401 with a refreshed token (google-auth, ``AuthorizedSession``). Here
every call says so and the session does not; tokens are refreshed before a
request, on a session of their own.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import requests
from google.auth.credentials import AnonymousCredentials
from google.auth.transport.requests import AuthorizedSession
from google.cloud import storage
from google.oauth2 import service_account
from google.oauth2.credentials import Credentials

from interlock_tools import DefinitionError

from ..transport import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, TCP_USER_TIMEOUT_S, mount

SEND_TIMEOUT = timedelta(seconds=TCP_USER_TIMEOUT_S + 90)
"""Longest time from hand-over until a request has landed at Google or never will: what the kernel may still deliver of
a dead process's request, and 90 s for Google itself. Google promises no such time; proxies that hold requests come on
top."""

ONCE: dict[str, Any] = {"retry": None, "timeout": (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)}
"""What every call of the client is given: no retries, and this package's time-outs."""

SCOPE = "https://www.googleapis.com/auth/devstorage.read_write"


def gated_client(client: storage.Client) -> storage.Client:
    """Return a client with the same project, credentials and address on the gated transport.

    The given client is left as it is.

    Raises:
        DefinitionError: it is no Cloud Storage client.
    """
    if not isinstance(client, storage.Client):
        raise DefinitionError(f"client= takes a google.cloud.storage.Client, not a {type(client).__name__}")
    options: dict[str, Any] = {"api_endpoint": client.api_endpoint, "universe_domain": client.universe_domain}
    return _client(client.project, client._credentials, options)


def _client(project: str | None, credentials: Any, options: dict[str, Any]) -> storage.Client:
    session: Any = _untyped(AuthorizedSession)(credentials, refresh_status_codes=(), max_refresh_attempts=0)
    session.auth = _as_it_is
    mount(session)
    ours: Any = storage.Client(project=project, credentials=credentials, client_options=options, _http=session)
    ours._bucket_metadata_cache = None  # it would read the bucket in a thread of its own, for traces
    client: storage.Client = ours
    return client


def storage_from_environment() -> storage.Client:
    """Return a client configured by the environment.

    ``GOOGLE_APPLICATION_CREDENTIALS`` names a credentials file, of a service
    account or an authorized user; or ``GOOGLE_STORAGE_TOKEN`` is an access
    token. ``STORAGE_EMULATOR_HOST`` is the address of a sandbox, which takes no
    credentials. ``GOOGLE_CLOUD_PROJECT`` names the project, where one is needed.
    No metadata server is asked.

    Raises:
        DefinitionError: none of them is set, or the file cannot be used.
    """
    address, project = os.environ.get("STORAGE_EMULATOR_HOST"), os.environ.get("GOOGLE_CLOUD_PROJECT")
    token, path = os.environ.get("GOOGLE_STORAGE_TOKEN"), os.environ.get("GOOGLE_APPLICATION_CREDENTIALS")
    if token:
        credentials = _untyped(Credentials)(token=token)
    elif path and not address:
        credentials = _from_file(path)
    elif address:
        credentials = _untyped(AnonymousCredentials)()
    else:
        raise DefinitionError("set GOOGLE_APPLICATION_CREDENTIALS, or pass client=storage.Client(...)")
    return _client(project, credentials, {"api_endpoint": address} if address else {})


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
            "service account's or an authorized user's. For others pass client=storage.Client(...)"
        ) from None


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    """What a .netrc file says of the host is not used in place of the credentials."""
    return request


def _untyped(function: Any) -> Any:
    """google-auth has types for some of its names and not for others."""
    return function
