"""The email effect: how it is sent, and found again.

Resend knows no premises. What an email announces (a refund that is under way)
is the application's to read: ``premises`` and ``expect``, held at the decision
and before every send. An email cannot be recalled once it was accepted.

Sender, subject and bodies are the effect's arguments, so a resend sends what
the journal holds, whatever the application would render or configure by then.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

from interlock_tools import DefinitionError, Evidence, Gate
from interlock_tools.effect import Effect

from ..declaring import check_text
from ..transport import sending
from .arguments import ADDRESS, BODY, MAX_ADDRESS, MAX_BODY, SENDER, SUBJECT
from .client import DEDUPES, SEND_TIMEOUT, ResendClient
from .errors import classified
from .finding import EFFECT_ID, Finder
from .watch import watch_mail

LOOKUP_LAG = timedelta(seconds=30)
"""How stale Resend's lists are taken to be at most; it says nothing about it."""

RETENTION = timedelta(days=1)
"""How long emails are taken to be readable where the application does not say what its plan keeps."""


def declare_mail(
    gate: Gate,
    client: ResendClient,
    *,
    name: str = "resend.mail",
    template: str = "mail",
    full_access: bool = False,
    probe: bool = False,
    retention: timedelta = RETENTION,
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | Callable[..., Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
    lookup_lag: timedelta = LOOKUP_LAG,
) -> Effect[Any]:
    """Declare the email effect on a gate and return it.

    The functions take, by name, any of ``request``, ``sender``, ``to``,
    ``subject``, ``text`` and ``html``; premises may also take
    ``idempotency_key``.

    Args:
        gate: the gate.
        client: the account.
        name: the effect's stable name; another one for each account at one journal.
        template: names the kind of email. A request has at most one of each kind to a recipient.
        full_access: the API key may list and retrieve, so that emails can be looked up. With a key that may only send
            nothing is left to ask once its idempotency keys are forgotten.
        probe: ask about the idempotency key by a request that Resend refuses. That works by an order of checks that
            was observed and is not documented; an answer that is not known raises.
        retention: how long the account's plan keeps emails readable.
        approvals: returns the ``Grant`` that covers the email, or None.
        premises: returns the facts that the email rests on, such as the status of the refund that it announces.
        expect: values that they must have, or a function that returns them.
        budget: returns a ``Budget`` or a list of them.
        send_timeout: see ``client.SEND_TIMEOUT``.
        lookup_lag: how stale Resend's lists may be.

    Raises:
        DefinitionError: something about it is wrong.
    """
    if not isinstance(template, str) or not template.strip() or ":" in template:
        raise DefinitionError(f"template= names the kind of email, without a colon, not {template!r}")
    finder = Finder(gate, client, lambda: send_email.definition.contract, full_access, probe, retention)

    def find_email(
        sender: str, to: str, subject: str, text: str, html: str | None, idempotency_key: str
    ) -> Evidence | None:
        return finder.find(_mail(sender, to, subject, text, html), idempotency_key)

    def key(request: str, sender: str, to: str, subject: str, text: str, html: str | None) -> str:
        check_text("sender", sender, SENDER)
        check_text("to", to, ADDRESS, MAX_ADDRESS)
        check_text("subject", subject, SUBJECT)
        check_text("text", text, BODY, MAX_BODY)
        if html is not None:
            check_text("html", html, BODY, MAX_BODY)
        return f"{request}:{template}:{to.lower()}"

    @gate.effect(
        name,
        key=key,
        premises=premises,
        expect=expect,
        allowed=approvals,
        budget=budget,
        dedupes=DEDUPES,
        lookup=find_email if full_access or probe else None,
        lookup_lag=lookup_lag,
        send_timeout=send_timeout,
        service={"name": "resend", "kind": "mail"},
        watch=watch_mail(client) if full_access else None,
    )
    def send_email(
        request: str,
        sender: str,
        to: str,
        subject: str,
        text: str,
        html: str | None,
        *,
        idempotency_key: str,
        on_send: Any,
    ) -> dict[str, Any] | None:
        mail = {**_mail(sender, to, subject, text, html), "tags": [{"name": EFFECT_ID, "value": idempotency_key}]}
        with classified(), sending(on_send):
            made = client.send(mail, idempotency_key)
        return {"id": made.get("id"), "to": mail["to"], "from": sender, "subject": subject} if made.get("id") else None

    return send_email


def _mail(sender: str, to: str, subject: str, text: str, html: str | None) -> dict[str, Any]:
    """The body of ``POST /emails``, always in this order, so that every send of an effect has the same bytes."""
    mail: dict[str, Any] = {"from": sender, "to": [to], "subject": subject, "text": text}
    return mail if html is None else {**mail, "html": html}
