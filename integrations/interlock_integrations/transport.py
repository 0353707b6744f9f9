"""The HTTP transport of the integrations whose SDKs rest on ``requests``.

A client on this transport makes its journalled send inside ``sending``::

    with sending(on_send):
        client.v1.refunds.create(...)

and the transport sees to what the gate relies on:

1. It never repeats a request, and a second request inside one ``sending`` (a
   retry of the SDK, a redirect, a refreshed token) fails loudly unsent.
2. A send has a connection of its own. An idle one may have been closed by the
   service meanwhile, and then nobody can tell whether the request arrived.
3. ``on_send()`` is called after the connection and its TLS session stand and
   right before the request's first byte; ``on_send.written()`` right after its
   last byte was handed to the kernel.
4. Whatever fails before that first byte is raised as ``NotSent``: name lookup,
   refused connection, connect time-out, proxy, TLS handshake.
5. Nothing waits for ever: see the constants below.

Requests outside ``sending`` are reads. They may share connections and are not
marked; methods that change something are refused there. A read that a service
turns away because it came too soon is made again, a few times.

Which part of each SDK rests on ``requests`` (read in the versions named):
``stripe`` 16.1 ``_http_client.RequestsClient(session=...)`` calls
``session.request`` once a try and wraps whatever it raises; ``PyGithub`` 2.10
``Requester`` mounts an adapter of its own on its session;
``google-cloud-storage`` 3.17 uses ``google.auth``'s ``AuthorizedSession``,
which refreshes tokens on a separate session; ``resend`` 2.52 calls
``requests.request`` and takes another client as ``default_http_client``.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3 import PoolManager
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError

from interlock_tools import NotSent, SendError
from interlock_tools.errors import describe

TCP_USER_TIMEOUT_S = 30
"""How long sent bytes may stay unacknowledged before the kernel gives the connection up.

It holds for a socket whose process has died, too, which otherwise goes on retransmitting for many minutes. The
``send_timeout`` of an effect counts on it."""

CONNECT_TIMEOUT_S = 10.0
"""How long a connection may take to be set up, where the SDK asks for no time-out of its own."""

READ_TIMEOUT_S = 60.0
"""How long an answer may take, where the SDK asks for no time-out of its own. A send that runs out of it is unknown."""

READ_TRIES = 4
"""How often a read is made that the service turns away because it came too soon. A send is never repeated here."""

READ_WAIT_S = 5.0
"""Longest wait that a service may ask for between two tries of a read; what asks for more fails, and is read later."""

READ_PAUSE_S = 0.5
"""Pause between two tries of a read where the service does not say how long."""

READS = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that are let through outside ``sending``."""


class SecondRequest(SendError):
    """A client tried to make a second request within one journalled send. It was not sent."""


class NotASend(SendError):
    """A request that changes something was made outside ``sending``. It was not sent."""


class NoRequest(SendError):
    """A block of ``sending`` ended without a request on this transport, so what its client did went unseen."""


class _Send:
    """The send that a block of ``sending`` makes."""

    def __init__(self, on_send: Callable[[], None]) -> None:
        self.on_send = on_send
        self.requests = 0
        self.handed_over = False

    def hand_over(self) -> None:
        self.on_send()
        self.handed_over = True

    def written(self) -> None:
        written = getattr(self.on_send, "written", None)
        if written is not None:
            written()


_current: ContextVar[_Send | None] = ContextVar("interlock_send", default=None)


@contextlib.contextmanager
def sending(on_send: Callable[[], None]) -> Generator[None, None, None]:
    """Make the one request of this block, on this transport, the send that ``on_send`` belongs to.

    Args:
        on_send: the hook that the gate passed to the send function.

    Raises:
        SendError: the block lies within another one.
        NoRequest: the block ended well, but no request went through this transport.
    """
    if _current.get() is not None:
        raise SendError("sending() within sending(): one journalled send is one request")
    send = _Send(on_send)
    token = _current.set(send)
    try:
        yield
    finally:
        _current.reset(token)
    if send.requests == 0:
        send.hand_over()  # it may have happened elsewhere; it must not pass for unsent
        raise NoRequest("the client is not on the gated transport; mount it with transport.mount(session)")


class GatedConnection(HTTPConnection):
    """Calls the current send's hook right before and right after the bytes of its request."""

    _about_to_send: _Send | None = None
    _pid = 0

    def connect(self) -> None:
        super().connect()
        self._pid = os.getpid()

    @property
    def is_connected(self) -> bool:
        # A pool asks this of an idle connection before it uses it again: never for a send, never a parent's after fork.
        return _current.get() is None and self._pid == os.getpid() and super().is_connected

    def request(self, *args: Any, **kwargs: Any) -> None:
        current = _current.get()
        if current is None:
            super().request(*args, **kwargs)
            return
        if self.sock is None:
            self.connect()  # a proxy is asked for its tunnel here, and that is not the request
        self._about_to_send = current
        try:
            super().request(*args, **kwargs)
        finally:
            self._about_to_send = None
        current.written()

    def send(self, data: Any) -> None:
        current, self._about_to_send = self._about_to_send, None
        if current is not None:
            current.hand_over()
        super().send(data)


