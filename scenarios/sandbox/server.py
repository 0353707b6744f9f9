"""Runs sandboxes in this process: one event loop, one loopback port a service."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import Scope
from uvicorn.protocols.http.h11_impl import H11Protocol

from scenarios.sandbox.base import Sandbox
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.registry import create

HOST = "127.0.0.1"
PARENT_CHECK_S = 0.25


class Connections:
    """The open connections of one server by the client's address, so that one can be cut."""

    def __init__(self) -> None:
        self._transports: dict[tuple[str, int], asyncio.Transport] = {}

    def cut(self, scope: Scope) -> None:
        """Drop the connection that this scope came in on, without another byte."""
        transport = self._transports.get(tuple(scope["client"]))
        if transport is not None:
            transport.abort()

    def protocol(self) -> type[asyncio.Protocol]:
        """An HTTP protocol class for uvicorn that keeps track of its connections here."""
        transports = self._transports

        class Protocol(H11Protocol):
            def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
                super().connection_made(transport)
                self.peer = tuple(transport.get_extra_info("peername"))
                transports[self.peer] = transport

            def connection_lost(self, exc: Exception | None) -> None:
                transports.pop(self.peer, None)
                super().connection_lost(exc)

        return Protocol


class _Server(uvicorn.Server):
    """uvicorn without signal handlers of its own: several servers share this process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@dataclass
class Running:
    """A sandbox with its server and the URL that it answers at."""

    sandbox: Sandbox
    server: _Server
    listener: socket.socket
    url: str

    def describe(self) -> dict[str, Any]:
        return {"url": self.url, "environment": self.sandbox.service.environment(self.url)}


def _start(name: str, port: int, options: Mapping[str, str]) -> Running:
    # asyncio switches Nagle's algorithm off only on sockets that say they are TCP; with it an answer takes 40 ms.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((HOST, port))
    url = f"http://{HOST}:{listener.getsockname()[1]}"
    connections = Connections()
    service = create(name, Clock(), options)
    service.url = url
    sandbox = Sandbox(service, connections.cut)
    config = uvicorn.Config(
        sandbox,
        http=connections.protocol(),
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=60,
    )
    return Running(sandbox, _Server(config), listener, url)


async def serve(
    names: Sequence[str],
    ports: Sequence[int],
    options: Mapping[str, Mapping[str, str]],
    ready: Callable[[dict[str, Any]], None],
    parent_pid: int | None = None,
) -> None:
    """Run the named services until SIGTERM, SIGINT or the death of ``parent_pid``.

    ``ready`` is called once, when every port is bound and accepts, with the process id and each service's URL and
    environment. Raises ValueError for an unknown service or option, OSError for a port that is taken.
    """
    padded = list(ports) + [0] * (len(names) - len(ports))
    running = [_start(name, port, options.get(name, {})) for name, port in zip(names, padded, strict=False)]
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    tasks = [loop.create_task(item.server.serve(sockets=[item.listener])) for item in running]
    clocks = [loop.create_task(item.sandbox.clock.run()) for item in running]
    watcher = loop.create_task(_watch_parent(parent_pid, stop))
    while not all(item.server.started for item in running):
        if any(task.done() for task in tasks):
            break
        await asyncio.sleep(0.001)
    ready({"pid": os.getpid(), "services": {item.sandbox.service.name: item.describe() for item in running}})
    stopped = loop.create_task(stop.wait())
    await asyncio.wait([stopped, *tasks, *clocks], return_when=asyncio.FIRST_COMPLETED)
    for item in running:
        item.sandbox.drop_held()
        item.server.should_exit = True
    for task in (watcher, stopped, *clocks):
        task.cancel()
    results = await asyncio.gather(watcher, stopped, *clocks, *tasks, return_exceptions=True)
    for item in running:
        await item.sandbox.service.close()
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _watch_parent(parent_pid: int | None, stop: asyncio.Event) -> None:
    """Set ``stop`` when this process is no longer a child of ``parent_pid``."""
    while parent_pid is not None and os.getppid() == parent_pid:
        await asyncio.sleep(PARENT_CHECK_S)
    if parent_pid is not None:
        stop.set()
