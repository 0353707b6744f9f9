"""What every sandbox service shares: the outermost ASGI application, which records, breaks and applies requests.

A service is a :class:`Service`: an ASGI application of its own (usually a Starlette router) plus its ledger.
:class:`Sandbox` stands in front of it. It reads a request whole, writes it down, looks up the rules, and hands it to
the service in a task that does not belong to the client's connection: what was received is applied (now, later, or
never, as the rules say) whether or not the client still lives.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from starlette.datastructures import Headers
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.faults import Rule, Rules
from scenarios.sandbox.requestlog import Record, RequestLog, stamp

SCOPE_KEY = "sandbox.incoming"


@dataclass
class Reply:
    """A whole HTTP response."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Incoming:
    """A request on its way through the sandbox. The service finds it in ``scope["sandbox.incoming"]``."""

    record: Record
    scope: Scope
    body: bytes
    rule: Rule | None = None
    stored_reply: Reply | None = None
    """The answer that the service must remember instead of its own, where a fault says so."""
    release: asyncio.Event = field(default_factory=asyncio.Event)
    dropped: bool = False

    @property
    def headers(self) -> Headers:
        return Headers(scope=self.scope)


class Service(ABC):
    """One service. State is in memory and is touched by the event loop's thread alone.

    An endpoint that does not ``await`` between reading and writing its state is atomic; one that must await (a
    subprocess) takes a lock of its own.
    """

    name: ClassVar[str]
    kept_headers: ClassVar[frozenset[str]] = frozenset()
    """Further request headers (lower case) that the request log keeps. Never one that can carry a credential."""

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        """``options`` are the ``--set service.name=value`` of the command line. Raises ValueError on a bad one."""
        self.clock = clock
        self.options = dict(options)
        self.url = ""
        """Base URL, set before the first request is served."""

    @abstractmethod
    def app(self) -> ASGIApp:
        """The service's own ASGI application, made once."""

    @abstractmethod
    def ledger(self) -> dict[str, Any]:
        """The truth about every effect the service holds, as plain JSON."""

    @abstractmethod
    def reset(self) -> None:
        """Forget everything. The clock's schedule has been cleared already."""

    @abstractmethod
    def environment(self, url: str) -> dict[str, str]:
        """Environment variables that point a client at this sandbox."""

    def actions(self) -> dict[str, Callable[..., Any]]:
        """Further control calls, by name: each takes keyword arguments from JSON and returns JSON (or awaits it)."""
        return {}

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        """How this service words an answer with ``status`` that a fault asks for."""
        return json_reply(status, {"error": {"message": f"sandbox fault: status {status}"}})

    def hold_begins(self, incoming: Incoming) -> None:  # noqa: B027 (not every service has idempotency keys)
        """A request is being held as ``executing``: it is in progress from now on, and applied or dropped later."""

    def hold_dropped(self, incoming: Incoming) -> None:  # noqa: B027
        """A request held as ``executing`` will not be applied after all."""

    async def close(self) -> None:  # noqa: B027
        """The process is about to end: stop what the service started."""


