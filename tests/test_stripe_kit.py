"""The integration kit, run whole by ``create_refund``, ``create_credit`` and ``create_transfer``."""

from __future__ import annotations

import re
import sys
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

import stripe
from kit_support import SandboxKit

from interlock_integrations.stripe import declare_credit, declare_refund, declare_transfer, gated_client
from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.testing.integration_kit import SENDING

KEY = "sk_test_NotToBeSeenAnywhere1234"
NUMBERS = range(1, len(SENDING) + 1)
CROWD = 105
"""More than one page of a Stripe list holds (100)."""


class StripeKit(SandboxKit):
    service = "stripe"
    rate_limit: ClassVar[dict[str, Any]] = {
        "status": 429,
        "answer": {"error": {"type": "invalid_request_error", "code": "rate_limit", "message": "Too many requests"}},
    }

    def setUp(self) -> None:
        super().setUp()
        self.v1 = self.client().v1

    def client(self) -> stripe.StripeClient:
        return stripe.StripeClient(KEY, base_addresses={"api": self.sandbox.url}, max_network_retries=0)

    def pay(self) -> str:
        return str(self.control.action("pay")["id"])

    def mine(self, kind: str, **fields: Any) -> int:
        """How many of the ledger's objects with these fields are the agent's."""
        return sum(
            "interlock_effect_id" in found["metadata"] and all(found[name] == value for name, value in fields.items())
            for found in self.control.ledger()[kind]
        )

    def requests(self) -> int:
        """The SDK gives every POST a key of its own; the agent's are effect ids."""
        received = self.control.requests(*self.sends, "received")
        return sum(re.fullmatch("[0-9a-f]{32}", found["headers"]["idempotency-key"]) is not None for found in received)

    def secrets(self) -> Iterable[str]:
        return (KEY,)


class Refund(StripeKit, unittest.TestCase):
    sends = ("POST", "/v1/refunds")

    def setUp(self) -> None:
        super().setUp()
        self.payments = {number: self.pay() for number in NUMBERS}

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_refund(gate, gated_client(self.client()))

    def arguments(self, number: int) -> dict[str, Any]:
        asked = {"payment_intent": self.payments[number], "amount": 2000, "reason": "requested_by_customer"}
        return {"request": f"case-{number}", **asked}

    def landed(self, number: int) -> int:
        return self.mine("refunds", payment_intent=self.payments[number], amount=2000)

    def disturb(self, number: int) -> None:
        self.control.action("chargeback", payment=self.payments[number])

    def crowd(self, number: int) -> None:
        for _ in range(CROWD):
            self.v1.refunds.create({"payment_intent": self.payments[number], "amount": 1})

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"amount": 0}, {"amount": 20.0}, {"amount": True}, {"amount": "2000"}, {"amount": -1})
        yield from ({"payment_intent": ""}, {"payment_intent": "pi_1/../x"}, {"reason": "because"}, {"currency": "usd"})


class Credit(StripeKit, unittest.TestCase):
    sends = ("POST", "/v1/customers/.*/balance_transactions")

    def setUp(self) -> None:
        super().setUp()
        self.customers = {number: self.v1.customers.create({"email": "a@example.com"}).id for number in NUMBERS}

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_credit(gate, gated_client(self.client()))

    def arguments(self, number: int) -> dict[str, Any]:
        asked = {"customer": self.customers[number], "amount": 1000, "currency": "usd", "description": "Sorry"}
        return {"request": f"case-{number}", **asked}

    def landed(self, number: int) -> int:
        return self.mine("credits", customer=self.customers[number], amount=-1000)

    def by_billing(self, number: int, incident: str) -> None:
        entry: Any = {"amount": -1, "currency": "usd", "metadata": {"incident": incident}}
        self.v1.customers.balance_transactions.create(self.customers[number], entry)

    def disturb(self, number: int) -> None:
        self.by_billing(number, f"case-{number}")

    def crowd(self, number: int) -> None:
        self.by_billing(number, f"case-{number}")
        for _ in range(CROWD):
            self.by_billing(number, "another")

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"amount": 0}, {"amount": 10.5}, {"amount": False}, {"currency": "USD"}, {"customer": ""})


class Transfer(StripeKit, unittest.TestCase):
    sends = ("POST", "/v1/transfers")

    def setUp(self) -> None:
        super().setUp()
        capabilities: Any = {"transfers": {"requested": True}}
        self.seller = self.v1.accounts.create({"type": "custom", "capabilities": capabilities}).id
        self.payments = {number: self.pay() for number in NUMBERS}
        self.charges = {
            number: str(self.v1.payment_intents.retrieve(payment).latest_charge)
            for number, payment in self.payments.items()
        }

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_transfer(gate, gated_client(self.client()))

    def arguments(self, number: int) -> dict[str, Any]:
        asked = {"destination": self.seller, "amount": 2000, "currency": "usd"}
        return {"request": f"case-{number}", **asked, "source_transaction": self.charges[number]}

    def landed(self, number: int) -> int:
        return self.mine("transfers", source_transaction=self.charges[number], amount=2000)

    def disturb(self, number: int) -> None:
        self.v1.refunds.create({"payment_intent": self.payments[number], "amount": 100})

    def crowd(self, number: int) -> None:
        self.disturb(number)
        group = self.v1.transfers.list({"limit": 1}).data[0].transfer_group
        asked = {"destination": self.seller, "amount": 1, "currency": "usd", "transfer_group": group}
        for _ in range(CROWD):
            self.v1.transfers.create({**asked, "source_transaction": self.charges[number]})  # type: ignore[arg-type]

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"amount": 0}, {"amount": 1.0}, {"destination": ""}, {"source_transaction": "pi_1"})


if __name__ == "__main__":
    unittest.main()
