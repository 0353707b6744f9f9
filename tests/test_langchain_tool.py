"""Gated effects as LangChain tools: identity, arguments, what the model is told, sync and async."""

from __future__ import annotations

import asyncio
import json
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage, ToolMessage
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from pydantic import BaseModel, Field

from interlock_tools import BadArguments, DefiniteNo, DefinitionError, Gate, MissingRequestKey
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, effect_tool, from_config, from_thread_id
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool
from interlock_tools.receipts.file import open_receipt

GOOD = {"payment_intent": "pi_1", "amount": 2000}
CASE = {"configurable": {"request_id": "case-4471"}}


class ToolCase(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "refunds.db"
        self.gate = Gate(self.path)
        self.addCleanup(self.gate.close)
        self.sent: list[dict[str, Any]] = []
        self.during: Callable[[], None] = lambda: None

    def effect(self, **options: Any) -> Effect[Any]:
        def send(request: str, payment_intent: str, amount: Annotated[int, Field(ge=1, le=10_000)]) -> dict[str, Any]:
            """Refund part of a payment.

            Args:
                request: the approved request.
                payment_intent: the payment,
                    as its id.
                amount: how much, in cents.
            """
            self.sent.append({"payment_intent": payment_intent, "amount": amount})
            self.during()
            return {"id": f"re_{len(self.sent)}", "amount": amount}

        options.setdefault("key", lambda request, payment_intent: f"{request}:{payment_intent}")
        return self.gate.effect("refund", **options)(send)

    def tool(self, effect: Effect[Any] | None = None, **options: Any) -> GatedTool:
        return effect_tool(effect or self.effect(), name="create_refund", **options)

    def call(self, tool: GatedTool, config: Any = CASE, call_id: str = "call_1", **arguments: Any) -> ToolMessage:
        call = {"name": tool.name, "args": {**GOOD, **arguments}, "id": call_id, "type": "tool_call"}
        message = tool.invoke(call, config)
        self.assertIsInstance(message, ToolMessage)
        return message


class WhatTheModelIsTold(ToolCase):
    def test_content_is_the_sentence_and_the_artifact_plain_json(self) -> None:
        message = self.call(self.tool())
        self.assertEqual(message.status, "success")
        self.assertTrue(message.text.startswith("Done: refund for request case-4471:pi_1 took effect: re_1."))
        artifact = json.loads(json.dumps(message.artifact))
        self.assertEqual((artifact["status"], artifact["result"]["id"]), ("COMMITTED", "re_1"))
        kinds = [record.entry.kind.value for record in open_receipt(artifact["receipt"]).records]
        self.assertEqual(kinds, ["proposed", "authorized", "dispatched", "committed"])

    def test_a_refusal_is_no_error(self) -> None:
        message = self.call(self.tool(self.effect(allowed=lambda payment_intent: None)))
        self.assertEqual((message.status, message.artifact["outcome"]), ("success", "REFUSED:not_allowed"))
        self.assertIn("Asking again changes nothing", message.text)
        self.assertEqual(self.sent, [])

    def test_an_unknown_end_is_no_error(self) -> None:
        def cut() -> None:
            raise ConnectionError("cut")

        self.during = cut
        message = self.call(self.tool())
        self.assertEqual((message.status, message.artifact["outcome"]), ("success", "AMBIGUOUS:no_evidence"))
        self.assertIn("will not be sent again", message.text)

    def test_a_premise_that_cannot_be_read_is_no_error(self) -> None:
        message = self.call(self.tool(self.effect(premises=lambda payment_intent: {}["x"])))
        self.assertEqual((message.status, message.artifact["outcome"]), ("success", "IN_FLIGHT:unreadable"))
        self.assertIsNone(message.artifact["receipt"])

    def test_a_send_whose_end_cannot_be_recorded(self) -> None:
        """The disk is full from the moment of the send on: the tool may not say that nothing happened."""
        if sys.platform != "linux":
            self.skipTest("needs RLIMIT_FSIZE")
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGXFSZ, ignored)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, before)

        def fill() -> None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1, before[1]))

        self.during = fill
        tool = self.tool()
        with self.assertLogs("interlock_tools", "WARNING") as logs:
            message = self.call(tool)
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        self.assertEqual((message.status, message.artifact["status"], len(self.sent)), ("success", "UNKNOWN", 1))
        self.assertIn("It may have happened. Do not repeat it", message.text)
        self.assertNotIn("try again", message.text.lower())
        self.assertTrue(logs.output)
        self.during = lambda: None
        again = self.call(tool)
        self.assertEqual((again.artifact["outcome"], len(self.sent)), ("AMBIGUOUS:no_evidence", 1))

    def test_what_the_service_rejects(self) -> None:
        def reject() -> None:
            raise DefiniteNo("no such payment", code="resource_missing")

        self.during = reject
        message = self.call(self.tool())
        self.assertEqual((message.status, message.artifact["outcome"]), ("success", "REFUSED:rejected"))
        self.assertIn("resource_missing", message.text)


