"""The transfer effect: a seller's share of an order, to a connected account (Connect).

What a transfer rests on, read at the decision and before every send:

* ``charge``: ``found`` or ``not found``: the order's charge, which pays for it;
* ``refunded``: how much of that charge has been refunded, and ``chargebacks``
  on it: the order has not been reversed;
* ``seller``: status of the account's ``transfers`` capability, or ``not found``;
* ``transferred_by_others``: what other transfers of the order to this account
  come to, less what was reversed of them.

Stripe itself refuses a transfer to an account that may not receive any, and one
that the charge does not cover; it does not look at refunds and disputes.
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
from .arguments import ACCOUNT, CHARGE, CURRENCY, check_amount
from .client import DEDUPES, SEND_TIMEOUT
from .errors import classified
from .reading import EFFECT_ID, chargebacks, effect_of, every, evidence, is_missing, reachable, with_more
from .watch import watch_transfer

NOTHING = {"charge": "not found", "refunded": 0, "chargebacks": [], "transferred_by_others": 0}


def declare_transfer(
    gate: Gate,
    client: stripe.StripeClient,
    *,
    name: str = "stripe.transfer",
    approvals: Callable[..., Any] | None = None,
    other_transfers: Literal["refuse", "allow"] = "refuse",
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the transfer effect on a gate and return it.

    The functions take, by name, any of ``request``, ``destination``,
    ``amount``, ``currency`` and ``source_transaction``. ``other_transfers`` is
    ``allow`` where an order is paid out in several transfers. The other
    arguments are as for ``declare_refund``. Raises ``DefinitionError``.
    """
    wanted: dict[str, Any] = {"charge": "found", "refunded": 0, "chargebacks": [], "seller": "active"}
    if other_transfers == "refuse":
        wanted["transferred_by_others"] = 0

    def transfer_facts(
        request: str, destination: str, amount: int, currency: str, source_transaction: str, idempotency_key: str
    ) -> dict[str, Any]:
        order = _order(client, source_transaction, destination, idempotency_key)
        return {**order, "seller": _seller(client, destination)}

    def find_transfer(destination: str, source_transaction: str, idempotency_key: str) -> dict[str, Any] | None:
        charge = _charge(client, source_transaction)
        own = [one for one in _transfers(client, charge, destination) if effect_of(one) == idempotency_key]
        return _evidence(own[-1]) if own else None

    def key(request: str, destination: str, amount: int, currency: str, source_transaction: str) -> str:
        check_text("destination", destination, ACCOUNT)
        check_amount(amount)
        check_text("currency", currency, CURRENCY)
        check_text("source_transaction", source_transaction, CHARGE)
        return f"{request}:{source_transaction}:{destination}"

    @gate.effect(
        name,
        key=key,
        premises=with_more(transfer_facts, premises),
        expect={**wanted, **(expect or {})},
        allowed=approvals,
        budget=budget,
        dedupes=DEDUPES,
        lookup=find_transfer,
        send_timeout=send_timeout,
        service={"name": "stripe", "kind": "transfer"},
        watch=watch_transfer(client, time.time),
    )
    def create_transfer(
        request: str,
        destination: str,
        amount: int,
        currency: str,
        source_transaction: str,
        *,
        idempotency_key: str,
        on_send: Any,
    ) -> dict[str, Any] | None:
        with classified(), sending(on_send):
            transfer = client.v1.transfers.create(
                {
                    "amount": amount,
                    "currency": currency,
                    "destination": destination,
                    "source_transaction": source_transaction,
                    "metadata": {EFFECT_ID: idempotency_key},
                },
                {"idempotency_key": idempotency_key, "max_network_retries": 0},
            )
        return _evidence(transfer.to_dict())

    return create_transfer


def _order(client: stripe.StripeClient, source: str, destination: str, idempotency_key: str) -> dict[str, Any]:
    try:
        charge = _charge(client, source)
    except stripe.InvalidRequestError as error:
        if not is_missing(error):
            raise
        return dict(NOTHING)
    others = sum(
        transfer["amount"] - transfer["amount_reversed"]
        for transfer in _transfers(client, charge, destination)
        if effect_of(transfer) != idempotency_key
    )
    return {
        "charge": "found",
        "refunded": charge["amount_refunded"],
        "chargebacks": chargebacks(every(client.v1.disputes.list, charge=source)),
        "transferred_by_others": others,
    }


def _charge(client: stripe.StripeClient, source: str) -> dict[str, Any]:
    with reachable():
        return client.v1.charges.retrieve(source).to_dict()


def _seller(client: stripe.StripeClient, destination: str) -> str:
    """Status of the account's transfers capability."""
    try:
        with reachable():
            account = client.v1.accounts.retrieve(destination).to_dict()
    except stripe.PermissionError:  # what Stripe answers for an account that is not this platform's
        return "not found"
    return str((account.get("capabilities") or {}).get("transfers", "inactive"))


def _transfers(client: stripe.StripeClient, charge: Mapping[str, Any], destination: str) -> list[dict[str, Any]]:
    """Every transfer of the order to this account, newest first.

    A transfer takes over the transfer group of the charge that pays for it, and
    gives the charge one if it has none (documented under "Separate charges and transfers").
    """
    group = charge.get("transfer_group")
    found = every(client.v1.transfers.list, **({"transfer_group": group} if group else {"destination": destination}))
    return [
        transfer
        for transfer in found
        if transfer["destination"] == destination and (group or transfer.get("source_transaction") == charge["id"])
    ]


def _evidence(transfer: Mapping[str, Any]) -> dict[str, Any] | None:
    names = ("amount", "currency", "destination", "source_transaction", "transfer_group", "created")
    return evidence(transfer, *names)
