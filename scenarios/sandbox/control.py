"""The control plane, the same for every service, under ``/_control``.

| call | what it does |
|---|---|
| ``GET /_control`` | a page for people: the ledger and the requests, refreshed every second |
| ``GET /_control/health`` | service, process id, base URL, environment |
| ``GET, POST /_control/clock`` | read; ``{"advance_s": n}``, ``{"set": epoch}``, ``{"frozen": bool}`` |
| ``GET, POST, DELETE /_control/rules`` | list, add (fields of ``faults.Rule``), remove all or ``?id=n`` |
| ``GET, POST /_control/held`` | held requests; ``{"n": number or null for all, "apply": bool}`` lets go of them |
| ``GET /_control/requests`` | the request log; ``?method=&path=&stage=`` |
| ``GET /_control/counts`` | received requests by method and path |
| ``POST /_control/wait`` | until ``count`` matching requests got to ``stage``; answers 408 after ``timeout_s`` |
| ``GET /_control/ledger`` | every effect that the service holds |
| ``POST /_control/actions/{name}`` | the service's own calls; ``GET /_control/actions`` names them |
| ``POST /_control/reset`` | everything as at the start |

A control call that cannot be carried out answers 400 with ``{"error": words}``.
"""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router

from scenarios.sandbox.faults import parse_rule
from scenarios.sandbox.requestlog import STAGES

if TYPE_CHECKING:
    from scenarios.sandbox.base import Sandbox

MAX_WAIT_S = 30.0
"""One wait call lasts at most this long; clients ask again."""


def control_app(sandbox: Sandbox) -> Router:
    """The control plane of one sandbox."""
    plane = _ControlPlane(sandbox)
    return Router(
        [
            Route("/_control", plane.page),
            Route("/_control/", plane.page),
            Route("/_control/health", _plain(plane.health)),
            Route("/_control/clock", _plain(plane.clock), methods=["GET", "POST"]),
            Route("/_control/rules", _plain(plane.rules), methods=["GET", "POST", "DELETE"]),
            Route("/_control/held", _plain(plane.held), methods=["GET", "POST"]),
            Route("/_control/requests", _plain(plane.requests)),
            Route("/_control/counts", _plain(plane.counts)),
            Route("/_control/wait", _plain(plane.wait), methods=["POST"]),
            Route("/_control/ledger", _plain(plane.ledger)),
            Route("/_control/actions", _plain(plane.actions)),
            Route("/_control/actions/{name}", _plain(plane.act), methods=["POST"]),
            Route("/_control/reset", _plain(plane.reset), methods=["POST"]),
        ]
    )


class Refused(Exception):
    """A control call that is answered with this status and these words."""

    def __init__(self, words: str, status: int = 400) -> None:
        super().__init__(words)
        self.status = status


def _plain(call: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            return JSONResponse(await call(request))
        except Refused as refused:
            return JSONResponse({"error": str(refused)}, refused.status)
        except (ValueError, TypeError, KeyError) as error:
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)

    return endpoint


async def _json(request: Request) -> dict[str, Any]:
    body = await request.body()
    value = json.loads(body) if body else {}
    if not isinstance(value, dict):
        raise Refused("a control call takes a JSON object")
    return value


