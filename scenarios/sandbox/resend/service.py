"""The Resend sandbox as a service: emails, keys, ledger and control actions.

Documented (API reference, "Send Email", "Retrieve Email", "List Emails", "Errors") unless said otherwise. Observed,
and not documented: the idempotency key is looked at before the sender's domain, so an unverified domain is 403 under
a fresh key and 409 under a used one. A list has no bodies, and neither list nor retrieve has headers; whether a
retrieved email has its tags is an option, because the SDK's ``Email`` type does not list them. Lists are newest
first. An email is delivered 2 s after it was accepted (assumed). What is older than the retention is gone from reads,
not from the ledger.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, incoming_of, json_reply
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.resend.errors import ResendFailure, invalid, missing, not_found, of_status
from scenarios.sandbox.resend.keys import Keys

OPTIONS = ("domains", "retention_days", "tags")
DEFAULT_PAGE = 10
MAX_PAGE = 100
MAX_RECIPIENTS = 50
DELIVERED_AFTER_S = 2.0
_ADDRESS = re.compile(r"(?:[^<>]*<)?([^\s<>@,]+@([^\s<>@,]+\.[^\s<>@,]+))>?")
_TAG = re.compile(r"[A-Za-z0-9_-]{1,256}")


@dataclass
class Mail:
    """One accepted email."""

    id: str
    fields: dict[str, Any]
    created: float
    key: str | None
    via: str
    last_event: str = "sent"
    events: list[str] = field(default_factory=lambda: ["sent"])

    def listed(self) -> dict[str, Any]:
        made = {name: self.fields.get(name) for name in ("to", "from", "subject", "scheduled_at")}
        others = {name: self.fields.get(name) or None for name in ("bcc", "cc", "reply_to")}
        created = datetime.fromtimestamp(self.created, timezone.utc).isoformat(" ", "microseconds")
        return {"id": self.id, **made, **others, "created_at": created, "last_event": self.last_event}

    def retrieved(self, tags: bool) -> dict[str, Any]:
        made = {"object": "email", **self.listed(), "html": self.fields.get("html"), "text": self.fields.get("text")}
        made["message_id"] = f"<{self.id}@sandbox.resend.example>"
        return {**made, "tags": self.fields.get("tags") or []} if tags else made


class ResendService(Service):
    """Resend. Options: ``domains`` (verified ones, parted by ``+``; ``example.com`` by default), ``retention_days``
    (how long emails can be read; 30), and ``tags`` (``on``: a retrieved email has its tags; ``off`` by default).

    An API key begins with ``re_``; one with ``sending`` in it may only send, one with ``invalid`` in it is refused.
    """

    name = "resend"

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ValueError(f"unknown option(s) {', '.join(unknown)}; known: {', '.join(OPTIONS)}")
        if options.get("tags", "off") not in ("on", "off"):
            raise ValueError("tags is on or off")
        self._retention_days = float(options.get("retention_days", "30"))
        self.reset()

    def reset(self) -> None:
        self.mails: list[Mail] = []
        self.keys = Keys()
        self.domains = set(self.options.get("domains", "example.com").split("+"))
        self.tags = self.options.get("tags", "off") == "on"
        self.retention_s = self._retention_days * 86_400

    def app(self) -> ASGIApp:
        return Router([Route("/{path:path}", self._endpoint, methods=["GET", "POST", "PATCH", "DELETE"])])

    def environment(self, url: str) -> dict[str, str]:
        return {
            "RESEND_API_URL": url,
            "RESEND_API_KEY": "re_sandbox_0123456789abcdef",
            "RESEND_FROM": "bot@example.com",
        }

    def ledger(self) -> dict[str, Any]:
        rows = [
            {
                "id": mail.id,
                "created": mail.created,
                "idempotency_key": mail.key,
                "via": mail.via,
                "events": mail.events,
            }
            | mail.fields
            for mail in self.mails
        ]
        return {"now": self.clock.now(), "domains": sorted(self.domains), "mails": rows, "keys": self.keys.status()}

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        headers = {"retry-after": "1", "ratelimit-limit": "2"} if status == 429 else {}
        given = {name.lower() for name in incoming.rule.headers} if incoming.rule is not None else set()
        return json_reply(status, of_status(status).body(), {k: v for k, v in headers.items() if k not in given})

    def hold_begins(self, incoming: Incoming) -> None:
        key = incoming.headers.get("idempotency-key")
        if key is not None and incoming.record.method == "POST":
            self.keys.begin(key, _object(incoming.body), incoming.record.n, self.clock.now())

    def hold_dropped(self, incoming: Incoming) -> None:
        key = incoming.headers.get("idempotency-key")
        if key is not None:
            self.keys.abandon(key, incoming.record.n)

    async def _endpoint(self, request: Request) -> Response:
        reply = self._answer(incoming_of(request.scope))
        response = Response(reply.body, reply.status)
        response.raw_headers = reply.headers
        return response

    def _answer(self, incoming: Incoming) -> Reply:
        """Answer one request. Nothing here awaits, so what it does is done as a whole."""
        method, path = incoming.record.method, incoming.record.path
        try:
            restricted = self._authenticate(incoming)
            if (method, path) == ("POST", "/emails"):
                return self._send(incoming)
            if restricted:
                raise of_status(401)
            if (method, path) == ("GET", "/emails"):
                return self._list(incoming)
            if method == "GET" and path.startswith("/emails/"):
                return self._retrieve(path.removeprefix("/emails/"))
            raise of_status(404)
        except ResendFailure as failure:
            return json_reply(failure.status, failure.body())

    def _authenticate(self, incoming: Incoming) -> bool:
        """Whether the key may only send. Raises the 401 and the 403."""
        scheme, _, key = incoming.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key:
            raise ResendFailure(401, "missing_api_key", "Missing API Key")
        if not key.startswith("re_") or "invalid" in key:
            raise ResendFailure(403, "invalid_api_key", "API key is invalid")
        return "sending" in key

    # -- the API ----------------------------------------------------------------------------------------

    def _send(self, incoming: Incoming) -> Reply:
        given = _object(incoming.body)
        domain = _well_formed(given)
        key = incoming.headers.get("idempotency-key")
        if key is not None:
            replay = self.keys.begin(key, given, incoming.record.n, self.clock.now())
            if replay is not None:
                return Reply(replay.status, [*replay.headers, (b"idempotent-replayed", b"true")], replay.body)
        try:
            if domain not in self.domains:
                words = f"The {domain} domain is not verified. Please, add and verify your domain on resend.com/domains"
                raise ResendFailure(403, "validation_error", words)
        except ResendFailure:
            if key is not None:
                self.keys.finish(key, None)
            raise
        mail = self._accept(given, key, "api")
        reply = json_reply(200, {"id": mail.id})
        if key is not None:
            self.keys.finish(key, incoming.stored_reply or reply)
        return reply

    def _accept(self, given: Mapping[str, Any], key: str | None, via: str) -> Mail:
        fields = dict(given)
        for name in ("to", "cc", "bcc", "reply_to"):
            if isinstance(fields.get(name), str):
                fields[name] = [fields[name]]
        mail = Mail(str(uuid.uuid4()), fields, self.clock.now(), key, via)
        self.mails.append(mail)
        self.clock.call_later(DELIVERED_AFTER_S, lambda: self._event(mail, "delivered"))
        return mail

    def _event(self, mail: Mail, name: str) -> None:
        if mail.last_event == "sent" or name != "delivered":
            mail.last_event = name
            mail.events.append(name)

    def _readable(self) -> list[Mail]:
        """What is within the retention, newest first."""
        oldest = self.clock.now() - self.retention_s
        return [mail for mail in reversed(self.mails) if mail.created >= oldest]

    def _list(self, incoming: Incoming) -> Reply:
        query = Request(incoming.scope).query_params
        if "after" in query and "before" in query:
            raise invalid("The `after` and `before` parameters cannot be used together.")
        try:
            size = int(query.get("limit", DEFAULT_PAGE))
        except ValueError:
            size = 0
        if not 1 <= size <= MAX_PAGE:
            raise invalid(f"The `limit` must be between 1 and {MAX_PAGE}.")
        mails = self._readable()
        ids = [mail.id for mail in mails]
        cursor = query.get("after") or query.get("before")
        if cursor is not None and cursor not in ids:
            raise invalid("The pagination cursor is not the id of an email.")
        if "before" in query:
            end = ids.index(query["before"])
            begin = max(0, end - size)
            page, more = mails[begin:end], begin > 0
        else:
            begin = ids.index(query["after"]) + 1 if "after" in query else 0
            page, more = mails[begin : begin + size], begin + size < len(mails)
        return json_reply(200, {"object": "list", "has_more": more, "data": [mail.listed() for mail in page]})

    def _retrieve(self, name: str) -> Reply:
        found = [mail for mail in self._readable() if mail.id == name]
        if not found:
            raise not_found()
        return json_reply(200, found[0].retrieved(self.tags))

    # -- control calls -------------------------------------------------------------------------------------

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {
            "send": self._person_sends,
            "event": self._happens,
            "verify": self._verify,
            "show_tags": self._show_tags,
            "retention": self._retention,
        }

    def _person_sends(self, count: int = 1, **fields: Any) -> dict[str, Any]:
        """Somebody else sends an email, ``count`` times over: fields of "Send Email"; the ids."""
        if not 1 <= count <= 5000:
            raise ValueError("count is 1 to 5000")
        try:
            _well_formed(fields)
        except ResendFailure as failure:
            raise ValueError(failure.message) from None
        return {"ids": [self._accept(fields, None, "person").id for _ in range(count)]}

    def _happens(self, mail: str, what: str) -> dict[str, Any]:
        """Something happens to an email: {"mail": id, "what": "bounced", "complained", "opened", ...}."""
        found = [one for one in self.mails if one.id == mail]
        if not found:
            raise ValueError(f"no mail {mail}")
        self._event(found[0], what)
        return {"last_event": found[0].last_event}

    def _verify(self, domain: str, verified: bool = True) -> dict[str, Any]:
        """Whether a domain may send: {"domain", "verified": bool}. Until the next reset."""
        (self.domains.add if verified else self.domains.discard)(domain)
        return {"domains": sorted(self.domains)}

    def _show_tags(self, on: bool) -> dict[str, Any]:
        """Whether a retrieved email has its tags. Until the next reset."""
        self.tags = bool(on)
        return {"tags": self.tags}

    def _retention(self, days: float) -> dict[str, Any]:
        """How long emails can be read, in days. Until the next reset."""
        self.retention_s = float(days) * 86_400
        return {"days": days}


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = json.loads(body or b"{}")
    except ValueError:
        given = None
    if not isinstance(given, dict):
        raise ResendFailure(400, "validation_error", "The request body is not a JSON object.")
    return given


def _well_formed(given: Mapping[str, Any]) -> str:
    """The sender's domain. Raises the 422 for a body that is not one of an email."""
    for name in ("from", "to", "subject"):
        if not given.get(name):
            raise missing(name)
    if given.get("html") is None and given.get("text") is None:
        raise ResendFailure(422, "missing_required_field", "Missing `html` or `text` field.")
    sender = _ADDRESS.fullmatch(str(given["from"]).strip())
    if sender is None:
        raise invalid("Invalid `from` field. The email address needs to follow the `email@example.com` format.")
    recipients = given["to"] if isinstance(given["to"], list) else [given["to"]]
    if len(recipients) > MAX_RECIPIENTS or not all(_ADDRESS.fullmatch(str(one).strip()) for one in recipients):
        raise invalid("Invalid `to` field. The email address needs to follow the `email@example.com` format.")
    for tag in given.get("tags") or []:
        if not (_TAG.fullmatch(str(tag.get("name"))) and _TAG.fullmatch(str(tag.get("value")))):
            raise invalid("Tags should only contain ASCII letters, numbers, underscores, or dashes.")
    return sender[2].lower()
