"""Payment intents: created, confirmed, captured, cancelled."""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.cards import card_of, payment_method
from scenarios.sandbox.stripe.charges import new_charge, settle_charge
from scenarios.sandbox.stripe.errors import StripeError, invalid, refused
from scenarios.sandbox.stripe.params import ZERO_DECIMAL, Params, money_words
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

MINIMUM = {"usd": 50, "eur": 50, "gbp": 30, "jpy": 50}
MAX_AMOUNT = 99_999_999


def check_amount(params: Params, currency: str) -> int:
    """The ``amount`` of a payment in the currency's smallest unit, within Stripe's bounds."""
    amount = params.need_integer("amount", 1)
    least = MINIMUM.get(currency, 1 if currency in ZERO_DECIMAL else 50)
    if amount < least:
        raise invalid(f"Amount must be at least {money_words(least, currency)}", "amount", "amount_too_small")
    if amount > MAX_AMOUNT:
        raise invalid(f"Amount must be no more than {money_words(MAX_AMOUNT, currency)}", "amount", "amount_too_large")
    return amount


INTENT_PARAMS = (
    "amount",
    "automatic_payment_methods",
    "capture_method",
    "confirm",
    "currency",
    "customer",
    "description",
    "metadata",
    "off_session",
    "payment_method",
    "payment_method_types",
    "receipt_email",
    "return_url",
    "setup_future_usage",
    "statement_descriptor",
    "transfer_group",
)


@endpoint("POST", "/v1/payment_intents", *INTENT_PARAMS)
def create_intent(world: World, call: Call) -> Obj:
    params = call.params
    currency = params.currency()
    amount = check_amount(params, currency)
    method_types = params.strings("payment_method_types")
    manual = params.choice("capture_method", ("automatic", "automatic_async", "manual"))
    automatic = params.child("automatic_payment_methods")
    confirm, metadata = params.boolean("confirm"), params.metadata()
    customer = params.text("customer")
    if customer:
        world.get("customer", customer, "customer")
    method = params.text("payment_method")
    chosen = payment_method(world, method, "payment_method", customer) if method else None
    if confirm and chosen is None:
        raise refused(
            "You cannot confirm this PaymentIntent because it's missing a payment method.",
            code="payment_intent_unexpected_state",
        )
    intent = new_intent(world, amount, currency, customer, chosen)
    intent.update(
        capture_method=manual or "automatic_async",
        description=params.text("description"),
        metadata=metadata,
        payment_method_types=method_types or ["card"],
        receipt_email=params.text("receipt_email"),
        setup_future_usage=params.text("setup_future_usage"),
        statement_descriptor=params.text("statement_descriptor"),
        transfer_group=params.text("transfer_group"),
    )
    if not method_types:
        redirects = automatic.choice("allow_redirects", ("always", "never")) or "always"
        intent["automatic_payment_methods"] = {"allow_redirects": redirects, "enabled": True}
    world.emit("payment_intent.created", intent)
    if confirm:
        charge_intent(world, intent)
    return intent


def new_intent(world: World, amount: int, currency: str, customer: str | None, method: Obj | None) -> Obj:
    """A payment intent that is not confirmed yet and of which no event has been sent yet."""
    intent = world.add(
        "pi",
        "payment_intent",
        {
            "amount": amount,
            "amount_capturable": 0,
            "amount_details": {"tip": {}},
            "amount_received": 0,
            "application": None,
            "application_fee_amount": None,
            "automatic_payment_methods": None,
            "canceled_at": None,
            "cancellation_reason": None,
            "capture_method": "automatic_async",
            "confirmation_method": "automatic",
            "currency": currency,
            "customer": customer,
            "customer_account": None,
            "description": None,
            "last_payment_error": None,
            "latest_charge": None,
            "metadata": {},
            "next_action": None,
            "on_behalf_of": None,
            "payment_method": method["id"] if method else None,
            "payment_method_configuration_details": None,
            "payment_method_options": {},
            "payment_method_types": ["card"],
            "processing": None,
            "receipt_email": None,
            "review": None,
            "setup_future_usage": None,
            "shipping": None,
            "source": None,
            "statement_descriptor": None,
            "statement_descriptor_suffix": None,
            "status": "requires_confirmation" if method else "requires_payment_method",
            "transfer_data": None,
            "transfer_group": None,
        },
    )
    intent["client_secret"] = f"{intent['id']}_secret_sandbox"
    return intent


@endpoint("POST", "/v1/payment_intents/{id}/confirm", "payment_method", "return_url", "off_session")
def confirm_intent(world: World, call: Call) -> Obj:
    intent = world.at_path("payment_intent", call, "intent")
    if intent["status"] not in ("requires_payment_method", "requires_confirmation", "requires_action"):
        raise refused(
            f"You cannot confirm this PaymentIntent because it has already {_ended(intent)}.",
            code="payment_intent_unexpected_state",
        )
    method = call.params.text("payment_method")
    if method:
        intent["payment_method"] = payment_method(world, method, "payment_method", intent["customer"])["id"]
    if not intent["payment_method"]:
        raise refused(
            "You cannot confirm this PaymentIntent because it's missing a payment method.",
            code="payment_intent_unexpected_state",
        )
    charge_intent(world, intent)
    return intent


