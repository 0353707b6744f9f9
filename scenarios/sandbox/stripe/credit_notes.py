"""Credit notes: what takes an open invoice down, or gives a paid one back.

Documented: on an open invoice the note lowers what remains due; on a paid one its amount is given back as credit on the
customer's balance (``credit_amount``), as a refund (``refund_amount``) or outside of Stripe (``out_of_band_amount``),
which have to add up to it; all notes of an invoice add up to at most its total.
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.customers import moment_of, move_balance
from scenarios.sandbox.stripe.errors import invalid, refused
from scenarios.sandbox.stripe.invoices import customer_of, mark_paid
from scenarios.sandbox.stripe.params import Params, money_words
from scenarios.sandbox.stripe.refunds import new_refund
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import Call, Obj, World

REASONS = ("duplicate", "fraudulent", "order_change", "product_unsatisfactory")
WAYS = ("credit_amount", "refund_amount", "out_of_band_amount")


@endpoint("POST", "/v1/credit_notes", "invoice", "amount", "lines", "memo", "metadata", "reason", *WAYS)
def create_note(world: World, call: Call) -> Obj:
    params = call.params
    lines = _lines(params)
    amount = params.integer("amount", 1)
    if amount is None:
        amount = sum(line["amount"] for line in lines)
    if not amount:
        raise invalid("You must provide one of amount, lines or shipping_cost.", "amount", "parameter_missing")
    ways = {name: params.integer(name, 0) or 0 for name in WAYS}
    metadata, reason = params.metadata(), params.choice("reason", REASONS)
    invoice = world.get("invoice", params.need_text("invoice"), "invoice")
    paid = _check(invoice, amount, ways)
    note = _new_note(world, invoice, amount, lines, paid)
    note.update(metadata=metadata, reason=reason, memo=params.text("memo"))
    if paid:
        _give_back(world, invoice, note, ways)
    else:
        _lower(world, invoice, amount)
    world.emit("credit_note.created", note)
    return note


def _lines(params: Params) -> list[dict[str, Any]]:
    lines = []
    for given in params.children("lines"):
        quantity = given.integer("quantity", 1) or 1
        amount = given.integer("amount", 1)
        unit = given.integer("unit_amount", 1)
        if amount is None and unit is None:
            raise invalid("A line needs an amount or a unit_amount.", given.name("amount"), "parameter_missing")
        lines.append(
            {
                "amount": amount if amount is not None else (unit or 0) * quantity,
                "description": given.text("description"),
                "invoice_line_item": given.text("invoice_line_item"),
                "quantity": quantity,
                "type": given.choice("type", ("custom_line_item", "invoice_line_item")) or "custom_line_item",
                "unit_amount": unit,
                "unit_amount_decimal": None if unit is None else str(unit),
            }
        )
    return lines


def _check(invoice: Obj, amount: int, ways: dict[str, int]) -> bool:
    """Whether the invoice has been paid. Raises the refusal where it can take no such note."""
    currency = invoice["currency"]
    if invoice["status"] not in ("open", "paid"):
        raise refused(
            f"Credit notes can only be created for invoices that are open or paid; this one is {invoice['status']}."
        )
    given = sum(ways.values())
    noted = invoice["pre_payment_credit_notes_amount"] + invoice["post_payment_credit_notes_amount"]
    room = invoice["amount_remaining"] if invoice["status"] == "open" else invoice["total"] - noted
    if amount > room:
        raise refused(
            f"The credit note's amount ({money_words(amount, currency)}) is greater than what is left of the invoice "
            f"({money_words(room, currency)}).",
            param="amount",
        )
    if invoice["status"] == "open":
        if given:
            raise refused("An invoice that is not paid has nothing to credit, refund or pay back out of band.")
        return False
    if given != amount:
        raise refused(
            "The sum of credit amount, refund amount and out of band amount "
            f"({money_words(given, currency)}) must equal the credit note amount ({money_words(amount, currency)})."
        )
    if ways["refund_amount"] > invoice["amount_paid"]:
        raise refused("The refund amount is greater than what was paid.", param="refund_amount")
    return True


def _new_note(world: World, invoice: Obj, amount: int, lines: list[dict[str, Any]], paid: bool) -> Obj:
    number = sum(note["invoice"] == invoice["id"] for note in world.all("credit_note")) + 1
    customer = customer_of(world, invoice)
    note = world.add(
        "cn",
        "credit_note",
        {
            "amount": amount,
            "amount_shipping": 0,
            "currency": invoice["currency"],
            "customer": invoice["customer"],
            "customer_account": None,
            "customer_balance_transaction": None,
            "discount_amount": 0,
            "discount_amounts": [],
            "effective_at": moment_of(world, customer),
            "invoice": invoice["id"],
            "memo": None,
            "metadata": {},
            "number": f"{invoice['number']}-CN-{number:02d}",
            "out_of_band_amount": None,
            "pdf": "",
            "post_payment_amount": amount if paid else 0,
            "pre_payment_amount": 0 if paid else amount,
            "pretax_credit_amounts": [],
            "reason": None,
            "refunds": [],
            "shipping_cost": None,
            "status": "issued",
            "subtotal": amount,
            "subtotal_excluding_tax": amount,
            "total": amount,
            "total_excluding_tax": amount,
            "total_taxes": [],
            "type": "post_payment" if paid else "pre_payment",
            "voided_at": None,
        },
        created=moment_of(world, customer),
    )
    shown = [{**_bare_line(world), **line} for line in lines or [{"amount": amount}]]
    url = f"/v1/credit_notes/{note['id']}/lines"
    note["lines"] = {"object": "list", "data": shown[:10], "has_more": len(shown) > 10, "url": url}
    return note


def _bare_line(world: World) -> Obj:
    return {
        "id": world.new_id("cnli"),
        "object": "credit_note_line_item",
        "description": None,
        "discount_amount": 0,
        "discount_amounts": [],
        "invoice_line_item": None,
        "livemode": False,
        "metadata": {},
        "pretax_credit_amounts": [],
        "quantity": None,
        "tax_rates": [],
        "taxes": [],
        "type": "custom_line_item",
        "unit_amount": None,
        "unit_amount_decimal": None,
    }


def _lower(world: World, invoice: Obj, amount: int) -> None:
    left = invoice["amount_remaining"] - amount
    noted = invoice["pre_payment_credit_notes_amount"] + amount
    world.change(
        invoice, "invoice.updated", amount_remaining=left, amount_due=left, pre_payment_credit_notes_amount=noted
    )
    if left == 0:
        mark_paid(world, invoice)


def _give_back(world: World, invoice: Obj, note: Obj, ways: dict[str, int]) -> None:
    noted = invoice["post_payment_credit_notes_amount"] + note["amount"]
    world.change(invoice, "invoice.updated", post_payment_credit_notes_amount=noted)
    note["out_of_band_amount"] = ways["out_of_band_amount"] or None
    if ways["credit_amount"]:
        customer = customer_of(world, invoice)
        entry = move_balance(
            world, customer, -ways["credit_amount"], note["currency"], "credit_note", credit_note=note["id"]
        )
        note["customer_balance_transaction"] = entry["id"]
    if ways["refund_amount"]:
        intent = world.get("payment_intent", invoice["_payments"][-1], "payment_intent")
        charge = world.get("charge", intent["latest_charge"], "charge")
        refund = new_refund(world, charge, ways["refund_amount"], None, {})
        note["refunds"] = [{"amount_refunded": refund["amount"], "refund": refund["id"], "type": "refund"}]


@endpoint("POST", "/v1/credit_notes/{id}/void")
def void_note(world: World, call: Call) -> Obj:
    note = world.at_path("credit_note", call)
    invoice = world.get("invoice", note["invoice"], "invoice")
    if note["status"] == "void" or invoice["status"] != "open":
        raise refused("Only a credit note of an open invoice can be voided, once.")
    left = invoice["amount_remaining"] + note["amount"]
    noted = invoice["pre_payment_credit_notes_amount"] - note["amount"]
    world.change(
        invoice, "invoice.updated", amount_remaining=left, amount_due=left, pre_payment_credit_notes_amount=noted
    )
    world.change(note, "credit_note.voided", status="void", voided_at=world.now())
    return note


@endpoint("POST", "/v1/credit_notes/{id}", "metadata", "memo")
def update_note(world: World, call: Call) -> Obj:
    note = world.at_path("credit_note", call)
    changes: dict[str, Any] = {"metadata": call.params.metadata(note["metadata"])}
    if call.params.has("memo"):
        changes["memo"] = call.params.text("memo")
    world.change(note, "credit_note.updated", **changes)
    return note


@endpoint("GET", "/v1/credit_notes/{id}")
def retrieve_note(world: World, call: Call) -> Obj:
    return world.at_path("credit_note", call)


@endpoint("GET", "/v1/credit_notes", *LIST_PARAMS, "customer", "invoice")
def list_notes(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("credit_note"), ["customer", "invoice"])


@ledger
def notes_ledger(world: World) -> dict[str, Any]:
    return {
        "credit_notes": [
            {
                "id": note["id"],
                "customer": note["customer"],
                "invoice": note["invoice"],
                "amount": note["amount"],
                "status": note["status"],
                "created_at": note["_at"],
                "metadata": note["metadata"],
                "idempotency_key": note["_key"],
            }
            for note in world.all("credit_note")
        ]
    }
