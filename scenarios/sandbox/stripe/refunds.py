"""Refunds.

Documented: partial refunds up to the charge; ``charge_already_refunded``; ``succeeded`` can become ``failed``; lists in
every status. Seen against the live service: a charge that has been charged back refuses refunds; a refund created
seconds before the chargeback posts fails with it, one created minutes before stays and both amounts are out.
Assumptions: a failed refund's amount can be refunded again, and a refund does not wait for available balance.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.cards import card_of
from scenarios.sandbox.stripe.charges import is_charged_back
from scenarios.sandbox.stripe.errors import invalid, no_such, refused
from scenarios.sandbox.stripe.params import Params, money_words
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

REASONS = ("duplicate", "fraudulent", "requested_by_customer")
STATUSES = ("pending", "requires_action", "succeeded", "failed", "canceled")
COUNTED = ("pending", "requires_action", "succeeded")
"""Statuses in which a refund takes up part of its charge."""


@endpoint("POST", "/v1/refunds", "amount", "charge", "payment_intent", "reason", "metadata", "currency")
def create_refund(world: World, call: Call) -> Obj:
    params = call.params
    amount = params.integer("amount", 1)
    reason = params.choice("reason", REASONS)
    metadata = params.metadata()
    if not params.text("payment_intent") and not params.text("charge"):
        raise invalid("One of the following params should be provided for this request: payment_intent or charge.")
    charge = _charge_of(world, params)
    _check_refundable(world, charge, amount)
    left = charge["amount_captured"] - charge["amount_refunded"]
    return new_refund(world, charge, left if amount is None else amount, reason, metadata)


def _charge_of(world: World, params: Params) -> Obj:
    """The charge that a refund names, directly or by its payment intent."""
    charge_id, intent_id = params.text("charge"), params.text("payment_intent")
    if intent_id is None:
        return world.get("charge", charge_id or "", "charge")
    intent = world.get("payment_intent", intent_id, "payment_intent")
    charge = world.find("charge", intent["latest_charge"] or "")
    if charge is None or intent["status"] != "succeeded":
        raise refused(f"This PaymentIntent ({intent_id}) does not have a successful charge to refund.")
    if charge_id is not None and charge_id != charge["id"]:
        raise no_such("charge", charge_id, "charge")
    return charge


def _check_refundable(world: World, charge: Obj, amount: int | None) -> None:
    """Raise the refusal that Stripe answers for a charge that cannot be refunded (by this much)."""
    if charge["status"] != "succeeded" or not charge["captured"]:
        raise refused(f"Charge {charge['id']} has no captured payment to refund.", code="charge_not_refundable")
    if is_charged_back(world, charge):
        raise refused(f"Charge {charge['id']} has been charged back; cannot issue a refund.", code="charge_disputed")
    left = charge["amount_captured"] - charge["amount_refunded"]
    if left == 0:
        raise refused(f"Charge {charge['id']} has already been refunded.", code="charge_already_refunded")
    if amount is not None and amount > left:
        currency = charge["currency"]
        raise refused(
            f"Refund amount ({money_words(amount, currency)}) is greater than unrefunded amount on charge "
            f"({money_words(left, currency)})",
            param="amount",
        )


def new_refund(world: World, charge: Obj, amount: int, reason: str | None, metadata: dict[str, str]) -> Obj:
    """Create a refund of a refundable charge and start what its test card is for."""
    behaviour = card_of(charge).refund
    status = "pending" if behaviour == "pending" else "succeeded"
    refund = world.add(
        "re",
        "refund",
        {
            "amount": amount,
            "balance_transaction": None,
            "charge": charge["id"],
            "currency": charge["currency"],
            "destination_details": {
                "card": {
                    "reference_status": "pending",
                    "reference_type": "acquirer_reference_number",
                    "type": "refund",
                },
                "type": "card",
            },
            "metadata": metadata,
            "payment_intent": charge["payment_intent"],
            "reason": reason,
            "receipt_number": None,
            "source_transfer_reversal": None,
            "status": status,
            "transfer_reversal": None,
        },
    )
    if status == "pending":
        refund["pending_reason"] = "processing"
    moved = world.move("refund", -amount, charge["currency"], refund["id"])
    refund["balance_transaction"] = moved["id"]
    world.emit("refund.created", refund)
    _recount(world, charge)
    if behaviour == "fail":
        world.clock.call_later(world.timing.refund_fail_s, lambda: fail_refund(world, refund, "unknown"))
    elif behaviour == "pending":
        world.clock.call_later(world.timing.refund_pending_s, lambda: set_status(world, refund, "succeeded"))
    return refund


def fail_refund(world: World, refund: Obj, reason: str) -> None:
    """The refund did not go through after all: its amount comes back. Does nothing if it has ended already."""
    if refund["status"] not in COUNTED:
        return
    moved = world.move("refund_failure", refund["amount"], refund["currency"], refund["id"])
    refund["failure_balance_transaction"] = moved["id"]
    refund.pop("pending_reason", None)
    world.change(
        refund, "refund.updated", "refund.failed", "charge.refund.updated", status="failed", failure_reason=reason
    )
    _recount(world, world.get("charge", refund["charge"], "charge"))


def set_status(world: World, refund: Obj, status: str) -> None:
    """Move a refund to another status, as an issuer does; ``failed`` goes through :func:`fail_refund`."""
    if status == "failed":
        fail_refund(world, refund, "declined")
        return
    if status != "pending":
        refund.pop("pending_reason", None)
    world.change(refund, "refund.updated", "charge.refund.updated", status=status)
    _recount(world, world.get("charge", refund["charge"], "charge"))


def _recount(world: World, charge: Obj) -> None:
    """Bring the charge's totals in line with its refunds."""
    total = sum(r["amount"] for r in world.all("refund") if r["charge"] == charge["id"] and r["status"] in COUNTED)
    grown = total > charge["amount_refunded"]
    changes: dict[str, Any] = {"amount_refunded": total, "refunded": total == charge["amount_captured"]}
    if charge["amount_refunded"] != total:
        world.change(charge, "charge.refunded" if grown else "charge.updated", **changes)