def _ended(intent: Obj) -> str:
    return (
        "succeeded after being previously confirmed" if intent["status"] == "succeeded" else f"been {intent['status']}"
    )


def charge_intent(world: World, intent: Obj) -> None:
    """Charge the intent's payment method. Raises the 402 of a declined card."""
    method = world.find("payment_method", intent["payment_method"])
    assert method is not None
    card = card_of(method)
    if card.authenticate:
        action = {"type": "use_stripe_sdk", "use_stripe_sdk": {}}
        world.change(intent, "payment_intent.requires_action", status="requires_action", next_action=action)
        return
    charge = new_charge(world, intent, method)
    if card.decline:
        _decline(world, intent, charge, method, card.decline)
    if intent["capture_method"] == "manual":
        world.emit("charge.succeeded", charge)
        world.change(
            intent,
            "payment_intent.amount_capturable_updated",
            status="requires_capture",
            amount_capturable=intent["amount"],
            latest_charge=charge["id"],
        )
        return
    intent["latest_charge"] = charge["id"]
    settle_charge(world, charge, intent["amount"])
    world.emit("charge.succeeded", charge)
    world.change(intent, "payment_intent.succeeded", status="succeeded", amount_received=intent["amount"])


def _decline(world: World, intent: Obj, charge: Obj, method: Obj, decline: tuple[str, str, str]) -> None:
    code, decline_code, message = decline
    world.change(
        charge,
        status="failed",
        paid=False,
        captured=False,
        amount_captured=0,
        failure_code=code,
        failure_message=message,
    )
    charge["outcome"].update(network_status="declined_by_network", reason=decline_code, type="issuer_declined")
    world.emit("charge.failed", charge)
    error = StripeError(402, message, type="card_error", code=code, decline_code=decline_code, charge=charge["id"])
    world.change(
        intent,
        "payment_intent.payment_failed",
        status="requires_payment_method",
        payment_method=None,
        latest_charge=charge["id"],
        last_payment_error={**error.body()["error"], "payment_method": world.render(method)},
    )
    error.extra["payment_intent"] = world.render(intent)
    error.extra["payment_method"] = world.render(method)
    raise error


@endpoint("POST", "/v1/payment_intents/{id}/capture", "amount_to_capture")
def capture_intent(world: World, call: Call) -> Obj:
    intent = world.at_path("payment_intent", call, "intent")
    if intent["status"] != "requires_capture":
        raise refused(
            f"This PaymentIntent could not be captured because it has a status of {intent['status']}. Only a "
            "PaymentIntent with one of the following statuses may be captured: requires_capture.",
            code="payment_intent_unexpected_state",
        )
    amount = call.params.integer("amount_to_capture", 1) or intent["amount_capturable"]
    if amount > intent["amount_capturable"]:
        raise refused("The amount to capture is more than the amount capturable.", param="amount_to_capture")
    charge = world.get("charge", intent["latest_charge"], "charge")
    settle_charge(world, charge, amount)
    world.emit("charge.captured", charge)
    world.change(intent, "payment_intent.succeeded", status="succeeded", amount_capturable=0, amount_received=amount)
    return intent


@endpoint("POST", "/v1/payment_intents/{id}/cancel", "cancellation_reason")
def cancel_intent(world: World, call: Call) -> Obj:
    intent = world.at_path("payment_intent", call, "intent")
    if intent["status"] in ("succeeded", "canceled"):
        raise refused(
            f"You cannot cancel this PaymentIntent because it has a status of {intent['status']}.",
            code="payment_intent_unexpected_state",
        )
    reason = call.params.text("cancellation_reason")
    world.change(
        intent, "payment_intent.canceled", status="canceled", canceled_at=world.now(), cancellation_reason=reason
    )
    return intent


@endpoint("POST", "/v1/payment_intents/{id}", "metadata", "description", "payment_method", "customer", "transfer_group")
def update_intent(world: World, call: Call) -> Obj:
    intent = world.at_path("payment_intent", call, "intent")
    changes: dict[str, Any] = {"metadata": call.params.metadata(intent["metadata"])}
    for name in ("description", "customer", "transfer_group"):
        if call.params.has(name):
            changes[name] = call.params.text(name)
    method = call.params.text("payment_method")
    if method:
        changes["payment_method"] = payment_method(world, method, "payment_method", intent["customer"])["id"]
        if intent["status"] == "requires_payment_method":
            changes["status"] = "requires_confirmation"
    world.change(intent, **changes)
    return intent


@endpoint("GET", "/v1/payment_intents/{id}", "client_secret")
def retrieve_intent(world: World, call: Call) -> Obj:
    return world.at_path("payment_intent", call, "intent")


@endpoint("GET", "/v1/payment_intents", *LIST_PARAMS, "customer")
def list_intents(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("payment_intent"), ["customer"])
