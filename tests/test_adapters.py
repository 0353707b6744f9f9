"""Gated tools in other frameworks, each the real package with its own fake model or test environment.

Each is asked the same: the reference comes from the application; asked twice it
acts once; no outcome is an error to retry; what a model may not give is refused.
"""

from __future__ import annotations

import asyncio
import dataclasses
import importlib
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from adapter_support import AdapterCase, needs
from gate_support import Lands

from interlock_tools import DefinitionError, MissingRequestKey
from interlock_tools.langchain import GatedTool, GatedToolkit

CALL: dict[str, Any] = {"payment": "pi_1", "amount": 500}


def adapter(name: str) -> Any:
    return importlib.import_module(f"interlock_integrations.adapters.{name}")


class Calls(AdapterCase):
    """What all adapters rest on, and what needs none of their frameworks."""

    def test_importing_the_adapters_imports_no_framework(self) -> None:
        code = (
            "import sys, interlock_integrations.adapters, interlock_integrations.adapters.calling\n"
            "print([n for n in ('pydantic_ai', 'agents', 'google.adk', 'temporalio', 'dbos') if n in sys.modules])"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60)
        self.assertEqual(done.stdout.strip(), "[]", done.stderr)

    def test_the_reference_is_the_adapters_to_give_whatever_the_tool_was_made_with(self) -> None:
        calling = adapter("calling").Calling
        tool = self.tool().model_copy(update={"request": lambda: "another"})
        told = calling(tool).call(CALL, "case-1", "call_1")
        self.assertEqual((told.artifact["request_key"], told.artifact["outcome"]), ("case-1", "COMMITTED"))
        self.assertEqual(told.brief()["result"], told.content)
        with self.assertRaises(DefinitionError):
            calling(lambda: None)

    def test_a_gated_effect_will_do(self) -> None:
        told = adapter("calling").Calling(self.tool().effect).call(CALL, "case-1", None)
        self.assertEqual(told.artifact["outcome"], "COMMITTED")

    def test_the_tools_of_a_toolkit_will_do(self) -> None:
        toolkit = GatedToolkit(self.gate, request=lambda: "the toolkit's own")
        toolkit.add(self.tool())
        (told,) = [adapter("calling").Calling(one).call(CALL, "case-1", None) for one in toolkit.get_tools()]
        self.assertEqual((told.artifact["outcome"], told.artifact["request_key"]), ("COMMITTED", "case-1"))

    def test_what_needs_an_approval_waits_for_a_person_and_is_then_done(self) -> None:
        calling = adapter("calling").Calling(self.tool(requires_approval=True))
        asked = calling.call(CALL, "case-1", "call_1").artifact
        self.assertEqual((asked["outcome"], self.sends()), ("IN_FLIGHT:awaiting_approval", 0))
        self.gate.approve(asked["effect_id"], by="example person", why="seen")
        done = calling.call(CALL, "case-1", "call_2").artifact
        self.assertEqual((done["outcome"], self.sends()), ("COMMITTED", 1))

    def test_a_hidden_argument_may_come_from_the_frameworks_context(self) -> None:
        hidden = {"amount": lambda config: config["configurable"]["context"]["amount"]}
        tool = self.tool().effect.as_tool(hidden=hidden)
        told = adapter("calling").Calling(tool).call({"payment": "pi_1"}, "case-1", None, {"amount": 7})
        self.assertEqual((told.artifact["outcome"], self.service.created[0]["amount"]), ("COMMITTED", 7))


