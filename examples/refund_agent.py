"""A refund agent that is killed at the worst moment, restarted, and still refunds once.

A $100 payment, an approved $20 refund, an agent that dies. Run it::

    pip install -e '.[examples]'
    python examples/refund_agent.py

It needs no account: it starts a Stripe sandbox, runs the agent below as a process of its own, kills it with SIGKILL at
one point after another, restarts it each time, and asks the sandbox what became of the money. The exit status is 0
only if everything was right. Then compare ``--without-gate``, and see ``--help``.

The agent is the function ``agent``; everything that kills and judges it is in ``refund_story``.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from interlock_integrations.stripe import StripeToolkit
from interlock_tools import Gate, Grant
from interlock_tools.langchain import GatedTool
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool

REFUND = 20_00


def agent(case: str, payment: str) -> None:
    """Work on one approved case. Started anew after every death, knowing nothing but its journal."""
    gate = Gate(os.environ["INTERLOCK_JOURNAL"])
    toolkit = StripeToolkit(gate, tools=["create_refund"], approvals=approval, send_timeout=send_timeout())
    tools = toolkit.get_tools()

    for outcome in gate.recover(wait=2 * send_timeout()):  # what a dead process left open is settled first
        tell("recovered", outcome.to_json())
    if os.environ.get("REFUND_PROPOSE_FIRST"):  # a decision may also be written down before the agent acts on it
        cast(GatedTool, tools[0]).effect.propose(case, payment, REFUND, "requested_by_customer", by="Dana")

    from langchain.agents import create_agent
    from langchain_core.messages import HumanMessage

    # A model would decide to call the tool. This one follows a script, so that no account is needed.
    model = ScriptedModel(script=[calls("create_refund", payment_intent=payment, amount=REFUND), repeats_the_tool])
    conversation = create_agent(model, tools).invoke(
        {"messages": [HumanMessage(f"{case} is approved: refund $20 of payment {payment}.")]},
        {"configurable": {"request_id": case}},  # which approved request this is: the application knows, not the model
    )
    tell("answered", {"words": conversation["messages"][-1].text, **conversation["messages"][-2].artifact})


def approval(request: str) -> Grant | None:
    """Return the approval of a request from the (very small) system that keeps approvals: a file."""
    found = json.loads(Path(os.environ["REFUND_APPROVALS"]).read_text(encoding="utf-8")).get(request)
    return Grant(found["id"], by=found["by"], max_amount=found["max_amount"]) if found else None


def send_timeout() -> timedelta:
    """How long a request may take to land: two minutes at Stripe; on loopback less, so that nobody has to wait."""
    return timedelta(seconds=float(os.environ.get("REFUND_SEND_TIMEOUT_S", "120")))


def tell(event: str, values: dict[str, Any]) -> None:
    """Report to whoever watches this process."""
    print(json.dumps({"event": event, "at": time.monotonic(), **values}), flush=True)


def main() -> int:
    """Tell the story; 0 if every invariant held."""
    from refund_story import cli

    return cli.main(Path(__file__))


if __name__ == "__main__":
    sys.path.insert(
        0, str(Path(__file__).resolve().parents[1])
    )  # the sandbox lives in the repository, not in the wheel
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--as-agent", nargs=2, metavar=("CASE", "PAYMENT"))
    given, _ = parser.parse_known_args()
    if given.as_agent:
        agent(*given.as_agent)
    else:
        sys.exit(main())
