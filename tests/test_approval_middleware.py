"""Approvals by a LangGraph interrupt: from the tool and from the middleware, batched and for each call."""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate_support import MEMORY, SetClock
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from interlock_tools import DefinitionError, Gate
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.langchain import ApprovalMiddleware, GatedTool, InterlockMiddleware, RecordedReview
from interlock_tools.langchain.testing import ScriptedModel, says

CONFIG: Any = {"configurable": {"request_id": "case-1", "thread_id": "t1", "approver": "ann"}}
YES = {"pi_1": {"type": "approve"}, "pi_2": {"type": "approve"}}
ASK = {"messages": [HumanMessage("Refund both.")]}


def both(messages: list[BaseMessage]) -> AIMessage:
    """The model asks for two refunds in one message, with fresh ids each time."""
    count = len(messages)
    calls = [
        {"name": "refund", "args": {"payment": name, "amount": 2000}, "id": f"call_{count}_{name}", "type": "tool_call"}
        for name in ("pi_1", "pi_2")
    ]
    return AIMessage(content="", tool_calls=calls)  # type: ignore[arg-type]


def by_payment(paused: dict[str, Any], decisions: dict[str, Any]) -> Command[Any]:
    """Answer each interrupt by what it is about: those of calls that run side by side come in any order."""
    return Command(resume={one.id: decisions[one.value["args"]["payment"]] for one in paused["__interrupt__"]})


class InterruptCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "j.db"
        self.clock = SetClock()
        self.sent: list[tuple[str, int]] = []
        self.saver = InMemorySaver()
        self.gate = self.open()

    def open(self) -> Gate:
        gate = Gate(SqliteJournal(self.path, self.clock))
        self.addCleanup(gate.close)
        return gate

    def tool(self, gate: Gate | None = None, requires: Any = True, **options: Any) -> GatedTool:
        @(gate or self.gate).effect(
            "shop.refund", key=lambda request, payment: f"{request}:{payment}", requires_approval=requires
        )
        def refund(request: str, payment: str, amount: int, *, idempotency_key: str) -> dict[str, Any]:
            """Refund a payment."""
            self.sent.append((payment, amount))
            return {"id": f"re_{len(self.sent)}"}

        tool = refund.as_tool(**options)
        assert isinstance(tool, GatedTool)
        return tool

    def agent(self, tool: GatedTool, *middleware: Any, script: Any = None) -> Any:
        model = ScriptedModel(script=script or [both, says("ok")])
        return create_agent(model, [tool], middleware=middleware, checkpointer=self.saver)

    def answers(self, result: dict[str, Any]) -> list[ToolMessage]:
        return [message for message in result["messages"] if isinstance(message, ToolMessage)]

    def outcomes(self, result: dict[str, Any]) -> list[str]:
        return [message.artifact["outcome"] for message in self.answers(result)]

    def pending(self) -> list[str]:
        return [outcome.effect_id for outcome in self.gate.pending()]


