"""The Stripe sandbox's Connect: accounts, capabilities, transfers; driven by the official SDK over real HTTP."""

from __future__ import annotations

import unittest
from typing import Any

from scenarios.sandbox import SandboxProcess
from scenarios.sandbox.stripe.cases import StripeCase


class Connect(StripeCase):
    def seller(self) -> Any:
        wanted: Any = {"type": "custom", "country": "US", "capabilities": {"transfers": {"requested": True}}}
        return self.v1.accounts.create(wanted)

    def transfer(self, seller: Any, amount: int = 2_000, **params: Any) -> Any:
        given: Any = {"amount": amount, "currency": "usd", "destination": seller.id, **params}
        return self.v1.transfers.create(given)

    def test_a_transfer_from_a_charge(self) -> None:
        seller, payment = self.seller(), self.pay(transfer_group="ORDER-1")
        transfer = self.transfer(
            seller, transfer_group="ORDER-1", source_transaction=payment.latest_charge, metadata={"order": "1"}
        )
        self.assertEqual((transfer.amount, transfer.source_transaction), (2_000, payment.latest_charge))
        self.pay(transfer_group="ORDER-2")
        self.assertEqual([t.id for t in self.v1.transfers.list({"transfer_group": "ORDER-1"}).data], [transfer.id])
        (entry,) = self.control.ledger()["transfers"]
        self.assertEqual((entry["amount"], entry["destination"], entry["metadata"]), (2_000, seller.id, {"order": "1"}))
        self.no(lambda: self.transfer(seller, 9_000, source_transaction=payment.latest_charge))

    def test_it_needs_available_balance_or_a_source(self) -> None:
        seller = self.seller()
        self.pay()
        self.no(lambda: self.transfer(seller), "balance_insufficient")
        self.pay("pm_card_bypassPending")
        self.assertEqual(self.transfer(seller).amount, 2_000)

    def test_it_needs_an_active_capability(self) -> None:
        seller, payment = self.seller(), self.pay(transfer_group="ORDER-1")
        source = payment.latest_charge
        self.control.action("capability", account=seller.id, status="inactive")
        self.no(lambda: self.transfer(seller, source_transaction=source), "insufficient_capabilities_for_transfer")
        self.control.action("capability", account=seller.id, status="active")
        self.transfer(seller, source_transaction=source)
        rejected = self.v1.accounts.reject(seller.id, {"reason": "fraud"})
        self.assertEqual(rejected.requirements.disabled_reason, "rejected.fraud")  # type: ignore[union-attr]
        self.assertEqual(self.v1.accounts.retrieve(seller.id).capabilities.transfers, "inactive")  # type: ignore[union-attr]
        self.assertEqual(self.v1.accounts.capabilities.retrieve(seller.id, "transfers").status, "inactive")
        self.no(lambda: self.transfer(seller, source_transaction=source), "insufficient_capabilities_for_transfer")
        nobody: Any = {"amount": 5, "currency": "usd", "destination": "acct_nope"}
        self.no(lambda: self.v1.transfers.create(nobody), "resource_missing")

    def test_reversals(self) -> None:
        seller, payment = self.seller(), self.pay(transfer_group="ORDER-1")
        transfer = self.transfer(seller, source_transaction=payment.latest_charge)
        self.assertEqual(self.v1.transfers.reversals.create(transfer.id, {"amount": 500}).amount, 500)
        self.no(lambda: self.v1.transfers.reversals.create(transfer.id, {"amount": 5_000}))
        self.assertEqual(self.v1.transfers.reversals.create(transfer.id).amount, 1_500)
        again = self.v1.transfers.retrieve(transfer.id)
        self.assertEqual((again.reversed, again.amount_reversed, len(again.reversals.data)), (True, 2_000, 2))

    def test_connect_off(self) -> None:
        self.control.action("connect", on=False)
        self.assertIn("signed up for Connect", str(self.no(self.seller)))
        with SandboxProcess("stripe", options={"stripe.connect": "off"}) as off:
            self.assertEqual(off.control.ledger()["connect"], "off")


if __name__ == "__main__":
    unittest.main()
