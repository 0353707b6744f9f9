"""The tools that a model is given: names, arguments, descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import stripe
from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source
from interlock_tools.outcome import Outcome

from .client import gate_from_environment, gated_client, stripe_from_environment
from .refunds import declare_refund

MAX_AMOUNT = 99_999_999
"""Largest amount that Stripe takes, in the smallest unit (API reference: up to eight digits)."""

Reason = Literal["duplicate", "fraudulent", "requested_by_customer"]

DESCRIPTION = (
    "Refund a Stripe payment, in full or in part, to the customer's original payment method. For the request that is "
    "being worked on it is made at most once, and not at all if somebody else has refunded the payment or the bank has "
    "charged it back. The answer says what became of it and whether asking again makes sense."
)


class CreateRefundArguments(BaseModel):
    """What a model gives for a refund."""

    payment_intent: str = Field(
        pattern=r"^pi_[A-Za-z0-9]{1,200}$", description="The payment's id, as Stripe gives it: pi_ and so on."
    )
    amount: int = Field(
        ge=1,
        le=MAX_AMOUNT,
        description="How much to refund, as a whole number of the smallest unit of the payment's currency: "
        "2000 is 20.00 US dollars, and 2000 yen, which have no smaller unit.",
    )
    reason: Reason = Field(default="requested_by_customer", description="Why, as Stripe records it.")


class CreateRefund(GatedTool):
    """The refund tool. ``CreateRefund()`` takes its configuration from the environment.

    ``STRIPE_API_KEY`` (of test mode unless ``live=True``), ``STRIPE_API_BASE``
    where it is a sandbox, and ``INTERLOCK_JOURNAL``, a file that outlives the
    process. Making it so recovers what an earlier process left open.

    Args:
        effect: a refund effect that was declared already; the arguments below are then not used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        client: the Stripe client; by default one with the key of ``STRIPE_API_KEY``.
        live: real money may move.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_refund``, such as ``approvals``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    name: str = "create_refund"
    description: str = DESCRIPTION
    args_schema: type[BaseModel] = CreateRefundArguments
    request_argument: str = "request"

    def __init__(
        self,
        effect: Effect[Any] | None = None,
        *,
        gate: Gate | None = None,
        client: stripe.StripeClient | None = None,
        live: bool = False,
        recover: bool = True,
        declare: Mapping[str, Any] | None = None,
        request: Source | None = None,
        **fields: Any,
    ) -> None:
        if effect is None:
            theirs = client if client is not None else stripe_from_environment(live=live)
            gate = gate if gate is not None else gate_from_environment()
            effect = declare_refund(gate, gated_client(theirs, live=live), **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, **fields})

    def content(self, outcome: Outcome) -> str:
        """Return the outcome's message, and what Stripe says of a refund that has not simply succeeded."""
        status = outcome.result.get("status") if isinstance(outcome.result, dict) else None
        if outcome.committed and status not in (None, "succeeded"):
            return f"{outcome.message} Stripe's status of the refund: {status}."
        return outcome.message
