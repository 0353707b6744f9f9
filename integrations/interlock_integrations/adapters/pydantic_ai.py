"""A gated tool for a Pydantic AI agent. Needs ``pydantic-ai-slim`` (or ``pydantic-ai``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool
from pydantic_ai import RunContext, Tool, ToolReturn  # pyright: ignore[reportMissingImports]

from interlock_tools import Effect

from .calling import Calling, named, reference_of


def gated_tool(tool: BaseTool | Effect[Any], *, request: Callable[[RunContext[Any]], str] | None = None) -> Tool[Any]:
    """Return a Pydantic AI tool: ``Agent(model, deps_type=Case, tools=[gated_tool(refund)])``.

    The model reads the outcome's sentence; ``ToolReturnPart.metadata`` is the artifact, for the application.

    Args:
        tool: a gated tool or effect.
        request: run context -> the request reference. By default ``deps.request_id`` (or ``deps["request_id"]``).

    Raises:
        DefinitionError: ``tool`` is not gated.

    The tool raises ``MissingRequestKey``, out of the run, where there is no reference; nothing else.
    """
    calling = Calling(tool)
    source = request or (lambda context: named(context.deps, "request_id"))

    async def call(context: RunContext[Any], **arguments: Any) -> ToolReturn[Any]:
        reference = reference_of(source, context, calling.name)
        told = await calling.acall(arguments, reference, context.tool_call_id, context)
        return ToolReturn(return_value=told.content, metadata=told.artifact)

    made: Tool[Any] = Tool.from_schema(call, calling.name, calling.description, calling.schema(), takes_ctx=True)
    return made