def json_reply(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Reply:
    """``body`` as JSON; bytes and str are sent as they are."""
    response: Response
    if isinstance(body, (bytes, str)):
        response = Response(body, status, dict(headers or {}))
    else:
        response = JSONResponse(body, status, dict(headers or {}))
    return Reply(status, list(response.raw_headers), bytes(response.body))


def incoming_of(scope: Scope) -> Incoming:
    """The sandbox's view of the request that an endpoint is serving."""
    incoming = scope[SCOPE_KEY]
    assert isinstance(incoming, Incoming)
    return incoming


class Sandbox:
    """The ASGI application of one service: control plane, request log, faults, and the service behind them."""

    def __init__(self, service: Service, cut: Callable[[Scope], None]) -> None:
        """``cut`` drops the connection of a scope without another byte."""
        from scenarios.sandbox.control import control_app  # it needs this module's names

        self.service = service
        self.clock = service.clock
        self.log = RequestLog(service.kept_headers)
        self.rules = Rules()
        self.held: dict[int, Incoming] = {}
        self._resets = 0
        self._cut = cut
        self._inner = service.app()
        self._control = control_app(self)
        self._tasks: set[asyncio.Task[Reply | None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise RuntimeError(f"the sandbox serves http only, not {scope['type']}")
        if scope["path"] == "/_control" or scope["path"].startswith("/_control/"):
            await self._control(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        record = self.log.arrive(scope["method"], scope["path"], scope["query_string"].decode("latin-1"), headers)
        body = await _read_body(receive)
        if body is None:
            self.log.reach(record, "incomplete")
            return
        # From here to the rule's choice nothing awaits: requests are judged in the order in which they arrived.
        self.log.receive(record, body, self.clock.now())
        latency_s, rule = self.rules.match(record.method, record.path, body)
        incoming = Incoming(record, scope, body, rule)
        if rule is not None:
            record.fault, record.rule = rule.action, rule.id
        task = asyncio.get_running_loop().create_task(self._process(incoming, latency_s))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        reply = await asyncio.shield(task)
        await self._answer(record, reply, scope, receive, send)

    async def _process(self, incoming: Incoming, latency_s: float) -> Reply | None:
        """Carry the request out as its rule says; the reply, or None to cut the connection."""
        resets = self._resets
        if latency_s:
            await asyncio.sleep(latency_s)
        if resets != self._resets:
            return None  # it belongs to what was forgotten
        rule = incoming.rule
        if rule is None:
            return await self._apply(incoming)
        if rule.action == "cut_before":
            return None
        if rule.action == "answer":
            return self._worded(incoming, rule)
        if rule.action == "hold" and not await self._hold(incoming, rule):
            return None
        if rule.action == "apply_then_status" and rule.stored:
            incoming.stored_reply = self._worded(incoming, rule)
        reply = await self._apply(incoming)
        for _ in range(rule.applications - 1):
            reply = await self._apply(incoming)
        if rule.action == "apply_then_status":
            return self._worded(incoming, rule)
        if rule.action == "apply_then_cut" or (rule.action == "hold" and rule.then == "cut"):
            return None
        return reply

    async def _hold(self, incoming: Incoming, rule: Rule) -> bool:
        """Wait for the rule's time or a release; False if the request was dropped instead."""
        number = incoming.record.n
        if rule.executing:
            self.service.hold_begins(incoming)
        self.held[number] = incoming
        self.log.reach(incoming.record, "held")
        try:
            await asyncio.wait_for(incoming.release.wait(), rule.seconds)
        except asyncio.TimeoutError:
            pass
        finally:
            self.held.pop(number, None)
        if incoming.dropped and rule.executing:
            self.service.hold_dropped(incoming)
        return not incoming.dropped

    async def _apply(self, incoming: Incoming) -> Reply:
        self.clock.fire_due()
        record = incoming.record
        try:
            reply = await _call(self._inner, incoming)
        except Exception:
            # A defect of the sandbox itself: loud, and not shaped like any service's answer.
            print(f"sandbox {self.service.name}: {record.method} {record.path} failed", file=sys.stderr)
            traceback.print_exc()
            reply = json_reply(500, "sandbox defect: " + traceback.format_exc())
        record.applied.append(stamp())
        record.status = reply.status
        self.log.reach(record, "applied")
        return reply

    def _worded(self, incoming: Incoming, rule: Rule) -> Reply:
        if rule.answer is not None:
            return json_reply(rule.status, rule.answer, rule.headers)
        reply = self.service.fault_reply(incoming, rule.status)
        given = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in rule.headers.items()]
        return Reply(reply.status, reply.headers + given, reply.body)

    async def _answer(self, record: Record, reply: Reply | None, scope: Scope, receive: Receive, send: Send) -> None:
        if reply is None:
            self._cut(scope)
            while (await receive())["type"] != "http.disconnect":
                pass
        else:
            record.answer_status = reply.status
            await send({"type": "http.response.start", "status": reply.status, "headers": reply.headers})
            await send({"type": "http.response.body", "body": b"" if record.method == "HEAD" else reply.body})
        record.answered = stamp()
        self.log.reach(record, "finished")

    def drop_held(self) -> None:
        """Let go of every held request without applying it."""
        for incoming in list(self.held.values()):
            incoming.dropped = True
            incoming.release.set()

    def reset(self) -> None:
        """Everything as at the start: no state, no rules, no records, the clock at real time."""
        self._resets += 1
        self.drop_held()
        self.rules.remove()
        self.log.clear()
        self.clock.reset()
        self.service.reset()


async def _read_body(receive: Receive) -> bytes | None:
    """The whole body, or None if the client went away first."""
    chunks: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


async def _call(app: ASGIApp, incoming: Incoming) -> Reply:
    """Call an ASGI application with a body that is here already; its whole response."""
    scope = dict(incoming.scope)
    scope[SCOPE_KEY] = incoming
    bodies: list[Message] = [{"type": "http.request", "body": incoming.body, "more_body": False}]
    reply = Reply(0, [], b"")
    chunks: list[bytes] = []

    async def receive() -> Message:
        return bodies.pop() if bodies else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            reply.status = message["status"]
            reply.headers = list(message.get("headers", []))
        elif message["type"] == "http.response.body":
            chunks.append(message.get("body", b""))

    await app(scope, receive, send)
    reply.body = b"".join(chunks)
    return reply


def dumps(value: Any) -> str:
    """JSON as the sandboxes print it: sorted, indented."""
    return json.dumps(value, indent=2, sort_keys=True, default=str)
