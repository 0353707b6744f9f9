"""The Stripe sandbox as a service: authentication, idempotency, dispatch, ledger and control actions."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, incoming_of, json_reply
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.stripe import actions
from scenarios.sandbox.stripe.errors import StripeError, invalid, key_in_use, rate_limited, server_error
from scenarios.sandbox.stripe.idempotency import IdempotencyStore
from scenarios.sandbox.stripe.params import Params, parse_form
from scenarios.sandbox.stripe.routes import LEDGERS, Endpoint, find_endpoint
from scenarios.sandbox.stripe.world import API_VERSION, Call, Timing, World

SANDBOX_KEY = "sk_test_sandbox"
"""The key that the sandbox exports; it takes any other ``sk_test_…`` or ``rk_test_…`` too."""


class StripeService(Service):
    """Stripe in test mode. Options: ``connect`` (on or off) and every delay of :class:`Timing`."""

    name = "stripe"

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        unknown = set(options) - {"connect"} - set(vars(Timing()))
        if unknown:
            raise ValueError(
                f"unknown option(s) {', '.join(sorted(unknown))}; known: connect, {', '.join(vars(Timing()))}"
            )
        if options.get("connect", "on") not in ("on", "off"):
            raise ValueError("connect is on or off")
        self.reset()

    def reset(self) -> None:
        connect = self.options.get("connect", "on") == "on"
        self.world = World(self.clock, Timing.of(self.options), connect)
        self.keys = IdempotencyStore()

    def app(self) -> ASGIApp:
        return Router([Route("/{path:path}", self._endpoint, methods=["GET", "POST", "DELETE"])])

    def environment(self, url: str) -> dict[str, str]:
        return {"STRIPE_API_BASE": url, "STRIPE_API_KEY": SANDBOX_KEY}

    def ledger(self) -> dict[str, Any]:
        merged: dict[str, Any] = {"now": self.clock.now(), "idempotency_keys": self.keys.status()}
        for part in LEDGERS:
            merged.update(part(self.world))
        return merged

    def actions(self) -> dict[str, Callable[..., Any]]:
        return actions.actions(self.world)

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        key = incoming.headers.get("idempotency-key", "")
        if status == 409:
            error = key_in_use(key)
        elif status == 429:
            error = rate_limited()
        elif status >= 500:
            error = server_error(status)
        else:
            error = StripeError(status, f"Sandbox fault: answered {status}.")
        return _reply(error.status, error.body(), self._request_id(incoming), key)

    def hold_begins(self, incoming: Incoming) -> None:
        key = incoming.headers.get("idempotency-key")
        if incoming.record.method != "POST" or not key:
            return
        try:
            values = parse_form(incoming.body.decode("utf-8"))
            self.keys.begin(key, "POST", incoming.record.path, values, incoming.record.n, self.clock.now())
        except StripeError:
            return  # it will be answered with this error when it is let go

    def hold_dropped(self, incoming: Incoming) -> None:
        self.keys.abandon(incoming.headers.get("idempotency-key", ""), incoming.record.n)

    async def _endpoint(self, request: Request) -> Response:
        reply = self._handle(incoming_of(request.scope))
        response = Response(reply.body, reply.status)
        response.raw_headers = reply.headers
        return response

    def _handle(self, incoming: Incoming) -> Reply:
        """Answer one request. Nothing here awaits, so what it does is done as a whole."""
        request_id = self._request_id(incoming)
        key = incoming.headers.get("idempotency-key") if incoming.record.method == "POST" else None
        try:
            permission = _authenticate(incoming.headers.get("authorization"))
            if incoming.record.method != "GET" and permission == "read":
                raise StripeError(
                    403,
                    "The provided key does not have the required permissions for this endpoint.",
                    stored=False,
                )
            if incoming.headers.get("stripe-account"):
                raise invalid("The sandbox does not act for connected accounts (Stripe-Account).")
            found = find_endpoint(incoming.record.method, incoming.record.path)
            if found is None:
                raise StripeError(
                    404,
                    f"Unrecognized request URL ({incoming.record.method}: {incoming.record.path}). Please see "
                    "https://stripe.com/docs or we can help at https://support.stripe.com/.",
                    stored=False,
                )
            text = incoming.body.decode("utf-8") if key is not None or incoming.body else _query(incoming)
            values = parse_form(text)
            if key is not None:
                entry = self.keys.begin(key, "POST", incoming.record.path, values, incoming.record.n, self.clock.now())
                if entry is not None and entry.reply is not None:
                    return _replay(entry.reply, entry.request_id, request_id)
        except StripeError as error:
            return _reply(error.status, error.body(), request_id, key)
        return self._execute(incoming, found, values, key, request_id)

    def _execute(
        self,
        incoming: Incoming,
        found: tuple[Endpoint, dict[str, str]],
        values: dict[str, Any],
        key: str | None,
        rid: str,
    ) -> Reply:
        """Run the endpoint and remember its answer for the key, if it is one to remember."""
        endpoint, args = found
        stored = True
        try:
            params = Params(values)
            expand = params.strings("expand")
            params.check_known(endpoint.known)
            call = Call(incoming.record.method, incoming.record.path, args, params, key, rid, expand)
            self.world.call = call
            body = endpoint.handler(self.world, call)
            reply = _reply(200, self.world.render(body, expand), rid, key)
        except StripeError as error:
            reply, stored = _reply(error.status, error.body(), rid, key), error.stored
        except BaseException:
            if key is not None:
                self.keys.finish(key, None, rid)
            raise
        finally:
            self.world.call = None
        if key is not None:
            self.keys.finish(key, (incoming.stored_reply or reply) if stored else None, rid)
        return reply

    def _request_id(self, incoming: Incoming) -> str:
        return f"req_sandbox{incoming.record.n:06d}"


def _query(incoming: Incoming) -> str:
    return str(incoming.scope["query_string"].decode("latin-1"))


def _authenticate(header: str | None) -> str:
    """What the key in an Authorization header may do: "write" or "read". No message ever repeats a key."""
    scheme, _, value = (header or "").partition(" ")
    secret = value.strip()
    if scheme.lower() == "basic":
        try:
            secret = base64.b64decode(secret, validate=True).decode("utf-8").partition(":")[0]
        except (binascii.Error, UnicodeDecodeError):
            secret = ""
    if not secret or secret == "None":
        raise StripeError(
            401,
            "You did not provide an API key. You need to provide your API key in the Authorization header, using "
            "Bearer auth (e.g. 'Authorization: Bearer YOUR_SECRET_KEY').",
            stored=False,
        )
    if secret.startswith(("sk_live_", "rk_live_")):
        raise StripeError(
            401, "This sandbox refuses live-mode keys: use a key that begins with sk_test_.", stored=False
        )
    if not secret.startswith(("sk_test_", "rk_test_")) or "invalid" in secret:
        raise StripeError(401, f"Invalid API Key provided: {secret[:8]}****", stored=False)
    return "read" if secret.startswith("rk_test_read") else "write"


def _reply(status: int, body: Any, request_id: str, key: str | None) -> Reply:
    headers = {"Request-Id": request_id, "Stripe-Version": API_VERSION}
    if key:
        headers["Idempotency-Key"] = key
        headers["Original-Request"] = request_id
    return json_reply(status, body, headers)


def _replay(reply: Reply, original: str, request_id: str) -> Reply:
    """The remembered answer again: same status and body, marked as replayed."""
    own = {b"request-id": request_id.encode(), b"original-request": original.encode()}
    headers = [(name, own.get(name.lower(), value)) for name, value in reply.headers]
    return Reply(reply.status, [*headers, (b"idempotent-replayed", b"true")], reply.body)