class Batched(InterruptCase):
    def test_one_question_for_both_and_an_answer_each(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        paused = agent.invoke(ASK, CONFIG)
        (asked,) = paused["__interrupt__"]
        self.assertEqual([one["name"] for one in asked.value["action_requests"]], ["refund", "refund"])
        self.assertEqual([one["effect_id"] for one in asked.value["action_requests"]], self.pending())
        self.assertEqual(self.sent, [])
        decisions = [{"type": "approve"}, {"type": "reject", "message": "too old", "by": "bea"}]
        done = agent.invoke(Command(resume={"decisions": decisions}), CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "REFUSED:rejected"])
        self.assertEqual(self.sent, [("pi_1", 2000)])
        self.assertIn("bea: too old", self.answers(done)[1].text)
        approvals = [self.gate.approval(one["effect_id"]) for one in asked.value["action_requests"]]
        self.assertEqual([one.by for one in approvals if one], ["ann", "bea"])

    def test_under_asyncio(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))

        async def run() -> Any:
            await agent.ainvoke(ASK, CONFIG)
            return await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}] * 2}), CONFIG)

        self.assertEqual(self.outcomes(asyncio.run(run())), ["COMMITTED", "COMMITTED"])

    def test_an_edit_is_a_new_decision(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        agent.invoke(ASK, CONFIG)
        edit = {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 500}}}
        done = agent.invoke(Command(resume={"decisions": [edit, {"type": "approve"}]}), CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "COMMITTED"])
        self.assertEqual(sorted(self.sent), [("pi_1", 500), ("pi_2", 2000)])
        self.assertIn(
            'A person changed the call before it was approved; it is now {"amount":500', self.answers(done)[0].text
        )

    def test_what_was_answered_elsewhere_is_not_asked_again(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        agent.invoke(ASK, CONFIG)
        first, second = self.pending()
        self.open().approve(first, by="cli")
        paused = agent.invoke(Command(resume={"decisions": [{"type": "approve"}] * 2}), CONFIG)
        (asked,) = paused["__interrupt__"]
        self.assertEqual([one["effect_id"] for one in asked.value["action_requests"]], [second])
        self.assertIn("2 decisions for 1 calls", asked.value["problem"])
        done = agent.invoke(Command(resume={"decisions": [{"type": "approve", "effect_id": second}]}), CONFIG)
        self.assertEqual((self.outcomes(done), len(self.sent)), (["COMMITTED", "COMMITTED"], 2))

    def test_answers_that_cannot_be_used_are_asked_for_again(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        agent.invoke(ASK, CONFIG)
        wrong_tool = {"type": "edit", "edited_action": {"name": "pay", "args": {}}}
        wrong_type = {"type": "edit", "edited_action": {"args": {"amount": "much"}}}
        for bad in ("yes", {"decisions": []}, {"decisions": [{"type": "ok"}] * 2}, wrong_tool, wrong_type):
            answer = {"decisions": [bad, bad]} if isinstance(bad, dict) and bad.get("type") else bad
            paused = agent.invoke(Command(resume=answer), CONFIG)
            with self.subTest(bad=bad):
                self.assertTrue(paused["__interrupt__"][0].value["problem"])
                self.assertEqual(self.sent, [])
        done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}] * 2}), CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "COMMITTED"])

    def test_what_is_done_is_not_asked_about_when_the_model_asks_again(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        agent.invoke(ASK, CONFIG)
        agent.invoke(Command(resume={"decisions": [{"type": "approve"}] * 2}), CONFIG)
        again = agent.invoke({"messages": [HumanMessage("And now?")]}, CONFIG)
        self.assertNotIn("__interrupt__", again)
        self.assertEqual((self.outcomes(again)[-2:], len(self.sent)), (["COMMITTED", "COMMITTED"], 2))

    def test_a_process_that_dies_between_the_answer_and_the_send(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        agent.invoke(ASK, CONFIG)
        for effect_id in self.pending():
            self.gate.approve(effect_id, by="ann")  # written down, and the process is gone
        restarted = self.open()
        tool = self.tool(restarted)
        self.assertEqual([str(one) for one in restarted.recover()], ["COMMITTED", "COMMITTED"])
        agent = self.agent(tool, ApprovalMiddleware([tool]))
        done = agent.invoke(None, CONFIG)
        self.assertEqual((self.outcomes(done), len(self.sent)), (["COMMITTED", "COMMITTED"], 2))

    def test_calls_that_need_no_approval_go_on(self) -> None:
        tool = self.tool(requires=lambda amount: amount > 2000)
        done = self.agent(tool, ApprovalMiddleware([tool])).invoke(ASK, CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "COMMITTED"])
        self.assertEqual(self.gate.history(self.answers(done)[0].artifact["effect_id"])[0].body["decided_by"], "call")


class PerCall(InterruptCase):
    def each(self, paused: dict[str, Any], *decisions: Any) -> Command[Any]:
        return by_payment(paused, dict(zip(("pi_1", "pi_2"), decisions, strict=True)))

    def test_by_the_middleware(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, ApprovalMiddleware([tool], interrupt_mode="per_call"))
        paused = agent.invoke(ASK, CONFIG)
        done = agent.invoke(self.each(paused, {"type": "approve"}, {"type": "reject", "why": "no"}), CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "REFUSED:rejected"])
        self.assertEqual(self.sent, [("pi_1", 2000)])

    def test_by_the_tool_alone_sync_and_async(self) -> None:
        agent = self.agent(self.tool(approval="interrupt", approver=lambda: "bea"))
        paused = agent.invoke(ASK, CONFIG)
        edit = {"type": "edit", "edited_action": {"args": {"amount": 1}}}
        done = agent.invoke(self.each(paused, {"type": "approve"}, edit), CONFIG)
        self.assertEqual(self.outcomes(done), ["COMMITTED", "COMMITTED"])
        self.assertEqual(sorted(self.sent), [("pi_1", 2000), ("pi_2", 1)])
        self.assertIn("bea", str(self.gate.history(self.answers(done)[0].artifact["effect_id"])))

        async def run() -> Any:
            config: Any = {"configurable": {"request_id": "case-2", "thread_id": "t2"}}
            paused = await agent.ainvoke(ASK, config)
            return await agent.ainvoke(self.each(paused, {"type": "approve"}, {"type": "approve"}), config)

        self.assertEqual(self.outcomes(asyncio.run(run())), ["COMMITTED", "COMMITTED"])

    def test_one_answered_at_a_time_sends_one_at_a_time(self) -> None:
        tool = self.tool(approval="interrupt")
        agent = self.agent(tool)
        paused = agent.invoke(ASK, CONFIG)
        first, second = paused["__interrupt__"]
        paused = agent.invoke(Command(resume={first.id: {"type": "approve"}}), CONFIG)
        self.assertEqual(len(self.sent), 1)
        (left,) = [one for one in paused["__interrupt__"] if one.id == second.id]
        done = agent.invoke(Command(resume={left.id: {"type": "approve"}}), CONFIG)
        self.assertEqual((self.outcomes(done), len(self.sent)), (["COMMITTED", "COMMITTED"], 2))

    def test_outside_a_graph_it_answers_that_it_waits(self) -> None:
        tool = self.tool(approval="interrupt")
        call = {"name": "refund", "args": {"payment": "pi_1", "amount": 5}, "id": "c", "type": "tool_call"}
        self.assertEqual(tool.invoke(call, CONFIG).artifact["outcome"], "IN_FLIGHT:awaiting_approval")

    def test_without_the_middleware_nothing_is_sent(self) -> None:
        result = self.agent(self.tool()).invoke(ASK, CONFIG)
        self.assertEqual(self.outcomes(result), ["IN_FLIGHT:awaiting_approval"] * 2)
        self.assertEqual(self.sent, [])


