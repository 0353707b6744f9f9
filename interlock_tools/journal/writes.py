"""What one append does to the tables of a SQLite journal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import canonical
from ..core.entries import Entry, Kind
from ..core.states import CLOSED_PHASES, TRANSITIONS, IllegalTransition, Phase
from ..errors import JournalError
from .protocol import Conflict, OverBudget, Write
from .schema import QUERIES

SEQ_BITS = 20
"""An entry's id is its effect's position, shifted by this much, plus its number within the effect."""
MAX_SEQ = (1 << SEQ_BITS) - 1
BLOCK = 256
"""Positions in one block; see ``open_effects`` in the schema."""
MAX_ROWS = 8
"""Most entries that one statement adds."""

_AFTER = {(before.value, kind): after.value for (before, kind), after in TRANSITIONS.items()}
_FREEING = frozenset({Kind.REFUSED, Kind.RELEASED, Kind.RESOLVED})
CLOSED = frozenset(phase.value for phase in CLOSED_PHASES)

_ADD_FIRST = [QUERIES["add_first"] + ", (?, ?, ?, ?, ?, NULL, NULL, NULL, NULL)" * more for more in range(MAX_ROWS)]
_ADD_MORE = [QUERIES["add_more"] + ", (?, ?, ?, ?, ?)" * more for more in range(MAX_ROWS)]

Figures = tuple[int, "int | None"]
"""How much of a budget is used, and its smallest limit."""


@dataclass(slots=True)
class Plan:
    """One effect's part of an append, with everything prepared that needs no lock.

    Attributes:
        rows: number, kind, time and encoded body of each entry.
        touches_budgets: entries that reserve or free something are among them.
        reserves: amount and limit by budget, where a new effect reserves and frees nothing.
        position: the effect's position, once it is known.
        phases: the phase after each entry, once the phase before them is known.
    """

    effect_id: str
    expected_seq: int
    rows: list[tuple[int, str, int, str]]
    entries: tuple[Entry, ...]
    touches_budgets: bool = False
    reserves: dict[str, tuple[int, int]] | None = None
    position: int = 0
    phases: list[str] = field(default_factory=list)


def prepare(write: Write) -> Plan:
    """Check one write on its own and encode its bodies.

    Raises:
        ValueError: its entries are not consecutive entries of its effect.
    """
    rows = []
    reserving: list[dict[str, Any]] = []
    dispatches = frees = 0
    seq = write.expected_seq
    effect_id = write.effect_id
    for entry in write.entries:
        seq += 1
        kind = entry.kind
        if entry.seq != seq or entry.effect_id != effect_id:
            raise ValueError(f"entry {entry.seq} of {entry.effect_id} does not follow entry {seq - 1} of {effect_id}")
        if kind in _FREEING:
            frees += 1
        elif kind is Kind.DISPATCHED and (budgets := entry.body.get("budgets")):
            dispatches += 1
            reserving = budgets
        rows.append((seq, kind.value, entry.at_ms, canonical.encode(entry.body)))
    if not rows or seq > MAX_SEQ:
        raise ValueError(f"effect {effect_id}: no entries, or more than {MAX_SEQ}")
    plan = Plan(effect_id, write.expected_seq, rows, write.entries, bool(dispatches or frees))
    if write.expected_seq == 0 and dispatches == 1 and not frees:
        plan.reserves = _by_name(reserving)
    return plan


def _by_name(reserving: list[dict[str, Any]]) -> dict[str, tuple[int, int]] | None:
    """Add up the amounts by budget; None if that needs a closer look."""
    amounts: dict[str, tuple[int, int]] = {}
    for item in reserving:
        name, amount, limit = item["budget"], item["amount"], item.get("limit")
        if limit is None or name in amounts or amount > limit:
            return None
        amounts[name] = (amount, limit)
    return amounts


class Head:
    """Where the journal stood when this process last wrote to it: a guess that saves looking.

    Whatever is written on its word is refused by the database if it is out of date.
    """

    def __init__(self) -> None:
        self.last_position: int | None = None
        self._effects: dict[str, tuple[int, int, str]] = {}

    def forget(self) -> None:
        self.last_position = None
        self._effects.clear()

    def effect(self, effect_id: str) -> tuple[int, int, str] | None:
        """Position, last number and phase of an effect that this process wrote to."""
        return self._effects.get(effect_id)

    def note(self, plan: Plan) -> None:
        """Take note of what has just been committed."""
        phase = plan.phases[-1]
        if phase in CLOSED:
            self._effects.pop(plan.effect_id, None)
        else:
            if len(self._effects) >= 10_000:
                self._effects.clear()
            self._effects[plan.effect_id] = (plan.position, plan.rows[-1][0], phase)
        if self.last_position is not None and plan.position > self.last_position:
            self.last_position = plan.position


def append_at_once(cursor: sqlite3.Cursor, plan: Plan, head: Head) -> bool:
    """Append to one effect without looking first, in one transaction.

    Returns False if that did not do; then nothing was written, and why is for ``append_carefully`` to find out.
    """
    if plan.expected_seq == 0:
        if head.last_position is None or (plan.touches_budgets and plan.reserves is None):
            return False
        position, phase = head.last_position + 1, "new"
        if position % BLOCK == 0:
            return False
    else:
        known = head.effect(plan.effect_id)
        if known is None or known[1] != plan.expected_seq or plan.touches_budgets:
            return False
        position, _, phase = known
    if len(plan.rows) > MAX_ROWS or not _find_phases(plan, phase):
        return False
    plan.position = position
    try:
        if not plan.reserves:
            _insert(cursor, plan)
            return True
        cursor.execute("BEGIN IMMEDIATE")
        _insert(cursor, plan)
        for name, (amount, limit) in plan.reserves.items():
            cursor.execute(QUERIES["reserve"], (name, amount, limit))
            if cursor.rowcount != 1:
                cursor.execute("ROLLBACK")
                return False
        cursor.execute("COMMIT")
        return True
    except sqlite3.IntegrityError:  # the whole transaction is rolled back
        return False


def append_carefully(cursor: sqlite3.Cursor, plans: Sequence[Plan]) -> None:
    """Carry out one append in a transaction that is open already. Everything is checked before anything is written.

    Raises:
        Conflict: an effect has a newer entry.
        OverBudget: a reservation does not fit.
        IllegalTransition: an entry must not follow.
        JournalError: a budget is reserved twice by one effect.
    """
    budgets: dict[str, Figures] = {}
    before: list[str] = []
    for plan in plans:
        before.append(_check(cursor, plan))
        if plan.touches_budgets:
            _reckon(cursor, plan, budgets)
    for plan, phase in zip(plans, before, strict=True):
        if plan.expected_seq == 0:
            plan.position = last_position(cursor) + 1
            if plan.position % BLOCK == 0:
                cursor.execute(QUERIES["list_block"], (plan.position // BLOCK - 1,))
        _insert(cursor, plan)
        if phase in CLOSED and plan.phases[-1] not in CLOSED:
            cursor.execute(QUERIES["list_again"], (plan.position,))
    for name, (used, smallest) in budgets.items():
        cursor.execute(QUERIES["set_budget"], (name, used, smallest))


def last_position(cursor: sqlite3.Cursor) -> int:
    """Return the position of the last effect, 0 if there is none."""
    last = cursor.execute(QUERIES["last_id"]).fetchall()[0][0]
    return (last or 0) >> SEQ_BITS


def _check(cursor: sqlite3.Cursor, plan: Plan) -> str:
    """Compare the effect's last entry with what the writer saw; return its phase, and find those after."""
    rows = cursor.execute(QUERIES["head"], (plan.effect_id,)).fetchall()
    last, phase = rows[0] if rows else (0, "new")
    plan.position = last >> SEQ_BITS
    if last & MAX_SEQ != plan.expected_seq:
        raise Conflict(f"effect {plan.effect_id} is at entry {last & MAX_SEQ}, not {plan.expected_seq}")
    if not _find_phases(plan, phase):
        wrong = len(plan.phases)
        before = Phase(plan.phases[-1] if plan.phases else phase)
        raise IllegalTransition(before, plan.entries[wrong].kind, "not in the transition table")
    return str(phase)


