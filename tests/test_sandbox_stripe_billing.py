"""The Stripe sandbox's billing, driven by the official SDK over real HTTP."""

from __future__ import annotations

import calendar
import datetime
import unittest
from typing import Any

from scenarios.sandbox.stripe.cases import StripeCase

START = calendar.timegm(datetime.datetime(2026, 1, 31, 12).timetuple())
DAY_S = 86_400


class BillingCase(StripeCase):
    def price(self, amount: int, name: str = "Plan") -> Any:
        return self.v1.prices.create(
            {
                "currency": "usd",
                "unit_amount": amount,
                "recurring": {"interval": "month"},
                "product_data": {"name": name},
            }
        )

    def on_clock(self) -> tuple[Any, Any]:
        """A test clock and a customer on it who pays by card."""
        clock = self.v1.test_helpers.test_clocks.create({"frozen_time": START})
        customer = self.v1.customers.create(
            {
                "email": "ada@example.com",
                "test_clock": clock.id,
                "invoice_settings": {"default_payment_method": "pm_card_visa"},
            }
        )
        return clock, customer

    def subscribe(self, customer: Any, price: Any, **params: Any) -> Any:
        given: Any = {"customer": customer.id, "items": [{"price": price.id}], **params}
        return self.v1.subscriptions.create(given)

    def advance(self, clock: Any, moment: int) -> None:
        """Advance a test clock and wait for it as a client does, by reading it."""
        moving = self.v1.test_helpers.test_clocks.advance(clock.id, {"frozen_time": moment})
        self.assertEqual(moving.status, "advancing")
        self.control.advance(10)
        self.assertEqual(self.v1.test_helpers.test_clocks.retrieve(clock.id).status, "ready")

    def credit(self, customer: Any, amount: int = -1_000, **params: Any) -> Any:
        given: Any = {"amount": amount, "currency": "usd", **params}
        return self.v1.customers.balance_transactions.create(customer.id, given)

    def balance(self, customer: Any) -> int | None:
        return self.v1.customers.retrieve(customer.id).balance


class Credits(BillingCase):
    def test_a_credit_is_a_negative_balance_transaction(self) -> None:
        customer = self.v1.customers.create({"email": "ada@example.com"})
        entry = self.credit(customer, metadata={"incident": "INC-7"}, description="Goodwill")
        self.assertEqual(
            (entry.type, entry.ending_balance, entry.metadata["incident"]), ("adjustment", -1_000, "INC-7")
        )
        self.assertEqual(self.balance(customer), -1_000)
        found = self.v1.customers.balance_transactions.retrieve(customer.id, entry.id)
        self.assertEqual(found.id, entry.id)
        changed: Any = self.v1.customers.balance_transactions.update(customer.id, entry.id, {"metadata": {"by": "me"}})
        self.assertEqual(changed.metadata.to_dict(), {"incident": "INC-7", "by": "me"})
        (credit,) = self.control.ledger()["credits"]
        self.assertEqual((credit["amount"], credit["metadata"]["incident"]), (-1_000, "INC-7"))

    def test_credits_page_and_dedupe(self) -> None:
        customer = self.v1.customers.create({})
        made = [self.credit(customer, -amount).id for amount in range(1, 13)]
        page = self.v1.customers.balance_transactions.list(customer.id, {"limit": 5})
        self.assertEqual(([entry.id for entry in page.data], page.has_more), (made[:6:-1], True))
        self.assertEqual([entry.id for entry in page.auto_paging_iter()], made[::-1])
        given: Any = {"amount": -5, "currency": "usd"}
        first, again = (
            self.v1.customers.balance_transactions.create(customer.id, given, {"idempotency_key": "k"})
            for _ in range(2)
        )
        self.assertEqual(first.id, again.id)

    def test_refusals(self) -> None:
        customer = self.v1.customers.create({})
        self.credit(customer)
        self.no(lambda: self.v1.customers.balance_transactions.create(customer.id, {"amount": -5, "currency": "eur"}))
        self.no(lambda: self.credit(customer, "-1.5"), "parameter_invalid_integer")  # type: ignore[arg-type]
        nobody: Any = {"amount": -5, "currency": "usd"}
        self.no(lambda: self.v1.customers.balance_transactions.create("cus_nope", nobody), "resource_missing")

    def test_customers(self) -> None:
        customer = self.v1.customers.create({"name": "Ada", "balance": -300, "metadata": {"a": "b"}})
        self.assertEqual((customer.balance, customer.name), (-300, "Ada"))
        changed = self.v1.customers.update(customer.id, {"name": "Lovelace", "balance": 0})
        self.assertEqual((changed.name, changed.balance), ("Lovelace", 0))
        kinds = [e.type for e in self.v1.customers.balance_transactions.list(customer.id).data]
        self.assertEqual(kinds, ["adjustment", "initial"])
        self.assertEqual([c.id for c in self.v1.customers.list().data], [customer.id])
        self.assertTrue(self.v1.customers.delete(customer.id).deleted)
        self.no(lambda: self.v1.customers.retrieve(customer.id), "resource_missing")


