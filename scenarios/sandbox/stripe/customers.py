"""Customers and their balance, which is the credit that the next invoices use up.

Documented: a negative balance transaction is a credit; the balance is applied when an invoice is finalised; every move
has a transaction with the ``ending_balance``. Seen: there is no precondition on creating one.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.stripe.cards import payment_method
from scenarios.sandbox.stripe.errors import no_such, refused
from scenarios.sandbox.stripe.params import Params
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

CUSTOMER_PARAMS = (
    "address",
    "balance",
    "description",
    "email",
    "invoice_settings",
    "metadata",
    "name",
    "payment_method",
    "phone",
    "preferred_locales",
    "shipping",
)


def time_of(world: World, customer: Obj) -> Clock:
    """The clock that a customer lives by: its test clock's, or the sandbox's own."""
    name = customer["test_clock"]
    clock = world.find("test_helpers.test_clock", name)["_clock"] if name else world.clock  # type: ignore[index]
    assert isinstance(clock, Clock)
    return clock


def moment_of(world: World, customer: Obj) -> int:
    """Now for this customer, in whole seconds."""
    return int(time_of(world, customer).now())


@endpoint("POST", "/v1/customers", *CUSTOMER_PARAMS, "test_clock")
def create_customer(world: World, call: Call) -> Obj:
    params = call.params
    clock_name = params.text("test_clock")
    created = world.now()
    if clock_name:
        created = world.get("test_helpers.test_clock", clock_name, "test_clock")["frozen_time"]
    metadata, balance = params.metadata(), params.integer("balance") or 0
    customer = world.add(
        "cus",
        "customer",
        {
            "address": None,
            "balance": 0,
            "currency": None,
            "customer_account": None,
            "default_source": None,
            "delinquent": False,
            "description": None,
            "discount": None,
            "email": None,
            "invoice_prefix": f"SBX{len(world.all('customer')) + 1:04d}",
            "invoice_settings": {
                "custom_fields": None,
                "default_payment_method": None,
                "footer": None,
                "rendering_options": None,
            },
            "metadata": metadata,
            "name": None,
            "next_invoice_sequence": 1,
            "phone": None,
            "preferred_locales": [],
            "shipping": None,
            "tax_exempt": "none",
            "test_clock": clock_name,
        },
        created=created,
    )
    try:
        customer.update(_given(world, params, customer))
    except BaseException:
        world.remove(customer)
        raise
    world.emit("customer.created", customer)
    if balance:
        move_balance(world, customer, balance, "usd", "initial")
    return customer


def _given(world: World, params: Params, customer: Obj) -> dict[str, Any]:
    """The plain fields that a create or update sets."""
    changes: dict[str, Any] = {}
    for name in ("description", "email", "name", "phone"):
        if params.has(name):
            changes[name] = params.text(name)
    for name in ("address", "shipping"):
        if params.has(name):
            changes[name] = params.child(name).values or None
    method = params.text("payment_method")
    if method:
        attached = payment_method(world, method, "payment_method", customer["id"])
        attached["customer"] = customer["id"]
    default = params.child("invoice_settings").text("default_payment_method")
    if default:
        chosen = payment_method(world, default, "invoice_settings[default_payment_method]", customer["id"])
        if chosen["customer"] not in (None, customer["id"]):
            raise no_such("PaymentMethod", default, "invoice_settings[default_payment_method]")
        chosen["customer"] = customer["id"]
        changes["invoice_settings"] = {**customer["invoice_settings"], "default_payment_method": chosen["id"]}
    return changes


@endpoint("POST", "/v1/customers/{id}", *CUSTOMER_PARAMS)
def update_customer(world: World, call: Call) -> Obj:
    customer = world.at_path("customer", call)
    changes = {**_given(world, call.params, customer), "metadata": call.params.metadata(customer["metadata"])}
    balance = call.params.integer("balance")
    world.change(customer, "customer.updated", **changes)
    if balance is not None and balance != customer["balance"]:
        move_balance(world, customer, balance - customer["balance"], customer["currency"] or "usd", "adjustment")
    return customer


@endpoint("DELETE", "/v1/customers/{id}")
def delete_customer(world: World, call: Call) -> Obj:
    customer = world.at_path("customer", call)
    for subscription in world.all("subscription"):
        if subscription["customer"] == customer["id"]:
            subscription["_renewal"].cancel()
            world.change(subscription, "customer.subscription.deleted", status="canceled", ended_at=world.now())
    world.emit("customer.deleted", customer)
    world.remove(customer)
    return {"id": customer["id"], "object": "customer", "deleted": True}


@endpoint("GET", "/v1/customers/{id}")
def retrieve_customer(world: World, call: Call) -> Obj:
    return world.at_path("customer", call)


@endpoint("GET", "/v1/customers", *LIST_PARAMS, "email", "test_clock")
def list_customers(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("customer"), ["email", "test_clock"])


@endpoint("GET", "/v1/customers/{id}/payment_methods", *LIST_PARAMS, "type")
def list_customer_payment_methods(world: World, call: Call) -> Obj:
    customer = world.at_path("customer", call)
    methods = [method for method in world.all("payment_method") if method["customer"] == customer["id"]]
    return listing(world, call, methods, ["type"])


# The balance


def move_balance(
    world: World,
    customer: Obj,
    amount: int,
    currency: str,
    kind: str,
    *,
    description: str | None = None,
    metadata: dict[str, str] | None = None,
    invoice: str | None = None,
    credit_note: str | None = None,
) -> Obj:
    """Move the customer's balance by ``amount`` (negative is credit) and write the transaction down."""
    before = customer["balance"]
    previous = {"balance": before}
    if customer["currency"] is None:
        previous["currency"] = customer["currency"]
        customer["currency"] = currency
    customer["balance"] = before + amount
    entry = world.add(
        "cbtxn",
        "customer_balance_transaction",
        {
            "amount": amount,
            "checkout_session": None,
            "credit_note": credit_note,
            "currency": currency,
            "customer": customer["id"],
            "customer_account": None,
            "description": description,
            "ending_balance": customer["balance"],
            "invoice": invoice,
            "metadata": metadata or {},
            "type": kind,
        },
        created=moment_of(world, customer),
    )
    world.emit("customer.updated", customer, previous)
    return entry


