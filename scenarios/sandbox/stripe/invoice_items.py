"""Invoice items: amounts that wait for a customer's next invoice; a subscription change makes prorations."""

from __future__ import annotations

from scenarios.sandbox.stripe.customers import moment_of
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import Call, Obj, World


def new_item(
    world: World,
    customer: Obj,
    amount: int,
    currency: str,
    description: str | None,
    *,
    item: Obj | None = None,
    period: tuple[int, int] | None = None,
    metadata: dict[str, str] | None = None,
) -> Obj:
    """An invoice item that waits for the next invoice; ``item`` is the subscription item that it prorates."""
    now = moment_of(world, customer)
    start, end = period or (now, now)
    details = {"subscription": item["subscription"], "subscription_item": item["id"]} if item else None
    entry = world.add(
        "ii",
        "invoiceitem",
        {
            "amount": amount,
            "currency": currency,
            "customer": customer["id"],
            "customer_account": None,
            "date": now,
            "description": description,
            "discountable": item is None,
            "discounts": [],
            "invoice": None,
            "metadata": metadata or {},
            "net_amount": amount,
            "parent": {"subscription_details": details, "type": "subscription_details"} if details else None,
            "period": {"end": end, "start": start},
            "pricing": None,
            "proration": item is not None,
            "quantity": 1,
            "quantity_decimal": "1",
            "tax_rates": [],
            "test_clock": customer["test_clock"],
        },
        created=now,
    )
    world.emit("invoiceitem.created", entry)
    return entry


@endpoint("GET", "/v1/invoiceitems/{id}")
def retrieve_item(world: World, call: Call) -> Obj:
    return world.at_path("invoiceitem", call, "invoiceitem")


@endpoint("GET", "/v1/invoiceitems", *LIST_PARAMS, "customer", "invoice", "pending")
def list_items(world: World, call: Call) -> Obj:
    items = world.all("invoiceitem")
    if call.params.boolean("pending"):
        items = [item for item in items if item["invoice"] is None]
    return listing(world, call, items, ["customer", "invoice"])
