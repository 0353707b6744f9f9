"""Stripe behind a gate: refunds that happen at most once, by the official SDK.

::

    from interlock_tools import Gate
    from interlock_integrations.stripe import StripeToolkit

    gate = Gate("refunds.db")
    toolkit = StripeToolkit(gate, client=stripe.StripeClient(key))
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [CreateRefund()])``.
"""

from __future__ import annotations

from .client import gate_from_environment, gated_client, stripe_from_environment
from .refunds import CreateRefund, declare_refund
from .toolkit import StripeToolkit

__all__ = [
    "CreateRefund",
    "StripeToolkit",
    "declare_refund",
    "gate_from_environment",
    "gated_client",
    "stripe_from_environment",
]