class LangChainsOwn(InterruptCase):
    """``HumanInTheLoopMiddleware`` as it is, before tools behind the gate."""

    def test_its_answers_do_not_stand_for_an_approval_that_the_effect_requires(self) -> None:
        tool = self.tool()
        agent = self.agent(tool, HumanInTheLoopMiddleware({"refund": True}))
        agent.invoke(ASK, CONFIG)
        done = agent.invoke(Command(resume={"decisions": [{"type": "approve"}] * 2}), CONFIG)
        self.assertEqual((self.outcomes(done), self.sent), (["IN_FLIGHT:awaiting_approval"] * 2, []))

    def test_both_modes_send_once_and_what_was_edited(self) -> None:
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                gate = self.open()
                tool = self.tool(gate, requires=False)
                agent = self.agent(tool, HumanInTheLoopMiddleware({"refund": True}, interrupt_mode=mode))  # type: ignore[arg-type]
                config: Any = {"configurable": {"request_id": mode, "thread_id": mode}}
                paused = agent.invoke(ASK, config)
                edit = {
                    "type": "edit",
                    "edited_action": {"name": "refund", "args": {"payment": "pi_1", "amount": 7}},
                }
                decisions = [edit, {"type": "approve"}]
                resume: Command[Any] = Command(resume={"decisions": decisions})
                if mode == "per_call":
                    resume = by_payment(paused, dict(zip(("pi_1", "pi_2"), decisions, strict=True)))
                agent.invoke(resume, config)
                self.assertEqual(sorted(self.sent), [("pi_1", 7), ("pi_2", 2000)])


