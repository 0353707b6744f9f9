"""Which cells there are: every crash point × every contract × what the world does × a second death during recovery.

A cell is named ``contract~first death~fates~facts~second death``, for example
``lookup~in_flight~late,now~moved~recovery_checked``. What the name does not say (how late is late) is drawn from the
seed and the name.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass

from scenarios.crash.contracts import CONTRACTS, Contract

FIRST = (
    "before_journal",
    "after_proposed",
    "after_dispatched",
    "before_mark",
    "before_bytes",
    "in_flight",
    "after_response",
    "after_committed",
)
"""Deaths in the course of an effect that meets no trouble."""

AGAIN = ("recovery_started", "recovery_checked", "recovery_looked_up")
"""Deaths while a restarted process looks at it."""

RESEND = ("after_dispatched", "before_mark", "before_bytes", "in_flight", "after_response", "after_committed")
"""Deaths while a restarted process sends it, or sends it again."""

LIVE = ("none", "recovery_checked", "recovery_looked_up", *(f"{point}:2" for point in RESEND[:-1]), "after_committed")
"""Deaths of a process whose first send came back without an answer that says anything."""

FACTS = ("hold", "moved", "revoked", "unreadable", "bumped", "moved_later", "moved_back")
"""What others do while nobody runs.

``moved``: a premise that the service does not enforce; ``bumped``: one that it does; ``revoked``: the approval;
``unreadable``: neither can be read until after the second death; ``moved_later``: only after the second death;
``moved_back``: moved, and back after the second death.
"""

DYING_FATES = ("now", "late", "never", "executing", "stored_500", "fail", "declined")
"""What becomes of a request whose sender dies in flight."""

LIVE_FATES = ("applied_500", "stored_500", "fail", "applied_cut", "cut", "declined", "busy", "slow", "slow_executing")
"""What a sender meets that lives."""

SECOND_FATES = ("now", "late", "never")

LATE = ((0.02, 0.5), (0.5, 0.95), (0.95, 1.0))
"""How late, in parts of the send timeout: soon, in time for most, at the last moment."""


@dataclass(frozen=True)
class Cell:
    """One cell. ``first`` and ``second`` are ``point`` or ``point:occurrence``, or ``none``."""

    contract: str
    first: str
    fates: tuple[str, ...]
    facts: str
    second: str = "none"

    @property
    def name(self) -> str:
        return "~".join((self.contract, self.first, ",".join(self.fates), self.facts, self.second))

    @property
    def terms(self) -> Contract:
        return CONTRACTS[self.contract]

    def fate(self, request: int) -> str:
        """What becomes of request number ``request`` (from 1)."""
        return self.fates[request - 1] if request <= len(self.fates) else "now"

    def lateness(self, request: int, seed: int) -> float:
        """How late a late request is applied, as a part of the send timeout: anything up to all of it."""
        source = random.Random(f"{seed}~{self.name}~{request}")
        low, high = source.choice(((0.5, 0.95), (0.95, 1.0)) if "slow" in self.fate(request) else LATE)
        return source.uniform(low, high)

    @property
    def account(self) -> str:
        return hashlib.sha256(self.name.encode()).hexdigest()[:12]


def parse(name: str) -> Cell:
    """The cell of this name. Raises ValueError if there is none."""
    contract, first, fates, facts, second = name.split("~")
    if contract not in CONTRACTS or facts not in FACTS:
        raise ValueError(f"no cell {name}")
    return Cell(contract, first, tuple(fates.split(",")), facts, second)


def full() -> Iterator[Cell]:
    """Every cell that can be told from another."""
    for contract in CONTRACTS:
        for facts in FACTS:
            if facts == "bumped" and not CONTRACTS[contract].enforces:
                continue
            yield from _dying(contract, facts)
            yield from _living(contract, facts)


def _dying(contract: str, facts: str) -> Iterator[Cell]:
    """Death in the course of an effect, and perhaps again."""
    terms = CONTRACTS[contract]
    for first in FIRST:
        sent = first in ("in_flight", "after_response", "after_committed")
        fates = DYING_FATES if first == "in_flight" else ("now",)
        for fate in fates:
            if fate in ("executing", "stored_500") and not terms.dedupes_s:
                continue
            for second in ("none", *AGAIN, *RESEND):
                if second == "none" and facts in ("moved_later", "moved_back"):
                    continue
                if second == "recovery_looked_up" and not terms.lookup:
                    continue
                if first == "after_committed" and second != "none":
                    continue
                for again in SECOND_FATES if second == "in_flight" else ("now",):
                    yield Cell(contract, first, (fate, again) if sent else (again,), facts, second)


def _living(contract: str, facts: str) -> Iterator[Cell]:
    """A first send that comes back without an answer, its recovery by the same process, and that one's death."""
    terms = CONTRACTS[contract]
    if facts in ("moved_later", "moved_back"):
        return
    for fate in LIVE_FATES:
        if fate in ("stored_500", "slow_executing") and not terms.dedupes_s:
            continue
        for first in LIVE:
            if first == "none" and facts != "hold":
                continue
            if first == "recovery_looked_up" and not terms.lookup:
                continue
            for again in SECOND_FATES if first == "in_flight:2" else ("now",):
                yield Cell(contract, first, (fate, again), facts)


def reachable(cells: Iterator[Cell]) -> Iterator[Cell]:
    """Leave out the cells whose deaths cannot happen, as the oracle has it: they would repeat others."""
    from scenarios.crash.oracle import possible_deaths

    for cell in cells:
        first, second = possible_deaths(cell)
        if (cell.first == "none" or first) and (cell.second == "none" or second):
            yield cell


def pairwise(cells: list[Cell], seed: int) -> list[Cell]:
    """A small selection in which every pair of values that occurs in any cell occurs, drawn from the seed."""
    source = random.Random(seed)
    pairs = {cell: _pairs(cell) for cell in cells}
    wanted = set[tuple[str, str]]().union(*pairs.values())
    chosen: list[Cell] = []
    left = list(cells)
    while wanted:
        sample = left if len(wanted) < 100 else source.sample(left, min(len(left), 150))
        best = max(sample, key=lambda cell: len(pairs[cell] & wanted))
        if pairs[best] & wanted:
            chosen.append(best)
            wanted -= pairs[best]
        if len(wanted) < 100:
            left = [cell for cell in left if pairs[cell] & wanted]
    return chosen


def _pairs(cell: Cell) -> set[tuple[str, str]]:
    values = (
        f"contract={cell.contract}",
        f"first={cell.first}",
        f"fate={cell.fates[0]}",
        f"facts={cell.facts}",
        f"second={cell.second}",
    )
    return set(itertools.combinations(values, 2))
