"""The world around the agent: Stripe (a sandbox, or the real one in test mode) and who else acts on the payment."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import stripe

from interlock_integrations.stripe.client import check_key
from interlock_integrations.stripe.reading import EFFECT_ID, every
from scenarios.sandbox import SandboxProcess

BY_HAND = {"by": "hand"}
PAYMENT = 100_00


class Live:
    """Stripe in test mode, with the key of ``STRIPE_API_KEY``. Everything goes through the public API."""

    name = "Stripe (test mode)"
    send_timeout_s = 120.0
    sandbox: SandboxProcess | None = None

    def start(self) -> None:
        """Raises ``DefinitionError`` for a key that is not one of test mode."""
        key = os.environ.get("STRIPE_API_KEY", "")
        check_key(key, live=False)
        base = os.environ.get("STRIPE_API_BASE")
        self.environment = {"STRIPE_API_KEY": key, **({"STRIPE_API_BASE": base} if base else {})}
        self._connect(key, base)

    def _connect(self, key: str, base: str | None) -> None:
        self.v1 = stripe.StripeClient(key, base_addresses={"api": base} if base else None, max_network_retries=2).v1

    def stop(self) -> None:
        """Nothing was started."""

    def pay(self, outage: str) -> str:
        """Make a payment of $100 and return its id."""
        # A chargeback on demand is an inquiry that is escalated.
        card = "pm_card_createDisputeInquiry" if outage == "chargeback" else "pm_card_visa"
        automatic: Any = {"enabled": True, "allow_redirects": "never"}
        intent = self.v1.payment_intents.create(
            {
                "amount": PAYMENT,
                "currency": "usd",
                "payment_method": card,
                "confirm": True,
                "automatic_payment_methods": automatic,
            }
        )
        if outage == "chargeback":
            self._until("the inquiry", lambda: self.disputes(intent.id))
        return intent.id

    def refunds(self, payment: str) -> list[dict[str, Any]]:
        """Every refund of the payment, in every status."""
        return list(every(self.v1.refunds.list, payment_intent=payment))

    def disputes(self, payment: str) -> list[dict[str, Any]]:
        return list(every(self.v1.disputes.list, payment_intent=payment))

    def requests(self, key: str) -> int | None:
        """How many requests came in under an idempotency key; None where nobody can know."""
        return None

    def until_refunded(self, payment: str) -> None:
        """Wait until what has left the agent has arrived."""
        self._until("the refund", lambda: self.refunds(payment))

    def refund_by_hand(self, payment: str) -> None:
        self.v1.refunds.create({"payment_intent": payment, "amount": 20_00, "metadata": BY_HAND})

    def charge_back(self, payment: str) -> None:
        dispute = self.disputes(payment)[0]
        evidence: Any = {"uncategorized_text": "escalate_inquiry_evidence"}
        self.v1.disputes.update(dispute["id"], {"evidence": evidence, "submit": True})
        self._until("the chargeback", lambda: self.disputes(payment)[0]["status"] == "needs_response")

    def _until(self, what: str, condition: Callable[[], Any]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what} did not come about within a minute")
            time.sleep(0.05 if self.sandbox else 1.0)


class Sandbox(Live):
    """A Stripe sandbox of our own: the same API, and a ledger that knows every request."""

    name = "the Stripe sandbox"
    send_timeout_s = 3.0

    def start(self) -> None:
        self.sandbox = SandboxProcess("stripe").start()
        self.environment = self.sandbox.environment
        self._connect(self.environment["STRIPE_API_KEY"], self.environment["STRIPE_API_BASE"])

    def stop(self) -> None:
        if self.sandbox is not None:
            self.sandbox.stop()

    def refunds(self, payment: str) -> list[dict[str, Any]]:
        assert self.sandbox is not None
        return [one for one in self.sandbox.control.ledger()["refunds"] if one["payment_intent"] == payment]

    def requests(self, key: str) -> int | None:
        assert self.sandbox is not None
        received = self.sandbox.control.requests("POST", "/v1/refunds", "received")
        return sum(record["headers"].get("idempotency-key") == key for record in received)

    def charge_back(self, payment: str) -> None:
        assert self.sandbox is not None
        self.sandbox.control.action("chargeback", payment=payment)


def is_the_agents(refund: dict[str, Any]) -> bool:
    """Whether a refund is the agent's, and not one that somebody made by hand."""
    return EFFECT_ID in refund["metadata"] or refund["metadata"] != BY_HAND
