"""Tools that are there already, behind the gate: by ``gate.wrap`` and by the middleware, wherever it stands."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
import unittest
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate_support import SetClock
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from interlock_tools import DefinitionError, Gate, MissingRequestKey
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.langchain import GatedTool, InterlockMiddleware
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool
from interlock_tools.testing.crash import CrashPoint, arm

CONFIG: Any = {"configurable": {"request_id": "case-1"}}


class WrapCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.clock = SetClock()
        self.gate = self.open()
        self.sent = self.folder / "sent"

    def open(self) -> Gate:
        gate = Gate(SqliteJournal(self.folder / "j.db", self.clock))
        self.addCleanup(gate.close)
        return gate

    def count(self) -> int:
        return len(self.sent.read_text().splitlines()) if self.sent.exists() else 0

    def invoice(self, fails: Callable[[], None] | None = None) -> BaseTool:
        """A tool of somebody else's, which knows nothing of gates."""
        path = self.sent

        @tool
        def send_invoice(customer: str, cents: int, note: str = "") -> str:
            """Send an invoice to a customer."""
            with path.open("a") as file:
                file.write(f"{customer} {cents} {note}\n")
            if fails is not None:
                fails()
            return f"invoice for {customer}"

        found: BaseTool = send_invoice
        return found

    def call(self, gated: GatedTool, **arguments: Any) -> ToolMessage:
        call = {"name": gated.name, "args": arguments, "id": "call_1", "type": "tool_call"}
        message: ToolMessage = gated.invoke(call, CONFIG)
        return message


