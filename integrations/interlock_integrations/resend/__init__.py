"""Resend behind a gate: emails that are sent at most once, by the official SDK.

::

    from interlock_tools import Gate
    from interlock_integrations.resend import ResendToolkit

    gate = Gate("mails.db")
    toolkit = ResendToolkit(gate, api_key=key, sender="Support <support@example.com>")
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [SendEmail()])``.

LangChain is loaded when a tool or the toolkit is first asked for; a process
that only recovers declares the effect (``declare_mail``) and does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import ResendClient, resend_from_environment
from .mails import declare_mail

if TYPE_CHECKING:
    from .toolkit import ResendToolkit
    from .tools import SendEmail

__all__ = ["ResendClient", "ResendToolkit", "SendEmail", "declare_mail", "resend_from_environment"]

_LAZY = {"ResendToolkit": "toolkit", "SendEmail": "tools"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
