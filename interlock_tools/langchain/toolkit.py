"""``GatedToolkit``: what the toolkits of the integrations share."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from langchain_core.tools import BaseTool, BaseToolkit
from pydantic import ConfigDict, Field, SkipValidation

from ..gate import Gate
from .request import Source, check_source
from .tool import GatedTool


class GatedToolkit(BaseToolkit):
    """Tools of one service behind one gate: ``create_agent(model, SomeToolkit(gate).get_tools())``.

    A subclass declares its effects on ``gate`` when it is made, so that
    ``gate.recover()`` finds their code, and calls ``add`` with each tool.

    Args:
        gate: the gate.
        request: where the request reference comes from, for all tools: a function of the run's
            configuration or of nothing. By default ``config["configurable"]["request_id"]``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    gate: SkipValidation[Gate] = Field(exclude=True, repr=False)
    request: SkipValidation[Source | None] = Field(default=None, exclude=True, repr=False)
    wait: float | timedelta | None = None
    tools: SkipValidation[list[GatedTool]] = Field(default_factory=list, exclude=True, repr=False)

    def __init__(
        self, gate: Gate, *, request: Source | None = None, wait: timedelta | float | None = None, **fields: Any
    ) -> None:
        if request is not None:
            check_source("request", request)
        super().__init__(**{"gate": gate, "request": request, "wait": wait, **fields})

    def add(self, tool: GatedTool) -> None:
        """Add a tool of this toolkit."""
        self.tools.append(tool)

    def get_tools(self) -> list[BaseTool]:
        """Return the tools, in a list of their own."""
        return list(self.tools)