class Recorded(InterruptCase):
    """``HumanInTheLoopMiddleware`` with its answers written to the journal."""

    def reviewed(self, mode: str, *decisions: Any, gate: Gate | None = None, **options: Any) -> tuple[Any, list[str]]:
        """Run an agent whose two calls are reviewed, answer, and return the agent and the outcomes."""
        tool = self.tool(gate, **options)
        review = HumanInTheLoopMiddleware({"refund": True}, interrupt_mode=mode)  # type: ignore[arg-type]
        agent = self.agent(tool, RecordedReview(review, [tool]))
        config: Any = {"configurable": {"request_id": mode, "thread_id": mode, "approver": "ann"}}
        paused = agent.invoke({"messages": [HumanMessage("Refund both.")]}, config)
        self.assertEqual(self.sent, [])
        resume: Command[Any] = Command(resume={"decisions": list(decisions)})
        if mode == "per_call":
            resume = by_payment(paused, dict(zip(("pi_1", "pi_2"), decisions, strict=True)))
        done = agent.invoke(resume, config)
        told = [one.artifact["outcome"] if one.artifact else "no artifact" for one in self.answers(done)]
        return agent, told

    def test_approved_and_rejected(self) -> None:
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                gate = self.open()
                _, told = self.reviewed(mode, {"type": "approve"}, {"type": "reject", "message": "no"}, gate=gate)
                self.assertEqual(sorted(told), ["COMMITTED", "no artifact"])
                self.assertEqual(self.sent, [("pi_1", 2000)])
                rows = [row for row in gate.journal.effects() if row.request_key.startswith(mode)]
                found = {str(gate.outcome(row.effect_id)): gate.approval(row.effect_id) for row in rows}
                self.assertEqual(set(found), {"COMMITTED", "REFUSED:rejected"})
                self.assertEqual({one.by for one in found.values() if one}, {"ann"})

    def test_an_edit_is_a_new_decision_and_is_what_is_sent(self) -> None:
        edit = {"type": "edit", "edited_action": {"name": "refund", "args": {"payment": "pi_1", "amount": 7}}}
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                _, told = self.reviewed(mode, edit, {"type": "approve"}, gate=self.open())
                self.assertEqual((told, sorted(self.sent)), (["COMMITTED"] * 2, [("pi_1", 7), ("pi_2", 2000)]))

    def test_an_answer_in_the_tool_s_place_sends_nothing(self) -> None:
        respond = {"type": "respond", "message": "already done by hand"}
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                gate = self.open()
                self.reviewed(mode, respond, {"type": "approve"}, gate=gate)
                self.assertEqual(self.sent, [("pi_2", 2000)])
                rows = [row for row in gate.journal.effects() if row.request_key == f"{mode}:pi_1"]
                self.assertEqual([str(gate.outcome(row.effect_id)) for row in rows], ["REFUSED:rejected"])

    def test_what_is_done_is_asked_about_again_and_not_done_again(self) -> None:
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                agent, _ = self.reviewed(mode, {"type": "approve"}, {"type": "approve"}, gate=self.open())
                config: Any = {"configurable": {"request_id": mode, "thread_id": f"{mode} again", "approver": "ann"}}
                paused = agent.invoke({"messages": [HumanMessage("Refund both.")]}, config)
                resume: Command[Any] = Command(resume={"decisions": [{"type": "approve"}] * 2})
                if mode == "per_call":
                    resume = by_payment(paused, YES)
                done = agent.invoke(resume, config)
                self.assertEqual((self.outcomes(done), len(self.sent)), (["COMMITTED"] * 2, 2))

    def test_under_asyncio(self) -> None:
        for mode in ("batched", "per_call"):
            with self.subTest(mode):
                self.sent.clear()
                tool = self.tool(self.open())
                review = HumanInTheLoopMiddleware({"refund": True}, interrupt_mode=mode)  # type: ignore[arg-type]
                agent = self.agent(tool, RecordedReview(review, [tool]))
                config: Any = {"configurable": {"request_id": f"a{mode}", "thread_id": f"a{mode}"}}

                async def run(agent: Any = agent, config: Any = config, mode: str = mode) -> Any:
                    paused = await agent.ainvoke({"messages": [HumanMessage("Refund both.")]}, config)
                    resume: Command[Any] = Command(resume={"decisions": [{"type": "approve"}] * 2})
                    if mode == "per_call":
                        resume = by_payment(paused, YES)
                    return await agent.ainvoke(resume, config)

                self.assertEqual(self.outcomes(asyncio.run(run())), ["COMMITTED"] * 2)

    def test_its_own_predicate_decides_and_what_it_lets_pass_is_not_approved(self) -> None:
        tool = self.tool()
        config: Any = {"allowed_decisions": ["approve"], "when": lambda request: False}
        review = HumanInTheLoopMiddleware({"refund": config})
        done = self.agent(tool, RecordedReview(review, [tool])).invoke(ASK, CONFIG)
        self.assertEqual((self.outcomes(done), self.sent), (["IN_FLIGHT:awaiting_approval"] * 2, []))

    def test_what_is_wrong(self) -> None:
        tool = self.tool()
        for review, tools in ((None, [tool]), (HumanInTheLoopMiddleware({"other": True}), [tool])):
            with self.assertRaises(DefinitionError):
                RecordedReview(review, tools)  # type: ignore[arg-type]


