"""The refund effect: how it is sent, found again, and what it rests on.

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

import time
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

import stripe

from interlock_tools import Gate
from interlock_tools.effect import Effect

from ..declaring import check_text
from ..transport import sending
from .arguments import PAYMENT_INTENT, check_amount, check_reason
from .client import DEDUPES, SEND_TIMEOUT
from .errors import classified
from .reading import EFFECT_ID, chargebacks, effect_of, every, evidence, is_missing, with_more
from .watch import watch_refund, watch_refunds


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

    def key(request: str, payment_intent: str, amount: int, reason: str) -> str:
        check_text("payment_intent", payment_intent, PAYMENT_INTENT)
        check_amount(amount)
        check_reason(reason)
        return f"{request}:{payment_intent}"

    @gate.effect(
        name,
        key=key,
        premises=with_more(refund_facts, premises),
        expect={**wanted, **(expect or {})},
        allowed=approvals,
        budget=budget,
        dedupes=DEDUPES,
        lookup=find_refund,
        send_timeout=send_timeout,
        service={"name": "stripe", "kind": "refund"},
        watch=watch_refund(client, time.time),
        watch_many=watch_refunds(client, time.time),
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
            if not is_missing(error):
                raise
            return {"payment": "not found", "refunded_by_others": 0, "chargebacks": []}
        others = sum(
            refund["amount"]
            for refund in refunds
            if effect_of(refund) != idempotency_key and refund["status"] not in ("failed", "canceled")
        )
        return {"payment": "found", "refunded_by_others": others, "chargebacks": chargebacks(disputes)}

    return read


def _evidence(refund: Mapping[str, Any]) -> dict[str, Any] | None:
    return evidence(refund, "amount", "currency", "status", "payment_intent", "charge", "created", "failure_reason")
