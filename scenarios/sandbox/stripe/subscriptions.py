"""Subscriptions: the first invoice, renewals, changes with prorations, cancellation.

Documented: the first invoice is finalised and paid at once; at the end of a period the next one begins and a draft
invoice is made, finalised about an hour later; a change in the middle of a period credits the unused time and charges
the remaining time, on the next invoice (``create_prorations``, the default) or on one of its own (``always_invoice``).
Not here: trials, coupons, schedules, several billing intervals in one subscription, changing the interval.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.cards import payment_method
from scenarios.sandbox.stripe.customers import moment_of, time_of
from scenarios.sandbox.stripe.errors import invalid, refused
from scenarios.sandbox.stripe.invoice_items import new_item
from scenarios.sandbox.stripe.invoices import collect, default_method, finalize_later, new_invoice, new_line
from scenarios.sandbox.stripe.params import Params
from scenarios.sandbox.stripe.prices import after_interval, plan_of
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

PRORATIONS = ("always_invoice", "create_prorations", "none")
LIVE = ("active", "past_due", "incomplete")


def _price(world: World, given: Params) -> Obj:
    price = world.get("price", given.need_text("price"), given.name("price"))
    if price["recurring"] is None:
        raise refused("The price specified is set to type one_time; it must be recurring.", param=given.name("price"))
    return price


def items_of(subscription: Obj) -> list[Obj]:
    found = subscription["items"]["data"]
    assert isinstance(found, list)
    return found


@endpoint(
    "POST",
    "/v1/subscriptions",
    "customer",
    "items",
    "metadata",
    "description",
    "default_payment_method",
    "collection_method",
    "payment_behavior",
    "proration_behavior",
    "off_session",
)
def create_subscription(world: World, call: Call) -> Obj:
    params = call.params
    metadata = params.metadata()
    behaviour = params.choice("payment_behavior", ("allow_incomplete", "default_incomplete", "error_if_incomplete"))
    if params.text("collection_method") not in (None, "charge_automatically"):
        raise invalid("The sandbox collects automatically only.", "collection_method")
    customer = world.get("customer", params.need_text("customer"), "customer")
    given = params.children("items")
    if not given:
        raise invalid("Missing required param: items.", "items", "parameter_missing")
    wanted = [(_price(world, item), item.integer("quantity", 0)) for item in given]
    name = params.text("default_payment_method")
    method = payment_method(world, name, "default_payment_method", customer["id"])["id"] if name else None
    if default_method(world, customer, method) is None and behaviour != "default_incomplete":
        raise refused(
            "This customer has no attached payment source or default payment method. Please consider adding a default "
            "payment method.",
            code="resource_missing",
        )
    subscription = _new_subscription(world, customer, wanted[0][0], method)
    subscription.update(metadata=metadata, description=params.text("description"))
    for price, quantity in wanted:
        _add_item(world, subscription, price, 1 if quantity is None else quantity)
    invoice = _bill_period(world, subscription, customer, "subscription_create")
    if behaviour == "default_incomplete" or not collect(world, invoice):
        subscription["status"] = "incomplete"
    _renew_later(world, subscription, customer)
    world.emit("customer.subscription.created", subscription)
    return subscription


def _new_subscription(world: World, customer: Obj, price: Obj, method: str | None) -> Obj:
    now = moment_of(world, customer)
    recurring = price["recurring"]
    end = after_interval(now, recurring["interval"], recurring["interval_count"])
    return world.add(
        "sub",
        "subscription",
        {
            "application": None,
            "application_fee_percent": None,
            "automatic_tax": {"disabled_reason": None, "enabled": False, "liability": None},
            "billing_cycle_anchor": now,
            "billing_cycle_anchor_config": None,
            "billing_mode": {"flexible": None, "type": "flexible"},
            "billing_schedules": [],
            "billing_thresholds": None,
            "cancel_at": None,
            "cancel_at_period_end": False,
            "canceled_at": None,
            "cancellation_details": {"comment": None, "feedback": None, "reason": None},
            "collection_method": "charge_automatically",
            "currency": price["currency"],
            "customer": customer["id"],
            "customer_account": None,
            "days_until_due": None,
            "default_payment_method": method,
            "default_source": None,
            "default_tax_rates": [],
            "description": None,
            "discounts": [],
            "ended_at": None,
            "invoice_settings": {"account_tax_ids": None, "issuer": {"type": "self"}},
            "items": {"object": "list", "data": [], "has_more": False, "total_count": 0, "url": ""},
            "latest_invoice": None,
            "metadata": {},
            "next_pending_invoice_item_invoice": None,
            "on_behalf_of": None,
            "pause_collection": None,
            "payment_settings": {
                "payment_method_options": None,
                "payment_method_types": None,
                "save_default_payment_method": "off",
            },
            "pending_invoice_item_interval": None,
            "pending_setup_intent": None,
            "pending_update": None,
            "schedule": None,
            "start_date": now,
            "status": "active",
            "test_clock": customer["test_clock"],
            "transfer_data": None,
            "trial_end": None,
            "trial_settings": {"end_behavior": {"missing_payment_method": "create_invoice"}},
            "trial_start": None,
            "_period": (now, end),
            "_periods": 1,
            "_renewal": None,
        },
        created=now,
    )


def _add_item(world: World, subscription: Obj, price: Obj, quantity: int) -> Obj:
    if price["currency"] != subscription["currency"]:
        raise refused("All prices of a subscription have one currency.", param="items")
    start, end = subscription["_period"]
    item = world.add(
        "si",
        "subscription_item",
        {
            "billed_until": end,
            "billing_thresholds": None,
            "current_period_end": end,
            "current_period_start": start,
            "discounts": [],
            "metadata": {},
            "plan": plan_of(price),
            "price": price,
            "quantity": quantity,
            "subscription": subscription["id"],
            "tax_rates": [],
        },
    )
    listed = subscription["items"]
    listed["data"].append(item)
    listed.update(total_count=len(listed["data"]), url=f"/v1/subscription_items?subscription={subscription['id']}")
    return item


def _bill_period(world: World, subscription: Obj, customer: Obj, reason: str) -> Obj:
    """A draft for the current period: every item, and what was waiting."""
    start, end = subscription["_period"]
    invoice = new_invoice(
        world,
        customer,
        subscription["currency"],
        reason,
        subscription=subscription,
        period=(start, end),
        include_pending=reason != "subscription_create",
    )
    for item in items_of(subscription):
        details = {
            "invoice_item": None,
            "proration": False,
            "proration_details": {"credited_items": None},
            "subscription": subscription["id"],
            "subscription_item": item["id"],
        }
        parent = {
            "invoice_item_details": None,
            "subscription_item_details": details,
            "type": "subscription_item_details",
        }
        amount = item["price"]["unit_amount"] * item["quantity"]
        words = f"{item['quantity']} × {_product_name(world, item)}"
        new_line(world, invoice, amount, words, {"end": end, "start": start}, parent)
    subscription["latest_invoice"] = invoice["id"]
    world.emit("invoice.created", invoice)
    return invoice


def _product_name(world: World, item: Obj) -> str:
    product = world.find("product", item["price"]["product"])
    return str(product["name"]) if product else "subscription"


def _renew_later(world: World, subscription: Obj, customer: Obj) -> None:
    clock = time_of(world, customer)
    subscription["_renewal"] = clock.call_at(subscription["_period"][1], lambda: _renew(world, subscription))


def _renew(world: World, subscription: Obj) -> None:
    """The period has ended: end the subscription where that was asked for, otherwise begin the next one."""
    customer = world.find("customer", subscription["customer"])
    if customer is None or subscription["status"] not in LIVE:
        return
    if subscription["cancel_at_period_end"]:
        _end(world, subscription, customer)
        return
    recurring = items_of(subscription)[0]["price"]["recurring"]
    subscription["_periods"] += 1
    start = subscription["_period"][1]
    count = subscription["_periods"] * recurring["interval_count"]
    end = after_interval(subscription["billing_cycle_anchor"], recurring["interval"], count)
    subscription["_period"] = (start, end)
    for item in items_of(subscription):
        item.update(current_period_start=start, current_period_end=end, billed_until=end)
    invoice = _bill_period(world, subscription, customer, "subscription_cycle")
    finalize_later(world, invoice)
    world.change(subscription, "customer.subscription.updated", latest_invoice=invoice["id"])
    _renew_later(world, subscription, customer)


UPDATE_PARAMS = (
    "cancel_at_period_end",
    "default_payment_method",
    "description",
    "items",
    "metadata",
    "payment_behavior",
    "proration_behavior",
)


@endpoint("POST", "/v1/subscriptions/{id}", *UPDATE_PARAMS)
def update_subscription(world: World, call: Call) -> Obj:
    params = call.params
    behaviour = params.choice("proration_behavior", PRORATIONS) or "create_prorations"
    subscription = world.at_path("subscription", call)
    if subscription["status"] not in LIVE:
        raise refused("A canceled subscription can only update its cancellation_details and metadata.")
    changes: dict[str, Any] = {"metadata": params.metadata(subscription["metadata"])}
    if params.has("description"):
        changes["description"] = params.text("description")
    if params.has("cancel_at_period_end"):
        ending = params.boolean("cancel_at_period_end")
        changes.update(cancel_at_period_end=ending, cancel_at=subscription["_period"][1] if ending else None)
    name = params.text("default_payment_method")
    if name:
        method = payment_method(world, name, "default_payment_method", subscription["customer"])
        changes["default_payment_method"] = method["id"]
    for given in params.children("items"):
        _change_item(world, subscription, given, behaviour)
    _invoice_now(world, subscription, behaviour)
    world.change(subscription, "customer.subscription.updated", **changes)
    return subscription


def _change_item(world: World, subscription: Obj, given: Params, behaviour: str) -> None:
    name = given.text("id")
    if name is None:
        price = _price(world, given)
        quantity = given.integer("quantity", 0)
        item = _add_item(world, subscription, price, 1 if quantity is None else quantity)
        _prorate(world, subscription, item, 0, behaviour)
        return
    found = [item for item in items_of(subscription) if item["id"] == name]
    if not found:
        raise refused(f"No such subscription item: '{name}'", code="resource_missing", param=given.name("id"))
    item = found[0]
    before = item["price"]["unit_amount"] * item["quantity"]
    if given.boolean("deleted"):
        items_of(subscription).remove(item)
        item["quantity"] = 0
    if given.text("price"):
        price = _price(world, given)
        if price["recurring"] != item["price"]["recurring"]:
            raise invalid("The sandbox does not change a subscription's interval.", given.name("price"))
        item.update(price=price, plan=plan_of(price))
    quantity = given.integer("quantity", 0)
    if quantity is not None:
        item["quantity"] = quantity
    _prorate(world, subscription, item, before, behaviour)


def _prorate(world: World, subscription: Obj, item: Obj, before: int, behaviour: str) -> None:
    """Credit the unused time at the old amount and charge the remaining time at the new one, to the second."""
    after = item["price"]["unit_amount"] * item["quantity"]
    if behaviour == "none" or before == after:
        return
    customer = world.get("customer", subscription["customer"], "customer")
    now = moment_of(world, customer)
    start, end = subscription["_period"]
    share = (end - now) / (end - start)
    words = _product_name(world, item)
    for amount, what in ((-before, "Unused time on"), (after, "Remaining time on")):
        if amount:
            part = round(amount * share)
            new_item(world, customer, part, item["price"]["currency"], f"{what} {words}", item=item, period=(now, end))


def _invoice_now(world: World, subscription: Obj, behaviour: str) -> None:
    """Bill the waiting prorations at once where that was asked for."""
    customer = world.get("customer", subscription["customer"], "customer")
    waiting = any(i["invoice"] is None and i["customer"] == customer["id"] for i in world.all("invoiceitem"))
    if behaviour != "always_invoice" or not waiting:
        return
    currency = subscription["currency"]
    invoice = new_invoice(world, customer, currency, "subscription_update", subscription=subscription)
    world.emit("invoice.created", invoice)
    subscription["latest_invoice"] = invoice["id"]
    collect(world, invoice)


@endpoint("DELETE", "/v1/subscriptions/{id}", "prorate", "invoice_now", "cancellation_details")
def cancel_subscription(world: World, call: Call) -> Obj:
    subscription = world.at_path("subscription", call)
    if subscription["status"] not in LIVE:
        raise refused("This subscription is already canceled.", code="resource_missing")
    customer = world.get("customer", subscription["customer"], "customer")
    if call.params.boolean("prorate"):
        for item in items_of(subscription):
            before = item["price"]["unit_amount"] * item["quantity"]
            kept, item["quantity"] = item["quantity"], 0
            _prorate(world, subscription, item, before, "create_prorations")
            item["quantity"] = kept
    if call.params.boolean("invoice_now"):
        _invoice_now(world, subscription, "always_invoice")
    _end(world, subscription, customer)
    return subscription


def _end(world: World, subscription: Obj, customer: Obj) -> None:
    now = moment_of(world, customer)
    if subscription["_renewal"] is not None:
        subscription["_renewal"].cancel()
    details = {**subscription["cancellation_details"], "reason": "cancellation_requested"}
    world.change(
        subscription,
        "customer.subscription.deleted",
        status="canceled",
        canceled_at=now,
        ended_at=now,
        cancellation_details=details,
    )


@endpoint("GET", "/v1/subscriptions/{id}")
def retrieve_subscription(world: World, call: Call) -> Obj:
    return world.at_path("subscription", call)


@endpoint("GET", "/v1/subscriptions", *LIST_PARAMS, "customer", "status", "test_clock")
def list_subscriptions(world: World, call: Call) -> Obj:
    """Every status but canceled, unless ``status`` asks for one, or for ``all``."""
    status = call.params.text("status")
    subscriptions = world.all("subscription")
    if status is None:
        subscriptions = [s for s in subscriptions if s["status"] != "canceled"]
    elif status != "all":
        subscriptions = [s for s in subscriptions if s["status"] == status]
    return listing(world, call, subscriptions, ["customer", "test_clock"])


@ledger
def subscriptions_ledger(world: World) -> dict[str, Any]:
    return {
        "subscriptions": [
            {
                "id": subscription["id"],
                "customer": subscription["customer"],
                "status": subscription["status"],
                "period": list(subscription["_period"]),
                "periods": subscription["_periods"],
            }
            for subscription in world.all("subscription")
        ]
    }