def _find_phases(plan: Plan, phase: str) -> bool:
    """Find the phase after each entry; False, with those up to there, if one must not follow."""
    plan.phases = phases = []
    for entry in plan.entries:
        after = _AFTER.get((phase, entry.kind))
        if after is None:
            return False
        phases.append(after)
        phase = after
    return True


def _insert(cursor: sqlite3.Cursor, plan: Plan) -> None:
    base = plan.position << SEQ_BITS
    phases = plan.phases
    for start in range(0, len(plan.rows), MAX_ROWS):
        rows = plan.rows[start : start + MAX_ROWS]
        values: list[Any] = []
        for index, (seq, kind, at_ms, body) in enumerate(rows, start):
            values += (base + seq, kind, at_ms, phases[index], body)
            if seq == 1:
                first = plan.entries[0].body
                values += (plan.effect_id, first["effect"], first["key"], first["decision"])
        statements = _ADD_FIRST if rows[0][0] == 1 else _ADD_MORE
        cursor.execute(statements[len(rows) - 1], values)


# -- budgets -----------------------------------------------------------------------------------------


def holds_after(held: list[dict[str, Any]], kind: Kind, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the budgets that an effect holds after an entry. ``held`` itself if nothing changes."""
    if kind is Kind.DISPATCHED:
        return body.get("budgets") or held
    if kind in (Kind.REFUSED, Kind.RELEASED) or (kind is Kind.RESOLVED and not body["landed"]):
        return [] if held else held
    return held


def _reckon(cursor: sqlite3.Cursor, plan: Plan, budgets: dict[str, Figures]) -> None:
    """Add to ``budgets`` what the entries reserve, and take off what they free. Two of one name add up."""
    held: list[dict[str, Any]] = []
    if plan.expected_seq:
        for _, kind, _, body in cursor.execute(QUERIES["entries"], (plan.effect_id,)).fetchall():
            held = holds_after(held, Kind(kind), json.loads(body))
    for entry in plan.entries:
        before, held = held, holds_after(held, entry.kind, entry.body)
        if held is before:
            continue
        if before and held:
            raise JournalError(f"effect {plan.effect_id} holds its budgets already; a resend must not name them again")
        for item in before:
            used, smallest = _figures(cursor, item["budget"], budgets)
            budgets[item["budget"]] = (used - item["amount"], smallest)
        for item in held:
            used, smallest = _figures(cursor, item["budget"], budgets)
            limits = [limit for limit in (smallest, item.get("limit")) if limit is not None]
            limit = min(limits, default=None)
            if limit is not None and used + item["amount"] > limit:
                raise OverBudget(item["budget"], item["amount"], used, limit)
            budgets[item["budget"]] = (used + item["amount"], limit)


def _figures(cursor: sqlite3.Cursor, name: str, budgets: dict[str, Figures]) -> Figures:
    if name not in budgets:
        rows = cursor.execute(QUERIES["budget"], (name,)).fetchall()
        budgets[name] = (rows[0][0], rows[0][1]) if rows else (0, None)
    return budgets[name]
