"""What appends do to the tables of a SQLite journal."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..core import canonical
from ..core.entries import Kind
from ..core.states import CLOSED_PHASES, TRANSITIONS, IllegalTransition, Phase
from ..errors import JournalError
from .placing import COLUMNS, load_tree, with_records
from .protocol import ARCHIVED, Conflict, OverBudget, Write
from .records import Seal, Secret
from .schema import QUERIES

if TYPE_CHECKING:
    from ..receipts.merkle import Tree

SEQ_BITS = 20
"""An entry's id is its effect's position, shifted by this much, plus its number within the effect."""
MAX_SEQ = (1 << SEQ_BITS) - 1
BLOCK = 256
"""Positions in one block; see ``open_effects`` in the schema."""
_MAX_HEADS = 10_000

_AFTER = {(before.value, kind.value): after.value for (before, kind), after in TRANSITIONS.items()}
_NEW = Phase.NEW.value
_DISPATCHED = Kind.DISPATCHED.value
_FREEING = frozenset({Kind.REFUSED.value, Kind.RELEASED.value, Kind.RESOLVED.value})
CLOSED = frozenset(phase.value for phase in CLOSED_PHASES)

_CHUNKS = (32, 16, 8, 4, 3, 2, 1)
"""How many rows one statement handles; few enough sizes for all of them to stay prepared."""


def _chunked(query: str, row: str) -> dict[int, str]:
    return {size: query.replace(row, ", ".join([row] * size)) for size in _CHUNKS}


_ADD = _chunked(QUERIES["add_entries"], "(?, ?, ?, ?, ?, ?, ?, ?, ?)")
_SET_BUDGETS = _chunked(QUERIES["set_budgets"], "(?, ?, ?)")
_RESERVE = QUERIES["reserve"]
_ADD_SEALED = _chunked(QUERIES["add_sealed"], "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
_HEADS = QUERIES["heads"]
_HEADS_AT_ONCE = _HEADS.count("?")


class Position(NamedTuple):
    """Where an effect stands: its position, the number of its last entry, its phase."""

    position: int
    seq: int
    phase: str


_NOWHERE = Position(0, 0, _NEW)


class Figures(NamedTuple):
    """How much of a budget is used, and its smallest limit ever recorded."""

    used: int
    smallest: int | None


class Plan:
    """One effect's part of an append, with everything prepared that needs no lock.

    Attributes:
        rows: number, kind, time and encoded body of each entry.
        touches_budgets: entries that reserve or free something are among them.
        reserves: amount and limit by budget, where a new effect reserves and frees nothing.
        position: the effect's position, once it is known.
        phases: the phase after each entry, once the phase before them is known.
        seals: the record of each entry, where signing is on.
        secret: what salts the effect's private values, with its first record.
    """

    __slots__ = (
        "effect_id",
        "entries",
        "expected_seq",
        "phases",
        "position",
        "reserves",
        "rows",
        "seals",
        "secret",
        "touches_budgets",
    )

    def __init__(self, write: Write) -> None:
        """Check one write on its own and encode its bodies.

        Raises:
            ValueError: its entries are not consecutive entries of its effect.
        """
        self.effect_id = effect_id = write.effect_id
        self.expected_seq = seq = write.expected_seq
        self.entries = write.entries
        self.touches_budgets = False
        self.reserves: dict[str, tuple[int, int]] | None = None
        self.position = 0
        self.seals: Sequence[Seal] = ()
        self.secret: Secret | None = None
        self.phases: list[str] = []
        self.rows: list[tuple[int, str, int, str]] = []
        budgets = None
        frees = False
        for entry in write.entries:
            seq += 1
            if entry.seq != seq or entry.effect_id != effect_id:
                raise ValueError(f"entry {entry.seq} of {entry.effect_id} is not entry {seq} of {effect_id}")
            kind: str = entry.kind._value_  # what `.value` returns, without its detour
            body = entry.body
            if kind == _DISPATCHED:
                frees = frees or budgets is not None  # more than one: needs a closer look
                budgets = body.get("budgets") or budgets
            elif kind in _FREEING:
                frees = True
            self.rows.append((seq, kind, entry.at_ms, canonical.encode(body)))
        if seq == write.expected_seq or seq > MAX_SEQ:
            raise ValueError(f"effect {effect_id}: no entries, or more than {MAX_SEQ}")
        if budgets or frees:
            self.touches_budgets = True
            if budgets and not frees and write.expected_seq == 0:
                self.reserves = _by_name(budgets)

    def find_phases(self, phase: str) -> bool:
        """Find the phase after each entry; False, with those up to there, if one must not follow."""
        self.phases = phases = []
        for row in self.rows:
            after = _AFTER.get((phase, row[1]))
            if after is None:
                return False
            phases.append(after)
            phase = after
        return True

    def after(self) -> Position:
        """Where the effect stands after these entries."""
        return Position(self.position, self.rows[-1][0], self.phases[-1])

    def values(self) -> list[Any]:
        """The columns of its entries, one row after the other."""
        base = self.position << SEQ_BITS
        values: list[Any] = []
        for (seq, kind, at_ms, body), phase in zip(self.rows, self.phases, strict=True):
            values += (base + seq, kind, at_ms, phase, body)
            if seq == 1:
                first = self.entries[0].body
                values += (self.effect_id, first["effect"], first["key"], first["decision"])
            else:
                values += (None, None, None, None)
        return values


def _by_name(reserving: list[dict[str, Any]]) -> dict[str, tuple[int, int]] | None:
    """Amount and limit by budget; None if that needs a closer look."""
    amounts: dict[str, tuple[int, int]] = {}
    for item in reserving:
        name, amount, limit = item["budget"], item["amount"], item.get("limit")
        if limit is None or name in amounts or amount > limit:
            return None
        amounts[name] = (amount, limit)
    return amounts


class Guess:
    """Where the journal stood when this process last wrote to it, which saves looking.

    Whatever is written on its word is refused by the database if it is out of date.
    """

    def __init__(self) -> None:
        self.last_position: int | None = None
        self.effects: dict[str, Position] = {}
        self.tree: Tree | None = None

    def forget(self) -> None:
        self.last_position = None
        self.effects.clear()
        self.tree = None

    def note(self, plan: Plan) -> None:
        """Take note of what has just been committed."""
        if plan.phases[-1] not in CLOSED:
            if len(self.effects) >= _MAX_HEADS:
                self.effects.clear()
            self.effects[plan.effect_id] = plan.after()
        elif plan.expected_seq:
            self.effects.pop(plan.effect_id, None)
        if self.last_position is not None and plan.position > self.last_position:
            self.last_position = plan.position


def append_at_once(cursor: sqlite3.Cursor, plan: Plan, guess: Guess) -> bool:
    """Append to one effect without looking first, in one transaction.

    Returns False if that did not do; then nothing was written, and a ``Batch`` finds out why.
    """
    if plan.expected_seq == 0:
        if guess.last_position is None or (plan.touches_budgets and plan.reserves is None):
            return False
        here = Position(guess.last_position + 1, 0, _NEW)
        if here.position % BLOCK == 0:
            return False
    else:
        here = guess.effects.get(plan.effect_id, _NOWHERE)
        if here.seq != plan.expected_seq or plan.touches_budgets:
            return False
    statement = _ADD.get(len(plan.rows))
    if statement is None or not plan.find_phases(here.phase):
        return False
    plan.position = here.position
    tree = guess.tree
    values: list[Any]
    if plan.seals:
        if tree is None:
            return False
        statement = _ADD_SEALED[len(plan.rows)]
        values, tree = with_records(plan.values(), plan.seals, tree)
    else:
        values = plan.values()
    try:
        if not plan.reserves and plan.secret is None:
            cursor.execute(statement, values)
        else:
            cursor.execute("BEGIN IMMEDIATE")
            cursor.execute(statement, values)
            for name, (amount, limit) in (plan.reserves or {}).items():
                cursor.execute(_RESERVE, (name, amount, limit))
                if cursor.rowcount != 1:
                    cursor.execute("ROLLBACK")
                    return False
            if plan.secret is not None:
                cursor.execute(QUERIES["add_secret"], (plan.position, *plan.secret))
            cursor.execute("COMMIT")
        guess.tree = tree
        return True
    except sqlite3.IntegrityError:  # the whole transaction is rolled back
        return False


class Batch:
    """Appends that share one transaction. All are checked in memory, and only then is anything written.

    Args:
        cursor: in a transaction that has the write lock.
        plans: all that will be added, to read what is needed in few queries.
        tree: the log's tree as it was last seen here.
    """

    def __init__(self, cursor: sqlite3.Cursor, plans: Iterable[Plan], tree: Tree | None = None) -> None:
        self._cursor = cursor
        self.last_position = (cursor.execute(QUERIES["last_id"]).fetchall()[0][0] or 0) >> SEQ_BITS
        self._full_blocks: list[int] = []
        self._reopened: list[int] = []
        self._plans: list[Plan] = []
        self._figures: dict[str, Figures] = {}
        self._changed: set[str] = set()
        self._effects: dict[str, Position] = {}
        self._known = tree
        self.tree: Tree | None = None
        ids = list({plan.effect_id for plan in plans})
        for start in range(0, len(ids), _HEADS_AT_ONCE):
            some = ids[start : start + _HEADS_AT_ONCE]
            padded = some + [None] * (_HEADS_AT_ONCE - len(some))
            for effect_id, last, phase in cursor.execute(_HEADS, padded).fetchall():
                self._effects[effect_id] = Position(last >> SEQ_BITS, last & MAX_SEQ, phase)

    def add(self, plans: Sequence[Plan]) -> None:
        """Add one append, all of it or nothing.

        Raises:
            Conflict: an effect has a newer entry.
            OverBudget: a reservation does not fit.
            IllegalTransition: an entry must not follow.
            JournalError: an effect reserves its budgets twice.
        """
        last = self.last_position
        figures: dict[str, Figures] = {}
        for plan in plans:
            here = self._effects.get(plan.effect_id, _NOWHERE)
            if here.seq != plan.expected_seq or here.phase == ARCHIVED:
                raise Conflict(f"effect {plan.effect_id} is at entry {here.seq}, not {plan.expected_seq}")
            if not plan.find_phases(here.phase):
                before = plan.phases[-1] if plan.phases else here.phase
                raise IllegalTransition(Phase(before), plan.entries[len(plan.phases)].kind, "not in the table")
            if plan.touches_budgets:
                self._reckon(plan, figures)
            if plan.expected_seq == 0:
                last += 1
            plan.position = here.position or last
        for plan in plans:
            if plan.expected_seq == 0 and plan.position % BLOCK == 0:
                self._full_blocks.append(plan.position // BLOCK - 1)
            if self._effects.get(plan.effect_id, _NOWHERE).phase in CLOSED and plan.phases[-1] not in CLOSED:
                self._reopened.append(plan.position)
            self._effects[plan.effect_id] = plan.after()
            self._plans.append(plan)
        self._figures.update(figures)
        self._changed.update(figures)
        self.last_position = last

    def write(self) -> None:
        """Write what was added."""
        if any(plan.seals for plan in self._plans):
            self._write_sealed()
        else:
            values = [value for plan in self._plans for value in plan.values()]
            _execute_chunked(self._cursor, _ADD, values, COLUMNS)
        figures = [value for name in self._changed for value in (name, *self._figures[name])]
        _execute_chunked(self._cursor, _SET_BUDGETS, figures, 3)
        for block in self._full_blocks:
            self._cursor.execute(QUERIES["list_block"], {"block": block})
        for position in self._reopened:
            self._cursor.execute(QUERIES["list_again"], (position,))

    def _write_sealed(self) -> None:
        """Write the entries together with their records."""
        tree = load_tree(self._cursor, self._known)
        values: list[Any] = []
        for plan in self._plans:
            more, tree = with_records(plan.values(), plan.seals, tree)
            values += more
            if plan.secret is not None:
                self._cursor.execute(QUERIES["add_secret"], (plan.position, *plan.secret))
        _execute_chunked(self._cursor, _ADD_SEALED, values, COLUMNS + 4)
        self.tree = tree

    def write_more(
        self, statements: Sequence[tuple[str, Sequence[Any] | Mapping[str, Any]]], key_changes: Sequence[Seal]
    ) -> None:
        """Write what belongs to the log and to no effect."""
        for query, values in statements:
            self._cursor.execute(QUERIES[query], values)
        for seal in key_changes:
            tree = self.tree or load_tree(self._cursor, self._known)
            self.tree, nodes = tree.append(seal.hash)
            completed = b"".join([node.hash for node in nodes])
            row = (tree.size, completed, seal.signature, seal.statement)
            self._cursor.execute(QUERIES["add_key_change"], row)

    def _reckon(self, plan: Plan, figures: dict[str, Figures]) -> None:
        """Put into ``figures`` what the entries reserve and free. Two of one budget add up."""
        held: list[dict[str, Any]] = []
        if plan.expected_seq:
            for _, kind, _, body in self._cursor.execute(QUERIES["entries"], (plan.effect_id,)).fetchall():
                held = holds_after(held, Kind(kind), json.loads(body))
        for entry in plan.entries:
            before, held = held, holds_after(held, entry.kind, entry.body)
            if held is before:
                continue
            if before and held:
                raise JournalError(f"effect {plan.effect_id} holds its budgets already; name them once")
            for item in before:
                now = self._budget(item["budget"], figures)
                figures[item["budget"]] = Figures(now.used - item["amount"], now.smallest)
            for item in held:
                name, amount = item["budget"], item["amount"]
                now = self._budget(name, figures)
                limits = [limit for limit in (now.smallest, item.get("limit")) if limit is not None]
                limit = min(limits, default=None)
                if limit is not None and now.used + amount > limit:
                    raise OverBudget(name, amount, now.used, limit)
                figures[name] = Figures(now.used + amount, limit)

    def _budget(self, name: str, figures: dict[str, Figures]) -> Figures:
        found = figures.get(name) or self._figures.get(name)
        if found is None:
            rows = self._cursor.execute(QUERIES["budget"], (name,)).fetchall()
            found = self._figures[name] = Figures(*rows[0]) if rows else Figures(0, None)
        return found


def holds_after(held: list[dict[str, Any]], kind: Kind, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the budgets that an effect holds after an entry; ``held`` itself if nothing changes."""
    if kind is Kind.DISPATCHED:
        return body.get("budgets") or held
    if kind in (Kind.REFUSED, Kind.RELEASED) or (kind is Kind.RESOLVED and not body["landed"]):
        return [] if held else held
    return held


def _execute_chunked(cursor: sqlite3.Cursor, statements: dict[int, str], values: list[Any], columns: int) -> None:
    start, rows = 0, len(values) // columns
    for size in _CHUNKS:
        while rows - start >= size:
            cursor.execute(statements[size], values[start * columns : (start + size) * columns])
            start += size
