"""The endpoints of invoices, and of adding an item to one; what they do is in ``invoices`` and ``invoice_items``."""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.cards import payment_method
from scenarios.sandbox.stripe.customers import moment_of, move_balance
from scenarios.sandbox.stripe.errors import invalid, refused
from scenarios.sandbox.stripe.invoice_items import new_item
from scenarios.sandbox.stripe.invoices import (
    customer_of,
    finalize,
    finalize_later,
    mark_paid,
    new_invoice,
    pay,
    take_items,
)
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import INCLUDABLE, Call, Obj, World


@endpoint("POST", "/v1/invoiceitems", "customer", "amount", "currency", "description", "metadata", "invoice")
def create_item(world: World, call: Call) -> Obj:
    params = call.params
    amount, currency, metadata = params.need_integer("amount"), params.currency(), params.metadata()
    customer = world.get("customer", params.need_text("customer"), "customer")
    name = params.text("invoice")
    invoice = world.get("invoice", name, "invoice") if name else None
    if invoice is not None and invoice["status"] != "draft":
        raise refused("You cannot add an item to an invoice that is not a draft.", code="invoice_not_editable")
    entry = new_item(world, customer, amount, currency, params.text("description"), metadata=metadata)
    if invoice is not None:
        take_items(world, invoice, [entry])
    return entry


@endpoint(
    "POST",
    "/v1/invoices",
    "customer",
    "currency",
    "description",
    "metadata",
    "auto_advance",
    "pending_invoice_items_behavior",
)
def create_invoice(world: World, call: Call) -> Obj:
    params = call.params
    metadata = params.metadata()
    pending = params.choice("pending_invoice_items_behavior", ("exclude", "include"))
    customer = world.get("customer", params.need_text("customer"), "customer")
    currency = params.currency() if params.text("currency") else customer["currency"] or "usd"
    invoice = new_invoice(world, customer, currency, "manual", include_pending=pending == "include")
    invoice.update(metadata=metadata, description=params.text("description"))
    world.emit("invoice.created", invoice)
    if params.boolean("auto_advance"):
        finalize_later(world, invoice)
    return invoice


@endpoint("POST", "/v1/invoices/{id}/finalize", "auto_advance")
def finalize_invoice(world: World, call: Call) -> Obj:
    invoice = world.at_path("invoice", call, "invoice")
    finalize(world, invoice)
    return invoice


@endpoint("POST", "/v1/invoices/{id}/pay", "payment_method", "paid_out_of_band")
def pay_invoice(world: World, call: Call) -> Obj:
    invoice = world.at_path("invoice", call, "invoice")
    if invoice["status"] == "draft":
        finalize(world, invoice)
        if invoice["status"] == "paid":
            return invoice
    if call.params.boolean("paid_out_of_band") and invoice["status"] == "open":
        mark_paid(world, invoice, invoice["amount_remaining"])
        return invoice
    name = call.params.text("payment_method")
    pay(world, invoice, payment_method(world, name, "payment_method", invoice["customer"]) if name else None)
    return invoice


@endpoint("POST", "/v1/invoices/{id}/void")
def void_invoice(world: World, call: Call) -> Obj:
    invoice = world.at_path("invoice", call, "invoice")
    if invoice["status"] not in ("open", "uncollectible"):
        raise refused("You can only void an invoice that is open or uncollectible.", code="invoice_not_editable")
    customer = customer_of(world, invoice)
    if invoice["_applied"]:
        back = -invoice["_applied"]
        move_balance(world, customer, back, invoice["currency"], "unapplied_from_invoice", invoice=invoice["id"])
    transitions = {**invoice["status_transitions"], "voided_at": moment_of(world, customer)}
    world.change(invoice, "invoice.voided", status="void", amount_remaining=0, status_transitions=transitions)
    return invoice


@endpoint("POST", "/v1/invoices/{id}/mark_uncollectible")
def mark_uncollectible(world: World, call: Call) -> Obj:
    invoice = world.at_path("invoice", call, "invoice")
    if invoice["status"] != "open":
        raise refused("You can only mark an open invoice as uncollectible.", code="invoice_not_editable")
    world.change(invoice, "invoice.marked_uncollectible", status="uncollectible")
    return invoice


@endpoint("POST", "/v1/invoices/{id}", "metadata", "description")
def update_invoice(world: World, call: Call) -> Obj:
    invoice = world.at_path("invoice", call, "invoice")
    changes: dict[str, Any] = {"metadata": call.params.metadata(invoice["metadata"])}
    if call.params.has("description"):
        changes["description"] = call.params.text("description")
    world.change(invoice, "invoice.updated", **changes)
    return invoice


@endpoint("GET", "/v1/invoices/{id}")
def retrieve_invoice(world: World, call: Call) -> Obj:
    return world.at_path("invoice", call, "invoice")


@endpoint("GET", "/v1/invoices/{id}/lines", *LIST_PARAMS)
def list_lines(world: World, call: Call) -> Obj:
    page = listing(world, call, world.at_path("invoice", call, "invoice")["_lines"])
    for line in page["data"]:
        del line["created"]  # it is there for paging alone
    return page


@endpoint("GET", "/v1/invoices", *LIST_PARAMS, "customer", "status", "subscription")
def list_invoices(world: World, call: Call) -> Obj:
    invoices = world.all("invoice")
    wanted = call.params.text("subscription")
    if wanted:
        invoices = [invoice for invoice in invoices if invoice["_subscription"] == wanted]
    if call.params.text("status") not in (None, "draft", "open", "paid", "uncollectible", "void"):
        raise invalid("Invalid status: must be one of draft, open, paid, uncollectible, or void", "status")
    return listing(world, call, invoices, ["customer", "status"])


def _included_payments(world: World, invoice: Obj) -> Obj:
    """The payments of an invoice, for ``expand[]=payments``."""
    stored = world.find("invoice", invoice["id"])
    assert stored is not None
    data = []
    for name in reversed(stored["_payments"]):
        intent = world.get("payment_intent", name, "payment_intent")
        paid = intent["status"] == "succeeded"
        data.append(
            {
                "id": name.replace("pi_", "inpay_", 1),
                "object": "invoice_payment",
                "amount_paid": intent["amount"] if paid else None,
                "amount_requested": intent["amount"],
                "created": intent["created"],
                "currency": intent["currency"],
                "invoice": invoice["id"],
                "is_default": True,
                "livemode": False,
                "payment": {"payment_intent": name, "type": "payment_intent"},
                "status": "paid" if paid else "open",
                "status_transitions": {"canceled_at": None, "paid_at": intent["created"] if paid else None},
            }
        )
    return {"object": "list", "data": data, "has_more": False, "url": "/v1/invoice_payments"}


INCLUDABLE["invoice", "payments"] = _included_payments


@ledger
def invoices_ledger(world: World) -> dict[str, Any]:
    return {
        "invoices": [
            {
                "id": invoice["id"],
                "customer": invoice["customer"],
                "billing_reason": invoice["billing_reason"],
                "status": invoice["status"],
                "total": invoice["total"],
                "amount_due": invoice["amount_due"],
                "amount_paid": invoice["amount_paid"],
                "starting_balance": invoice["starting_balance"],
                "ending_balance": invoice["ending_balance"],
                "created": invoice["created"],
                "payment_intents": invoice["_payments"],
            }
            for invoice in world.all("invoice")
        ]
    }
