"""The tools that a model is given: names, arguments, descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal

import stripe
from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source
from interlock_tools.outcome import Outcome

from .arguments import ACCOUNT, CHARGE, CURRENCY, CUSTOMER, MAX_AMOUNT, MAX_DESCRIPTION, PAYMENT_INTENT
from .client import gate_from_environment, gated_client, stripe_from_environment
from .credits import declare_credit
from .refunds import declare_refund
from .transfers import declare_transfer

Reason = Literal["duplicate", "fraudulent", "requested_by_customer"]

REFUND_DESCRIPTION = (
    "Refund a Stripe payment, in full or in part, to the customer's original payment method. For the request being "
    "worked on it is made at most once, and not at all if somebody else has refunded the payment or the bank has "
    "charged it back. The answer says what became of it and whether asking again makes sense."
)


class CreateRefundArguments(BaseModel):
    """What a model gives for a refund."""

    payment_intent: str = Field(
        pattern=PAYMENT_INTENT, description="The payment's id, as Stripe gives it: pi_ and so on."
    )
    amount: int = Field(
        ge=1,
        le=MAX_AMOUNT,
        description="How much to refund, as a whole number of the smallest unit of the payment's currency: "
        "2000 is 20.00 US dollars, and 2000 yen, which have no smaller unit.",
    )
    reason: Reason = Field(default="requested_by_customer", description="Why, as Stripe records it.")


class CreateCreditArguments(BaseModel):
    """What a model gives for a credit."""

    customer: str = Field(pattern=CUSTOMER, description="The customer's id: cus_ and so on.")
    amount: int = Field(
        ge=1,
        le=MAX_AMOUNT,
        description="How much to credit, as a positive whole number of the currency's smallest unit: 1000 is 10.00 US "
        "dollars.",
    )
    currency: str = Field(pattern=CURRENCY, description="Three-letter code in lower case, such as usd.")
    description: str = Field(max_length=MAX_DESCRIPTION, description="What it is for. The customer may see it.")


CREDIT_DESCRIPTION = (
    "Put a credit on a Stripe customer's balance; the next invoice uses it up. For the incident being worked on "
    "it is made at most once, and not at all if somebody else has credited the customer for it. The answer says what "
    "became of it and whether asking again makes sense."
)


class CreateTransferArguments(BaseModel):
    """What a model gives for a transfer."""

    destination: str = Field(pattern=ACCOUNT, description="The seller's account: acct_ and so on.")
    amount: int = Field(
        ge=1,
        le=MAX_AMOUNT,
        description="How much, as a whole number of the currency's smallest unit: 2000 is 20.00 US dollars.",
    )
    currency: str = Field(pattern=CURRENCY, description="Three-letter code in lower case, such as usd.")
    source_transaction: str = Field(
        pattern=CHARGE, description="The charge that the order was paid with: ch_ and so on."
    )


TRANSFER_DESCRIPTION = (
    "Transfer a seller's share of an order to the seller's Stripe account. For the request being worked on it is "
    "made at most once, and not at all if the order was refunded or charged back, the seller may not receive money, or "
    "somebody else has transferred it. The answer says what became of it and whether asking again makes sense."
)


class StripeTool(GatedTool):
    """What the Stripe tools share: each makes itself from the environment, or from an effect that is there.

    ``STRIPE_API_KEY`` (of test mode unless ``live=True``), ``STRIPE_API_BASE``
    where it is a sandbox, and ``INTERLOCK_JOURNAL``, a file that outlives the
    process. Making it so recovers what an earlier process left open.

    Args:
        effect: an effect that was declared already; the arguments below are then not used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        client: the Stripe client; by default one with the key of ``STRIPE_API_KEY``.
        live: real money may move.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_refund`` and so on, such as ``approvals``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    declares: ClassVar[Callable[..., Effect[Any]]]
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
            effect = type(self).declares(gate, gated_client(theirs, live=live), **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, **fields})


class CreateRefund(StripeTool):
    """``create_refund(payment_intent, amount, reason)``. See ``StripeTool``."""

    declares = staticmethod(declare_refund)
    name: str = "create_refund"
    description: str = REFUND_DESCRIPTION
    args_schema: type[BaseModel] = CreateRefundArguments

    def content(self, outcome: Outcome) -> str:
        """Return the outcome's message, and what Stripe says of a refund that has not simply succeeded."""
        status = outcome.result.get("status") if isinstance(outcome.result, dict) else None
        if outcome.committed and status not in (None, "succeeded"):
            return f"{outcome.message} Stripe's status of the refund: {status}."
        return outcome.message


class CreateCredit(StripeTool):
    """``create_credit(customer, amount, currency, description)``. See ``StripeTool``."""

    declares = staticmethod(declare_credit)
    name: str = "create_credit"
    description: str = CREDIT_DESCRIPTION
    args_schema: type[BaseModel] = CreateCreditArguments


class CreateTransfer(StripeTool):
    """``create_transfer(destination, amount, currency, source_transaction)``. See ``StripeTool``."""

    declares = staticmethod(declare_transfer)
    name: str = "create_transfer"
    description: str = TRANSFER_DESCRIPTION
    args_schema: type[BaseModel] = CreateTransferArguments


TOOLS: dict[str, type[StripeTool]] = {
    "create_refund": CreateRefund,
    "create_credit": CreateCredit,
    "create_transfer": CreateTransfer,
}
"""The tools by name."""
