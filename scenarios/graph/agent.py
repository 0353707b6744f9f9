"""One life of the agent, in a process of its own: built as a team would build it, and killed where the cell says."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import uuid
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs

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
from scenarios.graph.cells import Cell

KEY = "sk_test_51NotARealKeyButLongEnough0000"
AMOUNT = 20_00
SEND_TIMEOUT_S = 2.0
WAIT_S = 15.0
BARRIER_S = 30.0
MAX_ROUNDS = 5
STANDS_AT = {"other_waits": "in_tool", "other_done": "after_tool", "other_kept": "kept"}
"""The place at which the other call is when the process dies in the first one."""
JOURNAL = "journal.db"
KEYS = "keys"


class Killer:
    """Ends this process by SIGKILL at one place of the first call, and leaves word that it was there.

    With two calls the other one is first brought to where the cell wants it.
    """

    def __init__(self, place: str | None, witness: Path, payments: list[str], calls: str) -> None:
        self.place = place
        self.witness = witness
        self.victim = payments[0]
        self.other_stands_at = STANDS_AT.get(calls)
        self.other_is_there = threading.Event()

    def reach(self, place: str, payment: str | None = None) -> None:
        """Die here, if this is the place. Raises ``TimeoutError`` if the other call does not come to its place."""
        if self.place is None or self.place in ("paused", "first_checkpoint"):
            if place == self.place:
                self.die()
        elif payment == self.victim and place == self.place:
            if self.other_stands_at is not None and not self.other_is_there.wait(BARRIER_S):
                raise TimeoutError(f"the other call did not come to {self.other_stands_at}")
            self.die()
        elif payment != self.victim and place == self.other_stands_at:
            self.other_is_there.set()
            if place == "in_tool":
                time.sleep(BARRIER_S)
                raise TimeoutError("the process was to die while this call waits")

    def die(self) -> NoReturn:
        self.witness.write_text(str(self.place), encoding="utf-8")
        os.kill(os.getpid(), signal.SIGKILL)
        raise AssertionError("SIGKILL returned")


def watch_the_wire(killer: Killer) -> None:
    """Have Stripe's SDK pass by the killer right before it sends a refund, and right after the answer, in every arm."""
    request = stripe.RequestsClient.request

    def passing(self: Any, method: str, url: str, headers: Any, post_data: Any = None) -> Any:
        if method.lower() != "post" or not url.endswith("/v1/refunds"):
            return request(self, method, url, headers, post_data)
        (payment,) = parse_qs(post_data)["payment_intent"]
        killer.reach("in_tool", payment)
        answer = request(self, method, url, headers, post_data)
        killer.reach("after_effect", payment)
        return answer

    stripe.RequestsClient.request = passing  # type: ignore[method-assign]


def refunding_tool(client: stripe.StripeClient) -> BaseTool:
    """The tool of a team that knows nothing of gates."""

    @tool
    def create_refund(payment_intent: str, amount: int) -> str:
        """Refund an amount, in cents, of a payment."""
        refund = client.v1.refunds.create({"payment_intent": payment_intent, "amount": amount})
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
        self.killer.reach("after_tool", request.tool_call["args"]["payment_intent"])
        return answer


def build(cell: Cell, folder: Path, stripe_url: str) -> tuple[list[BaseTool], list[Any]]:
    """The tools and the middleware of an arm."""
    client = stripe.StripeClient(KEY, base_addresses={"api": stripe_url}, max_network_retries=0)
    plain = refunding_tool(client)
    if cell.arm == "no_gate":
        return [plain], []
    gate = Gate(folder / JOURNAL, signing=folder / KEYS, wait=WAIT_S)
    if cell.arm == "toolkit":
        toolkit = StripeToolkit(gate, client=client, tools=["create_refund"])
        gate.recover()
        return toolkit.get_tools(), []

    def find(payment_intent: str) -> str | None:
        found = client.v1.refunds.list({"payment_intent": payment_intent}).data
        return found[0].id if found else None

    gated = gate.wrap(plain, subject=["payment_intent"], lookup=find, send_timeout=timedelta(seconds=SEND_TIMEOUT_S))
    gate.recover(wait=WAIT_S)
    return [plain], [InterlockMiddleware([gated])]


@contextlib.contextmanager
def saver_of(cell: Cell, folder: Path, postgres: str) -> Iterator[Any]:
    """The checkpointer."""
    if cell.saver == "sqlite":
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        saver = SqliteSaver(sqlite3.connect(folder / "checkpoints.db", check_same_thread=False))
        saver.setup()
        yield saver
        return
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as kept:
        yield kept


def watch_the_saver(saver: Any, killer: Killer, payments: list[str]) -> None:
    """Have the checkpointer pass by the killer before it writes a checkpoint, and after it has kept a tool's answer."""
    put_writes = saver.put_writes

    def keeping(config: Any, writes: Any, *rest: Any, **named: Any) -> None:
        put_writes(config, writes, *rest, **named)
        answers = [str(value) for _, value in writes if "ToolMessage" in repr(value)]
        for payment in payments:
            if any(payment in answer for answer in answers):
                killer.reach("kept", payment)

    saver.put_writes = keeping
    if killer.place == "first_checkpoint":
        saver.put = lambda *arguments, **named: killer.die()


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
    cell: Cell, ask: str, folder: Path, thread: str, payments: list[str], urls: dict[str, str], killer: Killer
) -> dict[str, Any]:
    """Live one life and return what the agent ended with.

    ``ask`` is how it begins: ``first``, the user's first message; ``resume``, as the cell resumes; ``again``, a further
    message in a thread that has come to its end.
    """
    watch_the_wire(killer)
    tools, middleware = build(cell, folder, urls["stripe"])
    if cell.kill == "interrupt":
        middleware = [HumanInTheLoopMiddleware({"create_refund": True}), *middleware]
    model = ScriptedModel(script=[asks(payments), says("That is what became of it.")])
    config: Any = {"configurable": {"thread_id": thread, "request_id": thread}}
    with saver_of(cell, folder, urls.get("postgres", "")) as saver:
        watch_the_saver(saver, killer, payments)
        agent = create_agent(model, tools, middleware=[*middleware, AfterTool(killer)], checkpointer=saver)
        given, how = _beginning(cell, ask, agent.get_state(config))
        result: Any = None
        for _ in range(MAX_ROUNDS):
            result = agent.invoke(given, config, durability=cell.durability)
            if "__interrupt__" not in result:
                break
            killer.reach("paused")
            given = _approve(result["__interrupt__"])
    messages = [one for one in result["messages"] if isinstance(one, ToolMessage)]
    return {"how": how, "tools": [_plain(one) for one in messages]}


def _beginning(cell: Cell, ask: str, state: Any) -> tuple[Any, str]:
    """What the graph is given, and a word for it. ``none`` where there is no checkpoint is the first message anew."""
    if ask == "again":
        return {"messages": [HumanMessage("Refund them, if they are not refunded yet.")]}, "message"
    if ask == "resume" and cell.resume == "message":
        return {"messages": [HumanMessage("Are they refunded?")]}, "message"
    if ask == "resume" and state.next:
        return (_approve(state.interrupts), "answered") if state.interrupts else (None, "continued")
    return {"messages": [HumanMessage("Refund them, please.")]}, "anew" if ask == "resume" else "first"


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
        "receipt": artifact.get("receipt"),
    }


def run_life(*arguments: Any, told: Path) -> None:
    """Live, and leave the result in a file."""
    told.write_text(json.dumps(live(*arguments)), encoding="utf-8")
