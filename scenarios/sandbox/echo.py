"""The smallest service: it keeps a list of notes. For tests of the control plane, and an example of a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, json_reply
from scenarios.sandbox.clock import Clock


class EchoService(Service):
    """``POST /notes`` adds a note (any JSON), ``GET /notes`` lists them.

    ``POST /later?seconds=`` adds one when that many seconds of sandbox time have passed.
    """

    name = "echo"

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        if options:
            raise ValueError("the echo service takes no options")
        self.reset()

    def reset(self) -> None:
        self.notes: list[dict[str, Any]] = []
        self.executing: set[int] = set()

    def app(self) -> ASGIApp:
        return Router(
            [Route("/notes", self._notes, methods=["GET", "POST"]), Route("/later", self._later, methods=["POST"])]
        )

    def ledger(self) -> dict[str, Any]:
        return {"notes": self.notes, "executing": sorted(self.executing)}

    def environment(self, url: str) -> dict[str, str]:
        return {"ECHO_URL": url}

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {"add": self._add}

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        return json_reply(status, {"echo_error": status})

    def hold_begins(self, incoming: Incoming) -> None:
        self.executing.add(incoming.record.n)

    def hold_dropped(self, incoming: Incoming) -> None:
        self.executing.discard(incoming.record.n)

    def _add(self, note: Any) -> dict[str, Any]:
        """Add a note: {"note": any JSON}."""
        self.notes.append({"note": note, "at": self.clock.now()})
        return self.notes[-1]

    async def _notes(self, request: Request) -> Response:
        if request.method == "POST":
            return JSONResponse(self._add(await request.json()), 201)
        return JSONResponse(self.notes)

    async def _later(self, request: Request) -> Response:
        note = await request.json()
        self.clock.call_later(
            float(request.query_params["seconds"]), lambda: self.notes.append({"note": note, "at": self.clock.now()})
        )
        return JSONResponse({}, 202)


SERVICE = EchoService
