"""What the adapters share: a gated tool, called with arguments and a request reference."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from pydantic import BaseModel

from interlock_tools import BadArguments, DefinitionError, Effect, MissingRequestKey, NotRecorded
from interlock_tools.errors import describe
from interlock_tools.langchain import GatedTool, effect_tool

CONTEXT = "context"
"""Where ``hidden`` sources of a tool find the framework's own context: ``config["configurable"]["context"]``."""


@dataclass(frozen=True)
class Told:
    """What a call told.

    Attributes:
        content: the sentence for a model.
        artifact: the outcome and its record as plain JSON; empty where the arguments were not accepted.
    """

    content: str
    artifact: dict[str, Any]

    def brief(self) -> dict[str, Any]:
        """The sentence and how it ended, where a model gets to see all that a tool answers."""
        kept: dict[str, Any] = {name: self.artifact[name] for name in ("outcome", "effect_id") if name in self.artifact}
        return {"result": self.content, **kept}


class Calling:
    """A gated tool as a framework other than LangChain calls it.

    Args:
        tool: a gated tool, also one of a toolkit or from ``gate.wrap``, or a gated effect.

    Raises:
        DefinitionError: it is neither.
    """

    def __init__(self, tool: BaseTool | Effect[Any]) -> None:
        made = effect_tool(tool) if isinstance(tool, Effect) else tool
        if not isinstance(made, GatedTool):
            raise DefinitionError(f"give a gated tool or effect, from @gate.effect or gate.wrap, not {tool!r:.80}")
        self.tool: GatedTool = made.model_copy(update={"request": None, "approval": "journal"})
        self.name: str = made.name
        self.description: str = made.description

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the arguments that a model gives: closed, without key or request."""
        schema = self.tool.args_schema
        assert isinstance(schema, type) and issubclass(schema, BaseModel)
        return schema.model_json_schema()

    def call(self, arguments: Mapping[str, Any], reference: str, call_id: str | None, context: Any = None) -> Told:
        """Call it. Raises ``MissingRequestKey``; whatever else there is to say is said."""
        return _told(self.tool.invoke(self._call(arguments, call_id), _config(reference, context)))

    async def acall(
        self, arguments: Mapping[str, Any], reference: str, call_id: str | None, context: Any = None
    ) -> Told:
        """``call`` under asyncio. A send survives the cancellation of its caller."""
        return _told(await self.tool.ainvoke(self._call(arguments, call_id), _config(reference, context)))

    def _call(self, arguments: Mapping[str, Any], call_id: str | None) -> dict[str, Any]:
        return {"name": self.name, "args": dict(arguments), "id": call_id or "call", "type": "tool_call"}


def durable(told: Told) -> dict[str, Any]:
    """The value of a durable step: sentence and artifact in one JSON object.

    Raises:
        BadArguments: the arguments were not accepted; nothing was written or sent.
        NotRecorded: the journal failed, so there is no outcome. A framework that runs the step again is right to.
    """
    if not told.artifact:
        raise BadArguments(told.content)
    if told.artifact["outcome"] == "UNKNOWN":
        raise NotRecorded(told.artifact["effect_id"], told.artifact["error"])
    return {"content": told.content, "artifact": told.artifact}


def named(container: Any, name: str) -> Any:
    """A value of the application's context, which is a mapping or an object; None where it has none."""
    return container.get(name) if isinstance(container, Mapping) else getattr(container, name, None)


def reference_of(request: Callable[[Any], Any], context: Any, tool: str) -> str:
    """Ask the application for the request reference. Raises ``MissingRequestKey`` where there is none."""
    try:
        found = request(context)
    except Exception as error:
        raise MissingRequestKey(
            f"{tool}: the request reference could not be had: its function raised {describe(error)}. "
            "Nothing was written or sent."
        ) from error
    if isinstance(found, str) and found.strip():
        return found
    raise MissingRequestKey(
        f"{tool}: the application's context holds no request reference (text such as 'case-4471'). Supply it where the "
        "adapter looks for it, or give the adapter request=..., a function that returns it. "
        "Nothing was written or sent."
    )


def _config(reference: str, context: Any) -> Any:
    return {"configurable": {"request_id": reference, CONTEXT: context}}


def _told(message: ToolMessage) -> Told:
    return Told(message.text, dict(message.artifact or {}))
