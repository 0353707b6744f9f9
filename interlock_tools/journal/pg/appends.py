"""One append as one statement, and what becomes of it when the connection does not last."""

from __future__ import annotations

import json
import random
import secrets
import time
from collections.abc import Sequence
from typing import Any, NoReturn

import psycopg

from ...core import canonical
from ...core.entries import Kind
from ...core.states import IllegalTransition, Phase
from ...errors import CommitUnknown, JournalError, RecordsMissing
from ..protocol import Conflict, OverBudget
from ..writes import Plan
from .pool import Connection, Pool
from .target import Target

READ_BACK_S = 10.0
"""How long to try to find out what became of an append whose connection died."""

MAX_TRIES = 8
"""How often an append is done again that the database gave up in favour of another."""

_AGAIN = frozenset({"40001", "40P01"})
_DONE = frozenset({"appended", "appended before"})
_FATAL = frozenset({"FATAL", "PANIC"})
_LONGEST_NAME = 400
_FREEING = (Kind.REFUSED, Kind.RELEASED)


def in_text(name: str) -> str:
    """Spell a text as inside JSON, so that it has no NUL. Ordinary texts stay as they are."""
    return canonical.encode(name)[1:-1]


def from_text(spelled: str) -> str:
    """Undo ``in_text``."""
    text: str = json.loads(f'"{spelled}"')
    return text


def budget_key(name: str) -> str:
    """Return what a budget is called in the database, where an index limits how long names are."""
    spelled = in_text(name)
    if len(spelled.encode()) <= _LONGEST_NAME:
        return spelled
    return f"{spelled[:80]}… {canonical.digest(spelled)}"


class Append:
    """What one append hands to the database. Carrying it out again is safe: it is done once, by its token."""

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.token = secrets.randbits(63)
        self._budgets: dict[str, str] = {}
        effects: list[tuple[Any, ...]] = []
        entries: list[tuple[Any, ...]] = []
        freeing: list[int] = []
        items: list[tuple[Any, ...]] = []
        for plan in plans:
            first = plan.entries[0].body if plan.expected_seq == 0 and plan.entries[0].kind is Kind.PROPOSED else {}
            name, key = in_text(first.get("effect", "")), in_text(first.get("key", ""))
            decision = first.get("decision", 0)
            effects.append((plan.effect_id, plan.expected_seq, len(plan.rows), name, key, decision))
            for row, entry in zip(plan.rows, plan.entries, strict=True):
                entries.append(row)
                if not plan.touches_budgets:
                    continue
                if entry.kind in _FREEING or (entry.kind is Kind.RESOLVED and not entry.body["landed"]):
                    freeing.append(len(entries))
                elif entry.kind is Kind.DISPATCHED:
                    items += self._items(len(entries), entry.body.get("budgets") or ())
        self._plans = plans
        self._sends = any(entry.kind is Kind.DISPATCHED for plan in plans for entry in plan.entries)
        self.values: tuple[Any, ...] = (
            self.token,
            *_columns(effects, 6),
            *_columns(entries, 4),
            _array(freeing),
            *_columns(items, 4),
        )
        self._sealed = any(plan.seals for plan in plans)  # then witnesses tell what is missing
        self.query = "append_sealed" if self._sealed else "append"
        if self._sealed:
            self.values += _records(plans)

    def _items(self, number: int, budgets: Sequence[dict[str, Any]]) -> list[tuple[Any, ...]]:
        """What one entry reserves, in an order that is the same for everybody, so that nobody waits in a circle."""
        found = []
        for item in budgets:
            key = budget_key(item["budget"])
            self._budgets[key] = item["budget"]
            found.append((number, key, item["amount"], item.get("limit")))
        return sorted(found, key=lambda item: str(item[1]))

    def carry_out(self, pool: Pool, target: Target, statement: bytes) -> None:
        """Append. What the database gave up in favour of another is done again, and so is what nobody knows about.

        Whichever of two copies of an append comes first is the only one: the
        other finds newer entries, with its own token, and is done.
        """
        deadline: float | None = None
        tries = 0
        while True:
            connection: Connection | None = None
            try:
                with pool.connection() as connection:
                    if self._sends and not self._sealed:
                        pool.memory.require_all()
                    answer = connection.execute(statement, self.values).fetchall()
                if answer and answer[0][0] in _DONE:
                    pool.memory.note(self._plans)
                    return
                raise JournalError(f"{target.url}: the database answered an append with {answer!r}; read back")
            except psycopg.Error as error:
                if not _ended_connection(error, connection):
                    tries += 1
                    if error.sqlstate not in _AGAIN or tries >= MAX_TRIES:
                        self._explain(error, target, knows=deadline is None)
                    time.sleep(random.uniform(0, 0.002 * 2**tries))
                    continue
                why = target.clean(str(error))
                pool.drop_idle()
            except JournalError as error:
                if deadline is None or isinstance(error, RecordsMissing):
                    raise  # nothing was handed to the database
                why = str(error)
            if deadline is None:
                deadline = time.monotonic() + READ_BACK_S
            elif time.monotonic() > deadline:
                raise CommitUnknown(
                    f"{target.url}: the connection died during a commit, and for {READ_BACK_S:.0f} s nobody could tell "
                    f"what became of it ({why}); read back"
                )
            else:
                time.sleep(0.1)

    def _explain(self, error: psycopg.Error, target: Target, knows: bool) -> NoReturn:
        """Raise what an error of the database means. It was answered, so this copy of the append wrote nothing.

        An earlier copy whose fate is not known (``knows`` is false) may still
        come through, unless somebody else's entry is in its place.
        """
        detail = _detail(error)
        if error.sqlstate == "IL001":
            raise Conflict(
                f"effect {detail['effect']} is at entry {detail['seen']}, not {detail['expected']}"
            ) from None
        if not knows:
            raise CommitUnknown(f"{translated(error, target)}, but an earlier try may have; read back") from None
        if error.sqlstate == "IL002":
            budget = self._budgets[detail["budget"]]
            raise OverBudget(budget, detail["amount"], detail["used"], detail["limit"]) from None
        if error.sqlstate == "IL003":
            raise IllegalTransition(Phase(detail["phase"]), Kind(detail["kind"]), "not in the table") from None
        if error.sqlstate == "IL004":
            raise JournalError("an effect holds its budgets already; name them once") from None
        raise translated(error, target) from None


