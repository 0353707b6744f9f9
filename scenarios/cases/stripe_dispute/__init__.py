"""A $20 goodwill refund was approved and decided; the agent dies; the bank's inquiry becomes a chargeback; restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from scenarios.cases.stripe_dispute.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

PAYMENT, REFUND = 100_00, 20_00
CASE = "case-4471"


class StripeDispute(Scenario):
    """See the module."""

    key = "stripe_dispute"
    title = "A goodwill refund and a chargeback"
    invariant = "No refund is made at or after the chargeback, and one that was sent before it exists exactly once."
    services = ("stripe",)
    sends = ("POST", "/v1/refunds")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "crash_before_send_chargeback_during_outage": Fault(BEFORE_SEND, outage="chargeback", wanted=0),
        "crash_after_send_chargeback_during_outage": Fault(AFTER_SEND, outage="chargeback", landed=True, wanted=1),
        "gap_probe": Fault("after_committed", outage="chargeback_later", landed=True, ours=True),
        **common_faults(),
    }
    premises = ("refunded_by_others", "chargebacks")
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {"no_check": "2/2", "hand_check": "2/2", "interlock": "2/2"}
    live_needs = ("STRIPE_API_KEY",)

    def setup(self, world: World, fault: str) -> Work:
        payment = str(world.control.action("pay", amount=PAYMENT)["id"])
        world.control.action("inquiry", payment=payment)
        world.approve(CASE, id="APR-7", by="Approver One", max_amount=30_00)
        arguments = {"payment_intent": payment, "amount": REFUND}
        return Work(self.key, "", fault, CASE, str(world.folder), arguments)

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "chargeback_later":
            world.control.advance(300)
        if name.startswith("chargeback"):
            world.control.action("chargeback", payment=work.arguments["payment_intent"])

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "amount": 30_00}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        payment = work.arguments["payment_intent"]
        refunds = [refund for refund in ledger["refunds"] if refund["payment_intent"] == payment]
        posted = [one["posted_at"] for one in ledger["disputes"] if one.get("posted_at") is not None]
        if fault.outage == "chargeback_later":  # it came after a refund that stands
            posted = []
        late = [refund for refund in refunds if posted and refund["created_at"] >= min(posted)]
        held = len(refunds) == fault.wanted and not late and all(refund["amount"] == REFUND for refund in refunds)
        shown = ", ".join(f"{refund['amount'] / 100:.2f} {refund['status']}" for refund in refunds) or "no refund"
        failed = any(refund["status"] == "failed" for refund in refunds)
        at_risk = fault.outage == "chargeback_later"
        return Verdict(held, shown, tuple(refund["id"] for refund in refunds), failed, at_risk)

    def notes(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> dict[str, Any]:
        """What is out in the end, in cents: refunds that stand, and chargebacks."""
        refunds = [one for one in ledger["refunds"] if one["payment_intent"] == work.arguments["payment_intent"]]
        stand = sum(one["amount"] for one in refunds if one["status"] == "succeeded")
        return {"out_in_cents": stand + sum(one["amount"] for one in ledger["disputes"] if one.get("posted_at"))}


SCENARIO = StripeDispute()
