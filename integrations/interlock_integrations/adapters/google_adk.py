"""A gated tool for an agent of Google's ADK. Needs ``google-adk`` 2 or newer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from google.adk.tools.base_tool import BaseTool  # pyright: ignore[reportMissingImports]
from google.adk.tools.tool_context import ToolContext  # pyright: ignore[reportMissingImports]
from google.genai import types  # pyright: ignore[reportMissingImports]
from langchain_core.tools import BaseTool as LcTool

from interlock_tools import Effect

from .calling import Calling, reference_of


class GatedAdkTool(BaseTool):  # type: ignore[misc, unused-ignore]
    """A gated tool as ADK takes it: ``LlmAgent(..., tools=[GatedAdkTool(refund)])``.

    ADK shows a model everything that a tool answers, so the answer is the
    outcome's sentence (``result``), how it ended (``outcome``) and ``effect_id``;
    the record is at the gate: ``gate.receipt(effect_id)``. It is no
    ``FunctionTool``: that one converts arguments ("500" becomes 500, True becomes 1) before a tool can refuse them.

    Args:
        tool: a gated tool or effect.
        request: tool context -> the request reference. By default ``state["request_id"]`` of the session. Take
            it from elsewhere (``tool_context.session.id`` where a session is one request, an application's table)
            if anything that a model drives writes to that state.

    Raises:
        DefinitionError: ``tool`` is not gated.
    """

    def __init__(self, tool: LcTool | Effect[Any], *, request: Callable[[ToolContext], str] | None = None) -> None:
        self._calling = Calling(tool)
        self._request = request or (lambda context: context.state.get("request_id"))
        super().__init__(name=self._calling.name, description=self._calling.description)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._calling.schema()
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Call it. Raises ``MissingRequestKey``, out of the run, where there is no reference; nothing else."""
        reference = reference_of(self._request, tool_context, self.name)
        told = await self._calling.acall(args, reference, tool_context.function_call_id, tool_context)
        return told.brief()


gated_tool = GatedAdkTool
