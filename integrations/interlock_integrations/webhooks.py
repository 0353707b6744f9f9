"""Webhooks of Stripe, GitHub and Resend: an ASGI app that has an effect looked at when its service says something.

A webhook is only a hint: what it says is never recorded. It is verified, the
effect that it is about is found, and the service itself is asked about it. So
one that comes twice, late, or out of order does no harm, and one that never
comes costs time and nothing else, because ``gate.watch()`` looks anyway::

    app = application(gate, stripe_secret=..., github_secret=..., resend_secret=...)

Only services whose secret is given have a path: ``/stripe``, ``/github``, ``/resend``.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock_tools import Gate
from interlock_tools.core.entries import Kind
from interlock_tools.errors import describe
from interlock_tools.hooks import Hook

log = logging.getLogger("interlock_tools")

TOLERANCE_S = 300
"""How old a signed webhook may be (Stripe's and Svix's own default)."""

MAX_BODY = 2_000_000
"""Longest body, in bytes. Nothing that these services send is near it but a large push."""

MAX_WATCHED = 100_000
"""How many effects are gone through for one that a webhook names only by what it is about."""

EFFECT_ID = re.compile("[0-9a-f]{32}")
METADATA = "interlock_effect_id"
MARKER = re.compile(r"interlock-effect: ([0-9a-f]{32})", re.IGNORECASE)


class BadSignature(Exception):
    """It was not signed with this secret, or too long ago. Nothing was done."""


def application(
    gate: Gate,
    *,
    stripe_secret: str | None = None,
    github_secret: str | None = None,
    resend_secret: str | None = None,
    hooks: Sequence[Hook] = (),
    now: Callable[[], float] = time.time,
) -> Starlette:
    """Return the app; mount it where the services can reach it.

    Args:
        gate: a gate on which the toolkits have declared their effects.
        stripe_secret: the endpoint's signing secret, ``whsec_...``.
        github_secret: the webhook's secret.
        resend_secret: the webhook's signing secret, ``whsec_...``.
        hooks: who is told of what is found, see ``interlock_tools.hooks``.
        now: the time, in seconds since 1970, UTC.
    """
    services: list[tuple[str, str | None, Any, Any]] = [
        ("stripe", stripe_secret, verify_stripe, effects_of_stripe),
        ("github", github_secret, verify_github, effects_of_github),
        ("resend", resend_secret, verify_svix, effects_of_resend),
    ]
    routes = []
    for name, secret, verify, effects_of in services:
        if secret:
            endpoint = _endpoint(gate, secret, verify, effects_of, hooks, now)
            routes.append(Route(f"/{name}", endpoint, methods=["POST"]))
    return Starlette(routes=routes)


def _endpoint(gate: Gate, secret: str, verify: Any, effects_of: Any, hooks: Sequence[Hook], now: Any) -> Any:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        if len(body) > MAX_BODY:
            return JSONResponse({"error": "the body is too long"}, 413)
        try:
            verify(body, request.headers, secret, now())
            event = json.loads(body)
            if not isinstance(event, dict):
                raise ValueError("not an object")
        except BadSignature as error:
            return JSONResponse({"error": str(error)}, 400)
        except ValueError:
            return JSONResponse({"error": "the body is not a JSON object"}, 400)
        kind = request.headers.get("x-github-event", "")
        looked = await run_in_threadpool(_look, gate, effects_of(gate, event, kind), hooks)
        return JSONResponse({"looked_at": looked})

    return endpoint


def _look(gate: Gate, effect_ids: Iterator[str], hooks: Sequence[Hook]) -> list[str]:
    """Look at each of these effects that this journal knows."""
    looked = []
    for effect_id in dict.fromkeys(effect_ids):
        if gate.journal.effect(effect_id) is None:
            continue
        gate.journal.look_at(effect_id, gate.journal.now().wall_ms)  # if this look fails, the next pass makes it
        try:
            gate.look(effect_id, hooks=hooks)
        except Exception as error:
            log.warning("effect %s: could not be looked at: %s", effect_id, describe(error))
        looked.append(effect_id)
    return looked


# -- signatures ------------------------------------------------------------------------------------------


def verify_stripe(body: bytes, headers: Mapping[str, str], secret: str, now: float) -> None:
    """Stripe's scheme, by its SDK: HMAC-SHA256 over time and payload. Raises ``BadSignature``."""
    import stripe

    given = headers.get("stripe-signature", "")
    try:
        stripe.WebhookSignature.verify_header(body.decode(), given, secret)
        moment = float(dict(part.split("=", 1) for part in given.split(","))["t"])
    except (stripe.SignatureVerificationError, ValueError, KeyError, UnicodeDecodeError):
        raise BadSignature("this is not signed with the endpoint's secret") from None
    _fresh(moment, now)


