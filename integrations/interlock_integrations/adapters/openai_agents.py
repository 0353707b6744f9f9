"""A gated tool for an agent of the OpenAI Agents SDK. Needs ``openai-agents``."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from agents import FunctionTool  # pyright: ignore[reportMissingImports]
from agents.tool_context import ToolContext  # pyright: ignore[reportMissingImports]
from langchain_core.tools import BaseTool

from interlock_tools import Effect

from .calling import Calling, Told, named, reference_of


class Sentence(str):
    """The outcome's sentence as a tool's output, with the artifact on it."""

    artifact: dict[str, Any]


def gated_tool(
    tool: BaseTool | Effect[Any], *, request: Callable[[ToolContext[Any]], str] | None = None
) -> FunctionTool:
    """Return a function tool: ``Agent(name=..., tools=[gated_tool(refund)])``, run with ``context=Case(...)``.

    The model reads the outcome's sentence; the artifact is in ``custom_data`` of the run's
    ``ToolCallOutputItem``, which no model sees.

    Args:
        tool: a gated tool or effect.
        request: tool context -> the request reference. By default ``context.request_id`` (or
            ``context["request_id"]``) of what ``Runner.run(context=...)`` was given.

    Raises:
        DefinitionError: ``tool`` is not gated.

    The tool raises ``MissingRequestKey``, out of the run, where there is no reference; nothing else.
    """
    calling = Calling(tool)
    source = request or (lambda context: named(context.context, "request_id"))

    async def call(context: ToolContext[Any], text: str) -> str:
        reference = reference_of(source, context, calling.name)
        arguments = _arguments(text)
        if isinstance(arguments, dict):
            told = await calling.acall(arguments, reference, context.tool_call_id, context)
        else:
            told = Told("Not done: the arguments are no JSON object. Nothing was recorded or sent.", {})
        sentence = Sentence(told.content)
        sentence.artifact = told.artifact
        return sentence

    return FunctionTool(
        name=calling.name,
        description=calling.description,
        params_json_schema=calling.schema(),
        on_invoke_tool=call,
        strict_json_schema=False,  # the gate's own schema is closed; theirs would make every argument required
        custom_data_extractor=lambda said: getattr(said.output, "artifact", None) or None,
    )


def _arguments(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return None
