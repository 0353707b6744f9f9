"""A $10 goodwill credit for an incident was decided; the agent dies; billing runs; restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import stripe

from scenarios.cases.billing_credit.arms import ARMS, INCIDENT
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

CREDIT = 10_00
CASE = "INC-7"
DAY_S = 86_400


class BillingCredit(Scenario):
    """See the module."""

    key = "billing_credit"
    title = "A goodwill credit and a billing run"
    invariant = "This incident is credited once by the agent, and not at all if billing has credited it."
    services = ("stripe",)
    sends = ("POST", "/v1/customers/.*/balance_transactions")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "before_send/renewal": Fault(BEFORE_SEND, outage="renewal"),
        "before_send/billing_credit": Fault(BEFORE_SEND, outage="billing_credit", wanted=0),
        "before_send/proration": Fault(BEFORE_SEND, outage="proration"),
        "after_send/renewal": Fault(AFTER_SEND, outage="renewal", landed=True),
        "after_send/proration": Fault(AFTER_SEND, outage="proration", landed=True),
        "before_send/unrelated_credit": Fault(BEFORE_SEND, outage="unrelated_credit"),
        **common_faults(),
    }
    premises = ("credited_by_others",)
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {"no_check": "5/6", "hand_check": "6/6", "interlock": "6/6"}
    live_needs = ("STRIPE_API_KEY",)

    def setup(self, world: World, fault: str) -> Work:
        v1 = self._v1(world)
        clock = v1.test_helpers.test_clocks.create({"frozen_time": int(world.control.now())})
        settings: Any = {"default_payment_method": "pm_card_visa"}
        customer = v1.customers.create({"test_clock": clock.id, "invoice_settings": settings})
        prices = [self._price(v1, amount) for amount in (20_00, 50_00)]
        plan: Any = {"customer": customer.id, "items": [{"price": prices[0]}]}
        subscription = v1.subscriptions.create(plan)
        world.approve(CASE, id="APR-7", by="Approver One", max_amount=30_00)
        arguments = {
            "customer": customer.id,
            "amount": CREDIT,
            "currency": "usd",
            "description": "Sorry for the outage",
        }
        facts = {"clock": clock.id, "subscription": subscription.id, "larger": prices[1]}
        return Work(self.key, "", fault, CASE, str(world.folder), arguments, facts)

    def _v1(self, world: World) -> Any:
        key = world.sandbox.environment["STRIPE_API_KEY"]
        return stripe.StripeClient(key, base_addresses={"api": world.sandbox.url}).v1

    def _price(self, v1: Any, amount: int) -> str:
        given: Any = {"currency": "usd", "unit_amount": amount, "recurring": {"interval": "month"}}
        return str(v1.prices.create({**given, "product_data": {"name": "Plan"}}).id)

    def outage(self, world: World, work: Work, name: str) -> None:
        v1, customer = self._v1(world), work.arguments["customer"]
        if name == "renewal":
            clock = v1.test_helpers.test_clocks.retrieve(work.facts["clock"])
            v1.test_helpers.test_clocks.advance(clock.id, {"frozen_time": clock.frozen_time + 32 * DAY_S})
            world.control.advance(10)
        elif name == "proration":
            (item,) = v1.subscriptions.retrieve(work.facts["subscription"]).to_dict()["items"]["data"]
            change: Any = {"items": [{"id": item["id"], "price": work.facts["larger"]}]}
            v1.subscriptions.update(work.facts["subscription"], {**change, "proration_behavior": "always_invoice"})
        elif name in ("billing_credit", "unrelated_credit"):
            incident = CASE if name == "billing_credit" else "INC-8"
            credit: Any = {"amount": -CREDIT, "currency": "usd", "metadata": {INCIDENT: incident, "by": "billing"}}
            v1.customers.balance_transactions.create(customer, credit)

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "amount": 15_00}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        credits = [entry for entry in ledger["credits"] if entry["type"] == "adjustment" and entry["amount"] < 0]
        own = [entry for entry in credits if entry["metadata"].get("by") != "billing"]
        held = len(own) == fault.wanted and all(entry["amount"] == -CREDIT for entry in own)
        shown = f"{len(own)} credit(s) of the agent, {len(credits) - len(own)} of billing"
        return Verdict(held, shown, tuple(entry["id"] for entry in own))

    def notes(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> dict[str, Any]:
        """What coarser premises would have seen at the restart: they refuse what they should not."""
        others = [entry for entry in ledger["credits"] if entry["metadata"].get("by") == "billing"]
        moved = [entry for entry in ledger["credits"] if entry["type"] != "adjustment"]
        compensated = -sum(entry["amount"] for entry in others)
        return {
            "premise_customer_balance": "refuses" if others or moved else "holds",
            "premise_all_compensation_by_others": "refuses" if compensated else "holds",
            "premise_this_incident": "refuses" if any(e["metadata"][INCIDENT] == CASE for e in others) else "holds",
        }


SCENARIO = BillingCredit()