class Renewals(BillingCase):
    def test_a_renewal_uses_the_credit_up_by_itself(self) -> None:
        clock, customer = self.on_clock()
        subscription = self.subscribe(customer, self.price(3_000))
        self.assertEqual(subscription.status, "active")
        first = self.v1.invoices.retrieve(subscription.latest_invoice)
        self.assertEqual(
            (first.status, first.amount_paid, first.billing_reason), ("paid", 3_000, "subscription_create")
        )
        self.credit(customer, metadata={"incident": "INC-7"})
        renewal = subscription["items"].data[0].current_period_end
        self.assertEqual(renewal, calendar.timegm(datetime.datetime(2026, 2, 28, 12).timetuple()))
        self.advance(clock, renewal + 60)
        draft = self.v1.invoices.list({"subscription": subscription.id}).data[0]
        self.assertEqual((draft.status, draft.billing_reason), ("draft", "subscription_cycle"))
        self.assertEqual(self.balance(customer), -1_000)
        self.advance(clock, renewal + 2 * 3600)
        paid = self.v1.invoices.retrieve(draft.id)
        self.assertEqual((paid.status, paid.total, paid.amount_paid), ("paid", 3_000, 2_000))
        self.assertEqual((paid.starting_balance, paid.ending_balance, self.balance(customer)), (-1_000, 0, 0))
        applied = self.v1.customers.balance_transactions.list(customer.id).data[0]
        self.assertEqual((applied.type, applied.amount, applied.invoice), ("applied_to_invoice", 1_000, paid.id))
        later = self.v1.subscriptions.retrieve(subscription.id)["items"].data[0].current_period_end
        self.assertEqual(later, calendar.timegm(datetime.datetime(2026, 3, 31, 12).timetuple()))

    def test_many_renewals_in_one_advance(self) -> None:
        clock, customer = self.on_clock()
        subscription = self.subscribe(customer, self.price(3_000))
        self.credit(customer, -5_000)
        self.advance(clock, START + 95 * DAY_S)
        invoices = self.v1.invoices.list({"subscription": subscription.id}).data[::-1]
        self.assertEqual([invoice.amount_paid for invoice in invoices], [3_000, 0, 1_000, 3_000])
        self.assertEqual(self.balance(customer), 0)
        expanded: Any = self.v1.invoices.retrieve(invoices[-1].id, {"expand": ["payments"]})
        intent = self.v1.payment_intents.retrieve(expanded.payments.data[0].payment.payment_intent)
        self.assertEqual((intent.amount, intent.customer), (3_000, customer.id))

    def test_without_a_test_clock_the_sandbox_clock_renews(self) -> None:
        customer = self.v1.customers.create({"invoice_settings": {"default_payment_method": "pm_card_visa"}})
        subscription = self.subscribe(customer, self.price(3_000))
        self.control.advance(32 * DAY_S)
        self.assertEqual(len(self.v1.invoices.list({"subscription": subscription.id}).data), 2)

    def test_a_test_clock_goes_forwards_only_and_one_advance_at_a_time(self) -> None:
        clock, _ = self.on_clock()
        clocks = self.v1.test_helpers.test_clocks
        self.no(lambda: clocks.advance(clock.id, {"frozen_time": START}))
        clocks.advance(clock.id, {"frozen_time": START + 10})
        self.no(lambda: clocks.advance(clock.id, {"frozen_time": START + 20}))
        self.control.advance(10)
        self.assertTrue(clocks.delete(clock.id).deleted)
        self.assertEqual(self.v1.customers.list().data, [])

    def test_a_subscription_ends(self) -> None:
        clock, customer = self.on_clock()
        subscription = self.subscribe(customer, self.price(3_000))
        self.v1.subscriptions.update(subscription.id, {"cancel_at_period_end": True})
        self.advance(clock, START + 40 * DAY_S)
        self.assertEqual(self.v1.subscriptions.retrieve(subscription.id).status, "canceled")
        self.assertEqual(self.v1.subscriptions.list().data, [])
        other = self.subscribe(customer, self.price(3_000))
        self.assertEqual(self.v1.subscriptions.cancel(other.id).status, "canceled")
        self.assertEqual(len(self.v1.subscriptions.list({"status": "all"}).data), 2)

    def test_a_card_that_is_declined(self) -> None:
        customer = self.v1.customers.create({"payment_method": "pm_card_chargeDeclined"})
        self.no(lambda: self.subscribe(customer, self.price(3_000)), "resource_missing")
        subscription = self.subscribe(customer, self.price(3_000), default_payment_method="pm_card_chargeDeclined")
        self.assertEqual(subscription.status, "incomplete")
        invoice = self.v1.invoices.retrieve(subscription.latest_invoice)
        self.assertEqual((invoice.status, invoice.attempt_count), ("open", 1))
        self.assertEqual(self.v1.invoices.pay(invoice.id, {"payment_method": "pm_card_visa"}).status, "paid")


