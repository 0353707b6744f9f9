"""Stripe itself, in test mode, by the public API alone."""

from __future__ import annotations

import os
from typing import Any

import stripe

from interlock_integrations.stripe.client import check_key
from scenarios.suite.live_base import LiveControl, LiveService

API = "https://api.stripe.com"
CHARGED_BACK = ("needs_response", "under_review", "lost", "won")


def live_stripe() -> LiveService:
    """Stripe with the key of ``STRIPE_API_KEY``. Raises ``DefinitionError`` for one that is not of test mode."""
    key = os.environ.get("STRIPE_API_KEY", "")
    check_key(key, live=False)
    url = os.environ.get("STRIPE_API_BASE") or API
    base = {"STRIPE_API_BASE": url} if url != API else {}
    v1 = stripe.StripeClient(key, base_addresses={"api": url}, max_network_retries=2).v1
    return LiveService(url, {"STRIPE_API_KEY": key, **base}, StripeControl(v1))


class StripeControl(LiveControl):
    """What banks do is brought about by test cards and evidence."""

    def __init__(self, v1: Any) -> None:
        super().__init__()
        self.v1 = v1

    def has_landed(self) -> bool:
        ledger = self.ledger()
        return any(ledger[kind] for kind in ("refunds", "credits", "transfers"))

    def do_pay(self, amount: int = 10_000) -> Any:
        disputed = self.work is None or self.work.scenario == "stripe_dispute"
        given: Any = {
            "amount": amount,
            "currency": "usd",
            "payment_method": "pm_card_createDisputeInquiry" if disputed else "pm_card_bypassPending",
            "confirm": True,
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        }
        return {"id": str(self.v1.payment_intents.create(given).id)}

    def do_inquiry(self, payment: str) -> Any:
        return self.until("the inquiry", lambda: self._disputes(payment))

    def do_chargeback(self, payment: str) -> Any:
        (dispute,) = self._disputes(payment)
        evidence: Any = {"uncategorized_text": "escalate_inquiry_evidence"}
        self.v1.disputes.update(dispute["id"], {"evidence": evidence, "submit": True})
        return self.until("the chargeback", lambda: self._disputes(payment)[0]["status"] in CHARGED_BACK)

    def _disputes(self, payment: str) -> list[dict[str, Any]]:
        return [one.to_dict() for one in self.v1.disputes.list({"payment_intent": payment}).data]

    def ledger(self) -> dict[str, Any]:
        found: dict[str, Any] = {"refunds": [], "disputes": [], "credits": [], "transfers": []}
        payment = self.arguments.get("payment_intent")
        if payment:
            listed = self.v1.refunds.list({"payment_intent": payment, "limit": 100}).auto_paging_iter()
            found["refunds"] = [{**one.to_dict(), "created_at": float(one.created)} for one in listed]
            found["disputes"] = [{**one, "posted_at": _posted(one)} for one in self._disputes(payment)]
        if self.arguments.get("customer"):
            listed = self.v1.customers.balance_transactions.list(self.arguments["customer"], {"limit": 100})
            found["credits"] = [one.to_dict() for one in listed.auto_paging_iter()]
        if self.arguments.get("destination"):
            listed = self.v1.transfers.list({"destination": self.arguments["destination"], "limit": 100})
            found["transfers"] = [one.to_dict() for one in listed.auto_paging_iter()]
        return found


def _posted(dispute: dict[str, Any]) -> float | None:
    """When the chargeback took the money: when its balance transaction was made. None for an inquiry."""
    if dispute["status"] not in CHARGED_BACK:
        return None
    moved = dispute.get("balance_transactions") or [{}]
    return float(moved[0].get("created") or dispute["created"])
