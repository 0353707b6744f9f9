"""Chooses cells and spreads them over lanes."""

from __future__ import annotations

import json
import queue
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from scenarios.crash.cells import full as all_cells
from scenarios.crash.cells import pairwise, parse, reachable
from scenarios.crash.oracle import expected
from scenarios.crash.special import SPECIAL, special_names
from scenarios.sandbox.process import ROOT

CELL_S = 300.0
"""Bound on one cell, its repetitions included."""


@dataclass
class Summary:
    """What came of a run."""

    cells: int = 0
    failed: list[dict[str, Any]] = field(default_factory=list)
    deaths: int = 0
    again: int = 0
    exact: int = 0
    special: int = 0
    seconds: float = 0.0

    def words(self) -> str:
        return (
            f"{self.cells} cells ({self.special} special; in {self.exact} exactly one result is right), "
            f"{self.deaths} processes killed, {len(self.failed)} cells failed, "
            f"{self.again} repeated because the machine was too slow, {self.seconds:.0f} s"
        )


def choose(*, full: bool, only: list[str], seed: int) -> list[str]:
    """Names of the cells to run: all, or a pairwise selection; ``only`` narrows all of them down."""
    cells = _all()
    if only:
        names = [*special_names(True, seed), *(cell.name for cell in cells)]
        return [name for name in names if any(part in name for part in only)]
    return [*special_names(full, seed), *(cell.name for cell in (cells if full else pairwise(cells, seed)))]


def _all() -> list[Any]:
    return list(reachable(all_cells()))


def replay(name: str, seed: int, new_interpreter: bool = False) -> str:
    """The one command that runs this cell again."""
    return f"python -m scenarios.crash --only {shlex.quote(name)} --seed {seed}{' --exec' if new_interpreter else ''}"


def run_cells(
    names: list[str],
    *,
    seed: int,
    jobs: int,
    new_interpreter: bool = False,
    tell: Callable[[int, dict[str, Any]], None] = lambda done, found: None,
) -> Summary:
    """Run cells in ``jobs`` lanes, each a process with a service of its own."""
    began = time.monotonic()
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    summary = Summary()
    mutex = threading.Lock()

    def note(found: dict[str, Any]) -> None:
        with mutex:
            summary.cells += 1
            summary.deaths += found.get("deaths", 0)
            summary.again += found.get("again", 0)
            special = found["cell"].split("~")[0] in SPECIAL
            summary.special += special
            summary.exact += special or len(expected(parse(found["cell"]))) == 1
            if found["problems"]:
                summary.failed.append(found)
            tell(summary.cells, found)

    lanes = [
        threading.Thread(target=_lane, args=(waiting, seed, new_interpreter, note), name=f"lane {number}")
        for number in range(max(1, min(jobs, len(names))))
    ]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    summary.seconds = time.monotonic() - began
    return summary


def _lane(waiting: queue.SimpleQueue[str], seed: int, new_interpreter: bool, note: Callable[[Any], None]) -> None:
    """Feed one lane until nothing is waiting. A lane that ends is a failed cell, and is started anew."""
    process: subprocess.Popen[str] | None = None
    try:
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                return
            if process is None:
                process = _start(seed, new_interpreter)
            assert process.stdin is not None and process.stdout is not None
            watch = threading.Timer(CELL_S, process.kill)
            watch.start()
            try:
                process.stdin.write(name + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
            except OSError:
                line = ""
            finally:
                watch.cancel()
            if line:
                note(json.loads(line))
            else:
                note({"cell": name, "problems": [f"the lane ended with {process.wait()}"]})
                process = None
    finally:
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


def _start(seed: int, new_interpreter: bool) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "scenarios.crash.lane", str(seed), *(["--exec"] if new_interpreter else [])]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