@needs("pydantic_ai", "pydantic-ai")
class PydanticAi(AdapterCase):
    def agent(self, tool: Any, *calls: dict[str, Any], **options: Any) -> Any:
        """An agent whose model makes these calls one after another, each under a new id, and then ends."""
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
        from pydantic_ai.models.function import FunctionModel

        def model(messages: list[Any], info: Any) -> Any:
            made = sum(isinstance(message, ModelResponse) for message in messages)
            if made < len(calls):
                return ModelResponse(parts=[ToolCallPart("create_refund", calls[made])])
            return ModelResponse(parts=[TextPart("done")])

        return Agent(FunctionModel(model), deps_type=dict, tools=[adapter("pydantic_ai").gated_tool(tool, **options)])

    def returns(self, result: Any) -> list[Any]:
        parts = [part for message in result.all_messages() for part in message.parts]
        return [part for part in parts if part.part_kind == "tool-return"]

    def test_killed_in_its_send_and_started_anew_there_is_one_effect(self) -> None:
        self.assert_survives_a_kill("pydantic_ai")

    def test_a_model_that_asks_twice_acts_once(self) -> None:
        result = self.agent(self.tool(), CALL, CALL).run_sync("go", deps={"request_id": "case-1"})
        first, second = self.returns(result)
        self.assertEqual((self.sends(), first.content), (1, second.content))
        self.assertEqual((first.metadata["outcome"], first.metadata["request_key"]), ("COMMITTED", "case-1"))
        self.assertIsNotNone(first.metadata["receipt"])

    def test_a_restarted_run_with_other_arguments_is_told_what_was_done(self) -> None:
        tool = self.tool()
        self.agent(tool, CALL).run_sync("go", deps={"request_id": "case-1"})
        again = self.agent(tool, {**CALL, "amount": 501}).run_sync("go", deps={"request_id": "case-1"})
        self.assertEqual(self.returns(again)[0].metadata["outcome"], "REFUSED:already_done")
        self.assertEqual(self.sends(), 1)

    def test_what_may_have_happened_is_not_an_error_to_retry(self) -> None:
        self.service.script = [Lands(TimeoutError("no answer"))]
        result = asyncio.run(self.agent(self.tool(), CALL).run("go", deps={"request_id": "case-1"}))
        (said,) = self.returns(result)
        self.assertEqual((said.outcome, said.metadata["outcome"]), ("success", "AMBIGUOUS:no_evidence"))
        self.assertEqual((said.content, self.sends()), (said.metadata["message"], 1))

    def test_without_a_reference_the_run_ends(self) -> None:
        tool = self.tool()
        for deps, options in (({}, {}), (None, {}), ({}, {"request": lambda context: context.deps["nothing"]})):
            with self.assertRaises(MissingRequestKey):
                self.agent(tool, CALL, **options).run_sync("go", deps=deps)
        self.assertNothingRecorded()

    def test_made_up_and_loose_arguments_are_refused(self) -> None:
        calls = [{**CALL, "request": "case-2"}, {**CALL, "amount": "500"}, {**CALL, "amount": True}]
        result = self.agent(self.tool(), *calls).run_sync("go", deps={"request_id": "case-1"})
        self.assertEqual([said.content[:9] for said in self.returns(result)], ["Not done:"] * 3)
        self.assertNothingRecorded()

    def test_its_own_test_model_reads_the_schema(self) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.models.test import TestModel

        model = TestModel()
        agent = Agent(model, deps_type=dict, tools=[adapter("pydantic_ai").gated_tool(self.tool())])
        agent.run_sync("go", deps={"request_id": "case-1"})
        definition = model.last_model_request_parameters.function_tools[0]
        self.assertEqual(set(definition.parameters_json_schema["properties"]), {"payment", "amount", "note"})
        self.assertEqual((definition.description, self.sends()), ("Refund an amount of a payment.", 1))


