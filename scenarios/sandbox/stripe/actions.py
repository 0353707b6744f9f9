"""Control actions of the Stripe sandbox: what banks, customers and the passing of time do without an API call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scenarios.sandbox.stripe import cards, charges, disputes, payments, refunds
from scenarios.sandbox.stripe.connect import set_capability
from scenarios.sandbox.stripe.world import Obj, World


def _charge(world: World, payment: str) -> Obj:
    intent = world.find("payment_intent", payment)
    charge = world.find("charge", intent["latest_charge"] or "" if intent else payment)
    if charge is None:
        raise ValueError(f"no charge for {payment!r}: give a payment intent or charge id")
    return charge


def actions(world: World) -> dict[str, Callable[..., Any]]:
    """The control actions by name; the control plane turns their ValueErrors into refusals."""

    def pay(amount: int = 10_000, currency: str = "usd", payment_method: str = "pm_card_visa") -> Any:
        """Make a confirmed payment: {"amount": 10000, "currency": "usd", "payment_method": "pm_card_visa"}."""
        method = cards.payment_method(world, payment_method, "payment_method")
        intent = payments.new_intent(world, amount, currency, None, method)
        charge = charges.new_charge(world, intent, method)
        intent["latest_charge"] = charge["id"]
        charges.settle_charge(world, charge, amount)
        world.emit("charge.succeeded", charge)
        world.change(intent, "payment_intent.succeeded", status="succeeded", amount_received=amount)
        return world.render(intent)

    def inquiry(payment: str) -> Any:
        """The bank opens an inquiry now: {"payment": payment intent or charge id}."""
        return world.render(disputes.open_inquiry(world, _charge(world, payment)))

    def chargeback(payment: str) -> Any:
        """The chargeback posts now: {"payment": payment intent or charge id}."""
        return world.render(disputes.post_chargeback(world, _charge(world, payment)))

    def close_dispute(payment: str, won: bool) -> Any:
        """The bank's verdict now: {"payment": id, "won": true or false}."""
        found = charges.disputes_of(world, _charge(world, payment))
        if not found:
            raise ValueError(f"{payment} has no dispute")
        disputes.close(world, found[-1], won=won)
        return world.render(found[-1])

    def refund_status(refund: str, status: str, failure_reason: str = "declined") -> Any:
        """A refund changes its status: {"refund": id, "status": "failed", "failure_reason": "declined"}."""
        found = world.find("refund", refund)
        if found is None or status not in refunds.STATUSES:
            raise ValueError(f"no refund {refund!r}, or status not one of {', '.join(refunds.STATUSES)}")
        if status == "failed":
            refunds.fail_refund(world, found, failure_reason)
        else:
            refunds.set_status(world, found, status)
        return world.render(found)

    def capability(account: str, status: str, name: str = "transfers") -> Any:
        """A connected account's capability changes: {"account": id, "status": "inactive", "name": "transfers"}."""
        found = world.find("account", account)
        if found is None or status not in ("active", "inactive", "pending", "unrequested"):
            raise ValueError(f"no account {account!r}, or status not active, inactive, pending or unrequested")
        set_capability(world, found, name, status)
        return world.render(found)

    def connect(on: bool) -> Any:
        """Sign the platform up for Connect, or off: {"on": true or false}."""
        world.connect = on
        return {"connect": "on" if on else "off"}

    calls = (pay, inquiry, chargeback, close_dispute, refund_status, capability, connect)
    return {call.__name__: call for call in calls}
