"""Stripe itself, in test mode, in the place of the sandbox: the same worlds by the public API alone.

What only a sandbox can do (hold a request, cut a connection, count requests)
is not played there. A clock cannot be moved, so what waits takes its time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

import stripe

from interlock_integrations.stripe.client import check_key
from scenarios.suite.model import Work
from scenarios.suite.process import HarnessError

API = "https://api.stripe.com"
LONGEST_WAIT_S = 120.0
CHARGED_BACK = ("needs_response", "under_review", "lost", "won")


class LiveStripe:
    """Stands where a ``SandboxProcess`` does. Raises ``DefinitionError`` for a key that is not one of test mode."""

    def __init__(self) -> None:
        key = os.environ.get("STRIPE_API_KEY", "")
        check_key(key, live=False)
        self.url = os.environ.get("STRIPE_API_BASE") or API
        base = {"STRIPE_API_BASE": self.url} if self.url != API else {}
        self.environment = {"STRIPE_API_KEY": key, **base}
        self.control = LiveControl(stripe.StripeClient(key, base_addresses={"api": self.url}, max_network_retries=2).v1)
        self.controls = {"stripe": self.control}

    def start(self) -> LiveStripe:
        """Nothing is started."""
        return self

    def stop(self) -> None:
        """Nothing was started."""

    def printed(self) -> str:
        """Nothing is printed."""
        return ""

    def __enter__(self) -> LiveStripe:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class LiveControl:
    """What the scenarios ask of a sandbox's control plane, as far as the public API can do it."""

    def __init__(self, v1: Any) -> None:
        self.v1 = v1
        self.work: Work | None = None

    def about(self, work: Work) -> None:
        """Which case the ledger is about."""
        self.work = work

    def reset(self) -> None:
        """Every cell makes its own payment, customer or account."""

    def now(self) -> float:
        return time.time()

    def advance(self, seconds: float) -> dict[str, Any]:
        """Time passes by itself."""
        time.sleep(min(seconds, 300.0))
        return {}

    def fault(self, action: str, *where: Any, **fields: Any) -> int:
        raise HarnessError(f"BLOCKED: nobody can make Stripe itself do this: {action}")

    def held(self) -> list[Any]:
        return []

    def count(self, method: str | None = None, path: str | None = None) -> int:
        """Nobody can count requests at Stripe itself."""
        return 0

    def received(self, count: int, *where: Any, **fields: Any) -> list[Any]:
        """Wait until the case's effect is there."""
        self._until("the effect", lambda: any(self.ledger()[kind] for kind in ("refunds", "credits", "transfers")))
        return []

    def action(self, name: str, **values: Any) -> Any:
        """``pay``, ``inquiry`` and ``chargeback``; what the bank does is brought about by test cards and evidence."""
        if name == "pay":
            return {"id": self._pay(int(values.get("amount", 10_000)))}
        if name == "inquiry":
            return self._until("the inquiry", lambda: self._disputes(values["payment"]))
        if name == "chargeback":
            return self._escalate(values["payment"])
        raise HarnessError(f"BLOCKED: nobody can make Stripe itself do this: {name}")

    def _pay(self, amount: int) -> str:
        disputed = self.work is None or self.work.scenario == "stripe_dispute"
        given: Any = {
            "amount": amount,
            "currency": "usd",
            "payment_method": "pm_card_createDisputeInquiry" if disputed else "pm_card_bypassPending",
            "confirm": True,
            "automatic_payment_methods": {"enabled": True, "allow_redirects": "never"},
        }
        return str(self.v1.payment_intents.create(given).id)

    def _disputes(self, payment: str) -> list[dict[str, Any]]:
        return [one.to_dict() for one in self.v1.disputes.list({"payment_intent": payment}).data]

    def _escalate(self, payment: str) -> Any:
        (dispute,) = self._disputes(payment)
        evidence: Any = {"uncategorized_text": "escalate_inquiry_evidence"}
        self.v1.disputes.update(dispute["id"], {"evidence": evidence, "submit": True})
        return self._until("the chargeback", lambda: self._disputes(payment)[0]["status"] in CHARGED_BACK)

    def ledger(self) -> dict[str, Any]:
        """What Stripe holds of the case."""
        found: dict[str, Any] = {"refunds": [], "disputes": [], "credits": [], "transfers": []}
        arguments = self.work.arguments if self.work is not None else {}
        payment = arguments.get("payment_intent")
        if payment:
            listed = self.v1.refunds.list({"payment_intent": payment, "limit": 100}).auto_paging_iter()
            found["refunds"] = [{**one.to_dict(), "created_at": float(one.created)} for one in listed]
            found["disputes"] = [{**one, "posted_at": _posted(one)} for one in self._disputes(payment)]
        if arguments.get("customer"):
            listed = self.v1.customers.balance_transactions.list(arguments["customer"], {"limit": 100})
            found["credits"] = [one.to_dict() for one in listed.auto_paging_iter()]
        if arguments.get("destination"):
            listed = self.v1.transfers.list({"destination": arguments["destination"], "limit": 100})
            found["transfers"] = [one.to_dict() for one in listed.auto_paging_iter()]
        return found

    def _until(self, what: str, condition: Callable[[], Any]) -> Any:
        deadline = time.monotonic() + LONGEST_WAIT_S
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise HarnessError(f"{what} did not come about within {LONGEST_WAIT_S:.0f} s")
            time.sleep(0.5)
        return found


def _posted(dispute: dict[str, Any]) -> float | None:
    """When the chargeback took the money: when its balance transaction was made. None for an inquiry."""
    if dispute["status"] not in CHARGED_BACK:
        return None
    moved = dispute.get("balance_transactions") or [{}]
    return float(moved[0].get("created") or dispute["created"])
