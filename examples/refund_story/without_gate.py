"""The same agent and the same tool without a gate, as one would write it by hand. It pays twice."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import StructuredTool

from examples.refund_agent import REFUND, tell
from interlock_integrations.stripe import gated_client, stripe_from_environment
from interlock_integrations.stripe.tools import REFUND_DESCRIPTION, CreateRefundArguments
from interlock_integrations.transport import sending
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool
from interlock_tools.testing import CrashPoint, reach


class Instants:
    """Lets the process be killed around its request. Nothing else: no journal, no mark."""

    def __call__(self) -> None:
        reach(CrashPoint.BEFORE_BYTES)

    def written(self) -> None:
        reach(CrashPoint.IN_FLIGHT)


def agent(case: str, payment: str) -> None:
    """Work on one approved case."""
    client = gated_client(stripe_from_environment())

    def create_refund(payment_intent: str, amount: int, reason: str = "requested_by_customer") -> str:
        with sending(Instants()):
            refund = client.v1.refunds.create(
                {"payment_intent": payment_intent, "amount": amount, "reason": reason}  # type: ignore[typeddict-item]
            )
        reach(CrashPoint.AFTER_RESPONSE)
        return f"Refunded {refund.amount}: {refund.id}, {refund.status}."

    tool = StructuredTool.from_function(
        create_refund, description=REFUND_DESCRIPTION, args_schema=CreateRefundArguments
    )
    model = ScriptedModel(script=[calls("create_refund", payment_intent=payment, amount=REFUND), repeats_the_tool])
    conversation = create_agent(model, [tool]).invoke(
        {"messages": [HumanMessage(f"{case} is approved: refund $20 of payment {payment}.")]}
    )
    tell("answered", {"words": conversation["messages"][-1].text, "status": "", "outcome": "", "effect_id": ""})


if __name__ == "__main__":
    agent(sys.argv[1], sys.argv[2])
