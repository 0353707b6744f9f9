"""Stripe behind a gate: refunds, credits and transfers that happen at most once, by the official SDK.

::

    from interlock_tools import Gate
    from interlock_integrations.stripe import StripeToolkit

    gate = Gate("refunds.db")
    toolkit = StripeToolkit(gate, client=stripe.StripeClient(key))
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [CreateRefund()])``.

LangChain is loaded when a tool or the toolkit is first asked for; a process
that only recovers declares the effects (``declare_refund`` and so on) and does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import gate_from_environment, gated_client, stripe_from_environment
from .credits import declare_credit
from .refunds import declare_refund
from .transfers import declare_transfer

if TYPE_CHECKING:
    from .toolkit import StripeToolkit
    from .tools import CreateCredit, CreateRefund, CreateTransfer

__all__ = [
    "CreateCredit",
    "CreateRefund",
    "CreateTransfer",
    "StripeToolkit",
    "declare_credit",
    "declare_refund",
    "declare_transfer",
    "gate_from_environment",
    "gated_client",
    "stripe_from_environment",
]

_LAZY = {
    "CreateCredit": "tools",
    "CreateRefund": "tools",
    "CreateTransfer": "tools",
    "StripeToolkit": "toolkit",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
