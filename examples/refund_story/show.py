"""Shows the story while it is played, and the table at its end."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from types import TracebackType

from rich.console import Console, Group
from rich.live import Live as Screen
from rich.table import Table
from rich.text import Text

from .acts import OUTAGES, Act
from .play import Result


class Timeline:
    """What happened in each act, as it happens. On a terminal it is redrawn; elsewhere each event is a line."""

    def __init__(self, console: Console, acts: Sequence[Act]) -> None:
        self._console = console
        self._events: dict[str, list[tuple[float, str]]] = {act.point: [] for act in acts}
        self._lock = threading.Lock()
        self._began = time.monotonic()
        self._screen = Screen(console=console, auto_refresh=False, transient=False) if console.is_terminal else None

    def __enter__(self) -> Timeline:
        if self._screen is not None:
            self._screen.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._screen is not None:
            self._screen.stop()

    def add(self, act: Act, words: str) -> None:
        """Add an event of an act, with Rich markup."""
        with self._lock:
            events = self._events[act.point]
            events.append((time.monotonic(), words))
            since = events[-1][0] - events[0][0]
            if self._screen is None:
                self._console.print(f"{act.point:>18}  {since:5.1f} s  {words}", highlight=False)
            else:
                self._screen.update(self._drawn(), refresh=True)

    def _drawn(self) -> Group:
        lines = []
        for point, events in self._events.items():
            if not events:
                continue
            line = Text.from_markup(f"[bold]{point:>18}[/bold] ")
            for at, words in events:
                line.append(f" {at - events[0][0]:.1f}s ", style="dim")
                line.append_text(Text.from_markup(words))
            lines.append(line)
        return Group(*lines)


def closing_table(results: Sequence[Result], gated: bool) -> Table:
    """Return the table at the end: one row an act."""
    table = Table(expand=True, show_lines=True)
    table.add_column("Killed at", min_width=12)
    table.add_column("Stripe holds", min_width=12, ratio=3)
    table.add_column("The agent said", min_width=20, ratio=6)
    if gated:
        table.add_column("Settled by", min_width=10, ratio=3)
    table.add_column("After", justify="right", no_wrap=True)
    if gated:
        table.add_column("Entries", min_width=12, ratio=4)
    table.add_column("", min_width=5, ratio=2)
    for result in results:
        outage = result.act.outage
        meanwhile = f"\n[yellow]{OUTAGES[outage]}[/yellow]" if outage != "none" else ""
        after = f"{result.seconds:.1f} s" if result.seconds is not None else ""
        verdict = "[red]" + "; ".join(result.wrong) + "[/red]" if result.wrong else "[green]right[/green]"
        how = [result.via or result.outcome.replace(":", ": ").lower()] if gated else []
        entries = [" ".join(result.entries)] if gated else []
        cells = [result.act.point + meanwhile, result.holds, _short(result.said), *how, after, *entries, verdict]
        table.add_row(*cells)
    return table


def _short(words: str) -> str:
    """Words with the ids in them cut short, so that they can be read in a table."""
    words = re.sub(r"stripe\.refund for (?:request )?\S*case-4471\S*", "the refund", words)
    return re.sub(r"\b((?:pi|re)_\w{6})\w+", r"\1…", words)
