"""The tool ``create_refund``, made in three ways."""

from __future__ import annotations

from typing import Any

import stripe
from langchain_core.tools import BaseTool

from interlock_integrations.stripe import StripeToolkit
from scenarios.suite import stripe_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool
from scenarios.suite.model import Arm, Work
from scenarios.suite.peers import DBOS_LOADS, LANGGRAPH_LOADS, Act, checkpointed_tool, dbos_tool


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
    """The toolkit as shipped, with the application's approvals, and one look at its start at what became of refunds."""
    gate = gate_of(work)
    kit = StripeToolkit(gate, tools=["create_refund"], approvals=approvals(work), **options(work))
    tool = recovered(gate, kit.get_tools())
    gate.watch()
    return tool


def _peer(work: Work) -> tuple[Act, Act]:
    """What a peer's steps do: the check once, as a step of its own; the send with a key, as both documentations say."""
    v1 = hand.client().v1

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        found = hand.chargebacks_of(v1, payment_intent=arguments["payment_intent"])
        return {"go": not found, "claim": "not_landed", "words": f"Not refunded: charged back, {found}."}

    def send(arguments: dict[str, Any]) -> dict[str, Any]:
        params: Any = {**arguments, "metadata": {hand.CASE: work.case}}
        try:
            made = hand.create(lambda: v1.refunds.create(params, {"idempotency_key": f"refund:{work.case}"}))
        except stripe.InvalidRequestError as error:
            return {"claim": "not_landed", "words": f"Stripe refused it: {error.user_message}"}
        return {"claim": "landed", "words": hand.told("Refund", made), "id": made["id"]}

    return check, send


def dbos(work: Work) -> BaseTool:
    """A DBOS workflow of two steps, the check and the send; the send has an idempotency key."""
    return dbos_tool(work, "create_refund", *_peer(work))


def langgraph(work: Work) -> BaseTool:
    """The agent has a checkpointer (SQLite, durability sync) and is resumed; the tool sends with an idempotency key.

    A check inside the tool would refuse what the tool itself has just done, so the tool makes none.
    """
    _, send = _peer(work)

    def with_tries(arguments: dict[str, Any]) -> dict[str, Any]:
        done: dict[str, Any] = hand.with_retries(lambda: send(arguments))
        return done

    return checkpointed_tool(work, "create_refund", lambda arguments: {}, with_tries)


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
    "dbos": Arm(dbos, "peer", dbos.__doc__ or "", loads=DBOS_LOADS),
    "langgraph": Arm(langgraph, "peer", langgraph.__doc__ or "", checkpointed=True, loads=LANGGRAPH_LOADS),
}
