"""What is shown while the cells are played, and which of them end a run with an error."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar

from scenarios.suite.play import Cell


class Progress:
    """A live line: cells done, running, failed, time left. Errors of the harness, and cells of ours that did not hold,
    are printed as they come."""

    def __init__(self, cells: int, jobs: int) -> None:
        self.errors: list[str] = []
        self.broken: list[str] = []
        self.done = 0
        self._console = Console()
        self._mutex = threading.Lock()
        self._bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=self._console,
        )
        self._task = self._bar.add_task(f"{jobs} at a time", total=cells)
        self._last = 0.0

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def add(self, cell: Cell, result: dict[str, Any] | None, error: str | None) -> None:
        """A cell is done."""
        with self._mutex:
            self.done += 1
            if error is not None:
                self.errors.append(cell.name)
                self._console.print(f"[red]error[/red] {cell.name}: {error}", highlight=False)
            elif result is not None and is_broken(cell, result):
                self.broken.append(cell.name)
                self._console.print(f"[red]not held[/red] {cell.name}: {result['holds']}, {result['answer']}")
            words = f"{cell.scenario}, {len(self.errors)} error(s), {len(self.broken)} broken"
            self._bar.update(self._task, advance=1, description=words)
            if not self._console.is_terminal and time.monotonic() - self._last > 30:
                self._last = time.monotonic()
                self._console.print(f"{self.done} cells done; {words}")

    def summary(self, seconds: float) -> str:
        """One line about the run."""
        return (
            f"{self.done} cells in {seconds:.0f} s; {len(self.errors)} could not be played, {len(self.broken)} of "
            "interlock's did not hold or contradicted the service"
        )


def is_broken(cell: Cell, result: dict[str, Any]) -> bool:
    """Whether a cell of interlock as shipped did not hold, or its answer contradicted the service."""
    if cell.arm not in ("interlock", "interlock_full_access", "interlock_noprobe", "interlock_tier3"):
        return False
    return not result["held"] or result["answer"] == "contradicts"
