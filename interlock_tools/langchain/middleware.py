"""``InterlockMiddleware``: gates some of an agent's tools, wherever it stands in the list of middleware."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest

from ..errors import DefinitionError
from .tool import GatedTool


class InterlockMiddleware(AgentMiddleware[Any, Any, Any]):
    """Calls of these tools go through the gate::

        gated = [gate.wrap(send_invoice), gate.wrap(delete_account, lookup=find_account)]
        gate.recover()
        agent = create_agent(model, tools, middleware=[InterlockMiddleware(gated)])

    It puts the gated tool in the place of the one of the same name and passes
    the call on, so what other middleware edits or approves, before or after it,
    is what is journalled, and one that tries a call again does not do it twice.

    Args:
        tools: what ``gate.wrap`` returned.

    Raises:
        DefinitionError: one of them is not gated, or two have one name.
    """

    def __init__(self, tools: Iterable[GatedTool]) -> None:
        super().__init__()
        self.gated: dict[str, GatedTool] = {}
        for tool in tools:
            if not isinstance(tool, GatedTool) or tool.name in self.gated:
                raise DefinitionError(f"give gated tools of different names, from gate.wrap(tool), not {tool!r:.80}")
            self.gated[tool.name] = tool

    def _through_the_gate(self, request: ToolCallRequest) -> ToolCallRequest:
        gated = self.gated.get(request.tool_call["name"])
        return request if gated is None else request.override(tool=gated)

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Pass the call on to the gated tool."""
        return handler(self._through_the_gate(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Pass the call on to the gated tool."""
        return await handler(self._through_the_gate(request))
