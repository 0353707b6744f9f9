"""Peers as arms, in their documented idiom: a durable workflow of DBOS, and an agent of LangGraph with a checkpointer.

Both promise that a step which was recorded as done is not done again, and both
say in their documentation that a step may run more than once, so that it has to
be idempotent. That is what these arms rely on: Stripe is given an idempotency
key; a comment has none.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool

from scenarios.suite.hand import saved
from scenarios.suite.model import Work

Said = tuple[str, dict[str, Any]]
DBOS_LOADS = ("dbos", "sqlalchemy.dialects.sqlite")
LANGGRAPH_LOADS = ("langgraph.checkpoint.sqlite",)
"""What the peers import on first use."""
Act = Callable[[dict[str, Any]], dict[str, Any]]
"""Does it, and returns claim, words and id."""


def dbos_tool(work: Work, name: str, check: Act, send: Act) -> BaseTool:
    """A tool that starts a workflow under the case's id: one step decides, one sends. Launching resumes what is left.

    The system database is SQLite, as DBOS uses it for one machine. The second
    step is retried, as its documentation shows for calls to services.
    """
    from dbos import DBOS, SetWorkflowID

    DBOS(
        config={
            "name": "agent",
            "system_database_url": f"sqlite:///{work.path / f'dbos-{work.worker}.sqlite'}",
            "log_level": "CRITICAL",
            "console_log_level": "CRITICAL",
        }
    )

    @DBOS.step()
    def decide(arguments: dict[str, Any]) -> dict[str, Any]:
        return check(arguments)

    @DBOS.step(retries_allowed=True, max_attempts=3, interval_seconds=0.2)
    def act(arguments: dict[str, Any]) -> dict[str, Any]:
        return send(arguments)

    @DBOS.workflow()
    def handle_case(arguments: dict[str, Any]) -> dict[str, Any]:
        decided = decide(arguments)
        return act(arguments) if decided.get("go", True) else decided

    DBOS.launch()

    def call(**arguments: Any) -> Said:
        with SetWorkflowID(work.case):
            handle = DBOS.start_workflow(handle_case, arguments)
        try:
            done: dict[str, Any] = handle.get_result()
        except Exception as error:
            done = {"claim": "unknown", "words": f"The workflow failed: {type(error).__name__}."}
        saved()
        steps = [json.loads(json.dumps(dict(step), default=str)) for step in DBOS.list_workflow_steps(work.case)]
        return str(done["words"]), {**done, "steps": steps}

    return _tool(name, call, work)


def checkpointed_tool(work: Work, name: str, check: Act, send: Act) -> BaseTool:
    """The tool of an agent with a checkpointer: a plain one. The graph remembers which of its calls have answered."""

    def call(**arguments: Any) -> Said:
        decided = check(arguments)
        done = send(arguments) if decided.get("go", True) else decided
        return str(done["words"]), done

    return _tool(name, call, work)


def _tool(name: str, call: Callable[..., Said], work: Work) -> BaseTool:
    from pydantic import create_model

    fields: dict[str, Any] = {field: (type(value), ...) for field, value in work.arguments.items()}
    return StructuredTool.from_function(
        call,
        name=name,
        description=name,
        args_schema=create_model(name, **fields),
        response_format="content_and_artifact",
    )
