"""``create_credit`` and ``create_transfer`` against the Stripe sandbox over HTTP."""

from __future__ import annotations

import sys
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stripe_support import StripeToolCase

from interlock_tools import BadArguments, Grant

CREDITS = "/v1/customers/.*/balance_transactions"
TRANSFERS = "/v1/transfers"


class Credit(StripeToolCase):
    def setUp(self) -> None:
        super().setUp()
        self.customer = self.v1.customers.create({"email": "a@example.com"}).id

    def credit(self, amount: int = 1000, **options: Any) -> ToolMessage:
        given = {"customer": self.customer, "amount": amount, "currency": "usd", "description": "Sorry for the outage"}
        return self.call(self.tool("create_credit", **options), **given)

    def by_billing(self, incident: str, amount: int = -1000) -> None:
        entry: Any = {"amount": amount, "currency": "usd", "metadata": {"incident": incident}}
        self.v1.customers.balance_transactions.create(self.customer, entry)

    def credits(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.control.ledger()["credits"]
        return found

    def gone_after_the_send(self, request: str) -> Grant | None:
        return None if self.credits() else Grant("a")

    def test_it_is_made_once(self) -> None:
        message = self.credit()
        self.assert_outcome(message, "COMMITTED", "send")
        (made,) = self.credits()
        effect_id = message.artifact["effect_id"]
        self.assertEqual((made["amount"], made["currency"], made["idempotency_key"]), (-1000, "usd", effect_id))
        self.assertEqual(made["metadata"], {"interlock_effect_id": effect_id, "incident": "case-1"})
        self.assertEqual(message.artifact["result"]["ending_balance"], -1000)
        self.assert_every_request_was_journalled(CREDITS)

    def test_the_same_incident_credited_by_others(self) -> None:
        self.by_billing("case-1")
        message = self.credit()
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("credited_by_others: is 1000, must be 0", message.text)
        self.by_billing("case-1", 1000)
        self.assert_outcome(self.credit(name="taken_back"), "COMMITTED", "send")

    def test_others_credit_it_after_the_decision(self) -> None:
        tool = self.tool("create_credit")
        tool.effect.propose("case-1", self.customer, 1000, "usd", "Sorry")
        self.by_billing("case-1")
        given = {"customer": self.customer, "amount": 1000, "currency": "usd", "description": "Sorry"}
        self.assert_outcome(self.call(tool, **given), "REFUSED:stale_premise")

    def test_what_else_moves_the_balance_is_no_premise(self) -> None:
        self.by_billing("another", -700)
        self.v1.customers.update(self.customer, {"balance": 55})
        self.control.fault("cut_before", "POST", CREDITS)
        self.assert_outcome(self.credit(), "COMMITTED", "resend")

    def test_a_lost_answer(self) -> None:
        self.control.fault("apply_then_cut", "POST", CREDITS)
        self.assert_outcome(self.credit(), "COMMITTED", "resend")
        self.assertEqual(len(self.credits()), 1)
        self.assert_every_request_was_journalled(CREDITS)

    def test_a_lost_answer_and_a_revoked_approval(self) -> None:
        self.control.fault("apply_then_cut", "POST", CREDITS)
        self.assert_outcome(self.credit(approvals=self.gone_after_the_send), "COMMITTED", "lookup")
        self.assertEqual(self.control.count("POST", CREDITS), 1)

    def test_every_page_is_looked_through(self) -> None:
        self.control.fault("apply_then_cut", "POST", CREDITS)

        def gone(request: str) -> Grant | None:
            if not self.credits():
                return Grant("a")
            for _ in range(105 - len(self.credits())):
                self.by_billing("another", -1)
            return None

        self.assert_outcome(self.credit(approvals=gone), "COMMITTED", "lookup")

    def test_a_customer_that_is_not_there(self) -> None:
        self.customer = "cus_none"
        self.assert_outcome(self.credit(), "REFUSED:premise_not_met")

    def test_another_currency(self) -> None:
        self.by_billing("another")
        tool = self.tool("create_credit")
        given = {"customer": self.customer, "amount": 1000, "currency": "eur", "description": "Sorry"}
        self.assert_outcome(self.call(tool, **given), "REFUSED:rejected")

    def test_arguments(self) -> None:
        tool = self.tool("create_credit")
        good = {"customer": self.customer, "amount": 1000, "currency": "usd", "description": "x"}
        for bad in (
            {"amount": -1000},
            {"currency": "USD"},
            {"customer": "x"},
            {"incident": "i"},
            {"description": None},
        ):
            with self.subTest(bad), self.assertRaises(BadArguments):
                tool.invoke({**good, **bad})


class Transfer(StripeToolCase):
    def setUp(self) -> None:
        super().setUp()
        capabilities: Any = {"transfers": {"requested": True}}
        self.seller = self.v1.accounts.create({"type": "custom", "capabilities": capabilities}).id
        self.payment = self.pay()
        self.charge = str(self.v1.payment_intents.retrieve(self.payment).latest_charge)

    def given(self, amount: int = 2000) -> dict[str, Any]:
        return {
            "destination": self.seller,
            "amount": amount,
            "currency": "usd",
            "source_transaction": self.charge,
        }

    def transfer(self, **options: Any) -> ToolMessage:
        return self.call(self.tool("create_transfer", **options), **self.given())

    def by_hand(self, **changes: Any) -> Any:
        return self.v1.transfers.create({**self.given(), **changes})  # type: ignore[arg-type]

    def transfers(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.control.ledger()["transfers"]
        return found

    def test_it_is_made_once(self) -> None:
        message = self.transfer()
        self.assert_outcome(message, "COMMITTED", "send")
        (made,) = self.transfers()
        self.assertEqual((made["amount"], made["destination"]), (2000, self.seller))
        self.assertEqual(message.artifact["result"]["id"], made["id"])
        self.assert_every_request_was_journalled(TRANSFERS)

    def test_the_order_was_reversed(self) -> None:
        self.v1.refunds.create({"payment_intent": self.payment})
        message = self.transfer()
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("refunded: is 10000, must be 0", message.text)

    def test_the_order_was_charged_back(self) -> None:
        self.control.action("chargeback", payment=self.payment)
        self.assert_outcome(self.transfer(), "REFUSED:premise_not_met")

    def test_the_seller_may_not_receive(self) -> None:
        self.v1.accounts.reject(self.seller, {"reason": "fraud"})
        message = self.transfer()
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("seller: is inactive, must be active", message.text)

    def test_what_is_not_there(self) -> None:
        seller, self.seller = self.seller, "acct_none"
        self.assertIn("seller: is not found", self.transfer().text)
        self.seller, self.charge = seller, "ch_none"
        self.assertIn("charge: is not found", self.transfer(name="x").text)
        self.assertEqual(self.control.count("POST", TRANSFERS), 0)

    def test_somebody_transferred_it_before(self) -> None:
        made = self.by_hand()
        self.assert_outcome(self.transfer(), "REFUSED:premise_not_met")
        self.assert_outcome(self.transfer(name="more", other_transfers="allow"), "COMMITTED", "send")
        self.v1.transfers.reversals.create(made.id)
        other = self.v1.accounts.create({"type": "custom", "capabilities": {"transfers": {"requested": True}}}).id
        self.seller = other
        self.assert_outcome(self.transfer(name="other_seller"), "COMMITTED", "send")

    def test_the_order_is_reversed_while_the_agent_is_away(self) -> None:
        self.control.fault("cut_before", "POST", TRANSFERS)
        reverse = self.between(lambda: self.v1.refunds.create({"payment_intent": self.payment}))
        message = self.transfer(premises=reverse, send_timeout=timedelta(seconds=0.2), wait=20)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertEqual(self.transfers(), [])

    def test_a_lost_answer(self) -> None:
        self.control.fault("apply_then_cut", "POST", TRANSFERS)
        self.assert_outcome(self.transfer(), "COMMITTED", "resend")
        self.assertEqual(len(self.transfers()), 1)
        self.assert_every_request_was_journalled(TRANSFERS)

    def test_a_lost_answer_and_a_reversed_order(self) -> None:
        self.control.fault("apply_then_cut", "POST", TRANSFERS)
        reverse = self.between(lambda: self.v1.refunds.create({"payment_intent": self.payment}))
        self.assert_outcome(self.transfer(premises=reverse), "COMMITTED", "lookup")
        self.assertEqual(self.control.count("POST", TRANSFERS), 1)

    def test_it_is_found_behind_the_first_page(self) -> None:
        self.control.fault("apply_then_cut", "POST", TRANSFERS)

        def many() -> None:
            for _ in range(105):
                self.by_hand(amount=1)

        message = self.transfer(premises=self.between(many), other_transfers="allow")
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual(message.artifact["result"]["amount"], 2000)

    def test_more_than_the_charge_covers(self) -> None:
        message = self.call(self.tool("create_transfer"), **self.given(20_000))
        self.assert_outcome(message, "REFUSED:rejected")

    def test_arguments(self) -> None:
        tool = self.tool("create_transfer")
        for bad in ({"destination": "x"}, {"amount": 0}, {"source_transaction": "pi_1"}, {"transfer_group": "g"}):
            with self.subTest(bad), self.assertRaises(BadArguments):
                tool.invoke({**self.given(), **bad})


if __name__ == "__main__":
    unittest.main()
