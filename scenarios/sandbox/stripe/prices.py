"""Products and prices: fixed unit amounts, once or recurring. Tiers, metering and other currencies are not here."""

from __future__ import annotations

import calendar
from datetime import datetime, timezone

from scenarios.sandbox.stripe.errors import invalid
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

INTERVALS = ("day", "week", "month", "year")


def after_interval(anchor: int, interval: str, count: int) -> int:
    """``anchor`` plus ``count`` intervals, epoch seconds in UTC; a month's end stays the end of a shorter month."""
    if interval == "day":
        return anchor + count * 86_400
    if interval == "week":
        return anchor + count * 7 * 86_400
    moment = datetime.fromtimestamp(anchor, timezone.utc)
    months = moment.year * 12 + moment.month - 1 + count * (12 if interval == "year" else 1)
    year, month = divmod(months, 12)
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return int(moment.replace(year=year, month=month + 1, day=day).timestamp())


def new_product(world: World, name: str, metadata: dict[str, str]) -> Obj:
    product = world.add(
        "prod",
        "product",
        {
            "active": True,
            "default_price": None,
            "description": None,
            "images": [],
            "marketing_features": [],
            "metadata": metadata,
            "name": name,
            "package_dimensions": None,
            "shippable": None,
            "statement_descriptor": None,
            "tax_code": None,
            "type": "service",
            "unit_label": None,
            "updated": world.now(),
            "url": None,
        },
    )
    world.emit("product.created", product)
    return product


@endpoint("POST", "/v1/products", "name", "metadata", "description")
def create_product(world: World, call: Call) -> Obj:
    product = new_product(world, call.params.need_text("name"), call.params.metadata())
    product["description"] = call.params.text("description")
    return product


@endpoint("GET", "/v1/products/{id}")
def retrieve_product(world: World, call: Call) -> Obj:
    return world.at_path("product", call)


@endpoint("GET", "/v1/products", *LIST_PARAMS)
def list_products(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("product"))


@endpoint(
    "POST",
    "/v1/prices",
    "currency",
    "unit_amount",
    "recurring",
    "product",
    "product_data",
    "metadata",
    "nickname",
    "lookup_key",
)
def create_price(world: World, call: Call) -> Obj:
    params = call.params
    currency, amount = params.currency(), params.need_integer("unit_amount", 0)
    recurring = params.child("recurring")
    interval = recurring.choice("interval", INTERVALS)
    count = recurring.integer("interval_count", 1) or 1
    metadata = params.metadata()
    name = params.child("product_data").text("name")
    if params.text("product"):
        product = world.get("product", params.need_text("product"), "product")
    elif name:
        product = new_product(world, name, {})
    else:
        raise invalid("You must pass either product or product_data.", "product", "parameter_missing")
    terms = {
        "interval": interval,
        "interval_count": count,
        "meter": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }
    price = world.add(
        "price",
        "price",
        {
            "active": True,
            "billing_scheme": "per_unit",
            "currency": currency,
            "custom_unit_amount": None,
            "lookup_key": params.text("lookup_key"),
            "metadata": metadata,
            "nickname": params.text("nickname"),
            "product": product["id"],
            "recurring": terms if interval else None,
            "tax_behavior": "unspecified",
            "tiers_mode": None,
            "transform_quantity": None,
            "type": "recurring" if interval else "one_time",
            "unit_amount": amount,
            "unit_amount_decimal": str(amount),
        },
    )
    world.emit("price.created", price)
    return price


@endpoint("GET", "/v1/prices/{id}")
def retrieve_price(world: World, call: Call) -> Obj:
    return world.at_path("price", call)


@endpoint("GET", "/v1/prices", *LIST_PARAMS, "product", "type", "currency")
def list_prices(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("price"), ["product", "type", "currency"])


def plan_of(price: Obj) -> Obj:
    """The older ``plan`` view of a recurring price, which subscription items still carry."""
    recurring = price["recurring"]
    return {
        "id": price["id"],
        "object": "plan",
        "active": price["active"],
        "amount": price["unit_amount"],
        "amount_decimal": price["unit_amount_decimal"],
        "billing_scheme": "per_unit",
        "created": price["created"],
        "currency": price["currency"],
        "interval": recurring["interval"],
        "interval_count": recurring["interval_count"],
        "livemode": False,
        "metadata": price["metadata"],
        "meter": None,
        "nickname": price["nickname"],
        "product": price["product"],
        "tiers_mode": None,
        "transform_usage": None,
        "trial_period_days": None,
        "usage_type": "licensed",
    }
