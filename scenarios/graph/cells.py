"""What is crossed with what: the cells of the suite."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

ARMS = ("no_gate", "toolkit", "middleware")
"""The agent's plain tool; the Stripe toolkit; the plain tool behind ``InterlockMiddleware``."""
SAVERS = ("sqlite", "postgres")
DURABILITIES = ("sync", "async", "exit")
KILLS = ("in_tool", "after_effect", "after_tool", "first_checkpoint", "interrupt")
"""In the tool before anything is sent; right after the refund was made; after the tool has returned to the graph; when
the first checkpoint is about to be written; while paused for a person, and then right after the refund."""
RESUMES = ("none", "message")
"""``invoke(None)``, as LangGraph resumes; or a new message of the user in the same thread."""
CALLS = (1, 2)
"""Tool calls in the model's message."""


@dataclass(frozen=True)
class Cell:
    """One story: an agent that is killed, started again, and asked to go on."""

    arm: str
    saver: str
    durability: str
    kill: str
    resume: str
    calls: int

    @property
    def name(self) -> str:
        """Names the cell on the command line."""
        return f"{self.arm}/{self.saver}/{self.durability}/{self.kill}/{self.resume}/{self.calls}"

    @property
    def payments(self) -> tuple[str, ...]:
        """The subjects of the calls, in order."""
        return tuple(f"payment_{number}" for number in range(1, self.calls + 1))

    def deaths(self) -> tuple[str, ...]:
        """Where each of its lives but the last one ends."""
        return ("paused", "after_effect") if self.kill == "interrupt" else (self.kill,)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def every() -> Iterator[Cell]:
    """Every cell, in order."""
    for values in itertools.product(ARMS, SAVERS, DURABILITIES, KILLS, RESUMES, CALLS):
        yield Cell(*values)


def chosen(only: list[str], quick: bool) -> list[Cell]:
    """The cells whose name contains one of ``only``; a few for a quick run."""
    cells = [cell for cell in every() if not only or any(part in f"/{cell.name}/" for part in only)]
    if not quick:
        return cells
    picked = [cell for index, cell in enumerate(cells) if cell.arm != "no_gate" and cell.calls == 2 and index % 7 == 0]
    return picked[:12]