class Identity(ToolCase):
    def test_the_schema_has_no_key(self) -> None:
        schema = self.tool().tool_call_schema.model_json_schema()
        self.assertEqual(sorted(schema["properties"]), ["amount", "payment_intent"])
        self.assertEqual(schema["properties"]["payment_intent"]["description"], "the payment, as its id.")

    def test_without_a_reference(self) -> None:
        tool = self.tool()
        for config in (None, {"configurable": {"thread_id": "t1"}}, {"configurable": {"request_id": ""}}):
            with self.subTest(config), self.assertRaisesRegex(MissingRequestKey, "Nothing was written or sent"):
                tool.invoke(GOOD, config)
        self.assertEqual((self.sent, self.gate.open_effects()), ([], []))

    def test_a_thread_is_a_request_only_where_the_application_says_so(self) -> None:
        tool = self.tool(request=from_thread_id)
        self.call(tool, {"configurable": {"thread_id": "t1"}})
        again = self.call(tool, {"configurable": {"thread_id": "t1"}})
        self.assertEqual((again.artifact["request_key"], len(self.sent)), ("t1:pi_1", 1))

    def test_a_function_of_the_application_s(self) -> None:
        self.assertEqual(self.call(self.tool(request=lambda: "r1"), None).artifact["request_key"], "r1:pi_1")

    def test_a_function_that_fails(self) -> None:
        with self.assertRaisesRegex(MissingRequestKey, "KeyError"):
            self.call(self.tool(request=lambda config: config["configurable"]["case"]))
        self.assertEqual(self.sent, [])

    def test_a_call_s_id_is_recorded_and_never_identity(self) -> None:
        tool = self.tool()
        first, second = self.call(tool, call_id="call_a"), self.call(tool, call_id="call_b")
        self.assertEqual(first.artifact["effect_id"], second.artifact["effect_id"])
        self.assertEqual(len(self.sent), 1)
        proposed = open_receipt(second.artifact["receipt"]).records[0].entry.body
        self.assertEqual(proposed["context"], {"tool_call_id": "call_a"})

    def test_a_colliding_or_empty_call_id_joins_nothing(self) -> None:
        tool = self.tool()
        for request in ("r1", "r2"):
            for call_id in ("call_1", ""):
                self.call(tool, {"configurable": {"request_id": request}}, call_id)
        self.assertEqual(len(self.sent), 2)

    def test_another_action_on_the_same_subject_is_already_done(self) -> None:
        tool = self.tool()
        self.call(tool)
        message = self.call(tool, amount=3000)
        self.assertEqual((message.artifact["outcome"], len(self.sent)), ("REFUSED:already_done", 1))
        self.assertTrue(message.text.startswith("Done: refund for request case-4471:pi_1 took effect: re_1."))
        self.assertIn("new request reference", message.text)

    def test_another_action_before_the_first_is_done_is_a_conflict(self) -> None:
        tool = self.tool(self.effect(allowed=lambda payment_intent: None))
        self.call(tool)
        self.assertEqual(self.call(tool, amount=3000).artifact["outcome"], "REFUSED:conflicting_payload")

    def test_two_subjects_of_one_request(self) -> None:
        tool = self.tool()
        self.call(tool)
        self.call(tool, payment_intent="pi_2")
        self.assertEqual(len(self.sent), 2)


