"""Asks Stripe whether it agrees with a receipt.

Strong: the event that Stripe recorded when the object was made. Its snapshot
shows the object as it was, and ``request.idempotency_key``, which Stripe fills
in itself, is the effect's id (API reference, "Events"; they go back 30 days).
Weak: the object's metadata, which the account can edit, where there is no such
event any more, or never was one (credits on a customer's balance).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import stripe

from interlock_tools.receipts.report import Carrier, ServiceFinding, Subject

from ..confirming import CannotTell, differences, evidence_id, finding, other, text, what
from .client import stripe_from_environment
from .reading import effect_of, every, is_missing, reachable

EVENTS = {"refund": "refund.created", "transfer": "transfer.created"}
_AROUND_S = 300


def confirm(subject: Subject, client: stripe.StripeClient | None = None) -> ServiceFinding:
    """Ask Stripe about a refund, a transfer or a credit.

    Args:
        subject: what the receipt is about.
        client: a client of the account; by default configured by ``STRIPE_API_KEY``. A key that only reads is enough.

    Raises:
        CannotTell, stripe.StripeError, ConnectionError: Stripe cannot be asked, or does not tell.
    """
    client = client if client is not None else stripe_from_environment(live=True)
    kind = what(subject)
    made = _made(client, kind, subject)
    ours = [one for one in made if effect_of(one) == subject.effect_id]
    event = _event(client, kind, subject.effect_id, made)
    wanted = evidence_id(subject)
    if event is not None:
        shown = event["data"]["object"]
        if wanted is not None and shown["id"] != wanted:
            return other(f"Stripe made {shown['id']} under this effect's key, not {wanted}.")
        if unlike := differences(_sent(kind, subject), shown):
            return other(f"When Stripe made {shown['id']} it had {unlike}.")
        says = f"Stripe recorded {event['type']} of {shown['id']} under this effect's key (event {event['id']})."
        return finding(subject, True, says)
    named = next((one for one in made if one["id"] == wanted), None)
    if wanted is not None and named is None:
        return other(f"Stripe shows no {kind} {wanted} there.")
    if named is not None and effect_of(named) != subject.effect_id:
        says = f"Stripe shows {wanted}, and its metadata names another effect or none."
        return other(says, Carrier.WEAK)
    if ours:
        says = f"Stripe shows {ours[-1]['id']}, whose metadata names this effect; its event is gone or never was."
        return finding(subject, True, says, Carrier.WEAK)
    return finding(subject, False, f"Stripe shows no {kind} under this effect's key or id.", Carrier.WEAK)


def _made(client: stripe.StripeClient, kind: str, subject: Subject) -> list[dict[str, Any]]:
    """Everything of this kind where the effect would be. That it can be listed shows that it is the right account."""
    try:
        if kind == "refund":
            return list(every(client.v1.refunds.list, payment_intent=text(subject, "payment_intent")))
        if kind == "transfer":
            return list(every(client.v1.transfers.list, destination=text(subject, "destination")))
        if kind == "credit":
            customer = text(subject, "customer")
            return list(every(lambda params: client.v1.customers.balance_transactions.list(customer, params)))
    except stripe.InvalidRequestError as error:
        if is_missing(error):
            why = "this key's account does not know what the receipt names; it may be another account's"
            raise CannotTell(why) from error
        raise
    raise CannotTell(f"nothing is known here about {subject.name}")


def _event(
    client: stripe.StripeClient, kind: str, effect_id: str, made: list[dict[str, Any]]
) -> Mapping[str, Any] | None:
    """The event of an object that was made under the effect's key."""
    if kind not in EVENTS:
        return None
    for one in made:
        around = {"gte": one["created"] - _AROUND_S, "lte": one["created"] + _AROUND_S}
        with reachable():
            for event in every(client.v1.events.list, type=EVENTS[kind], created=around):
                mine = (event.get("request") or {}).get("idempotency_key") == effect_id
                if mine and event["data"]["object"]["id"] == one["id"]:
                    return event
    return None


def _sent(kind: str, subject: Subject) -> dict[str, Any]:
    """What the receipt says was asked for, as far as it does not hide it."""
    names = ("payment_intent", "amount") if kind == "refund" else ("destination", "amount", "currency")
    return {name: subject.payload[name] for name in names if isinstance(subject.payload.get(name), (str, int))}
