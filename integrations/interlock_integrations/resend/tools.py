"""The tool that a model is given: name, arguments, description."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from interlock_tools import DefinitionError, Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source

from ..declaring import gate_from_environment
from .arguments import ADDRESS, MAX_ADDRESS, MAX_BODY, SUBJECT
from .client import ResendClient, resend_from_environment
from .mails import declare_mail

DESCRIPTION = (
    "Send an email. For the request being worked on it is sent to the recipient at most once, and it cannot be "
    "recalled. The answer says what became of it and whether asking again makes sense."
)


class SendEmailArguments(BaseModel):
    """What a model gives for an email."""

    to: str = Field(
        max_length=MAX_ADDRESS,
        pattern=ADDRESS,
        description="The recipient's address, and nothing but it: anna@example.com.",
    )
    subject: str = Field(min_length=1, max_length=300, pattern=SUBJECT, description="The subject, one line.")
    text: str = Field(min_length=1, max_length=MAX_BODY, description="The body as plain text.")
    html: str | None = Field(
        default=None, min_length=1, max_length=MAX_BODY, description="The same body as HTML, where it is wanted."
    )


def sender_or_environment(sender: str | None) -> str:
    """Return the sender's address, from ``RESEND_FROM`` if none is given. Raises ``DefinitionError``."""
    found = sender or os.environ.get("RESEND_FROM") or ""
    if "@" not in found or "\n" in found or "\r" in found:
        raise DefinitionError("set RESEND_FROM, or pass sender=, such as 'Support <support@example.com>'")
    return found


class SendEmail(GatedTool):
    """``send_email(to, subject, text, html)``.

    It makes itself from the environment, or from an effect that is there.
    ``RESEND_API_KEY``; ``RESEND_FROM``; ``RESEND_API_URL`` where it is a
    sandbox; and ``INTERLOCK_JOURNAL``, a file that outlives the process. Making
    it so recovers what an earlier process left open.

    Args:
        effect: an effect that was declared already; of the arguments below only ``sender`` is then used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        client: the account; by default that of ``RESEND_API_KEY``.
        sender: whom the emails are from. The model does not choose it.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_mail``, such as ``full_access``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    name: str = "send_email"
    description: str = DESCRIPTION
    args_schema: type[BaseModel] = SendEmailArguments
    request_argument: str = "request"

    def __init__(
        self,
        effect: Effect[Any] | None = None,
        *,
        gate: Gate | None = None,
        client: ResendClient | None = None,
        sender: str | None = None,
        recover: bool = True,
        declare: Mapping[str, Any] | None = None,
        request: Source | None = None,
        **fields: Any,
    ) -> None:
        chosen = sender_or_environment(sender)
        if effect is None:
            account = client if client is not None else resend_from_environment()
            gate = gate if gate is not None else gate_from_environment()
            effect = declare_mail(gate, account, **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, "hidden": {"sender": lambda: chosen}, **fields})
