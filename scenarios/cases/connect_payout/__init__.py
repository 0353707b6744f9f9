"""A seller's $20 share of an order was decided; the agent dies; the order or the seller changes; restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import stripe

from scenarios.cases.connect_payout.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

SHARE = 20_00
CASE = "order-311"


class ConnectPayout(Scenario):
    """See the module."""

    key = "connect_payout"
    title = "A seller's payout and a reversed order"
    invariant = "The seller gets $20 in one transfer, and nothing if the order was reversed or the seller restricted."
    services = ("stripe",)
    sends = ("POST", "/v1/transfers")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "crash_after_commit": Fault(AFTER_SEND, landed=True),
        "crash_before_send_order_reversed": Fault(BEFORE_SEND, outage="order_reversed", wanted=0),
        "crash_before_send_seller_restricted": Fault(BEFORE_SEND, outage="seller_restricted", wanted=0),
        **common_faults(),
    }
    premises = ("refunded", "chargebacks", "seller")
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {"no_check": "BLOCKED", "hand_check": "BLOCKED", "interlock": "BLOCKED"}
    live_needs = ("STRIPE_API_KEY",)

    def _v1(self, world: World) -> Any:
        key = world.sandbox.environment["STRIPE_API_KEY"]
        return stripe.StripeClient(key, base_addresses={"api": world.sandbox.url}).v1

    def setup(self, world: World, fault: str) -> Work:
        v1 = self._v1(world)
        wanted: Any = {"type": "custom", "capabilities": {"transfers": {"requested": True}}}
        seller = v1.accounts.create(wanted).id
        payment = str(world.control.action("pay", amount=100_00)["id"])
        charge = str(v1.payment_intents.retrieve(payment).latest_charge)
        world.approve(CASE, id="APR-7", by="Approver One", max_amount=30_00)
        arguments = {"destination": seller, "amount": SHARE, "currency": "usd", "source_transaction": charge}
        return Work(self.key, "", fault, CASE, str(world.folder), arguments, {"payment": payment})

    def outage(self, world: World, work: Work, name: str) -> None:
        v1 = self._v1(world)
        if name == "order_reversed":
            v1.refunds.create({"payment_intent": work.facts["payment"]})
        elif name == "seller_restricted":
            v1.accounts.reject(work.arguments["destination"], {"reason": "fraud"})

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "amount": 30_00}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        made = [one for one in ledger["transfers"] if one["destination"] == work.arguments["destination"]]
        held = len(made) == fault.wanted and all(one["amount"] == SHARE for one in made)
        shown = ", ".join(f"{one['amount'] / 100:.2f}" for one in made) or "nothing transferred"
        return Verdict(held, shown, tuple(one["id"] for one in made))


SCENARIO = ConnectPayout()
