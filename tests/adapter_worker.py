"""One run of an agent or a workflow in a process of its own: ``adapter_worker.py FRAMEWORK FOLDER``.

It prints what the tool told. ``INTERLOCK_CRASH`` names a point at which the
process kills itself; run again, it is what a supervisor would start anew.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from interlock_tools import Gate

CALL: dict[str, Any] = {"payment": "pi_1", "amount": 500}
CONTEXT = {"request_id": "case-1"}


def refund_tool(folder: Path) -> Any:
    """A gated refund at a service that is a file, and can be looked up."""
    ledger = folder / "ledger"

    def find(idempotency_key: str) -> Any:
        return {"id": idempotency_key} if ledger.exists() and idempotency_key in ledger.read_text() else None

    @Gate(folder / "journal.db").effect("test.refund", key=lambda request: request, lookup=find)
    def create_refund(request: str, payment: str, amount: int, *, idempotency_key: str) -> Any:
        """Refund an amount of a payment."""
        with ledger.open("a") as file:
            file.write(f"{idempotency_key}\n")
        return {"id": idempotency_key}

    return create_refund


def pydantic_ai(adapter: Any, tool: Any, folder: Path) -> str:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def model(messages: list[Any], info: Any) -> Any:
        last = messages[-1].parts[-1]
        if last.part_kind == "tool-return":
            return ModelResponse(parts=[TextPart(last.content)])
        return ModelResponse(parts=[ToolCallPart("create_refund", CALL)])

    agent = Agent(FunctionModel(model), deps_type=dict, tools=[adapter.gated_tool(tool)])
    return str(agent.run_sync("go", deps=CONTEXT).output)


def openai_agents(adapter: Any, tool: Any, folder: Path) -> str:
    from agents import Agent, RunConfig, Runner
    from agents.testing import ScriptedModel, assistant_message, function_call

    model = ScriptedModel([[function_call("create_refund", CALL, call_id="call_1")], [assistant_message("done")]])
    agent = Agent(name="agent", model=model, tools=[adapter.gated_tool(tool)])
    result = Runner.run_sync(agent, "go", context=CONTEXT, run_config=RunConfig(tracing_disabled=True))
    return next(str(item.output) for item in result.new_items if item.type == "tool_call_output_item")


def google_adk(adapter: Any, tool: Any, folder: Path) -> str:
    from google.adk.agents import LlmAgent
    from google.adk.models import BaseLlm, LlmResponse
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    class Scripted(BaseLlm):
        async def generate_content_async(self, llm_request: Any, stream: bool = False) -> Any:
            called = any(content.role == "model" for content in llm_request.contents)
            call = types.Part.from_function_call(name="create_refund", args=CALL)
            part = types.Part.from_text(text="done") if called else call
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    agent = LlmAgent(name="agent", model=Scripted(model="scripted"), tools=[adapter.gated_tool(tool)])
    runner = InMemoryRunner(agent, app_name="app")

    async def main() -> str:
        session = await runner.session_service.create_session(app_name="app", user_id="u", state=dict(CONTEXT))
        message = types.Content(role="user", parts=[types.Part.from_text(text="go")])
        said = ""
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            for response in event.get_function_responses():
                said = response.response["result"]
        return said

    return asyncio.run(main())


def temporal(adapter: Any, tool: Any, folder: Path) -> str:
    from temporalio.testing import ActivityEnvironment

    environment = ActivityEnvironment()
    environment.info = dataclasses.replace(environment.info, workflow_id="case-1")
    return str(asyncio.run(environment.run(adapter.activity_body(tool), CALL))["content"])


def dbos(adapter: Any, tool: Any, folder: Path) -> str:
    """The second process runs nothing by itself: DBOS takes up the workflow that the first one left."""
    from dbos import DBOS, SetWorkflowID

    url = f"sqlite:///{folder}/dbos.db"
    begun = (folder / "dbos.db").exists()
    DBOS(
        config={
            "name": "test",
            "system_database_url": url,
            "run_admin_server": False,
            "log_level": "CRITICAL",
            "application_version": "1",
        }
    )
    body = adapter.step_body(tool)

    @DBOS.step()
    def refund(arguments: dict[str, Any]) -> dict[str, Any]:
        said: dict[str, Any] = body(arguments)
        return said

    @DBOS.workflow()
    def handle(arguments: dict[str, Any]) -> dict[str, Any]:
        return refund(arguments)

    DBOS.launch()
    try:
        if not begun:
            with SetWorkflowID("case-1"):
                DBOS.start_workflow(handle, CALL)
        handle_of: Any = DBOS.retrieve_workflow("case-1")
        return str(handle_of.get_result()["content"])
    finally:
        DBOS.destroy()


if __name__ == "__main__":
    framework, place = sys.argv[1], Path(sys.argv[2])
    found = import_module(f"interlock_integrations.adapters.{framework}")
    print(globals()[framework](found, refund_tool(place), place))