class Arguments(ToolCase):
    BAD: tuple[dict[str, Any], ...] = (
        {"amount": True},
        {"amount": "1_000"},
        {"amount": " 7 "},
        {"amount": 500.0},
        {"amount": 0},
        {"amount": 10_001},
        {"amount": None},
        {"payment_intent": 7},
        {"idempotency_key": "mine"},
        {"request": "case-1"},
        {"request_id": "case-1"},
    )

    def test_a_model_s_bad_arguments_are_explained(self) -> None:
        tool = self.tool()
        for bad in self.BAD:
            with self.subTest(bad):
                message = self.call(tool, **bad)
                self.assertEqual(message.status, "error")
                self.assertIn("Nothing was recorded or sent", message.text)
                self.assertIn(next(iter(bad)), message.text)
                self.assertNotRegex(message.text.lower(), "try again|retry|fix")
        self.assertEqual((self.sent, self.gate.open_effects()), ([], []))

    def test_a_program_s_bad_arguments_are_an_error(self) -> None:
        tool = self.tool()
        for bad in self.BAD:
            with self.subTest(bad), self.assertRaises(BadArguments):
                tool.invoke({**GOOD, **bad}, CASE)
        with self.assertRaises(BadArguments):
            tool.invoke("pi_1", CASE)

    def test_complaints_hold_no_values(self) -> None:
        message = self.call(self.tool(), amount="sk_test_4eC39HqLyjWDarjtT1zdp7dc")
        self.assertNotIn("4eC39", message.text)

    def test_what_only_the_gate_sees(self) -> None:
        def send(request: str, note: str) -> str:
            """Note something."""
            return "n1"

        tool = effect_tool(self.gate.effect("note", key=lambda request: request)(send))
        surrogate = tool.invoke({"name": "send", "args": {"note": "\ud800"}, "id": "c", "type": "tool_call"}, CASE)
        self.assertEqual(surrogate.status, "error")

    def test_a_schema_of_the_application_s_is_made_strict(self) -> None:
        class Given(BaseModel):
            """What the model gives."""

            payment_intent: str = Field(pattern="^pi_")
            amount: int

        tool = self.tool(args_schema=Given)
        self.assertEqual(self.call(tool, amount="20").status, "error")
        self.assertEqual(self.call(tool, extra=1).status, "error")
        self.assertEqual(self.call(tool, payment_intent="ch_1").status, "error")
        self.assertEqual(self.call(tool).artifact["status"], "COMMITTED")

    def test_arguments_that_the_application_fills_in(self) -> None:
        def send(case: str, seller: str, kind: Literal["a", "b"] = "a", tags: list[str] | None = None) -> str:
            """Pay a seller."""
            self.sent.append({"case": case, "seller": seller, "kind": kind, "tags": tags})
            return "tr_1"

        pay = self.gate.effect("pay", key=lambda case, **_: case)(send)
        tool = pay.as_tool(name="pay", hidden={"seller": from_config("seller")})
        config = {"configurable": {"request_id": "4471", "seller": "acct_1"}}
        tool.invoke({"kind": "b", "tags": ["x"]}, config)
        self.assertEqual(sorted(tool.args), ["kind", "tags"])
        self.assertEqual(self.sent, [{"case": "4471", "seller": "acct_1", "kind": "b", "tags": ["x"]}])

    def test_one_and_no_argument(self) -> None:
        def one(request: str, pull: str) -> str:
            """Merge a pull request."""
            return pull

        def none(request: str) -> str:
            """Ring the bell."""
            return "rung"

        tool = effect_tool(self.gate.effect("one", key=lambda request: request)(one))
        self.assertIn("rosa/7", tool.invoke("rosa/7", CASE))
        bell = effect_tool(self.gate.effect("none", key=lambda request: request)(none))
        self.assertIn("rung", bell.invoke({}, CASE))
        self.assertRaises(BadArguments, bell.invoke, {"loud": True}, CASE)