@endpoint("POST", "/v1/refunds/{id}/cancel")
def cancel_refund(world: World, call: Call) -> Obj:
    refund = world.at_path("refund", call)
    if refund["status"] != "requires_action":
        raise refused("You cannot cancel this refund: only a refund with a status of requires_action can be canceled.")
    world.move("refund_failure", refund["amount"], refund["currency"], refund["id"])
    set_status(world, refund, "canceled")
    return refund


@endpoint("POST", "/v1/refunds/{id}", "metadata")
def update_refund(world: World, call: Call) -> Obj:
    refund = world.at_path("refund", call)
    metadata = call.params.metadata(refund["metadata"])
    world.change(refund, "refund.updated", "charge.refund.updated", metadata=metadata)
    return refund


@endpoint("GET", "/v1/refunds/{id}")
def retrieve_refund(world: World, call: Call) -> Obj:
    return world.at_path("refund", call)


@endpoint("GET", "/v1/refunds", *LIST_PARAMS, "charge", "payment_intent")
def list_refunds(world: World, call: Call) -> Obj:
    if call.params.text("charge"):
        world.get("charge", call.params.need_text("charge"), "charge")
    if call.params.text("payment_intent"):
        world.get("payment_intent", call.params.need_text("payment_intent"), "payment_intent")
    return listing(world, call, world.all("refund"), ["charge", "payment_intent"])


@ledger
def refunds_ledger(world: World) -> dict[str, Any]:
    """Every refund in every status; ``history`` is [sandbox time, status] for each status it had."""
    return {
        "refunds": [
            {
                "id": refund["id"],
                "payment_intent": refund["payment_intent"],
                "charge": refund["charge"],
                "amount": refund["amount"],
                "currency": refund["currency"],
                "reason": refund["reason"],
                "status": refund["status"],
                "failure_reason": refund.get("failure_reason"),
                "created_at": refund["_at"],
                "history": refund["_history"],
                "metadata": refund["metadata"],
                "idempotency_key": refund["_key"],
            }
            for refund in world.all("refund")
        ]
    }
