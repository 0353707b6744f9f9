"""Payment methods, and the test cards behind them.

Test payment methods and what they do: Stripe's documentation, "Testing".
"""

from __future__ import annotations

from dataclasses import dataclass

from scenarios.sandbox.stripe.errors import no_such, refused
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import Call, Obj, World


@dataclass(frozen=True)
class Card:
    """A card of the test mode. ``decline`` is (code, decline code, message) of a card that is declined."""

    brand: str = "visa"
    last4: str = "4242"
    dispute: str | None = None
    refund: str | None = None
    decline: tuple[str, str, str] | None = None
    authenticate: bool = False
    bypass_pending: bool = False


_DECLINED = ("card_declined", "generic_decline", "Your card was declined.")
_NO_FUNDS = ("card_declined", "insufficient_funds", "Your card has insufficient funds.")

CARDS = {
    "pm_card_visa": Card(),
    "pm_card_mastercard": Card("mastercard", "4444"),
    "pm_card_amex": Card("amex", "8431"),
    "pm_card_bypassPending": Card(last4="0077", bypass_pending=True),
    "pm_card_createDispute": Card(last4="0259", dispute="chargeback"),
    "pm_card_createDisputeInquiry": Card(last4="1976", dispute="inquiry"),
    "pm_card_refundFail": Card(last4="5126", refund="fail"),
    "pm_card_pendingRefund": Card(last4="7726", refund="pending"),
    "pm_card_authenticationRequired": Card(last4="3184", authenticate=True),
    "pm_card_chargeDeclined": Card(last4="0002", decline=_DECLINED),
    "pm_card_visa_chargeDeclined": Card(last4="0002", decline=_DECLINED),
    "pm_card_chargeDeclinedInsufficientFunds": Card(last4="9995", decline=_NO_FUNDS),
    "pm_card_visa_chargeDeclinedInsufficientFunds": Card(last4="9995", decline=_NO_FUNDS),
}


def card_of(method: Obj) -> Card:
    card = method["_card"]
    assert isinstance(card, Card)
    return card


def payment_method(world: World, name: str, param: str, customer: str | None = None) -> Obj:
    """A payment method by id; a test name such as ``pm_card_visa`` makes a new one."""
    card = CARDS.get(name)
    if card is None:
        found = world.find("payment_method", name)
        if found is None:
            raise no_such("PaymentMethod", name, param)
        return found
    nothing = {"address": dict.fromkeys(("city", "country", "line1", "line2", "postal_code", "state"))}
    return world.add(
        "pm",
        "payment_method",
        {
            "allow_redisplay": "unspecified",
            "billing_details": {**nothing, "email": None, "name": None, "phone": None, "tax_id": None},
            "card": {
                "brand": card.brand,
                "checks": {"address_line1_check": None, "address_postal_code_check": None, "cvc_check": "pass"},
                "country": "US",
                "display_brand": card.brand,
                "exp_month": 12,
                "exp_year": 2034,
                "fingerprint": f"fp{card.brand}{card.last4}",
                "funding": "credit",
                "generated_from": None,
                "last4": card.last4,
                "networks": {"available": [card.brand], "preferred": None},
                "three_d_secure_usage": {"supported": True},
                "wallet": None,
            },
            "customer": customer,
            "customer_account": None,
            "metadata": {},
            "type": "card",
            "_card": card,
        },
    )


@endpoint("GET", "/v1/payment_methods/{id}")
def retrieve_payment_method(world: World, call: Call) -> Obj:
    return world.at_path("payment_method", call, "payment_method")


@endpoint("GET", "/v1/payment_methods", *LIST_PARAMS, "customer", "type")
def list_payment_methods(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("payment_method"), ["customer", "type"])


@endpoint("POST", "/v1/payment_methods/{id}/attach", "customer")
def attach_payment_method(world: World, call: Call) -> Obj:
    customer = world.get("customer", call.params.need_text("customer"), "customer")
    name = call.args["id"]
    method = payment_method(world, name, "payment_method")
    if method["customer"] not in (None, customer["id"]):
        raise refused(
            "The payment method you provided has already been attached to a customer.", param="payment_method"
        )
    world.change(method, "payment_method.attached", customer=customer["id"])
    return method
