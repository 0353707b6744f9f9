"""The tool ``create_credit``, made in three ways."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool

from interlock_integrations.stripe import StripeToolkit
from scenarios.suite import stripe_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool
from scenarios.suite.model import Arm, Work

INCIDENT = "incident"


def _params(work: Work, amount: int, currency: str, description: str) -> dict[str, Any]:
    metadata = {hand.CASE: work.case, INCIDENT: work.case}
    return {"amount": -amount, "currency": currency, "description": description, "metadata": metadata}


def no_check(work: Work) -> BaseTool:
    """Save the decision, send it with an idempotency key made of the case, and send it again after a restart."""
    files, v1 = Files(work), hand.client().v1

    def create_credit(customer: str, amount: int, currency: str, description: str) -> tuple[str, dict[str, Any]]:
        """Credit a customer's balance."""
        decided = files.decision(lambda: {"customer": customer, "amount": amount})
        params = _params(work, decided["amount"], currency, description)
        key = {"idempotency_key": f"credit:{work.case}"}
        entries = v1.customers.balance_transactions
        return hand.blindly(files, "Credit", lambda: entries.create(decided["customer"], params, key))

    return hand_tool("create_credit", create_credit)


def hand_check(work: Work) -> BaseTool:
    """Look for the case's credit; then check that nobody else has credited the incident, and the approval; then send.

    The check is as narrow as it can be: the balance itself moves at every
    renewal, and credits for other incidents have nothing to do with this one.
    """
    files, v1 = Files(work), hand.client().v1

    def entries(customer: str) -> list[dict[str, Any]]:
        listed = v1.customers.balance_transactions.list(customer, {"limit": 100})
        return [entry.to_dict() for entry in listed.auto_paging_iter()]

    def facts(customer: str) -> dict[str, Any]:
        others = [
            entry
            for entry in entries(customer)
            if entry["metadata"].get(INCIDENT) == work.case and entry["metadata"].get(hand.CASE) != work.case
        ]
        return {"credited_by_others": -sum(entry["amount"] for entry in others), "approval": files.approval()}

    def create_credit(customer: str, amount: int, currency: str, description: str) -> tuple[str, dict[str, Any]]:
        """Credit a customer's balance."""
        decided = files.decision(lambda: {"customer": customer, "amount": amount, "facts": facts(customer)})
        params = _params(work, decided["amount"], currency, description)
        key = {"idempotency_key": f"credit:{work.case}"}
        return hand.carefully(
            files,
            "Credit",
            decided,
            lambda: hand.own(entries(customer), work.case),
            lambda: facts(customer),
            lambda: v1.customers.balance_transactions.create(decided["customer"], params, key),
        )

    return hand_tool("create_credit", create_credit)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    kit = StripeToolkit(gate, tools=["create_credit"], approvals=approvals(work), **options(work))
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
}
