"""The credit effect: money on a customer's balance, for an incident.

The request reference names the incident; it is written to the credit's
metadata as ``incident``, where people and other programs can write it, too.

What a credit rests on, read at the decision and before every send:

* ``customer``: ``found`` or ``not found``;
* ``credited_by_others``: what other entries of the customer's balance with this
  ``incident`` come to, in the smallest unit.

The balance itself is no premise: it moves by itself at every renewal. Stripe
enforces nothing here (seen: a balance transaction takes no precondition).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import stripe

from interlock_tools import Gate
from interlock_tools.effect import Effect

from ..declaring import check_text
from ..transport import sending
from .arguments import CURRENCY, CUSTOMER, check_amount, check_description
from .client import DEDUPES, SEND_TIMEOUT
from .errors import classified
from .reading import EFFECT_ID, effect_of, every, evidence, is_missing, with_more
from .watch import watch_credit

INCIDENT = "incident"
"""Name of the metadata entry that names the incident."""


def declare_credit(
    gate: Gate,
    client: stripe.StripeClient,
    *,
    name: str = "stripe.credit",
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the credit effect on a gate and return it.

    The functions take, by name, any of ``request``, ``customer``, ``amount``
    (positive), ``currency`` and ``description``. Arguments as for
    ``declare_refund``. Raises ``DefinitionError``.
    """

    def entries(customer: str) -> list[dict[str, Any]]:
        return list(every(_bound(client, customer)))

    def credit_facts(
        request: str, customer: str, amount: int, currency: str, description: str, idempotency_key: str
    ) -> dict[str, Any]:
        try:
            found = entries(customer)
        except stripe.InvalidRequestError as error:
            if not is_missing(error):
                raise
            return {"customer": "not found", "credited_by_others": 0}
        others = -sum(
            entry["amount"]
            for entry in found
            if effect_of(entry) != idempotency_key and (entry.get("metadata") or {}).get(INCIDENT) == request
        )
        return {"customer": "found", "credited_by_others": others}

    def find_credit(customer: str, idempotency_key: str) -> dict[str, Any] | None:
        own = [entry for entry in entries(customer) if effect_of(entry) == idempotency_key]
        return _evidence(own[-1]) if own else None

    def key(request: str, customer: str, amount: int, currency: str, description: str) -> str:
        check_text("customer", customer, CUSTOMER)
        check_amount(amount)
        check_text("currency", currency, CURRENCY)
        check_description(description)
        return f"{request}:{customer}"

    @gate.effect(
        name,
        key=key,
        premises=with_more(credit_facts, premises),
        expect={"customer": "found", "credited_by_others": 0, **(expect or {})},
        allowed=approvals,
        budget=budget,
        dedupes=DEDUPES,
        lookup=find_credit,
        send_timeout=send_timeout,
        service={"name": "stripe", "kind": "credit"},
        watch=watch_credit(client),
    )
    def create_credit(
        request: str,
        customer: str,
        amount: int,
        currency: str,
        description: str,
        *,
        idempotency_key: str,
        on_send: Any,
    ) -> dict[str, Any] | None:
        with classified(), sending(on_send):
            entry = client.v1.customers.balance_transactions.create(
                customer,
                {
                    "amount": -amount,  # negative is what Stripe owes the customer
                    "currency": currency,
                    "description": description,
                    "metadata": {EFFECT_ID: idempotency_key, INCIDENT: request},
                },
                {"idempotency_key": idempotency_key, "max_network_retries": 0},
            )
        return _evidence(entry.to_dict())

    return create_credit


def _bound(client: stripe.StripeClient, customer: str) -> Callable[..., Any]:
    return lambda params: client.v1.customers.balance_transactions.list(customer, params)


def _evidence(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    return evidence(entry, "amount", "currency", "customer", "ending_balance", "created")