@endpoint("POST", "/v1/customers/{id}/balance_transactions", "amount", "currency", "description", "metadata")
def create_balance_transaction(world: World, call: Call) -> Obj:
    params = call.params
    amount, currency = params.need_integer("amount"), params.currency()
    description, metadata = params.text("description"), params.metadata()
    customer = world.at_path("customer", call, "customer")
    if customer["currency"] not in (None, currency):
        raise refused(
            f"This customer's balance is in {customer['currency']}; it cannot be moved in {currency}.", param="currency"
        )
    return move_balance(world, customer, amount, currency, "adjustment", description=description, metadata=metadata)


def _entry(world: World, call: Call) -> Obj:
    customer = world.at_path("customer", call, "customer")
    entry = world.find("customer_balance_transaction", call.args["entry"])
    if entry is None or entry["customer"] != customer["id"]:
        raise no_such("customer_balance_transaction", call.args["entry"], "transaction", in_path=True)
    return entry


@endpoint("GET", "/v1/customers/{id}/balance_transactions/{entry}")
def retrieve_balance_entry(world: World, call: Call) -> Obj:
    return _entry(world, call)


@endpoint("POST", "/v1/customers/{id}/balance_transactions/{entry}", "description", "metadata")
def update_balance_entry(world: World, call: Call) -> Obj:
    entry = _entry(world, call)
    changes: dict[str, Any] = {"metadata": call.params.metadata(entry["metadata"])}
    if call.params.has("description"):
        changes["description"] = call.params.text("description")
    world.change(entry, **changes)
    return entry


@endpoint("GET", "/v1/customers/{id}/balance_transactions", *LIST_PARAMS, "invoice")
def list_balance_entries(world: World, call: Call) -> Obj:
    customer = world.at_path("customer", call, "customer")
    entries = [e for e in world.all("customer_balance_transaction") if e["customer"] == customer["id"]]
    return listing(world, call, entries, ["invoice"])


@ledger
def customers_ledger(world: World) -> dict[str, Any]:
    """Balances (negative is credit) and every move of one; times are the sandbox's, also on a test clock."""
    return {
        "customers": [
            {"id": c["id"], "balance": c["balance"], "currency": c["currency"], "metadata": c["metadata"]}
            for c in world.all("customer")
        ],
        "credits": [
            {
                "id": entry["id"],
                "customer": entry["customer"],
                "amount": entry["amount"],
                "currency": entry["currency"],
                "type": entry["type"],
                "description": entry["description"],
                "ending_balance": entry["ending_balance"],
                "invoice": entry["invoice"],
                "credit_note": entry["credit_note"],
                "created_at": entry["_at"],
                "metadata": entry["metadata"],
                "idempotency_key": entry["_key"],
            }
            for entry in world.all("customer_balance_transaction")
        ],
    }
