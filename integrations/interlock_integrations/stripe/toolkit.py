"""``StripeToolkit``: the Stripe tools behind one gate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import stripe

from interlock_tools import DefinitionError, Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, gated_client, stripe_from_environment
from .tools import TOOLS


class StripeToolkit(GatedToolkit):
    """Stripe's gated tools: ``create_agent(model, StripeToolkit(gate, client=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        client: the application's Stripe client; by default one configured by the environment. It is left as it
            is: the tools use a copy on the gated transport, without retries.
        tools: names of the tools to make: ``create_refund``, ``create_credit``, ``create_transfer``; by default all.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        approvals: arguments -> ``Grant`` or None, for every tool, or a dict of such functions by tool. It takes,
            by name, those arguments that it needs; ``request`` and ``amount`` are there for every tool.
        refunds, credits, transfers: further arguments of ``declare_refund``, ``declare_credit`` and
            ``declare_transfer``, such as ``premises``, ``expect`` and ``budget``.
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
        tools: Iterable[str] = tuple(TOOLS),
        request: Source | None = None,
        wait: timedelta | float | None = None,
        approvals: Callable[..., Any] | Mapping[str, Callable[..., Any]] | None = None,
        refunds: Mapping[str, Any] | None = None,
        credits: Mapping[str, Any] | None = None,
        transfers: Mapping[str, Any] | None = None,
        send_timeout: timedelta = SEND_TIMEOUT,
        live: bool = False,
        name: str = "stripe",
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        chosen = [tools] if isinstance(tools, str) else list(tools)
        by_tool = approvals if isinstance(approvals, Mapping) else dict.fromkeys(chosen, approvals)
        unknown = sorted({*chosen, *by_tool} - set(TOOLS))
        if unknown:
            raise DefinitionError(f"no Stripe tool {', '.join(unknown)}; there are {', '.join(TOOLS)}")
        further = {"create_refund": refunds, "create_credit": credits, "create_transfer": transfers}
        ours = gated_client(client if client is not None else stripe_from_environment(live=live), live=live)
        for tool in dict.fromkeys(chosen):
            effect = TOOLS[tool].declares(
                gate,
                ours,
                name=f"{name}.{tool.removeprefix('create_')}",
                approvals=by_tool.get(tool),
                send_timeout=send_timeout,
                **(further[tool] or {}),
            )
            self.add(TOOLS[tool](effect, request=request, wait=wait))