class GatedTLSConnection(GatedConnection, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = GatedConnection  # pyright: ignore[reportAssignmentType]  # narrower than urllib3 declares


class _PoolTLS(HTTPSConnectionPool):
    ConnectionCls = GatedTLSConnection  # pyright: ignore[reportAssignmentType]


_POOLS = {"http": _Pool, "https": _PoolTLS}


def _socket_options() -> list[tuple[int, int, int]]:
    options = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    user_timeout = getattr(socket, "TCP_USER_TIMEOUT", None)
    if user_timeout is not None:
        options.append((socket.IPPROTO_TCP, user_timeout, TCP_USER_TIMEOUT_S * 1000))
    return options


class GatedAdapter(HTTPAdapter):
    """A ``requests`` adapter that keeps the promises of this module. It has no options of its own."""

    def __init__(self) -> None:
        super().__init__(max_retries=0)

    def init_poolmanager(self, connections: int, maxsize: int, block: bool = False, **kwargs: Any) -> None:
        super().init_poolmanager(connections, maxsize, block, socket_options=_socket_options(), **kwargs)
        _use_marking_connections(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **kwargs: Any) -> Any:
        if proxy.lower().startswith("socks"):
            raise requests.exceptions.InvalidProxyURL("a gated send cannot go through a SOCKS proxy; use an HTTP one")
        manager = super().proxy_manager_for(proxy, socket_options=_socket_options(), **kwargs)
        _use_marking_connections(manager)
        return manager

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Send one request, once.

        Raises:
            NotSent: inside ``sending``, whatever failed before the first byte.
            SecondRequest: inside ``sending``, for any request but the first.
            NotASend: outside ``sending``, for a method that changes something.
            requests.RequestException: everything else that fails.
        """
        if kwargs.get("timeout") is None:
            kwargs["timeout"] = (CONNECT_TIMEOUT_S, READ_TIMEOUT_S)
        current = _current.get()
        if current is None:
            if request.method not in READS:
                raise NotASend(f"{request.method} {_path(request)} was made outside sending() and is not journalled")
            return self._read(request, *args, **kwargs)
        current.requests += 1
        if current.requests > 1:
            raise SecondRequest(
                f"{request.method} {_path(request)} is request {current.requests} of one journalled send; "
                "switch the client's own retries and redirects off"
            )
        try:
            return super().send(request, *args, **kwargs)
        except SendError:
            raise
        except Exception as error:
            if current.handed_over:
                raise
            raise NotSent(describe(root_cause(error))) from error

    def _read(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> requests.Response:
        """Make a request that changes nothing; where it came too soon, again when the service asks for it."""
        answer = super().send(request, *args, **kwargs)
        if not _came_too_soon(answer):
            return answer
        import tenacity  # reads seldom come too soon

        first = [answer]
        once = super().send
        again = tenacity.Retrying(
            stop=tenacity.stop_after_attempt(READ_TRIES),
            wait=lambda state: _asked_to_wait_s(_answer_of(state)),
            retry=tenacity.retry_if_result(_came_too_soon),
            before_sleep=lambda state: _answer_of(state).close(),
            retry_error_callback=_answer_of,
        )
        last: requests.Response = again(lambda: first.pop() if first else once(request, *args, **kwargs))
        return last


def _answer_of(state: Any) -> requests.Response:
    answer: requests.Response = state.outcome.result()
    return answer


def _came_too_soon(answer: requests.Response) -> bool:
    """Whether a service asks for a wait that is short enough for a read. GitHub and Calendar say so with a 403."""
    limited = answer.status_code == 429 or (answer.status_code == 403 and "retry-after" in answer.headers)
    return limited and _asked_to_wait_s(answer) <= READ_WAIT_S


def _asked_to_wait_s(answer: requests.Response) -> float:
    asked = answer.headers.get("retry-after", "")
    return float(asked) if asked.isascii() and asked.isdigit() else READ_PAUSE_S


def _use_marking_connections(manager: PoolManager) -> None:
    manager.pool_classes_by_scheme = _POOLS


def _path(request: requests.PreparedRequest) -> str:
    return (request.url or "").partition("?")[0]


def mount(session: requests.Session) -> requests.Session:
    """Put a session of an SDK on this transport, for http and https, and return it."""
    adapter = GatedAdapter()
    session.mount("https://", adapter)
    session.mount("http://", adapter)
    return session


def new_session() -> requests.Session:
    """Return a session on this transport.

    Credentials come from the SDK alone: what a ``.netrc`` file says about the
    host is not used in their place. Safe to share between threads as far as
    ``requests`` is, that is, without cookies and changed headers.
    """
    session = mount(requests.Session())
    session.auth = _as_it_is
    return session


def session_for_reads() -> requests.Session:
    """Return a session for requests that change nothing at the service though their method says otherwise.

    It is off this transport: nothing is marked and nothing counts as a send.
    """
    session = requests.Session()
    session.auth = _as_it_is
    return session


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def send_error(error: BaseException) -> SendError | None:
    """Return the ``SendError`` that an SDK's own exception wraps, if there is one.

    SDKs wrap what their transport raises; ``NotSent`` and ``SendRevoked`` must
    come through. A send function that catches an SDK's errors asks this first.
    """
    found: BaseException | None = error
    for _ in range(20):
        if found is None or isinstance(found, SendError):
            return found
        found = found.__cause__ or (None if found.__suppress_context__ else found.__context__)
    return None


def root_cause(error: BaseException) -> BaseException:
    """Return the error that names what went wrong: urllib3, requests and the SDKs wrap it several times."""
    for _ in range(20):
        inner = getattr(error, "reason", None) or (error.args[0] if error.args else None)
        if not isinstance(inner, BaseException) and not isinstance(error, HTTPError):
            inner = error.__cause__  # urllib3's own errors say more than what they rest on
        if not isinstance(inner, BaseException):
            break
        error = inner
    return error
