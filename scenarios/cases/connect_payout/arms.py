"""The tool ``create_transfer``, made in three ways."""

from __future__ import annotations

from typing import Any

from langchain_core.tools import BaseTool

from interlock_integrations.stripe import StripeToolkit
from scenarios.suite import stripe_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool
from scenarios.suite.model import Arm, Work


def _params(work: Work, decided: dict[str, Any]) -> dict[str, Any]:
    names = ("destination", "amount", "currency", "source_transaction")
    return {**{name: decided[name] for name in names}, "metadata": {hand.CASE: work.case}}


def no_check(work: Work) -> BaseTool:
    """Save the decision, send it with an idempotency key made of the case, and send it again after a restart."""
    files, v1 = Files(work), hand.client().v1

    def create_transfer(
        destination: str, amount: int, currency: str, source_transaction: str
    ) -> tuple[str, dict[str, Any]]:
        """Transfer a seller's share."""
        asked = {"destination": destination, "amount": amount, "currency": currency}
        decided = files.decision(lambda: {**asked, "source_transaction": source_transaction})
        key = {"idempotency_key": f"transfer:{work.case}"}
        return hand.blindly(files, "Transfer", lambda: v1.transfers.create(_params(work, decided), key))

    return hand_tool("create_transfer", create_transfer)


def hand_check(work: Work) -> BaseTool:
    """Look for the case's transfer in the order's group; re-read charge, disputes and capability; then send with a key.

    ``source_transaction`` ties it to the order's charge, so that it cannot be
    paid from other money, and gives it the group to look in.
    """
    files, v1 = Files(work), hand.client().v1

    def transfers(source: str) -> list[dict[str, Any]]:
        group = v1.charges.retrieve(source).transfer_group
        if group is None:
            return []
        listed = v1.transfers.list({"transfer_group": group, "limit": 100})
        return [transfer.to_dict() for transfer in listed.auto_paging_iter()]

    def facts(destination: str, source: str) -> dict[str, Any]:
        account = v1.accounts.retrieve(destination).to_dict()
        return {
            "refunded": v1.charges.retrieve(source).amount_refunded,
            "chargebacks": hand.chargebacks_of(v1, charge=source),
            "seller": account["capabilities"].get("transfers"),
            "approval": files.approval(),
        }

    def create_transfer(
        destination: str, amount: int, currency: str, source_transaction: str
    ) -> tuple[str, dict[str, Any]]:
        """Transfer a seller's share."""
        asked = {"destination": destination, "amount": amount, "currency": currency}
        source = source_transaction
        decided = files.decision(lambda: {**asked, "source_transaction": source, "facts": facts(destination, source)})
        key = {"idempotency_key": f"transfer:{work.case}"}
        return hand.carefully(
            files,
            "Transfer",
            decided,
            lambda: hand.own(transfers(source), work.case),
            lambda: facts(destination, source),
            lambda: v1.transfers.create(_params(work, decided), key),
        )

    return hand_tool("create_transfer", create_transfer)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    kit = StripeToolkit(gate, tools=["create_transfer"], approvals=approvals(work), **options(work))
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
}
