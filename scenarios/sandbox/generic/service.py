"""The generic service behind HTTP. Every account is a world of its own, so that many tests share one process.

| request | |
|---|---|
| ``POST /a/{account}/do`` | an effect; headers ``Idempotency-Key``, ``If-Version``, ``X-Handed-Over`` (seconds) |
| ``GET /a/{account}/facts?without=`` | owner and version, leaving out what the effect under that key changed |
| ``GET /a/{account}/approval`` | the approval, or 404 |
| ``GET /a/{account}/find?key=`` | the effect under a key, or 404; as stale as the terms allow |

Time is CLOCK_BOOTTIME, which the clients on this machine share; the sandbox's clock is not used.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Service, incoming_of
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.generic.model import Account, Answer, Call, Terms

UNREADABLE = JSONResponse({"error": "unavailable"}, 503)


def boottime() -> float:
    """Seconds by CLOCK_BOOTTIME."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class GenericService(Service):
    """See the module."""

    name = "generic"

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        if options:
            raise ValueError("the generic service takes no options; its terms are chosen for each account")
        self.reset()

    def reset(self) -> None:
        self.accounts: dict[str, Account] = {}

    def app(self) -> ASGIApp:
        return Router(
            [
                Route("/a/{account}/do", self._do, methods=["POST"]),
                Route("/a/{account}/facts", self._facts),
                Route("/a/{account}/approval", self._approval),
                Route("/a/{account}/find", self._find),
            ]
        )

    def ledger(self) -> dict[str, Any]:
        return {name: account.to_json() for name, account in self.accounts.items()}

    def environment(self, url: str) -> dict[str, str]:
        return {"GENERIC_URL": url}

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {"open": self._open, "change": self._change, "show": self._show, "close": self._close}

    def hold_begins(self, incoming: Incoming) -> None:
        self._account(incoming.scope["path"].split("/")[2]).begin(_call(incoming), boottime())

    def hold_dropped(self, incoming: Incoming) -> None:
        self._account(incoming.scope["path"].split("/")[2]).abandon(_call(incoming))

    def _account(self, name: str) -> Account:
        return self.accounts[name]

    # -- control -----------------------------------------------------------------------------------

    def _open(self, account: str, **terms: Any) -> dict[str, Any]:
        """Open an account under these terms: fields of ``model.Terms``; ``dedupes_s`` -1 is for ever."""
        if terms.get("dedupes_s") == -1:
            terms["dedupes_s"] = float("inf")
        self.accounts[account] = Account(account, Terms(**terms))
        return {}

    def _change(self, account: str, **changes: Any) -> dict[str, Any]:
        """Change facts: fields of ``model.Account``; ``bump`` adds to the version."""
        found = self._account(account)
        found.version += changes.pop("bump", 0)
        for field, value in changes.items():
            if field not in ("owner", "approval", "readable", "next"):
                raise ValueError(f"{field} cannot be changed")
            setattr(found, field, value)
        return {}

    def _show(self, account: str) -> dict[str, Any]:
        """What the account holds."""
        return self._account(account).to_json()

    def _close(self, account: str) -> dict[str, Any]:
        """Forget the account."""
        self.accounts.pop(account, None)
        return {}

    # -- requests ----------------------------------------------------------------------------------

    async def _do(self, request: Request) -> Response:
        incoming = incoming_of(request.scope)
        stored = None
        if incoming.stored_reply is not None:
            stored = Answer(incoming.stored_reply.status, json.loads(incoming.stored_reply.body))
        account = self._account(request.path_params["account"])
        answer = account.do(_call(incoming), boottime(), stored)
        headers = {"Idempotent-Replayed": "true"} if answer.replayed else {}
        return JSONResponse(answer.body, answer.status, headers)

    async def _facts(self, request: Request) -> Response:
        account = self._account(request.path_params["account"])
        return JSONResponse(account.facts(request.query_params.get("without"))) if account.readable else UNREADABLE

    async def _approval(self, request: Request) -> Response:
        account = self._account(request.path_params["account"])
        if not account.readable:
            return UNREADABLE
        return JSONResponse({"id": account.approval}, 200 if account.approval else 404)

    async def _find(self, request: Request) -> Response:
        account = self._account(request.path_params["account"])
        held = account.find(request.query_params["key"], boottime())
        return JSONResponse({"id": held.id}) if held is not None else JSONResponse({"error": "not found"}, 404)


def _call(incoming: Incoming) -> Call:
    headers = incoming.headers
    version = headers.get("if-version")
    return Call(
        key=headers.get("idempotency-key", ""),
        body=json.loads(incoming.body),
        handed_over=float(headers.get("x-handed-over") or boottime()),
        number=incoming.record.n,
        version=int(version) if version else None,
    )
