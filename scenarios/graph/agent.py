"""One life of the agent, in a process of its own: built as a team would build it, and killed where the cell says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import stripe
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, tool
from langgraph.types import Command

from interlock_integrations.stripe import StripeToolkit
from interlock_tools import Gate
from interlock_tools.langchain import InterlockMiddleware
from interlock_tools.langchain.testing import ScriptedModel, says
from interlock_tools.testing.crash import CrashPoint, arm
from scenarios.graph.cells import Cell

KEY = "sk_test_51NotARealKeyButLongEnough0000"
AMOUNT = 20_00
SEND_TIMEOUT_S = 2.0
WAIT_S = 15.0
MAX_ROUNDS = 5


class Killer:
    """Ends this process by SIGKILL at one place, and leaves word that it was there."""

    def __init__(self, place: str | None, witness: Path) -> None:
        self.place = place
        self.witness = witness

    def reach(self, place: str) -> None:
        """Die here, if this is the place."""
        if place == self.place:
            self.die()

    def die(self) -> NoReturn:
        self.witness.write_text(str(self.place), encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("SIGKILL returned")


def refunding_tool(client: stripe.StripeClient, killer: Killer) -> BaseTool:
    """The tool of a team that knows nothing of gates."""

    @tool
    def create_refund(payment_intent: str, amount: int) -> str:
        """Refund an amount, in cents, of a payment."""
        killer.reach("in_tool")
        refund = client.v1.refunds.create({"payment_intent": payment_intent, "amount": amount})
        killer.reach("after_effect")
        return f"Refunded {amount} of {payment_intent}: {refund.id}"

    found: BaseTool = create_refund
    return found


class AfterTool(AgentMiddleware[Any, Any, Any]):
    """Where the tool has returned and the graph has not heard of it."""

    def __init__(self, killer: Killer) -> None:
        super().__init__()
        self.killer = killer

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        answer = handler(request)
        self.killer.reach("after_tool")
        return answer


def build(cell: Cell, killer: Killer, folder: Path, stripe_url: str) -> tuple[list[BaseTool], list[Any]]:
    """The tools and the middleware of an arm."""
    client = stripe.StripeClient(KEY, base_addresses={"api": stripe_url}, max_network_retries=0)
    plain = refunding_tool(client, killer)
    if cell.arm == "no_gate":
        return [plain], []
    gate = Gate(folder / "journal.db", wait=WAIT_S)
    if cell.arm == "toolkit":
        if killer.place in ("in_tool", "after_effect"):
            at = CrashPoint.AFTER_DISPATCHED if killer.place == "in_tool" else CrashPoint.AFTER_RESPONSE
            arm(at, action=killer.die)
        toolkit = StripeToolkit(gate, client=client, tools=["create_refund"])
        gate.recover()
        return toolkit.get_tools(), []
    from datetime import timedelta

    def find(payment_intent: str) -> str | None:
        found = client.v1.refunds.list({"payment_intent": payment_intent}).data
        return found[0].id if found else None

    gated = gate.wrap(plain, subject=["payment_intent"], lookup=find, send_timeout=timedelta(seconds=SEND_TIMEOUT_S))
    gate.recover(wait=WAIT_S)
    return [plain], [InterlockMiddleware([gated])]


@contextlib.contextmanager
def saver_of(cell: Cell, folder: Path, postgres: str, killer: Killer) -> Iterator[Any]:
    """The checkpointer. Its first write may be where this life ends."""
    if cell.saver == "sqlite":
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        saver: Any = SqliteSaver(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False))
        saver.setup()
        if killer.place == "first_checkpoint":
            saver.put = lambda *args, **kwargs: killer.die()
        yield saver
        return
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as kept:
        if killer.place == "first_checkpoint":
            kept.put = lambda *args, **kwargs: killer.die()  # type: ignore[method-assign,assignment]
        yield kept


def asks(payments: list[str]) -> Any:
    """A step of the model: a refund of each payment in one message, under fresh call ids, as a real model's are."""

    def step(messages: list[BaseMessage]) -> AIMessage:
        arguments = [{"payment_intent": payment, "amount": AMOUNT} for payment in payments]
        calls = [
            {"name": "create_refund", "args": given, "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
            for given in arguments
        ]
        return AIMessage(content="", tool_calls=calls)  # type: ignore[arg-type]

    return step


def live(
    cell: Cell, life: int, folder: Path, thread: str, payments: list[str], urls: dict[str, str], killer: Killer
) -> dict[str, Any]:
    """Live one life and return what the agent ended with."""
    tools, middleware = build(cell, killer, folder, urls["stripe"])
    if cell.kill == "interrupt":
        middleware = [HumanInTheLoopMiddleware({"create_refund": True}), *middleware]
    model = ScriptedModel(script=[asks(payments), says("That is what became of it.")])
    config: Any = {"configurable": {"thread_id": thread, "request_id": thread}}
    with saver_of(cell, folder, urls.get("postgres", ""), killer) as saver:
        agent = create_agent(model, tools, middleware=[*middleware, AfterTool(killer)], checkpointer=saver)
        state = agent.get_state(config)
        given: Any = {"messages": [HumanMessage("Refund them, please.")]}
        how = "new"
        if life > 1 and cell.resume == "none" and state.next:
            given, how = (_approve(state.interrupts), "answered") if state.interrupts else (None, "none")
        elif life > 1 and cell.resume == "message":
            given, how = {"messages": [HumanMessage("Are they refunded?")]}, "message"
        result: Any = None
        for _ in range(MAX_ROUNDS):
            result = agent.invoke(given, config, durability=cell.durability)
            if "__interrupt__" not in result:
                break
            killer.reach("paused")
            given = _approve(result["__interrupt__"])
    messages = [one for one in result["messages"] if isinstance(one, ToolMessage)]
    return {"how": how, "tools": [_plain(one) for one in messages]}


def _approve(interrupts: Any) -> Command[Any]:
    """A person says yes to everything."""
    (asked,) = interrupts
    return Command(resume={"decisions": [{"type": "approve"}] * len(asked.value["action_requests"])})


def _plain(message: ToolMessage) -> dict[str, Any]:
    artifact = message.artifact if isinstance(message.artifact, dict) else {}
    return {
        "content": message.text,
        "status": message.status,
        "outcome": artifact.get("outcome"),
        "effect_id": artifact.get("effect_id"),
        "request": artifact.get("request_key"),
    }


def run_life(*arguments: Any, told: Path) -> None:
    """Live, and leave the result in a file."""
    told.write_text(json.dumps(live(*arguments)), encoding="utf-8")