@needs("agents", "openai-agents")
class OpenAiAgents(AdapterCase):
    def run_agent(self, tool: GatedTool, *calls: Any, context: Any) -> Any:
        from agents import Agent, RunConfig, Runner
        from agents.testing import ScriptedModel, assistant_message, function_call

        steps: list[Any] = [
            [function_call("create_refund", call, call_id=f"call_{number}")] for number, call in enumerate(calls)
        ]
        model = ScriptedModel([*steps, [assistant_message("done")]])
        agent = Agent(name="agent", model=model, tools=[adapter("openai_agents").gated_tool(tool)])
        return Runner.run_sync(agent, "go", context=context, run_config=RunConfig(tracing_disabled=True))

    def outputs(self, result: Any) -> list[Any]:
        return [item for item in result.new_items if item.type == "tool_call_output_item"]

    def test_killed_in_its_send_and_started_anew_there_is_one_effect(self) -> None:
        self.assert_survives_a_kill("openai_agents")

    def test_a_model_that_asks_twice_acts_once(self) -> None:
        result = self.run_agent(self.tool(), CALL, CALL, context={"request_id": "case-1"})
        first, second = self.outputs(result)
        self.assertEqual((self.sends(), first.output), (1, second.output))
        self.assertEqual(first.custom_data["outcome"], "COMMITTED")
        self.assertEqual(first.raw_item["output"], first.custom_data["message"])
        json.dumps(result.to_input_list())

    def test_what_may_have_happened_is_not_an_error_to_retry(self) -> None:
        self.service.script = [Lands(TimeoutError("no answer"))]
        (said,) = self.outputs(self.run_agent(self.tool(), CALL, context={"request_id": "case-1"}))
        self.assertEqual((said.custom_data["outcome"], self.sends()), ("AMBIGUOUS:no_evidence", 1))

    def test_without_a_reference_the_run_ends(self) -> None:
        tool = self.tool()
        for context in ({}, None):
            with self.assertRaises(Exception) as caught:
                self.run_agent(tool, CALL, context=context)
            causes = (caught.exception, caught.exception.__cause__)
            self.assertTrue(any(isinstance(error, MissingRequestKey) for error in causes), causes)
        self.assertNothingRecorded()

    def test_made_up_and_loose_arguments_are_refused(self) -> None:
        calls = [{**CALL, "idempotency_key": "x"}, {**CALL, "amount": True}, "[1]", "{", "null"]
        result = self.run_agent(self.tool(), *calls, context={"request_id": "case-1"})
        self.assertEqual([said.output[:9] for said in self.outputs(result)], ["Not done:"] * 5)
        self.assertNothingRecorded()


@needs("google.adk", "google-adk")
class GoogleAdk(AdapterCase):
    def run_agent(self, tool: GatedTool, *calls: dict[str, Any], state: dict[str, Any]) -> list[dict[str, Any]]:
        """What the tool answered, call by call, in a run of ADK's own runner with a scripted model."""
        from google.adk.agents import LlmAgent
        from google.adk.models import BaseLlm, LlmResponse
        from google.adk.runners import InMemoryRunner
        from google.genai import types

        class Scripted(BaseLlm):
            async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
                made = sum(content.role == "model" for content in llm_request.contents)
                if made < len(calls):
                    part = types.Part.from_function_call(name="create_refund", args=calls[made])
                else:
                    part = types.Part.from_text(text="done")
                yield LlmResponse(content=types.Content(role="model", parts=[part]))

        agent = LlmAgent(name="agent", model=Scripted(model="s"), tools=[adapter("google_adk").gated_tool(tool)])
        runner = InMemoryRunner(agent, app_name="app")

        async def main() -> list[dict[str, Any]]:
            session = await runner.session_service.create_session(app_name="app", user_id="u", state=state)
            message = types.Content(role="user", parts=[types.Part.from_text(text="go")])
            answers = []
            async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
                answers += [one.response for one in event.get_function_responses()]
            return answers

        return asyncio.run(main())

    def test_killed_in_its_send_and_started_anew_there_is_one_effect(self) -> None:
        self.assert_survives_a_kill("google_adk")

    def test_a_model_that_asks_twice_acts_once(self) -> None:
        first, second = self.run_agent(self.tool(), CALL, CALL, state={"request_id": "case-1"})
        self.assertEqual((self.sends(), first), (1, second))
        self.assertEqual(first["outcome"], "COMMITTED")
        self.assertTrue(self.gate.receipt(first["effect_id"]))

    def test_what_may_have_happened_is_not_an_error_to_retry(self) -> None:
        self.service.script = [Lands(TimeoutError("no answer"))]
        (said,) = self.run_agent(self.tool(), CALL, state={"request_id": "case-1"})
        self.assertEqual((said["outcome"], self.sends()), ("AMBIGUOUS:no_evidence", 1))

    def test_without_a_reference_the_run_ends(self) -> None:
        with self.assertRaises(MissingRequestKey):
            self.run_agent(self.tool(), CALL, state={})
        self.assertNothingRecorded()

    def test_made_up_and_loose_arguments_are_refused(self) -> None:
        calls = [{**CALL, "request_id": "x"}, {**CALL, "amount": "500"}, {**CALL, "amount": True}]
        said = self.run_agent(self.tool(), *calls, state={"request_id": "case-1"})
        self.assertEqual([answer["result"][:9] for answer in said], ["Not done:"] * 3)
        self.assertNothingRecorded()