def verify_github(body: bytes, headers: Mapping[str, str], secret: str, now: float) -> None:
    """GitHub's scheme: ``X-Hub-Signature-256``, HMAC-SHA256 over the body. It has no time. Raises ``BadSignature``."""
    expected = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    if not hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode()):
        raise BadSignature("this is not signed with the webhook's secret")


def verify_svix(body: bytes, headers: Mapping[str, str], secret: str, now: float) -> None:
    """Resend's scheme, which is Svix's: HMAC-SHA256 over id, time and body, base64. Raises ``BadSignature``."""
    name, moment = headers.get("svix-id", ""), headers.get("svix-timestamp", "")
    try:
        key = base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        sent = float(moment)
    except (binascii.Error, ValueError):
        raise BadSignature("the secret or the time of this webhook is not one") from None
    signed = hmac.new(key, f"{name}.{moment}.".encode() + body, hashlib.sha256).digest()
    expected = b"v1," + base64.b64encode(signed)
    given = [one.encode() for one in headers.get("svix-signature", "").split()]
    if not any(hmac.compare_digest(expected, one) for one in given):
        raise BadSignature("this is not signed with the webhook's secret")
    _fresh(sent, now)


def _fresh(moment: float, now: float) -> None:
    if abs(now - moment) > TOLERANCE_S:
        raise BadSignature(f"this was signed more than {TOLERANCE_S} s ago, or in the future")


# -- which effect it is about ----------------------------------------------------------------------------


def effects_of_stripe(gate: Gate, event: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The effects that an event is about: named by the object's metadata, or made on the payment that it is about."""
    data = event.get("data")
    made = data.get("object") if isinstance(data, Mapping) else None
    if not isinstance(made, Mapping):
        return
    named = (made.get("metadata") or {}).get(METADATA)
    if isinstance(named, str) and EFFECT_ID.fullmatch(named):
        yield named
    if str(event.get("type", "")).startswith(("charge.dispute.", "radar.", "charge.refund")):
        about = {str(made[name]) for name in ("payment_intent", "charge", "id") if isinstance(made.get(name), str)}
        yield from _watched_about(gate, about)


def effects_of_github(gate: Gate, event: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The effects that an event is about: marked in a comment, or merged in a commit that a push reverts."""
    if kind == "issue_comment":
        changes = (event.get("changes") or {}).get("body") or {}
        for text in ((event.get("comment") or {}).get("body"), changes.get("from")):
            for found in MARKER.finditer(str(text or "")):
                yield found.group(1)
    elif kind == "push":
        commits = event.get("commits")
        words = " ".join(str(one.get("message")) for one in commits or [] if isinstance(one, Mapping))
        yield from _watched_about(gate, set(re.findall(r"This reverts commit ([0-9a-f]{40})", words)))


def effects_of_resend(gate: Gate, event: Mapping[str, Any], kind: str) -> Iterator[str]:
    """The effect that an event is about: in the email's tags, or by the email's id."""
    data = event.get("data")
    if not isinstance(data, Mapping):
        return
    tags = data.get("tags")
    if isinstance(tags, Mapping):
        tags = [{"name": name, "value": value} for name, value in tags.items()]
    for tag in tags if isinstance(tags, list) else []:
        if isinstance(tag, Mapping) and tag.get("name") == METADATA and EFFECT_ID.fullmatch(str(tag.get("value"))):
            yield str(tag["value"])
            return
    if isinstance(data.get("email_id"), str):
        yield from _watched_about(gate, {str(data["email_id"])})


def _watched_about(gate: Gate, names: set[str]) -> Iterator[str]:
    """Watched effects whose evidence or arguments name one of these."""
    after, seen = 0, 0
    while names and seen < MAX_WATCHED:
        rows = gate.journal.watched(after, 500)
        for row in rows:
            after, seen = row.position, seen + 1
            entries = gate.journal.entries(row.effect_id)
            payload = entries[0].body.get("payload") if entries else None
            evidence = [entry.body.get("evidence") for entry in entries if entry.kind is Kind.COMMITTED]
            texts = {str(value) for one in (payload, *evidence) if isinstance(one, Mapping) for value in one.values()}
            if texts & names:
                yield row.effect_id
        if len(rows) < 500:
            return
