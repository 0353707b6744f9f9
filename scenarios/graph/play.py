"""Plays cells: forks each life of the agent, confirms how it ended, and judges by what the service holds."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
import uuid
from collections import Counter
from pathlib import Path
from typing import Any

from scenarios.graph.agent import AMOUNT, Killer, run_life
from scenarios.graph.cells import Cell
from scenarios.sandbox import SandboxProcess

LONGEST_LIFE_S = 90.0


class HarnessError(Exception):
    """The cell was not played as it should have been; it has no result."""


class Lane:
    """One sandbox, and one cell after another. Each life is a forked child: a real process, a real SIGKILL."""

    def __init__(self, postgres: str) -> None:
        self.postgres = postgres
        self.sandbox = SandboxProcess("stripe").start()

    def close(self) -> None:
        self.sandbox.stop()

    def play(self, cell: Cell) -> dict[str, Any]:
        """Play one cell. Returns its record; ``error`` in it means that it has no result."""
        began = time.monotonic()
        try:
            record = self._play(cell)
        except HarnessError as error:
            record = {"error": str(error)}
        return {"cell": cell.name, **cell.to_json(), **record, "seconds": round(time.monotonic() - began, 2)}

    def _play(self, cell: Cell) -> dict[str, Any]:
        thread = f"case-{uuid.uuid4().hex[:8]}"
        payments = [self.sandbox.control.action("pay", amount=100_00)["id"] for _ in cell.payments]
        urls = {"stripe": self.sandbox.url, "postgres": self.postgres}
        with tempfile.TemporaryDirectory(prefix="graph-") as name:
            folder = Path(name)
            told: dict[str, Any] = {}
            for life, death in enumerate((*cell.deaths(), None), start=1):
                told = _one_life(cell, life, death, folder, thread, payments, urls)
        refunds = [one for one in self.sandbox.control.ledger()["refunds"] if one["payment_intent"] in payments]
        return judge(cell, payments, refunds, told)


def _one_life(
    cell: Cell, life: int, death: str | None, folder: Path, thread: str, payments: list[str], urls: dict[str, str]
) -> dict[str, Any]:
    """Fork one life and wait for its end. Raises ``HarnessError`` if that is not the one that was meant."""
    witness, told, errors = (folder / f"{word}-{life}" for word in ("died", "told", "errors"))
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(int(LONGEST_LIFE_S))
            run_life(cell, life, folder, thread, payments, urls, Killer(death, witness), told=told)
            os._exit(0)
        except BaseException:
            errors.write_text(traceback.format_exc(), encoding="utf-8")
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    said = errors.read_text(encoding="utf-8").strip().splitlines()[-1] if errors.exists() else ""
    if death is not None:
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL or not witness.exists():
            raise HarnessError(f"life {life} did not die at {death} (status {status}) {said}")
        return {}
    if status != 0:
        raise HarnessError(f"life {life} ended with status {status} {said}")
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found


def judge(cell: Cell, payments: list[str], refunds: list[dict[str, Any]], told: dict[str, Any]) -> dict[str, Any]:
    """Say how often each refund was made, and whether the model was told the truth about it."""
    made = Counter(one["payment_intent"] for one in refunds)
    effects = [made[payment] for payment in payments]
    record: dict[str, Any] = {"effects": effects, "how": told["how"], "told": told["tools"]}
    if cell.arm == "no_gate":
        return {**record, "once": effects == [1] * cell.calls}
    problems = []
    if effects != [1] * cell.calls or any(one["amount"] != AMOUNT for one in refunds):
        problems.append(f"made {effects} refunds")
    ids: dict[str, set[str]] = {}
    for message in told["tools"]:
        ids.setdefault(message["request"], set()).add(message["effect_id"])
        if message["outcome"] != "COMMITTED" or message["status"] == "error":
            problems.append(f"the model was told {message['outcome'] or message['content'][:120]}")
    if len(ids) != cell.calls or any(len(one) != 1 for one in ids.values()):
        problems.append(f"not one receipt for each refund: {ids}")
    return {**record, "once": effects == [1] * cell.calls, "problems": problems}
