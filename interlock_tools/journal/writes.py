"""What one append does to the tables, inside a transaction that is already open."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import canonical
from ..core.entries import Entry, Kind
from ..core.states import TRANSITIONS, IllegalTransition, Phase
from ..errors import JournalError
from .protocol import Conflict, OverBudget, Write
from .schema import QUERIES

_AFTER = {(before.value, kind): after.value for (before, kind), after in TRANSITIONS.items()}
_HEAD = QUERIES["head"]
_ADD_EFFECT = QUERIES["add_effect"]
_VALUES = " (?, ?, ?, ?, ?, ?)"
_ADD_ENTRIES = [f"{QUERIES['add_entry']}{(',' + _VALUES) * more}" for more in range(8)]
"""The statement that adds 1, 2, … entries at once."""

_FREEING = frozenset({Kind.REFUSED, Kind.RELEASED, Kind.RESOLVED})


@dataclass(slots=True)
class Plan:
    """One effect's part of an append, with everything prepared that needs no lock.

    Raises:
        ValueError: the entries are not consecutive entries of the effect.
    """

    effect_id: str
    expected_seq: int
    rows: list[tuple[int, str, int, str]]
    entries: tuple[Entry, ...]
    touches_budgets: bool
    position: int = 0
    phases: list[str] = field(default_factory=list)


def prepare(write: Write) -> Plan:
    """Check one write on its own and encode its bodies."""
    rows = []
    touches_budgets = False
    seq = write.expected_seq
    for entry in write.entries:
        seq += 1
        if entry.seq != seq or entry.effect_id != write.effect_id:
            raise ValueError(f"entry {entry.seq} of {entry.effect_id} does not follow {seq - 1} of {write.effect_id}")
        kind = entry.kind
        if kind in _FREEING or (kind is Kind.DISPATCHED and entry.body.get("budgets")):
            touches_budgets = True
        rows.append((seq, kind.value, entry.at_ms, canonical.encode(entry.body)))
    if not rows:
        raise ValueError("a write without entries")
    return Plan(write.effect_id, write.expected_seq, rows, write.entries, touches_budgets)


def apply(cursor: sqlite3.Cursor, plans: Sequence[Plan]) -> None:
    """Carry out one append. Everything is checked before anything is written.

    Raises:
        Conflict: an effect has a newer entry.
        OverBudget: a reservation does not fit.
        IllegalTransition: an entry must not follow.
    """
    budgets: dict[str, tuple[int, int | None]] = {}
    for plan in plans:
        held = _check(cursor, plan)
        if plan.touches_budgets:
            _reckon(cursor, plan, held, budgets)
    for plan in plans:
        if plan.expected_seq == 0:
            body = plan.entries[0].body
            cursor.execute(_ADD_EFFECT, (plan.effect_id, body["effect"], body["key"], body["decision"]))
            plan.position = cursor.lastrowid or 0
        _insert(cursor, plan)
    for name, (used, limit) in budgets.items():
        cursor.execute(QUERIES["set_budget"], (name, used, limit))


def _check(cursor: sqlite3.Cursor, plan: Plan) -> list[dict[str, Any]]:
    """Compare the effect's last entry with what the writer saw; find the phase after each entry.

    Returns the budgets that the effect holds, where that matters.
    """
    head = cursor.execute(_HEAD, (plan.effect_id,)).fetchone()
    plan.position, seq, phase = head if head is not None else (0, 0, "new")
    if seq != plan.expected_seq:
        raise Conflict(f"effect {plan.effect_id} is at entry {seq}, not {plan.expected_seq}")
    plan.phases = []
    for entry in plan.entries:
        after = _AFTER.get((phase, entry.kind))
        if after is None:
            raise IllegalTransition(Phase(phase), entry.kind, "not in the transition table")
        plan.phases.append(after)
        phase = after
    if not plan.touches_budgets or seq == 0:
        return []
    held: list[dict[str, Any]] = []
    for _, kind, _, body in cursor.execute(QUERIES["entries"], (plan.effect_id,)):
        held = holds_after(held, Kind(kind), json.loads(body))
    return held


def holds_after(held: list[dict[str, Any]], kind: Kind, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the budgets that an effect holds after an entry."""
    if kind is Kind.DISPATCHED:
        return body.get("budgets") or held
    if kind in (Kind.REFUSED, Kind.RELEASED) or (kind is Kind.RESOLVED and not body["landed"]):
        return []
    return held


def _reckon(
    cursor: sqlite3.Cursor, plan: Plan, held: list[dict[str, Any]], budgets: dict[str, tuple[int, int | None]]
) -> None:
    """Add what the entries reserve to ``budgets`` and take off what they free. Two of one name add up."""
    for entry in plan.entries:
        before, held = held, holds_after(held, entry.kind, entry.body)
        if held is before:
            continue
        if before and held:
            raise JournalError(f"effect {plan.effect_id} holds its budgets already; a resend must not name them again")
        for item in before:
            used, limit = _figures(cursor, item["budget"], budgets)
            budgets[item["budget"]] = (used - item["amount"], limit)
        for item in held:
            used, limit = _figures(cursor, item["budget"], budgets)
            own = item.get("limit")
            smallest = own if limit is None else limit if own is None else min(limit, own)
            if smallest is not None and used + item["amount"] > smallest:
                raise OverBudget(item["budget"], item["amount"], used, smallest)
            budgets[item["budget"]] = (used + item["amount"], smallest)


def _figures(cursor: sqlite3.Cursor, name: str, budgets: dict[str, tuple[int, int | None]]) -> tuple[int, int | None]:
    if name in budgets:
        return budgets[name]
    row = cursor.execute(QUERIES["budget"], (name,)).fetchone()
    return (row[0], row[1]) if row is not None else (0, None)


def _insert(cursor: sqlite3.Cursor, plan: Plan) -> None:
    position = plan.position
    for start in range(0, len(plan.rows), len(_ADD_ENTRIES)):
        rows = plan.rows[start : start + len(_ADD_ENTRIES)]
        values: list[Any] = []
        for offset, (seq, kind, at_ms, body) in enumerate(rows, start):
            values += (position, seq, kind, at_ms, body, plan.phases[offset])
        cursor.execute(_ADD_ENTRIES[len(rows) - 1], values)
