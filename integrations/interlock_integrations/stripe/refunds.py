"""Refunds: ``create_refund(payment_intent, amount, reason)``.

What a refund rests on, read at the decision and before every send:

* ``payment``: ``found``, or ``not found`` where Stripe knows no such payment;
* ``refunded_by_others``: what other refunds of the payment come to, in the
  smallest unit; failed and cancelled ones do not count, this effect's own is
  left out;
* ``chargebacks``: disputes in which the bank has taken the money back.

Stripe enforces none of these at the moment of the send, so what changes between
the reading and the send, milliseconds, is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

import stripe
from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source
from interlock_tools.outcome import Outcome

from ..transport import sending
from .client import DEDUPES, SEND_TIMEOUT, gate_from_environment, gated_client, stripe_from_environment
from .errors import classified
from .reading import EFFECT_ID, effect_of, every, evidence, with_more

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


def declare_refund(
    gate: Gate,
    client: stripe.StripeClient,
    *,
    name: str = "stripe.refund",
    approvals: Callable[..., Any] | None = None,
    other_refunds: Literal["refuse", "allow"] = "refuse",
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the refund effect on a gate and return it.

    All functions below take, by name, any of ``request``, ``payment_intent``,
    ``amount`` and ``reason``; premises may also take ``idempotency_key``.

    Args:
        gate: the gate.
        client: a client made by ``gated_client``.
        name: the effect's stable name; another one for each Stripe account at one journal.
        approvals: returns the ``Grant`` that covers the refund, or None.
        other_refunds: ``allow`` where a payment may have been refunded in part before; a refund that
            others make after the decision stops this one in either case.
        premises: returns further facts, or ones to replace those above.
        expect: values that further facts must have.
        budget: returns a ``Budget`` or a list of them.
        send_timeout: see ``client.SEND_TIMEOUT``.

    Raises:
        DefinitionError: something about it is wrong.
    """
    read = _facts_of(client)
    wanted: dict[str, Any] = {"payment": "found", "chargebacks": []}
    if other_refunds == "refuse":
        wanted["refunded_by_others"] = 0

    def refund_facts(
        request: str, payment_intent: str, amount: int, reason: str, idempotency_key: str
    ) -> dict[str, Any]:
        return read(payment_intent, idempotency_key)

    def find_refund(payment_intent: str, idempotency_key: str) -> dict[str, Any] | None:
        own = [one for one in _refunds(client, payment_intent) if effect_of(one) == idempotency_key]
        return _evidence(own[-1]) if own else None  # the oldest: there is never a second one while keys are kept

    @gate.effect(
        name,
        key=lambda request, payment_intent: f"{request}:{payment_intent}",
        premises=with_more(refund_facts, premises),
        expect={**wanted, **(expect or {})},
        allowed=approvals,
        budget=budget,
        dedupes=DEDUPES,
        lookup=find_refund,
        send_timeout=send_timeout,
    )
    def create_refund(
        request: str, payment_intent: str, amount: int, reason: str, *, idempotency_key: str, on_send: Any
    ) -> dict[str, Any] | None:
        with classified(), sending(on_send):
            refund = client.v1.refunds.create(
                {
                    "payment_intent": payment_intent,
                    "amount": amount,
                    "reason": reason,
                    "metadata": {EFFECT_ID: idempotency_key},
                },
                {"idempotency_key": idempotency_key, "max_network_retries": 0},
            )
        return _evidence(refund.to_dict())

    return create_refund


def _refunds(client: stripe.StripeClient, payment_intent: str) -> list[dict[str, Any]]:
    """Every refund of a payment in every status, newest first."""
    return list(every(client.v1.refunds.list, payment_intent=payment_intent))


def _facts_of(client: stripe.StripeClient) -> Callable[[str, str], dict[str, Any]]:
    def read(payment_intent: str, idempotency_key: str) -> dict[str, Any]:
        try:
            refunds = _refunds(client, payment_intent)
            disputes = list(every(client.v1.disputes.list, payment_intent=payment_intent))
        except stripe.InvalidRequestError as error:
            if error.code != "resource_missing":
                raise
            return {"payment": "not found", "refunded_by_others": 0, "chargebacks": []}
        others = sum(
            refund["amount"]
            for refund in refunds
            if effect_of(refund) != idempotency_key and refund["status"] not in ("failed", "canceled")
        )
        chargebacks = sorted(dispute["id"] for dispute in disputes if _is_chargeback(dispute["status"]))
        return {"payment": "found", "refunded_by_others": others, "chargebacks": chargebacks}

    return read


def _is_chargeback(status: str) -> bool:
    """Whether a dispute stands for money that was taken back. An inquiry does not, nor what was won back.

    A status that Stripe adds one day counts as one.
    """
    return not status.startswith("warning_") and status != "won"


def _evidence(refund: Mapping[str, Any]) -> dict[str, Any] | None:
    return evidence(refund, "amount", "currency", "status", "payment_intent", "charge", "created", "failure_reason")


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
