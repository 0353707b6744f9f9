"""Plays cells: forks each life of the agent and confirms how it ended."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
import traceback
import uuid
from pathlib import Path
from typing import Any

from scenarios.graph.agent import Killer, run_life
from scenarios.graph.cells import Cell
from scenarios.graph.judge import HarnessError, Life, Told
from scenarios.sandbox import SandboxProcess

LONGEST_LIFE_S = 90.0


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
            told = Told(cell, payments, Path(name))
            for number, (ask, death) in enumerate(_lives(cell), start=1):
                life = Life(number, ask, death)
                said = _one_life(cell, life, told.folder, thread, payments, urls)
                made = [one for one in self.sandbox.control.ledger()["refunds"] if one["payment_intent"] in payments]
                told.after(life, said, made)
            return told.judged()


def _lives(cell: Cell) -> list[tuple[str, str | None]]:
    """How each life begins, and where it ends. With the gate a last one asks for the same refunds once more."""
    deaths = cell.deaths()
    lives = [("resume" if number else "first", death) for number, death in enumerate((*deaths, None))]
    return lives if cell.arm == "no_gate" else [*lives, ("again", None)]


def _one_life(
    cell: Cell, life: Life, folder: Path, thread: str, payments: list[str], urls: dict[str, str]
) -> dict[str, Any] | None:
    """Fork one life and wait for its end. Raises ``HarnessError`` if that is not the one that was meant."""
    witness, told, errors = (folder / f"{word}-{life.number}" for word in ("died", "told", "errors"))
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        try:
            signal.alarm(int(LONGEST_LIFE_S))
            killer = Killer(life.death, witness, payments, cell.calls)
            run_life(cell, life.ask, folder, thread, payments, urls, killer, told=told)
            os._exit(0)
        except BaseException:
            errors.write_text(traceback.format_exc(), encoding="utf-8")
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    said = errors.read_text(encoding="utf-8").strip().splitlines()[-1] if errors.exists() else ""
    if life.death is not None:
        if not os.WIFSIGNALED(status) or os.WTERMSIG(status) != signal.SIGKILL or not witness.exists():
            raise HarnessError(f"life {life.number} did not die at {life.death} (status {status}) {said}")
        return None
    if status != 0:
        raise HarnessError(f"life {life.number} ended with status {status} {said}")
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found
