"""Invoices: drafts, finalisation against the customer's balance, payment.

Documented: finalising applies the balance (a credit lowers the amount due and leaves a transaction of type
``applied_to_invoice``), an amount due under the smallest charge goes to the balance (``invoice_too_small``), and the
invoice of a renewal stays a draft for about an hour. A total below zero becomes credit on the balance; that its
transaction's type is ``applied_to_invoice`` too is an assumption. A failed payment is not tried again by itself.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable

from scenarios.sandbox.stripe.customers import moment_of, move_balance, time_of
from scenarios.sandbox.stripe.errors import StripeError, refused
from scenarios.sandbox.stripe.payments import MINIMUM, charge_intent, new_intent
from scenarios.sandbox.stripe.world import Obj, World

EMBEDDED_LINES = 10


NEW_INVOICE: Obj = {
    "account_country": "US",
    "account_name": "Sandbox",
    "account_tax_ids": None,
    "amount_due": 0,
    "amount_overpaid": 0,
    "amount_paid": 0,
    "amount_remaining": 0,
    "amount_shipping": 0,
    "application": None,
    "attempt_count": 0,
    "attempted": False,
    "automatic_tax": {
        "disabled_reason": None,
        "enabled": False,
        "liability": None,
        "provider": None,
        "status": None,
    },
    "automatically_finalizes_at": None,
    "collection_method": "charge_automatically",
    "custom_fields": None,
    "customer_account": None,
    "default_source": None,
    "default_tax_rates": [],
    "description": None,
    "discounts": [],
    "due_date": None,
    "effective_at": None,
    "ending_balance": None,
    "footer": None,
    "from_invoice": None,
    "hosted_invoice_url": None,
    "invoice_pdf": None,
    "issuer": {"type": "self"},
    "last_finalization_error": None,
    "latest_revision": None,
    "lines": {"object": "list", "data": [], "has_more": False, "total_count": 0, "url": ""},
    "metadata": {},
    "next_payment_attempt": None,
    "number": None,
    "on_behalf_of": None,
    "payment_settings": {
        "default_mandate": None,
        "payment_method_options": None,
        "payment_method_types": None,
    },
    "post_payment_credit_notes_amount": 0,
    "pre_payment_credit_notes_amount": 0,
    "receipt_number": None,
    "starting_balance": 0,
    "statement_descriptor": None,
    "status": "draft",
    "status_transitions": dict.fromkeys(("finalized_at", "marked_uncollectible_at", "paid_at", "voided_at")),
    "subtotal": 0,
    "subtotal_excluding_tax": 0,
    "total": 0,
    "total_discount_amounts": [],
    "total_excluding_tax": 0,
    "total_pretax_credit_amounts": [],
    "total_taxes": [],
}
"""The fields of an invoice that begin alike for all."""


def new_line(world: World, invoice: Obj, amount: int, description: str | None, period: Obj, parent: Obj) -> None:
    """Add a line to a draft and bring its totals up to date."""
    invoice["_lines"].append(
        {
            "id": world.new_id("il"),
            "object": "line_item",
            "amount": amount,
            "created": invoice["created"],
            "currency": invoice["currency"],
            "description": description,
            "discount_amounts": [],
            "discountable": True,
            "discounts": [],
            "invoice": invoice["id"],
            "livemode": False,
            "metadata": {},
            "parent": parent,
            "period": period,
            "pretax_credit_amounts": [],
            "pricing": None,
            "quantity": 1,
            "subtotal": amount,
            "taxes": [],
        }
    )
    total = sum(line["amount"] for line in invoice["_lines"])
    shown = [{name: value for name, value in line.items() if name != "created"} for line in invoice["_lines"]]
    invoice.update(
        lines={
            "object": "list",
            "data": shown[:EMBEDDED_LINES],
            "has_more": len(shown) > EMBEDDED_LINES,
            "total_count": len(shown),
            "url": f"/v1/invoices/{invoice['id']}/lines",
        },
        subtotal=total,
        subtotal_excluding_tax=total,
        total=total,
        total_excluding_tax=total,
        amount_due=max(0, total),
        amount_remaining=max(0, total),
    )


def take_items(world: World, invoice: Obj, items: Iterable[Obj]) -> None:
    """Put waiting invoice items onto a draft."""
    for item in items:
        item["invoice"] = invoice["id"]
        parent = item["parent"]
        subscription = parent["subscription_details"]["subscription"] if parent else None
        details = {
            "invoice_item": item["id"],
            "proration": item["proration"],
            "proration_details": {"credited_items": None},
            "subscription": subscription,
        }
        line_parent = {
            "invoice_item_details": details,
            "subscription_item_details": None,
            "type": "invoice_item_details",
        }
        new_line(world, invoice, item["amount"], item["description"], item["period"], line_parent)


def new_invoice(
    world: World,
    customer: Obj,
    currency: str,
    reason: str,
    *,
    subscription: Obj | None = None,
    period: tuple[int, int] | None = None,
    include_pending: bool = True,
) -> Obj:
    """A draft with the customer's waiting items on it; the caller adds further lines."""
    now = moment_of(world, customer)
    start, end = period or (now, now)
    details = {"metadata": subscription["metadata"], "subscription": subscription["id"]} if subscription else None
    parent = {"quote_details": None, "subscription_details": details, "type": "subscription_details"}
    invoice = world.add(
        "in",
        "invoice",
        {
            **copy.deepcopy(NEW_INVOICE),
            "auto_advance": reason != "manual",
            "billing_reason": reason,
            "currency": currency,
            "customer": customer["id"],
            "customer_email": customer["email"],
            "customer_name": customer["name"],
            "default_payment_method": subscription["default_payment_method"] if subscription else None,
            "parent": parent if details else None,
            "period_end": end,
            "period_start": start,
            "test_clock": customer["test_clock"],
            "webhooks_delivered_at": now,
            "_lines": [],
            "_payments": [],
            "_applied": 0,
            "_subscription": subscription["id"] if subscription else None,
        },
        created=now,
    )
    if include_pending:
        waiting = [i for i in world.all("invoiceitem") if i["customer"] == customer["id"] and i["invoice"] is None]
        take_items(world, invoice, [item for item in waiting if item["currency"] == currency])
    return invoice