class Declarations(ToolCase):
    def declare(self, function: Any, key: Any = lambda request: request, **options: Any) -> GatedTool:
        return effect_tool(self.gate.effect(f"e{id(function)}", key=key)(function), **options)

    def test_what_is_wrong_is_said_at_once(self) -> None:
        def reserved(request: str, config: str) -> str:
            """Words."""
            return "x"

        def silent(request: str) -> str:
            return "x"

        def unclear(case: str, order: str) -> str:
            """Words."""
            return "x"

        class Other(BaseModel):
            something: str

        self.assertRaisesRegex(DefinitionError, "config", self.declare, reserved)
        self.assertRaisesRegex(DefinitionError, "docstring", self.declare, silent)
        both = lambda case, order: case  # noqa: E731
        self.assertRaisesRegex(DefinitionError, "request_argument", self.declare, unclear, both)
        named = self.declare(lambda case, order: "x", both, request_argument="case", description="d")
        self.assertEqual(list(named.args), ["order"])
        effect = self.effect()
        self.assertRaisesRegex(DefinitionError, "fields", self.tool, effect, args_schema=Other)
        self.assertRaisesRegex(DefinitionError, "JSON schema", self.tool, effect, args_schema={"type": "object"})
        self.assertRaisesRegex(DefinitionError, "content and artifact", self.tool, effect, response_format="content")
        self.assertRaisesRegex(DefinitionError, "2 arguments", self.tool, effect, request=lambda a, b: "x")
        self.assertRaisesRegex(DefinitionError, "plain function", self.tool, effect, request="case")
        self.assertRaisesRegex(DefinitionError, "seller", self.tool, effect, hidden={"seller": lambda: "x"})

    def test_langchain_is_loaded_by_those_who_use_it(self) -> None:
        code = (
            "import interlock_tools, sys; sys.exit(any(m.startswith(('langchain', 'langgraph')) for m in sys.modules))"
        )
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)
        code = "import interlock_tools.langchain, sys; sys.exit('langgraph' in sys.modules)"
        self.assertEqual(subprocess.run([sys.executable, "-c", code], check=False).returncode, 0)

    def test_no_object_of_the_application_s_is_shown(self) -> None:
        shown = repr(self.tool(request=lambda: "s3cret"))
        self.assertNotIn("lambda", shown)
        self.assertNotIn("Gate(", shown)


class Agents(ToolCase):
    def test_create_agent(self) -> None:
        script = [calls("create_refund", **GOOD), repeats_the_tool]
        agent = create_agent(ScriptedModel(script=script), [self.tool()])
        said = [agent.invoke({"messages": [HumanMessage("Refund 20")]}, CASE)["messages"][-1].text for _ in range(2)]
        self.assertEqual(said[0], said[1])
        self.assertEqual(len(self.sent), 1)

    def test_bad_arguments_do_not_end_the_run(self) -> None:
        script = [calls("create_refund", payment_intent="pi_1", amount="20"), repeats_the_tool]
        agent = create_agent(ScriptedModel(script=script), [self.tool()])
        said = agent.invoke({"messages": [HumanMessage("Refund 20")]}, CASE)["messages"][-1].text
        self.assertIn("amount", said)
        self.assertNotIn("try again", said)

    def test_a_missing_reference_ends_the_run_unsent(self) -> None:
        agent = create_agent(ScriptedModel(script=[calls("create_refund", **GOOD)]), [self.tool()])
        self.assertRaises(MissingRequestKey, agent.invoke, {"messages": [HumanMessage("Refund 20")]})
        self.assertEqual(self.sent, [])

    def test_parallel_calls_of_one_message(self) -> None:
        step = calls("create_refund", **GOOD)([])
        step.tool_calls.append({**step.tool_calls[0], "id": "call_other"})
        agent = create_agent(ScriptedModel(script=[lambda messages: step, repeats_the_tool]), [self.tool()])
        answers = agent.invoke({"messages": [HumanMessage("Refund 20")]}, CASE)["messages"]
        outcomes = [m.artifact["outcome"] for m in answers if isinstance(m, ToolMessage)]
        self.assertEqual(len(self.sent), 1)
        self.assertIn("COMMITTED", outcomes)
        self.assertLessEqual(set(outcomes), {"COMMITTED", "IN_FLIGHT:sending"})

    def test_a_tool_node_that_turns_every_error_into_a_message(self) -> None:
        self.during = lambda: (_ for _ in ()).throw(ConnectionError("cut"))
        node = ToolNode([self.tool()], handle_tool_errors=True)
        graph = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.set_entry_point("tools")
        asked = {"messages": [calls("create_refund", **GOOD)([])]}
        answers = [graph.compile().invoke(asked, CASE)["messages"][-1] for _ in range(2)]
        self.assertEqual([answer.status for answer in answers], ["success", "success"])
        self.assertIn("will not be sent again", answers[1].text)
        self.assertEqual(len(self.sent), 1)

    def test_batch(self) -> None:
        tool = self.tool()
        answers = tool.batch([GOOD, {**GOOD, "payment_intent": "pi_2"}], CASE)
        self.assertEqual(len(self.sent), 2)
        self.assertTrue(all(answer.startswith("Done") for answer in answers))

    def test_called_by_something_that_knows_no_configuration(self) -> None:
        content, artifact = self.tool(request=lambda: "r1")._run(**GOOD)
        self.assertTrue(content.startswith("Done"))
        self.assertEqual(artifact["status"], "COMMITTED")