class Wrapping(WrapCase):
    def test_it_looks_the_same_and_is_called_once(self) -> None:
        plain = self.invoice()
        gated = self.gate.wrap(plain)
        self.assertEqual((gated.name, gated.description), (plain.name, plain.description))
        self.assertEqual(set(gated.args), {"customer", "cents", "note"})
        first, second = (self.call(gated, customer="a", cents=5) for _ in range(2))
        self.assertEqual((first.artifact["outcome"], self.count()), ("COMMITTED", 1))
        self.assertEqual((first.text, first.artifact["result"]), (second.text, {"answer": "invoice for a"}))

    def test_another_call_for_the_same_request_is_not_sent(self) -> None:
        gated = self.gate.wrap(self.invoice())
        self.call(gated, customer="a", cents=5)
        other = self.call(gated, customer="a", cents=6)
        self.assertEqual((other.artifact["outcome"], self.count()), ("REFUSED:already_done", 1))

    def test_once_for_each_subject(self) -> None:
        gated = self.gate.wrap(self.invoice(), subject=["customer"])
        for customer in ("a", "b", "a"):
            self.call(gated, customer=customer, cents=5)
        self.assertEqual(self.count(), 2)

    def test_without_a_reference_nothing_is_sent(self) -> None:
        with self.assertRaises(MissingRequestKey):
            self.gate.wrap(self.invoice()).invoke({"customer": "a", "cents": 5})
        self.assertEqual(self.count(), 0)

    def test_a_tool_that_raises_may_have_acted_and_is_not_called_again(self) -> None:
        def fails() -> None:
            raise RuntimeError("lost")

        gated = self.gate.wrap(self.invoice(fails), send_timeout=timedelta(seconds=1))
        first = self.call(gated, customer="a", cents=5)
        self.assertEqual(first.artifact["status"], "AMBIGUOUS", first.text)
        self.assertIn("must not be done in another way", first.text)
        second = self.call(gated, customer="a", cents=5)
        self.assertEqual((second.artifact["status"], self.count()), ("AMBIGUOUS", 1))

    def test_killed_in_the_tool_it_is_not_called_again_blindly(self) -> None:
        def fails() -> None:
            os.kill(os.getpid(), signal.SIGKILL)

        pid = os.fork()
        if pid == 0:
            try:
                self.call(self.open().wrap(self.invoice(fails)), customer="a", cents=5)
            finally:
                os._exit(9)
        self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)
        gated = self.gate.wrap(self.invoice(), send_timeout=timedelta(seconds=1))
        self.gate.recover()
        self.clock.advance(10)
        (outcome,) = self.gate.recover()
        self.assertEqual((outcome.status.value, self.count()), ("AMBIGUOUS", 1))
        self.assertEqual(self.call(gated, customer="a", cents=5).artifact["status"], "AMBIGUOUS")
        self.assertEqual(self.count(), 1)

    def test_killed_before_it_was_called_it_is_called_once(self) -> None:
        pid = os.fork()
        if pid == 0:
            try:
                arm(CrashPoint.AFTER_DISPATCHED)
                self.call(self.open().wrap(self.invoice()), customer="a", cents=5)
            finally:
                os._exit(9)
        self.assertEqual(os.waitpid(pid, 0)[1], signal.SIGKILL)
        message = self.call(self.gate.wrap(self.invoice()), customer="a", cents=5)
        self.assertEqual((message.artifact["outcome"], self.count()), ("COMMITTED", 1))

    def test_another_tool_is_its_lookup(self) -> None:
        @tool
        def find_invoice(customer: str) -> str:
            """Find an invoice."""
            return '{"id": "inv_1"}' if self.count() else "null"

        def fails() -> None:
            raise RuntimeError("lost")

        gated = self.gate.wrap(self.invoice(fails), lookup=find_invoice, send_timeout=timedelta(seconds=0.05))
        message = self.call(gated, customer="a", cents=5)
        if message.artifact["status"] == "IN_FLIGHT":
            self.clock.advance(10)
            message = self.call(gated, customer="a", cents=5)
        self.assertEqual((message.artifact["outcome"], self.count()), ("COMMITTED", 1), message.text)
        self.assertEqual(message.artifact["result"], {"id": "inv_1"})

    def test_another_tool_is_its_premise(self) -> None:
        state = {"status": "good"}

        @tool
        def read_customer(customer: str) -> dict[str, Any]:
            """Read a customer."""
            return dict(state)

        gated = self.gate.wrap(self.invoice(), premises=read_customer, expect={"status": "good"}, subject=["customer"])
        self.assertEqual(self.call(gated, customer="a", cents=5).artifact["outcome"], "COMMITTED")
        state["status"] = "bankrupt"
        self.assertEqual(self.call(gated, customer="b", cents=5).artifact["outcome"], "REFUSED:premise_not_met")

    def test_an_async_tool_and_a_tool_with_a_json_schema(self) -> None:
        async def act(**arguments: Any) -> str:
            with self.sent.open("a") as file:
                file.write(f"{arguments}\n")
            return "done"

        schema = {
            "type": "object",
            "properties": {"name": {"type": "string"}, "count": {"type": "integer"}},
            "required": ["name"],
        }
        remote = StructuredTool(name="remote", description="Remote.", args_schema=schema, coroutine=act)
        gated = self.gate.wrap(remote)
        self.assertEqual(self.call(gated, name="x").artifact["outcome"], "COMMITTED")
        again = asyncio.run(
            gated.ainvoke({"name": "remote", "args": {"name": "x"}, "id": "2", "type": "tool_call"}, CONFIG)
        )
        self.assertEqual((again.artifact["outcome"], self.count()), ("COMMITTED", 1))

    def test_what_cannot_be_wrapped(self) -> None:
        @tool
        def odd(request: str) -> str:
            """Takes what the reference is called."""
            return request

        gated = self.gate.wrap(self.invoice())
        for bad in (
            lambda: self.gate.wrap(gated),
            lambda: self.gate.wrap(odd),
            lambda: self.gate.wrap(self.invoice(), effect="x", subject=["nobody"]),
            lambda: self.gate.wrap("send_invoice"),  # type: ignore[arg-type]
            lambda: InterlockMiddleware([self.invoice()]),  # type: ignore[list-item]
            lambda: InterlockMiddleware([gated, gated]),
        ):
            with self.assertRaises(DefinitionError):
                bad()


class Edits(AgentMiddleware[Any, Any, Any]):
    """Somebody changes what the model asked for."""

    def wrap_tool_call(self, request: Any, handler: Any) -> Any:
        call = {**request.tool_call, "args": {**request.tool_call["args"], "cents": 7}}
        return handler(request.override(tool_call=call))


