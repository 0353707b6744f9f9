"""A refund that a person has to approve: the agent pauses, and the answer is an entry in the journal.

::

    pip install -e '.[examples]'
    python examples/approval.py                        # asks on the terminal
    python examples/approval.py --answer approve       # or reject, or edit (half of the amount)
    python examples/approval.py --answer later         # nobody answers; then, from anywhere:
    interlock pending --journal approval.db
    interlock approve EFFECT_ID --by you --journal approval.db
    python examples/approval.py                        # sends it, and asks nobody again
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock_tools import Gate
from interlock_tools.langchain import ApprovalMiddleware
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool

FOLDER = Path(os.environ.get("EXAMPLE_FOLDER", "."))
AMOUNT = 200_00


def paid() -> list[str]:
    """What the payment service holds: a file stands for it."""
    path = FOLDER / "refunds.txt"
    return path.read_text().splitlines() if path.exists() else []


def main() -> int:
    """Refund one order, if a person says so."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--answer", choices=("approve", "reject", "edit", "later"), help="in place of asking")
    answer = parser.parse_args().answer

    gate = Gate(FOLDER / "approval.db")

    @gate.effect(
        "shop.refund",
        key=lambda request: request,
        premises=lambda idempotency_key: {"others": [line for line in paid() if idempotency_key not in line]},
        requires_approval=lambda amount: amount > 50_00,
        lookup=lambda idempotency_key: next((line for line in paid() if idempotency_key in line), None),
    )
    def refund(request: str, payment: str, amount: int, *, idempotency_key: str) -> str:
        """Refund an amount, in cents, of a customer's payment."""
        with (FOLDER / "refunds.txt").open("a") as file:
            file.write(f"{idempotency_key} {payment} {amount}\n")
        return idempotency_key

    tool = refund.as_tool()
    gate.recover()
    model = ScriptedModel(script=[calls("refund", payment="pi_1", amount=AMOUNT), repeats_the_tool])
    agent = create_agent(model, [tool], middleware=[ApprovalMiddleware([tool])], checkpointer=InMemorySaver())
    config: Any = {
        "configurable": {"thread_id": "1", "request_id": "order-7", "approver": os.environ.get("USER", "me")}
    }
    state = agent.invoke({"messages": [HumanMessage("Refund order 7.")]}, config)
    if "__interrupt__" in state:
        (question,) = state["__interrupt__"][0].value["action_requests"]
        print(f"Approve {question['name']} {question['args']}? It rests on {question['facts']}.")
        answer = answer or input("approve, reject, edit or later: ").strip()
        if answer == "later":
            print(f"interlock approve {question['effect_id']} --by you --journal {FOLDER / 'approval.db'}")
            return 0
        edited = {"edited_action": {"args": {"amount": AMOUNT // 2}}} if answer == "edit" else {}
        state = agent.invoke(Command(resume={"decisions": [{"type": answer, **edited}]}), config)
    print(state["messages"][-1].text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