def _records(plans: Sequence[Plan]) -> tuple[str, ...]:
    """The records of an append's entries. All are sealed, or none is: signing belongs to the journal."""
    records = [
        (plan.effect_id, seal.hash.hex(), seal.signature.hex(), seal.service) for plan in plans for seal in plan.seals
    ]
    secrets_ = [(plan.secret.secret.hex(), plan.secret.paths) if plan.secret else (None, None) for plan in plans]
    return (*_columns(records, 4), *_columns(secrets_, 2))


def _ended_connection(error: psycopg.Error, connection: Connection | None) -> bool:
    """Whether an error is not an answer to the statement but the end of the connection."""
    return connection is None or connection.closed or error.diag.severity_nonlocalized in _FATAL


def _detail(error: psycopg.Error) -> dict[str, Any]:
    if not (error.sqlstate or "").startswith("IL") or not error.diag.message_detail:
        return {}
    found: dict[str, Any] = json.loads(error.diag.message_detail)
    return found


def translated(error: psycopg.Error, target: Target) -> JournalError:
    """Say what a failure of the database means here, and what to do."""
    words = target.clean(error.diag.message_primary or str(error))
    state = error.sqlstate or ""
    advice = "call again"
    if state == "55P03":
        advice = "something else holds a lock in the database; end it and call again"
    elif state == "53100":
        advice = "the server's disk is full; make room and call again"
    elif state == "42501":
        advice = "grant it to this user"
    elif state == "25006":
        advice = "this is a standby or read-only; name the primary"
    return JournalError(f"{target.url}: {words}; nothing was written: {advice}")


def _columns(rows: Sequence[tuple[Any, ...]], width: int) -> list[str]:
    return [_array([row[index] for row in rows]) for index in range(width)]


def _array(values: Sequence[Any]) -> str:
    """Spell an array as the server reads it. The driver takes longer for that than the server for the append."""
    return "{" + ",".join([_element(value) for value in values]) + "}"


def _element(value: Any) -> str:
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return "NULL" if value is None else str(value)