class Prorations(BillingCase):
    def halfway(self, amount: int) -> tuple[Any, Any, Any]:
        """A subscription of that amount, exactly in the middle of its 28-day period."""
        clock, customer = self.on_clock()
        self.credit(customer)
        subscription = self.subscribe(customer, self.price(amount))
        item = subscription["items"].data[0]
        self.advance(clock, (item.current_period_start + item.current_period_end) // 2)
        return clock, customer, subscription

    def change(self, subscription: Any, price: Any, behaviour: str) -> Any:
        items: Any = [{"id": subscription["items"].data[0].id, "price": price.id}]
        return self.v1.subscriptions.update(subscription.id, {"items": items, "proration_behavior": behaviour})

    def test_an_upgrade_billed_at_once_charges_the_difference(self) -> None:
        _, customer, subscription = self.halfway(3_000)
        self.credit(customer)
        changed = self.change(subscription, self.price(6_000), "always_invoice")
        invoice = self.v1.invoices.retrieve(changed.latest_invoice)
        self.assertEqual(
            (invoice.billing_reason, [line.amount for line in invoice.lines.data]),
            ("subscription_update", [-1_500, 3_000]),
        )
        self.assertEqual((invoice.total, invoice.amount_paid, self.balance(customer)), (1_500, 500, 0))

    def test_a_downgrade_billed_at_once_leaves_a_credit(self) -> None:
        _, customer, subscription = self.halfway(6_000)
        self.assertEqual(self.balance(customer), 0)
        changed = self.change(subscription, self.price(3_000), "always_invoice")
        invoice = self.v1.invoices.retrieve(changed.latest_invoice)
        self.assertEqual((invoice.total, invoice.amount_due, invoice.status), (-1_500, 0, "paid"))
        self.assertEqual(self.balance(customer), -1_500)

    def test_by_default_it_waits_for_the_next_invoice(self) -> None:
        clock, _, subscription = self.halfway(3_000)
        self.change(subscription, self.price(6_000), "create_prorations")
        self.assertEqual([i.amount for i in self.v1.invoice_items.list({"pending": True}).data], [3_000, -1_500])
        self.advance(clock, START + 30 * DAY_S)
        invoice = self.v1.invoices.list({"subscription": subscription.id}).data[0]
        self.assertEqual((invoice.total, invoice.status), (1_500 + 6_000, "paid"))

    def test_or_not_at_all(self) -> None:
        _, _, subscription = self.halfway(3_000)
        self.change(subscription, self.price(6_000), "none")
        self.assertEqual(self.v1.invoice_items.list({"pending": True}).data, [])


class Invoices(BillingCase):
    def invoice(self, customer: Any, amount: int) -> Any:
        """A draft with one item."""
        draft = self.v1.invoices.create({"customer": customer.id, "currency": "usd"})
        self.v1.invoice_items.create(
            {"customer": customer.id, "amount": amount, "currency": "usd", "invoice": draft.id, "description": "Work"}
        )
        return draft

    def payer(self) -> Any:
        return self.v1.customers.create({"invoice_settings": {"default_payment_method": "pm_card_visa"}})

    def test_by_hand(self) -> None:
        customer = self.payer()
        draft = self.invoice(customer, 5_000)
        opened = self.v1.invoices.finalize_invoice(draft.id)
        self.assertEqual((opened.status, opened.amount_due), ("open", 5_000))
        self.assertEqual(self.v1.invoices.pay(draft.id).status, "paid")
        self.no(lambda: self.v1.invoices.pay(draft.id), "invoice_already_paid")
        self.assertEqual(self.v1.invoices.line_items.list(draft.id).data[0].description, "Work")

    def test_voiding_gives_the_credit_back(self) -> None:
        customer = self.payer()
        self.credit(customer, -2_000)
        draft = self.invoice(customer, 5_000)
        self.assertEqual(self.v1.invoices.finalize_invoice(draft.id).amount_due, 3_000)
        self.assertEqual(self.balance(customer), 0)
        self.assertEqual(self.v1.invoices.void_invoice(draft.id).status, "void")
        self.assertEqual(self.balance(customer), -2_000)

    def test_too_small_to_charge_goes_to_the_balance(self) -> None:
        customer = self.payer()
        self.credit(customer, -4_980)
        draft = self.invoice(customer, 5_000)
        paid = self.v1.invoices.finalize_invoice(draft.id)
        self.assertEqual((paid.status, paid.amount_due, self.balance(customer)), ("paid", 0, 20))

    def test_a_credit_note_on_a_paid_invoice_credits_the_balance_or_refunds(self) -> None:
        customer = self.payer()
        draft = self.invoice(customer, 5_000)
        self.v1.invoices.pay(draft.id)
        note = self.v1.credit_notes.create(
            {"invoice": draft.id, "amount": 1_000, "credit_amount": 1_000, "metadata": {"incident": "INC-7"}}
        )
        self.assertEqual((note.type, note.metadata["incident"]), ("post_payment", "INC-7"))  # type: ignore[index]
        entry = self.v1.customers.balance_transactions.list(customer.id).data[0]
        self.assertEqual(
            (entry.id, entry.type, entry.credit_note), (note.customer_balance_transaction, "credit_note", note.id)
        )
        self.assertEqual(self.balance(customer), -1_000)
        second = self.v1.credit_notes.create({"invoice": draft.id, "amount": 500, "refund_amount": 500})
        self.assertEqual(self.control.ledger()["refunds"][0]["id"], second.refunds[0].refund)
        self.assertEqual(
            [n.id for n in self.v1.credit_notes.list({"customer": customer.id}).data], [second.id, note.id]
        )
        self.no(lambda: self.v1.credit_notes.create({"invoice": draft.id, "amount": 500}))
        big: Any = {"invoice": draft.id, "amount": 9_000, "credit_amount": 9_000}
        self.no(lambda: self.v1.credit_notes.create(big))

    def test_a_credit_note_on_an_open_invoice_lowers_it(self) -> None:
        customer = self.payer()
        draft = self.invoice(customer, 5_000)
        self.no(lambda: self.v1.credit_notes.create({"invoice": draft.id, "amount": 500}))
        self.v1.invoices.finalize_invoice(draft.id)
        lines: Any = [{"type": "custom_line_item", "description": "Late", "quantity": 2, "unit_amount": 1_000}]
        note = self.v1.credit_notes.create({"invoice": draft.id, "lines": lines})
        self.assertEqual((note.amount, note.type), (2_000, "pre_payment"))
        self.assertEqual(self.v1.invoices.retrieve(draft.id).amount_remaining, 3_000)
        self.assertEqual(self.v1.credit_notes.void_credit_note(note.id).status, "void")
        self.v1.credit_notes.create({"invoice": draft.id, "amount": 5_000})
        self.assertEqual(self.v1.invoices.retrieve(draft.id).status, "paid")


class Shapes(BillingCase):
    def test_objects_have_what_the_sdk_says_they_always_have(self) -> None:
        clock, customer = self.on_clock()
        price = self.price(3_000)
        subscription = self.subscribe(customer, price)
        item = subscription["items"].data[0]
        invoice = self.v1.invoices.retrieve(subscription.latest_invoice, {"expand": ["payments"]})
        note = self.v1.credit_notes.create({"invoice": invoice.id, "amount": 100, "credit_amount": 100})
        pending: Any = {"customer": customer.id, "amount": 10, "currency": "usd"}
        account = self.v1.accounts.create({"capabilities": {"transfers": {"requested": True}}})
        charge = self.v1.charges.list().data[0]
        transfer = self.v1.transfers.create(
            {"amount": 100, "currency": "usd", "destination": account.id, "source_transaction": charge.id}
        )
        objects: list[Any] = [
            clock,
            customer,
            price,
            self.v1.products.list().data[0],
            subscription,
            item,
            item.plan,
            invoice,
            invoice.lines.data[0],
            invoice.payments.data[0],  # type: ignore[union-attr]
            note,
            note.lines.data[0],
            self.v1.customers.balance_transactions.list(customer.id).data[0],
            self.v1.invoice_items.create(pending),
            self.v1.accounts.capabilities.list(account.id).data[0],
            transfer,
            self.v1.transfers.reversals.create(transfer.id),
        ]
        for obj in objects:
            with self.subTest(type(obj).__name__):
                self.check_shape(obj)


if __name__ == "__main__":
    unittest.main()
