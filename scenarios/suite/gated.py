"""What the interlock arms share: a gate on the case's journal, approvals from a file, recovery at start."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from langchain_core.tools import BaseTool

from interlock_tools import Gate, Grant
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing.integration_kit import KitClock
from scenarios.suite.model import SEND_TIMEOUT_S, Work

WAIT = timedelta(seconds=16)
"""How long a call waits for what recovery has to wait for."""

SEND_TIMEOUT = timedelta(seconds=SEND_TIMEOUT_S)


def gate_of(work: Work) -> Gate:
    """The gate of this process. It signs what it records, with keys that are made on first use.

    Where several hosts write one journal, each has been given the same keys.
    """
    journal = os.environ["INTERLOCK_JOURNAL"]
    ahead_s = float(os.environ.get("SCENARIO_AHEAD_S", "0"))
    if not ahead_s:
        return Gate(journal, signing=work.path / "keys")
    clock = KitClock()  # time has passed on this machine
    clock.advance(ahead_s)
    return Gate(SqliteJournal(journal, clock), signing=work.path / "keys")


def approvals(work: Work) -> Callable[[str], Grant | None]:
    """Read the case's approval where the application keeps it."""

    def approval(request: str) -> Grant | None:
        path = work.path / "approvals.json"
        found = json.loads(path.read_text(encoding="utf-8")).get(request) if path.exists() else None
        return Grant(found["id"], by=found["by"], max_amount=found.get("max_amount")) if found else None

    return approval


def recovered(gate: Gate, tools: list[BaseTool]) -> BaseTool:
    """Settle what an earlier process left open, as an agent does once at its start; return its one tool."""
    gate.recover(wait=WAIT)
    (tool,) = tools
    return tool


def options(work: Work) -> dict[str, Any]:
    """Arguments that all toolkits take."""
    return {"wait": WAIT, "send_timeout": SEND_TIMEOUT}
