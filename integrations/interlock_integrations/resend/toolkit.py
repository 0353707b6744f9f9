"""``ResendToolkit``: the Resend tool behind a gate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from interlock_tools import Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, ResendClient, resend_from_environment
from .mails import declare_mail
from .tools import SendEmail, sender_or_environment


class ResendToolkit(GatedToolkit):
    """Resend's gated tool: ``create_agent(model, ResendToolkit(gate, api_key=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        api_key: the account's key; by default ``RESEND_API_KEY``. One that may only send will do.
        client: in place of a key, a ``ResendClient``.
        sender: whom the emails are from; by default ``RESEND_FROM``. The model does not choose it.
        full_access: the key may list and retrieve, so that emails can be looked up.
        probe: ask about idempotency keys by an undocumented behaviour, see ``declare_mail``.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        send_timeout: longest time until a request has landed or never will.
        name: the effect's name; another one for each account at one journal.
        declare: further arguments of ``declare_mail``: ``template``, ``retention``, ``approvals``, ``premises``,
            ``expect``, ``budget`` and ``lookup_lag``.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        api_key: str | None = None,
        client: ResendClient | None = None,
        sender: str | None = None,
        full_access: bool = False,
        probe: bool = False,
        request: Source | None = None,
        wait: timedelta | float | None = None,
        send_timeout: timedelta = SEND_TIMEOUT,
        name: str = "resend.mail",
        **declare: Any,
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        account = client if client is not None else resend_from_environment(api_key)
        chosen = sender_or_environment(sender)
        options: dict[str, Any] = {"full_access": full_access, "probe": probe, "send_timeout": send_timeout, **declare}
        effect = declare_mail(gate, account, name=name, **options)
        self.add(SendEmail(effect, sender=chosen, request=request, wait=wait))
