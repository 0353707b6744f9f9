"""``StripeToolkit``: the Stripe tools behind one gate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import stripe

from interlock_tools import Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, gated_client, stripe_from_environment
from .refunds import declare_refund
from .tools import CreateRefund


class StripeToolkit(GatedToolkit):
    """Stripe's gated tools: ``create_agent(model, StripeToolkit(gate, client=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        client: the application's Stripe client; by default one configured by the environment. It is left as it
            is: the tools use a copy on the gated transport, without retries.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        approvals: arguments -> ``Grant`` or None, for refunds.
        other_refunds, premises, expect, budget: for refunds, see ``declare_refund``.
        send_timeout: longest time until a request has landed or never will.
        live: the application says explicitly that real money may move.
        name: prefix of the effects' names; another one for each Stripe account at one journal.

    Raises:
        DefinitionError: something about it is wrong, or the key is not one of test mode while ``live`` is not True.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        client: stripe.StripeClient | None = None,
        request: Source | None = None,
        wait: timedelta | float | None = None,
        live: bool = False,
        send_timeout: timedelta = SEND_TIMEOUT,
        name: str = "stripe",
        **refunds: Any,
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        ours = gated_client(client if client is not None else stripe_from_environment(live=live), live=live)
        effect = declare_refund(gate, ours, name=f"{name}.refund", send_timeout=send_timeout, **refunds)
        self.add(CreateRefund(effect, request=request, wait=wait))
