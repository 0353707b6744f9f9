"""Charges: what a confirmed payment intent takes from a card, and the ledger's account of money in and out.

Delays of disputes and of refunds that fail: as seen against the live service in test mode, see ``world.Timing``.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.cards import card_of
from scenarios.sandbox.stripe.params import ZERO_DECIMAL
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import INCLUDABLE, Call, Obj, World

CHARGED_BACK = ("needs_response", "under_review", "lost")
"""Statuses of a dispute whose chargeback has posted and has not been won back."""


def new_charge(world: World, intent: Obj, method: Obj) -> Obj:
    """An authorised charge of the intent's whole amount; no money has moved and no event has been sent yet."""
    card = {name: method["card"][name] for name in ("brand", "checks", "country", "exp_month", "exp_year", "last4")}
    return world.add(
        "ch",
        "charge",
        {
            "amount": intent["amount"],
            "amount_captured": 0,
            "amount_refunded": 0,
            "application": None,
            "application_fee": None,
            "application_fee_amount": None,
            "balance_transaction": None,
            "billing_details": method["billing_details"],
            "calculated_statement_descriptor": "SANDBOX",
            "captured": False,
            "currency": intent["currency"],
            "customer": intent["customer"],
            "description": intent["description"],
            "disputed": False,
            "failure_balance_transaction": None,
            "failure_code": None,
            "failure_message": None,
            "fraud_details": {},
            "metadata": dict(intent["metadata"]),
            "on_behalf_of": None,
            "outcome": {
                "advice_code": None,
                "network_advice_code": None,
                "network_decline_code": None,
                "network_status": "approved_by_network",
                "reason": None,
                "risk_level": "normal",
                "risk_score": 12,
                "seller_message": "Payment complete.",
                "type": "authorized",
            },
            "paid": True,
            "payment_intent": intent["id"],
            "payment_method": method["id"],
            "payment_method_details": {
                "card": {
                    **card,
                    "fingerprint": method["card"]["fingerprint"],
                    "funding": "credit",
                    "network": card["brand"],
                },
                "type": "card",
            },
            "radar_options": {},
            "receipt_email": intent["receipt_email"],
            "receipt_number": None,
            "receipt_url": None,
            "refunded": False,
            "review": None,
            "shipping": None,
            "source": None,
            "source_transfer": None,
            "statement_descriptor": intent["statement_descriptor"],
            "statement_descriptor_suffix": None,
            "status": "succeeded",
            "transfer_data": None,
            "transfer_group": intent["transfer_group"] or f"group_{intent['id']}",
            "_card": method["_card"],
        },
    )


def settle_charge(world: World, charge: Obj, amount: int) -> None:
    """Capture the charge: the money comes in, less a fee of 2.9 % and 30, and what the test card is for begins."""
    card = card_of(charge)
    fee = round(amount * 0.029) + (0 if charge["currency"] in ZERO_DECIMAL else 30)
    after_s = 0.0 if card.bypass_pending else world.timing.funds_pending_s
    moved = world.move("charge", amount, charge["currency"], charge["id"], fee=fee, after_s=after_s)
    charge.update(captured=True, amount_captured=amount, balance_transaction=moved["id"])
    if card.dispute == "inquiry":
        world.clock.call_later(world.timing.inquiry_s, lambda: _disputes().open_inquiry(world, charge))
    elif card.dispute == "chargeback":
        world.clock.call_later(world.timing.dispute_s, lambda: _disputes().post_chargeback(world, charge))


def disputes_of(world: World, charge: Obj) -> list[Obj]:
    return [dispute for dispute in world.all("dispute") if dispute["charge"] == charge["id"]]


def is_charged_back(world: World, charge: Obj) -> bool:
    """Whether a chargeback of the charge has posted and has not been won back. An inquiry is not one."""
    return any(dispute["status"] in CHARGED_BACK for dispute in disputes_of(world, charge))


def _disputes() -> Any:
    from scenarios.sandbox.stripe import disputes  # it needs this module's names

    return disputes


@endpoint("GET", "/v1/charges/{id}")
def retrieve_charge(world: World, call: Call) -> Obj:
    return world.at_path("charge", call)


@endpoint("POST", "/v1/charges/{id}", "metadata", "description", "transfer_group", "customer", "receipt_email")
def update_charge(world: World, call: Call) -> Obj:
    charge = world.at_path("charge", call)
    changes: dict[str, Any] = {"metadata": call.params.metadata(charge["metadata"])}
    for name in ("description", "transfer_group", "customer", "receipt_email"):
        if call.params.has(name):
            changes[name] = call.params.text(name)
    world.change(charge, "charge.updated", **changes)
    return charge


@endpoint("GET", "/v1/charges", *LIST_PARAMS, "customer", "payment_intent", "transfer_group")
def list_charges(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("charge"), ["customer", "payment_intent", "transfer_group"])


def _included_refunds(world: World, charge: Obj) -> Obj:
    """The ten newest refunds of a charge, for ``expand[]=refunds``."""
    found = [world.render(refund) for refund in reversed(world.all("refund")) if refund["charge"] == charge["id"]]
    url = f"/v1/charges/{charge['id']}/refunds"
    return {"object": "list", "data": found[:10], "has_more": len(found) > 10, "url": url}


INCLUDABLE["charge", "refunds"] = _included_refunds


@ledger
def payments_ledger(world: World) -> dict[str, Any]:
    """Money in and out per charge, in the currency's smallest unit, fees left out."""
    payments = []
    for charge in world.all("charge"):
        refunds = [refund for refund in world.all("refund") if refund["charge"] == charge["id"]]
        refunded = sum(r["amount"] for r in refunds if r["status"] in ("succeeded", "pending", "requires_action"))
        disputes = [dispute for dispute in world.all("dispute") if dispute["charge"] == charge["id"]]
        withdrawn = -sum(entry["amount"] for dispute in disputes for entry in dispute["balance_transactions"])
        payments.append(
            {
                "payment_intent": charge["payment_intent"],
                "charge": charge["id"],
                "status": charge["status"],
                "currency": charge["currency"],
                "created_at": charge["_at"],
                "in": charge["amount_captured"],
                "refunded": refunded,
                "charged_back": withdrawn,
                "out": refunded + withdrawn,
                "refunds": [refund["id"] for refund in refunds],
                "disputes": [dispute["status"] for dispute in disputes],
                "metadata": charge["metadata"],
            }
        )
    return {"payments": payments, "balance": world.balance()}
