"""Runs cells, several at a time: a lane is a sandbox that plays one cell after another."""

from __future__ import annotations

import compileall
import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any

from scenarios.sandbox import SandboxProcess
from scenarios.sandbox.process import SandboxError
from scenarios.suite.catalogue import scenario
from scenarios.suite.play import Cell, play
from scenarios.suite.process import ROOT

Heard = Callable[[Cell, dict[str, Any] | None, str | None], None]
"""Called with a cell and either its result or why it has none."""


def cells_of(
    keys: Iterable[str], arms: set[str] | None, faults: set[str] | None, repetitions: int | None, least: int = 1
) -> list[Cell]:
    """The cells of some scenarios, in their order.

    ``repetitions`` None: as many as each scenario asks for, and at least ``least``.
    """
    cells = []
    for key in keys:
        found = scenario(key)
        for fault in found.faults:
            for name, arm in found.arms.items():
                left_out = (arms and name not in arms) or (faults and fault not in faults)
                if left_out or not arm.plays(fault):
                    continue
                count = repetitions or max(least, found.repetitions_of(fault))
                cells += [Cell(key, name, fault, number) for number in range(1, count + 1)]
    return cells


def run(cells: Iterable[Cell], jobs: int, seed: int, heard: Heard, stop: threading.Event) -> None:
    """Play the cells and tell of each. ``stop`` ends it after the cells that are being played.

    What the agents run is compiled first, as it is where it is installed; or the first to start would take longer.
    """
    for part in ("interlock_tools", "integrations", "scenarios"):
        compileall.compile_dir(ROOT / part, quiet=2)
    left: queue.SimpleQueue[Cell] = queue.SimpleQueue()
    for cell in cells:
        left.put(cell)
    lanes = [threading.Thread(target=_lane, args=(left, seed, heard, stop)) for _ in range(max(1, jobs))]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        while lane.is_alive():
            lane.join(0.2)


def _lane(left: queue.SimpleQueue[Cell], seed: int, heard: Heard, stop: threading.Event) -> None:
    sandboxes: dict[str, SandboxProcess] = {}
    try:
        while not stop.is_set():
            try:
                cell = left.get_nowait()
            except queue.Empty:
                return
            heard(*_played(cell, sandboxes, seed))
    finally:
        for sandbox in sandboxes.values():
            sandbox.stop()


def _played(
    cell: Cell, sandboxes: dict[str, SandboxProcess], seed: int
) -> tuple[Cell, dict[str, Any] | None, str | None]:
    """Play one cell. Whatever goes wrong with playing it is an error of that cell, never a result."""
    try:
        found = scenario(cell.scenario)
        if cell.scenario not in sandboxes:
            sandboxes[cell.scenario] = SandboxProcess(*found.services, options=found.options).start()
        sandbox = sandboxes[cell.scenario]
        result = play(found, cell, sandbox, seed + cell.repetition)
        printed = sandbox.printed()
        if printed:
            raise SandboxError(f"the sandbox reported a defect: {printed[-300:]}")
        return cell, result, None
    except Exception as error:  # an error of the harness is shown as one
        broken = sandboxes.pop(cell.scenario, None)
        if broken is not None:
            broken.stop()
        return cell, None, f"{type(error).__name__}: {error}"
