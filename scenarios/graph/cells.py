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
"""In the tool, right before Stripe's SDK sends; right after Stripe has answered, before anybody else knows; after the
tool has returned, before the graph knows; when the first checkpoint is about to be written; while paused for a person,
and in the next life right after Stripe has answered."""
RESUMES = ("none", "message")
"""``invoke(None)``, as LangGraph resumes; or a new message of the user in the same thread."""
CALLS = ("one", "other_waits", "other_done", "other_kept", "two")
"""Tool calls in the model's message, and where the second one is when the process dies in the first one: about to send,
with nothing sent; with its tool returned; with its answer kept by the checkpointer. ``two`` where the death is in
neither of them: at the first checkpoint."""
NEVER = ("exit", "other_kept")
"""Durability ``exit`` keeps no answer before the graph ends."""
QUICK = 13
"""Cells of a quick run, evenly from all; 13 goes into none of the numbers above, so that they are of every kind."""


@dataclass(frozen=True)
class Cell:
    """One story: an agent that is killed, started again, and asked to go on."""

    arm: str
    saver: str
    durability: str
    kill: str
    resume: str
    calls: str

    @property
    def name(self) -> str:
        """Names the cell on the command line."""
        return f"{self.arm}/{self.saver}/{self.durability}/{self.kill}/{self.resume}/{self.calls}"

    @property
    def payments(self) -> tuple[str, ...]:
        """The subjects of the calls, in order."""
        return ("payment_1",) if self.calls == "one" else ("payment_1", "payment_2")

    def deaths(self) -> tuple[str, ...]:
        """Where each of its lives but the last one ends."""
        return ("paused", "after_effect") if self.kill == "interrupt" else (self.kill,)

    def made_at(self, death: str) -> list[int]:
        """How often each refund must have been made when the process dies there for the first time after acting.

        By it the suite knows that the process died where the cell says, and that the other call stood where the cell
        says.
        """
        if death == "paused":
            return [0] * len(self.payments)
        if death == "first_checkpoint":
            return [1 if self.durability == "exit" else 0] * len(self.payments)
        made = [0 if death == "in_tool" else 1, 0 if self.calls == "other_waits" else 1]
        return made[: len(self.payments)]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def every() -> Iterator[Cell]:
    """Every cell, in order."""
    for arm, saver, durability, kill, resume in itertools.product(ARMS, SAVERS, DURABILITIES, KILLS, RESUMES):
        for calls in CALLS:
            if (calls == "two") == (kill == "first_checkpoint" and calls != "one") and (durability, calls) != NEVER:
                yield Cell(arm, saver, durability, kill, resume, calls)


def chosen(only: list[str], quick: bool) -> list[Cell]:
    """The cells whose name contains one of ``only``; a few for a quick run."""
    cells = [cell for cell in every() if not only or any(part in f"/{cell.name}/" for part in only)]
    if not quick:
        return cells
    return cells[:: max(1, len(cells) // QUICK)][:QUICK]