class _ControlPlane:
    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox

    async def health(self, request: Request) -> Any:
        service = self._sandbox.service
        return {
            "service": service.name,
            "pid": os.getpid(),
            "url": service.url,
            "environment": service.environment(service.url),
        }

    async def clock(self, request: Request) -> Any:
        clock = self._sandbox.clock
        fired = 0
        if request.method == "POST":
            values = await _json(request)
            if not values or set(values) - {"advance_s", "set", "frozen"}:
                raise Refused("the clock takes advance_s, set or frozen")
            if "frozen" in values:
                clock.freeze(bool(values["frozen"]))
            if "set" in values:
                fired += clock.set(float(values["set"]))
            if "advance_s" in values:
                fired += clock.advance(float(values["advance_s"]))
        return {
            "now": clock.now(),
            "offset_s": clock.offset_s,
            "frozen": clock.frozen,
            "pending": clock.pending()[:100],
            "fired": fired,
        }

    async def rules(self, request: Request) -> Any:
        rules = self._sandbox.rules
        if request.method == "POST":
            return rules.add(parse_rule(await _json(request))).to_json()
        if request.method == "DELETE":
            given = request.query_params.get("id")
            return {"removed": rules.remove(int(given) if given else None)}
        return [rule.to_json() for rule in rules.all()]

    async def held(self, request: Request) -> Any:
        held = self._sandbox.held
        if request.method == "GET":
            return [incoming.record.to_json() for incoming in held.values()]
        values = await _json(request)
        number = values.get("n")
        if number is not None and number not in held:
            raise Refused(f"request {number} is not held")
        chosen = [incoming for n, incoming in held.items() if number is None or n == number]
        for incoming in chosen:
            incoming.dropped = not values.get("apply", True)
            incoming.release.set()
        numbers = {incoming.record.n for incoming in chosen}
        for incoming in chosen:
            if not incoming.dropped:
                await self._applied(incoming.record.n)
        return {"released": sorted(numbers)}

    async def _applied(self, number: int) -> None:
        """Wait (bounded) until the request with this number has been applied."""
        log = self._sandbox.log
        for _ in range(1000):
            applied = log.select(stage="applied")
            if any(record.n == number for record in applied):
                return
            if await log.wait(len(applied) + 1, MAX_WAIT_S, None, None, "applied") is None:
                break
        raise Refused(f"request {number} was released but is not applied yet", 408)

    async def requests(self, request: Request) -> Any:
        query = request.query_params
        stage = query.get("stage")
        _check_stage(stage)
        return [r.to_json() for r in self._sandbox.log.select(query.get("method"), query.get("path"), stage)]

    async def counts(self, request: Request) -> Any:
        return self._sandbox.log.counts()

    async def wait(self, request: Request) -> Any:
        values = await _json(request)
        stage = values.get("stage", "received")
        _check_stage(stage)
        timeout_s = min(float(values.get("timeout_s", MAX_WAIT_S)), MAX_WAIT_S)
        found = await self._sandbox.log.wait(
            int(values.get("count", 1)), timeout_s, values.get("method"), values.get("path"), stage
        )
        if found is None:
            raise Refused("not yet", 408)
        return [record.to_json() for record in found]

    async def ledger(self, request: Request) -> Any:
        self._sandbox.clock.fire_due()
        return self._sandbox.service.ledger()

    async def actions(self, request: Request) -> Any:
        return {name: (call.__doc__ or "").strip() for name, call in self._sandbox.service.actions().items()}

    async def act(self, request: Request) -> Any:
        call = self._sandbox.service.actions().get(request.path_params["name"])
        if call is None:
            raise Refused(f"no such action; there are {', '.join(sorted(self._sandbox.service.actions()))}", 404)
        values = await _json(request)
        self._sandbox.clock.fire_due()
        result = call(**values)
        return await result if inspect.isawaitable(result) else result

    async def reset(self, request: Request) -> Any:
        self._sandbox.reset()
        return {"reset": True}

    async def page(self, request: Request) -> Response:
        return HTMLResponse(PAGE.replace("SERVICE", self._sandbox.service.name))


def _check_stage(stage: str | None) -> None:
    if stage is not None and stage not in STAGES:
        raise Refused(f"stage must be one of {', '.join(STAGES)}")


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>SERVICE sandbox</title><style>
body { font: 14px/1.45 system-ui, sans-serif; margin: 1.5rem auto; max-width: 72rem; padding: 0 1rem }
pre { background: #f4f4f2; padding: 1rem; overflow: auto } table { border-collapse: collapse }
td, th { text-align: left; padding: .15rem .8rem .15rem 0 } th { border-bottom: 1px solid #999 }
</style></head><body><h1>SERVICE sandbox</h1><p id="clock"></p>
<h2>Ledger</h2><pre id="ledger">…</pre>
<h2>Requests</h2><table><thead><tr><th>n</th><th>request</th><th>stage</th><th>status</th><th>answer</th><th>fault</th>
<th>idempotency key</th></tr></thead><tbody id="requests"></tbody></table>
<script>
const get = async path => (await fetch("/_control/" + path)).json();
async function show() {
  try {
    const [clock, ledger, requests] = await Promise.all(["clock", "ledger", "requests"].map(get));
    document.getElementById("clock").textContent = "Sandbox time " + new Date(clock.now * 1000).toISOString() +
      (clock.frozen ? ", frozen" : "") + ", " + Math.round(clock.offset_s) + " s ahead of real time";
    document.getElementById("ledger").textContent = JSON.stringify(ledger, null, 2);
    const rows = document.getElementById("requests");
    rows.replaceChildren();
    for (const r of requests.slice(-200).reverse()) {
      const row = rows.insertRow();
      for (const text of [r.n, r.method + " " + r.path, r.stage, r.status, r.answer_status, r.fault,
                          r.headers["idempotency-key"]]) row.insertCell().textContent = text ?? "";
    }
  } catch (error) { document.getElementById("clock").textContent = "The sandbox does not answer."; }
  setTimeout(show, 1000);
}
show();
</script></body></html>
"""
