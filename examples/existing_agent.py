"""An agent that is there already, with tools of its own: the gate is three lines. Run it twice, or kill it in between.

::

    pip install -e '.[examples]'
    python examples/existing_agent.py            # bills once
    python examples/existing_agent.py --kill     # dies in the tool: what it did is not known, and it is not done again
    python examples/existing_agent.py
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool

from interlock_tools import Gate
from interlock_tools.langchain import InterlockMiddleware
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool

FOLDER = Path(os.environ.get("EXAMPLE_FOLDER", "."))


@tool
def send_invoice(customer: str, cents: int) -> str:
    """Send an invoice to a customer."""
    with (FOLDER / "sent.txt").open("a") as sent:  # stands for a service that can take nothing back
        sent.write(f"{customer} {cents}\n")
    if "--kill" in sys.argv:
        os.kill(os.getpid(), signal.SIGKILL)
    return f"Invoice over {cents / 100:.2f} sent to {customer}."


@tool
def find_invoice(customer: str) -> str | None:
    """Find the invoice of a customer; empty if there is none."""
    path = FOLDER / "sent.txt"
    return next((line for line in path.read_text().splitlines() if line.startswith(customer)), None)


def main() -> int:
    """Bill one customer, for one approved request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kill", action="store_true", help="die in the tool, right after it has acted")
    parser.add_argument("--lookup", action="store_true", help="tell the gate which tool finds what was done")
    options = parser.parse_args()

    gate = Gate(FOLDER / "agent.db")  # 1
    gated = gate.wrap(send_invoice, lookup=find_invoice if options.lookup else None)  # 2
    gate.recover()
    model = ScriptedModel(script=[calls("send_invoice", customer="acme", cents=1250), repeats_the_tool])
    agent = create_agent(model, [send_invoice], middleware=[InterlockMiddleware([gated])])  # 3
    answer = agent.invoke(
        {"messages": [HumanMessage("Bill acme for order 7.")]}, {"configurable": {"request_id": "order-7"}}
    )
    print(answer["messages"][-1].text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