class Middleware(WrapCase):
    def run_agent(self, plain: BaseTool, *middleware: Any, times: int = 1) -> list[Any]:
        model = ScriptedModel(script=[calls("send_invoice", customer="a", cents=5), repeats_the_tool])
        agent = create_agent(model, [plain], middleware=list(middleware))
        ends = []
        for _ in range(times):
            ends.append(agent.invoke({"messages": [HumanMessage("Bill them.")]}, CONFIG)["messages"][-2])
        return ends

    def test_three_lines_and_an_agent_bills_once(self) -> None:
        plain = self.invoice()
        middleware = InterlockMiddleware([self.gate.wrap(plain)])
        first, second = self.run_agent(plain, middleware, times=2)
        self.assertEqual((self.count(), first.text), (1, second.text))
        self.assertEqual(first.artifact["outcome"], "COMMITTED")

    def test_what_is_edited_is_what_is_journalled_wherever_it_stands(self) -> None:
        for number, order in enumerate((False, True)):
            plain = self.invoice()
            ours = InterlockMiddleware([self.gate.wrap(plain, effect=f"invoice.{number}")])
            stack = [Edits(), ours] if order else [ours, Edits()]
            (message,) = self.run_agent(plain, *stack)
            (proposed, *_) = self.gate.history(message.artifact["effect_id"])
            self.assertEqual(proposed.body["payload"]["cents"], 7)
        self.assertEqual(self.sent.read_text(), "a 7 \n" * 2)

    def test_one_that_tries_again_does_not_do_it_twice(self) -> None:
        def fails() -> None:
            raise RuntimeError("lost")

        for order in (False, True):
            self.sent.unlink(missing_ok=True)
            plain = self.invoice(fails)
            ours = InterlockMiddleware([self.gate.wrap(plain, effect=f"invoice.{order}")])
            retry = ToolRetryMiddleware(max_retries=3, initial_delay=0.0, jitter=False)
            self.run_agent(plain, *([retry, ours] if order else [ours, retry]))
            self.assertEqual(self.count(), 1)

    def test_async_agents_and_parallel_calls(self) -> None:
        plain = self.invoice()
        gated = self.gate.wrap(plain, subject=["customer"])
        node = ToolNode([plain, gated], wrap_tool_call=InterlockMiddleware([gated]).wrap_tool_call)
        self.assertIsNotNone(node)
        model = ScriptedModel(script=[calls("send_invoice", customer="a", cents=5), repeats_the_tool])
        agent = create_agent(model, [plain], middleware=[InterlockMiddleware([gated])])

        async def both() -> list[Any]:
            asked = {"messages": [HumanMessage("Bill them.")]}
            return list(await asyncio.gather(*(agent.ainvoke(asked, CONFIG) for _ in range(4))))

        answers = [conversation["messages"][-2].artifact["status"] for conversation in asyncio.run(both())]
        self.assertEqual(self.count(), 1)
        self.assertLessEqual(set(answers), {"COMMITTED", "IN_FLIGHT"})

    def test_streaming_sync_and_async(self) -> None:
        plain = self.invoice()
        gated = self.gate.wrap(plain)
        model = ScriptedModel(script=[calls("send_invoice", customer="a", cents=5), repeats_the_tool])
        agent = create_agent(model, [plain], middleware=[InterlockMiddleware([gated])])
        modes: Any = ["updates", "messages", "custom"]

        def said(chunks: list[Any]) -> list[str]:
            updates = [chunk["tools"]["messages"] for mode, chunk in chunks if mode == "updates" and "tools" in chunk]
            return [message.artifact["outcome"] for messages in updates for message in messages]

        first = list(agent.stream({"messages": [HumanMessage("Bill them.")]}, CONFIG, stream_mode=modes))

        async def again() -> list[Any]:
            asked = {"messages": [HumanMessage("Once more.")]}
            return [chunk async for chunk in agent.astream(asked, CONFIG, stream_mode=modes)]

        self.assertEqual(said(first) + said(asyncio.run(again())), ["COMMITTED", "COMMITTED"])
        self.assertEqual(self.count(), 1)

    def test_batches_of_agents_of_a_tool_and_calls_of_one_message(self) -> None:
        plain = self.invoice()
        gated = self.gate.wrap(plain, subject=["customer"])
        model = ScriptedModel(script=[calls("send_invoice", customer="a", cents=5), repeats_the_tool])
        agent = create_agent(model, [plain], middleware=[InterlockMiddleware([gated])])
        agent.batch([{"messages": [HumanMessage("Bill them.")]}] * 3, [CONFIG] * 3)
        self.assertEqual(self.count(), 1)
        asked: list[Any] = [
            {"name": "send_invoice", "args": {"customer": name, "cents": 5}, "id": f"c{index}", "type": "tool_call"}
            for index, name in enumerate("abab")
        ]
        gated.batch(asked, [CONFIG] * 4)
        self.assertEqual(self.count(), 2)
        node = ToolNode([gated])
        graph: Any = StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()
        found = graph.invoke({"messages": [AIMessage(content="", tool_calls=asked)]}, CONFIG)
        outcomes = [one.artifact["outcome"] for one in found["messages"] if isinstance(one, ToolMessage)]
        self.assertEqual((outcomes, self.count()), (["COMMITTED"] * 4, 2))

    def test_other_tools_are_left_alone(self) -> None:
        plain = self.invoice()
        other = self.gate.wrap(StructuredTool.from_function(lambda x: "y", name="other", description="Other."))
        (message,) = self.run_agent(plain, InterlockMiddleware([other]))
        self.assertEqual((message.text, self.count()), ("invoice for a", 1))


if __name__ == "__main__":
    unittest.main()