class ToolsThatAreThere(InterruptCase):
    def test_a_wrapped_tool_in_either_order_of_the_middleware(self) -> None:
        for number, first in enumerate(("approval", "interlock")):
            with self.subTest(first=first):
                self.sent.clear()

                @tool
                def refund(payment: str, amount: int) -> str:
                    """Refund a payment."""
                    self.sent.append((payment, amount))
                    return "refunded"

                gated = self.gate.wrap(refund, effect=f"e{number}", subject=["payment"], requires_approval=True)
                both_of_them = [ApprovalMiddleware([gated]), InterlockMiddleware([gated])]
                stack = both_of_them if first == "approval" else both_of_them[::-1]
                agent = create_agent(
                    ScriptedModel(script=[both, says("ok")]), [refund], middleware=stack, checkpointer=self.saver
                )
                config: Any = {"configurable": {"request_id": first, "thread_id": first}}
                agent.invoke({"messages": [HumanMessage("Refund both.")]}, config)
                self.assertEqual(self.sent, [])
                decisions = [{"type": "approve"}, {"type": "reject"}]
                done = agent.invoke(Command(resume={"decisions": decisions}), config)
                self.assertEqual(self.outcomes(done), ["COMMITTED", "REFUSED:rejected"])
                self.assertEqual(self.sent, [("pi_1", 2000)])


class Declaring(InterruptCase):
    def test_what_is_wrong(self) -> None:
        with self.assertRaises(DefinitionError):
            ApprovalMiddleware([])
        with self.assertRaises(DefinitionError):
            ApprovalMiddleware([self.tool()], interrupt_mode="each")  # type: ignore[arg-type]
        with self.assertRaises(DefinitionError):
            self.tool(self.open(), approver="ann")


if __name__ == "__main__":
    unittest.main()
