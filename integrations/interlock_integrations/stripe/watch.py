"""What became of refunds, credits and transfers, and of the payments behind them.

A refund's statuses are those of the API reference, "The Refund object". A
chargeback may come long after a refund has succeeded: then both amounts are
out (seen: 120 dollars of a payment of 100). Networks let a cardholder dispute a
payment for about 120 days (Stripe documentation, "Disputes"), so a refund is
looked at that long, less and less often.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

import stripe

from interlock_tools.settlement import Settlement
from interlock_tools.watching import Watched, unknown_status

from .reading import every, is_missing

DISPUTABLE = timedelta(days=120)
"""For how long after a payment a chargeback can come."""

FIRST_LOOK, LONGEST_PAUSE = timedelta(minutes=5), timedelta(days=1)
OPEN = frozenset({"needs_response", "under_review"})
"""Statuses of a chargeback that is not decided yet; the money is out meanwhile."""


def refund_settlement(refund: Mapping[str, Any], disputes: Iterable[Mapping[str, Any]], age: timedelta) -> Settlement:
    """What a refund, and the disputes of its payment, come to. Pure.

    Args:
        refund: the refund as Stripe has it.
        disputes: all disputes of its payment.
        age: how long ago it was made.
    """
    status = str(refund.get("status"))
    if status == "failed":
        return Settlement("failed", str(refund.get("failure_reason") or "failed"))
    if status == "canceled":
        return Settlement("failed", "canceled")
    if status in ("pending", "requires_action"):
        return Settlement("pending", status, look_again=_pause(age))
    if status != "succeeded":
        return unknown_status(status)
    taken = [dispute for dispute in disputes if _took_money(dispute)]
    if taken:
        worst = taken[-1]
        exposure = int(refund["amount"]) + sum(int(dispute["amount"]) for dispute in taken)
        words = f"charged back: {worst['id']} {worst['status']}"
        again = _pause(age) if any(dispute["status"] in OPEN for dispute in taken) else None
        return Settlement("at_risk", words, exposure, str(refund.get("currency") or ""), again)
    open_inquiries = [dispute for dispute in disputes if _is_open_inquiry(dispute)]
    if open_inquiries:
        return Settlement("settled", f"succeeded; inquiry {open_inquiries[-1]['id']} is open", look_again=_pause(age))
    return Settlement("settled", "succeeded", look_again=_pause(age) if age < DISPUTABLE else None)


def _took_money(dispute: Mapping[str, Any]) -> bool:
    status = str(dispute["status"])
    return not status.startswith("warning_") and status not in ("won", "prevented")


def _is_open_inquiry(dispute: Mapping[str, Any]) -> bool:
    return str(dispute["status"]).startswith("warning_") and dispute["status"] != "warning_closed"


def _pause(age: timedelta) -> timedelta:
    """The older it is, the longer until the next look."""
    return min(LONGEST_PAUSE, max(FIRST_LOOK, age / 4))


def watch_refund(client: stripe.StripeClient, now: Callable[[], float]) -> Callable[..., Settlement]:
    """Look at one refund: two requests."""

    def watch(payment_intent: str, evidence: dict[str, Any]) -> Settlement:
        refund = client.v1.refunds.retrieve(evidence["id"]).to_dict()
        disputes = list(every(client.v1.disputes.list, payment_intent=payment_intent))
        return refund_settlement(refund, disputes, _age(refund, now()))

    return watch


def watch_refunds(client: stripe.StripeClient, now: Callable[[], float]) -> Callable[..., dict[str, Settlement]]:
    """Look at many refunds: a request for each hundred refunds that were made between them, and disputes."""

    def watch(effects: list[Watched]) -> dict[str, Settlement]:
        wanted = {str(one.evidence["id"]): one for one in effects}
        made = [int(one.evidence.get("created") or one.committed_ms // 1000) for one in effects]
        since, until = min(made) - 1, max(made) + 1
        disputes: dict[str, list[dict[str, Any]]] = {}
        for dispute in every(client.v1.disputes.list, created={"gte": since - round(DISPUTABLE.total_seconds())}):
            disputes.setdefault(str(dispute.get("payment_intent")), []).append(dispute)
        found: dict[str, Settlement] = {}
        for refund in every(client.v1.refunds.list, created={"gte": since, "lte": until}):
            one = wanted.pop(refund["id"], None)
            if one is not None:
                of_payment = disputes.get(str(refund.get("payment_intent")), [])
                found[one.effect_id] = refund_settlement(refund, of_payment, _age(refund, now()))
            if not wanted:
                break
        return found

    return watch


def watch_credit(client: stripe.StripeClient) -> Callable[..., Settlement]:
    """A balance transaction is never changed by Stripe: what is there is final (API reference)."""

    def watch(customer: str, evidence: dict[str, Any]) -> Settlement:
        try:
            entry = client.v1.customers.balance_transactions.retrieve(customer, evidence["id"])
        except stripe.InvalidRequestError as error:
            if not is_missing(error):
                raise
            return Settlement("reversed", "the customer is gone, and the credit with it")
        return Settlement("settled", str(entry.type))

    return watch


def watch_transfer(client: stripe.StripeClient, now: Callable[[], float]) -> Callable[..., Settlement]:
    """A transfer is final unless it is reversed, in full or in part."""

    def watch(evidence: dict[str, Any]) -> Settlement:
        transfer = client.v1.transfers.retrieve(evidence["id"]).to_dict()
        amount, undone = int(transfer["amount"]), int(transfer.get("amount_reversed") or 0)
        if transfer.get("reversed") or undone >= amount:
            return Settlement("reversed", "reversed in full")
        age = _age(transfer, now())
        again = _pause(age) if age < DISPUTABLE else None
        if undone:
            return Settlement("at_risk", f"{undone} of {amount} was reversed", undone, transfer["currency"], again)
        return Settlement("settled", "paid to the account", look_again=again)

    return watch


def _age(made: Mapping[str, Any], now: float) -> timedelta:
    return timedelta(seconds=max(0.0, now - float(made.get("created") or now)))