def customer_of(world: World, invoice: Obj) -> Obj:
    return world.get("customer", invoice["customer"], "customer")


def finalize(world: World, invoice: Obj) -> None:
    """Close the draft against the customer's balance; what is left is due, and collected if nothing is left."""
    if invoice["status"] != "draft":
        raise refused("This invoice is already finalized, you can't re-finalize it.", code="invoice_not_editable")
    customer = customer_of(world, invoice)
    total, currency, before = invoice["total"], invoice["currency"], customer["balance"]
    if customer["currency"] not in (None, currency):
        before = 0  # a balance in another currency is left alone
    due = max(0, total + before)
    too_small = 0 < due < MINIMUM.get(currency, 1)
    if too_small:
        due = 0
    # What is not due now stays in the balance: before + total - due is what it holds afterwards.
    applied = total - due
    invoice.update(starting_balance=before, _applied=applied)
    if applied:
        kind = "invoice_too_small" if too_small else "applied_to_invoice"
        move_balance(world, customer, applied, currency, kind, invoice=invoice["id"])
    number = customer["next_invoice_sequence"]
    customer["next_invoice_sequence"] = number + 1
    transitions = {**invoice["status_transitions"], "finalized_at": moment_of(world, customer)}
    world.change(
        invoice,
        "invoice.finalized",
        status="open",
        number=f"{customer['invoice_prefix']}-{number:04d}",
        amount_due=due,
        amount_remaining=due,
        ending_balance=customer["balance"],
        effective_at=transitions["finalized_at"],
        automatically_finalizes_at=None,
        status_transitions=transitions,
    )
    if due == 0:
        mark_paid(world, invoice)


def mark_paid(world: World, invoice: Obj, paid: int = 0) -> None:
    """Nothing is due any more."""
    customer = customer_of(world, invoice)
    transitions = {**invoice["status_transitions"], "paid_at": moment_of(world, customer)}
    world.change(
        invoice,
        "invoice.paid",
        "invoice.payment_succeeded",
        status="paid",
        amount_paid=invoice["amount_paid"] + paid,
        amount_remaining=0,
        attempted=True,
        auto_advance=False,
        next_payment_attempt=None,
        status_transitions=transitions,
    )


def default_method(world: World, customer: Obj, given: str | None) -> Obj | None:
    """The payment method that an invoice of this customer is paid with."""
    name = given or customer["invoice_settings"]["default_payment_method"]
    return world.find("payment_method", name) if name else None


def pay(world: World, invoice: Obj, method: Obj | None = None) -> None:
    """Collect an open invoice. Raises the refusal, or the 402 of a declined card, after writing the attempt down."""
    if invoice["status"] == "paid":
        raise refused("Invoice is already paid", code="invoice_already_paid")
    if invoice["status"] not in ("open", "uncollectible"):
        raise refused(f"You cannot pay an invoice with a status of {invoice['status']}.")
    customer = customer_of(world, invoice)
    chosen = method or default_method(world, customer, invoice["default_payment_method"])
    if chosen is None:
        raise refused(
            "There is no default_payment_method set on this Customer or Invoice. Please set a default payment method.",
        )
    amount = invoice["amount_remaining"]
    intent = new_intent(world, amount, invoice["currency"], customer["id"], chosen)
    intent["description"] = f"Invoice {invoice['number']}"
    world.emit("payment_intent.created", intent)
    invoice["_payments"].append(intent["id"])
    invoice.update(attempted=True, attempt_count=invoice["attempt_count"] + 1)
    try:
        charge_intent(world, intent)
    except StripeError:
        world.change(customer, "customer.updated", delinquent=True)
        world.emit("invoice.payment_failed", invoice, {})
        raise
    mark_paid(world, invoice, amount)


def collect(world: World, invoice: Obj) -> bool:
    """Finalise if that is still to be done, and collect; False if something is left to pay."""
    if invoice["status"] == "draft":
        finalize(world, invoice)
    if invoice["status"] == "open":
        try:
            pay(world, invoice)
        except StripeError:
            return False
    return bool(invoice["status"] == "paid")


def finalize_later(world: World, invoice: Obj) -> None:
    """A draft that advances by itself is finalised and collected about an hour later, by its customer's clock."""
    clock = time_of(world, customer_of(world, invoice))
    invoice.update(auto_advance=True, automatically_finalizes_at=int(clock.now() + world.timing.finalize_s))

    def advance() -> None:
        if invoice["status"] == "draft" and invoice["customer"] in world.table("customer"):
            collect(world, invoice)

    clock.call_later(world.timing.finalize_s, advance)
