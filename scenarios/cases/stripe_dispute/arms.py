"""The tool ``create_refund``, made in three ways."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool

from interlock_integrations.stripe import StripeToolkit
from scenarios.suite import stripe_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool
from scenarios.suite.model import Arm, Work


def no_check(work: Work) -> BaseTool:
    """Save the decision, send it with an idempotency key made of the case, and send it again after a restart.

    This is what Stripe's own documentation recommends for retries, and all that most code does.
    """
    files, v1 = Files(work), hand.client().v1

    def create_refund(payment_intent: str, amount: int) -> tuple[str, dict[str, Any]]:
        """Refund a payment in part."""
        decided = files.decision(lambda: {"payment_intent": payment_intent, "amount": amount})
        params = {**decided, "metadata": {hand.CASE: work.case}}
        key = {"idempotency_key": f"refund:{work.case}"}
        return hand.blindly(files, "Refund", lambda: v1.refunds.create(params, key))

    return hand_tool("create_refund", create_refund)


def hand_check(work: Work) -> BaseTool:
    """Look for the case's refund, in any status; then check all that the decision saw, and then send.

    Approval, chargebacks and refunds by others are what a careful person would look at; see ``carefully`` for why.
    """
    files, v1 = Files(work), hand.client().v1

    def facts(payment: str) -> dict[str, Any]:
        refunds = hand.refunds_of(v1, payment)
        return {
            "refunded_by_others": hand.refunded_by_others(refunds, work.case),
            "chargebacks": hand.chargebacks_of(v1, payment_intent=payment),
            "approval": files.approval(),
        }

    def create_refund(payment_intent: str, amount: int) -> tuple[str, dict[str, Any]]:
        """Refund a payment in part."""
        decided = files.decision(
            lambda: {"payment_intent": payment_intent, "amount": amount, "facts": facts(payment_intent)}
        )
        payment = decided["payment_intent"]
        params = {"payment_intent": payment, "amount": decided["amount"], "metadata": {hand.CASE: work.case}}

        key = {"idempotency_key": f"refund:{work.case}"}
        return hand.carefully(
            files,
            "Refund",
            decided,
            lambda: hand.own(hand.refunds_of(v1, payment), work.case),
            lambda: facts(payment),
            lambda: v1.refunds.create(params, key),
        )

    return hand_tool("create_refund", create_refund)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    kit = StripeToolkit(gate, tools=["create_refund"], approvals=approvals(work), **options(work))
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
}