@needs("temporalio", "temporal")
class Temporal(AdapterCase):
    def run_activity(self, body: Any, arguments: dict[str, Any], **info: Any) -> Any:
        from temporalio.testing import ActivityEnvironment

        environment = ActivityEnvironment()
        environment.info = dataclasses.replace(environment.info, **{"workflow_id": "case-1", **info})
        return asyncio.run(environment.run(body, arguments))

    def test_killed_in_its_send_and_started_anew_there_is_one_effect(self) -> None:
        self.assert_survives_a_kill("temporal")

    def test_an_activity_that_is_run_again_acts_once(self) -> None:
        body = adapter("temporal").activity_body(self.tool())
        first = self.run_activity(body, CALL)
        again = self.run_activity(body, CALL, attempt=2, workflow_run_id="another-run")
        self.assertEqual((first["content"], self.sends()), (again["content"], 1))
        self.assertEqual((first["artifact"]["outcome"], first["artifact"]["request_key"]), ("COMMITTED", "case-1"))
        json.dumps(first)

    def test_outcomes_are_values(self) -> None:
        self.service.script = [Lands(TimeoutError("no answer"))]
        body = adapter("temporal").activity_body(self.tool(), request=lambda info: f"{info.workflow_id}/refund")
        said = self.run_activity(body, CALL)
        self.assertEqual(said["artifact"]["outcome"], "AMBIGUOUS:no_evidence")
        self.assertEqual(said["artifact"]["request_key"], "case-1/refund")

    def test_what_is_no_request_is_not_retried(self) -> None:
        from temporalio.exceptions import ApplicationError

        tool = self.tool()
        for arguments, request in (({**CALL, "amount": True}, None), (CALL, lambda info: None)):
            body = adapter("temporal").activity_body(tool, request=request)
            with self.assertRaises(ApplicationError) as caught:
                self.run_activity(body, arguments)
            self.assertTrue(caught.exception.non_retryable)
        self.assertNothingRecorded()

    def test_where_the_journal_fails_it_is_run_again(self) -> None:
        from interlock_tools import NotRecorded

        body = adapter("temporal").activity_body(self.tool())
        append = self.gate.journal.append
        self.gate.journal.append = self.broken  # type: ignore[method-assign]
        with self.assertRaises(NotRecorded):
            self.run_activity(body, CALL)
        self.gate.journal.append = append  # type: ignore[method-assign]
        self.assertEqual(self.run_activity(body, CALL, attempt=2)["artifact"]["outcome"], "COMMITTED")
        self.assertEqual(self.sends(), 1)

    def broken(self, *_: Any) -> None:
        raise OSError("no space left")


@needs("dbos", "dbos")
class Dbos(AdapterCase):
    def setUp(self) -> None:
        super().setUp()
        from dbos import DBOS

        url = f"sqlite:///{self.folder}/dbos.db"
        DBOS(config={"name": "test", "system_database_url": url, "run_admin_server": False, "log_level": "CRITICAL"})
        self.addCleanup(DBOS.destroy, destroy_registry=True)

    def test_killed_in_its_send_and_started_anew_there_is_one_effect(self) -> None:
        self.assert_survives_a_kill("dbos")

    def test_a_step_that_is_run_again_acts_once(self) -> None:
        from dbos import DBOS, SetWorkflowID

        body = adapter("dbos").step_body(self.tool())
        tries: list[int] = []

        @DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.001)
        def refund(arguments: dict[str, Any]) -> dict[str, Any]:
            said: dict[str, Any] = body(arguments)
            tries.append(1)
            if len(tries) == 1:
                raise ConnectionError("the worker lost its step's result")
            return said

        @DBOS.workflow()
        def handle(arguments: dict[str, Any]) -> dict[str, Any]:
            return refund(arguments)

        DBOS.launch()
        with SetWorkflowID("case-1"):
            said = handle(CALL)
        self.assertEqual((said["artifact"]["outcome"], len(tries), self.sends()), ("COMMITTED", 2, 1))
        self.assertEqual(said["artifact"]["request_key"], "case-1")

    def test_outside_a_workflow_there_is_no_reference(self) -> None:
        body = adapter("dbos").step_body(self.tool())
        with self.assertRaises(MissingRequestKey):
            body(CALL)
        self.assertNothingRecorded()


if __name__ == "__main__":
    unittest.main()