class Async(ToolCase):
    def test_plain_and_async_effects(self) -> None:
        async def send(request: str, note: str) -> str:
            """Note something."""
            await asyncio.sleep(0)
            self.sent.append({"note": note})
            return "n1"

        native = effect_tool(self.gate.effect("note", key=lambda request: request)(send))
        call = {"name": "send", "args": {"note": "x"}, "id": "c", "type": "tool_call"}
        self.assertEqual(asyncio.run(native.ainvoke(call, CASE)).artifact["status"], "COMMITTED")
        self.assertEqual(native.invoke(call, CASE).artifact["status"], "COMMITTED")
        self.assertEqual(len(self.sent), 1)
        message = asyncio.run(self.tool().ainvoke({**call, "name": "create_refund", "args": GOOD}, CASE))
        self.assertEqual(message.artifact["status"], "COMMITTED")

    def test_bad_arguments_and_no_reference(self) -> None:
        tool = self.tool()
        call = {"name": "create_refund", "args": {**GOOD, "amount": True}, "id": "c", "type": "tool_call"}
        self.assertEqual(asyncio.run(tool.ainvoke(call, CASE)).status, "error")
        with self.assertRaises(MissingRequestKey):
            asyncio.run(tool.ainvoke(GOOD))

    def test_a_send_survives_its_agent_s_cancellation(self) -> None:
        arrived, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            arrived.set()
            go_on.wait(10)

        self.during = hold
        tool = self.tool()

        async def cancelled() -> None:
            task = asyncio.ensure_future(tool.ainvoke(GOOD, CASE))
            await asyncio.to_thread(arrived.wait, 10)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go_on.set()
            from interlock_tools import effect

            await asyncio.gather(*effect._background)

        asyncio.run(cancelled())
        self.assertEqual((self.call(tool).artifact["outcome"], len(self.sent)), ("COMMITTED", 1))

    def test_a_live_sender_is_reported_or_waited_for(self) -> None:
        arrived, go_on = threading.Event(), threading.Event()

        def hold() -> None:
            arrived.set()
            go_on.wait(10)

        self.during = hold
        tool = self.tool()
        sender = threading.Thread(target=lambda: tool.invoke(GOOD, CASE))
        sender.start()
        self.assertTrue(arrived.wait(10))
        self.assertEqual(self.call(tool).artifact["outcome"], "IN_FLIGHT:sending")
        patient = effect_tool(tool.effect, name="create_refund", wait=10)
        threading.Timer(0.05, go_on.set).start()
        self.assertEqual(self.call(patient).artifact["outcome"], "COMMITTED")
        sender.join()
        self.assertEqual(len(self.sent), 1)


if __name__ == "__main__":
    unittest.main()
