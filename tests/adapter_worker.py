"""A Pydantic AI agent in a process of its own, which may be told to kill itself: ``FOLDER [POINT]``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from interlock_integrations.adapters.pydantic_ai import gated_tool
from interlock_tools import Gate
from interlock_tools.testing import CrashPoint, arm


def model(messages: list[Any], info: Any) -> Any:
    """Call the tool, under a new id each time, and end with what it answered."""
    last = messages[-1].parts[-1]
    if last.part_kind == "tool-return":
        return ModelResponse(parts=[TextPart(json.dumps([last.content, last.metadata["outcome"]]))])
    return ModelResponse(parts=[ToolCallPart("create_refund", {"payment": "pi_1", "amount": 500})])


def main(folder: Path, point: str | None) -> None:
    gate = Gate(folder / "journal.db")
    ledger = folder / "ledger"

    def find(idempotency_key: str) -> Any:
        return {"id": idempotency_key} if idempotency_key in ledger.read_text().split() else None

    @gate.effect("test.refund", key=lambda request: request, lookup=find)
    def create_refund(request: str, payment: str, amount: int, *, idempotency_key: str) -> Any:
        """Refund an amount of a payment."""
        with ledger.open("a") as file:
            file.write(f"{idempotency_key}\n")
        return {"id": idempotency_key}

    if point is not None:
        arm(CrashPoint(point))
    agent = Agent(FunctionModel(model), deps_type=dict, tools=[gated_tool(create_refund)])
    print(agent.run_sync("go", deps={"request_id": "case-1"}).output)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
