"""The journal in PostgreSQL, for agents that run on several hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core import canonical
from ..core.decide import Sighting
from ..core.entries import Entry, Instant
from ..core.states import Send
from ..errors import Archived, JournalError
from .claims import Claim
from .clock import Clock, SystemClock
from .pg.appends import budget_key, from_text
from .pg.records import PostgresRecords
from .pg.store import Store
from .protocol import ARCHIVED, BudgetUse, EffectRow, Holder, SendSlot, Tombstone, Write, entry_of
from .records import Records, Sealing
from .writes import CLOSED, Plan

_DECISIONS_AT_ONCE = 8


class PostgresJournal:
    """A journal in a PostgreSQL database. See ``protocol.Journal`` for what each method promises.

    Args:
        url: ``postgresql://user:password@host:5432/database``; docs/postgresql.md has the parameters.
        clock: what tells the time; the system's clocks by default.
        sessions: the directory for this host's session files; by default ``$INTERLOCK_SESSIONS``,
            ``$XDG_STATE_HOME/interlock`` or ``~/.local/state/interlock``.

    Attributes:
        url: the URL without its password.

    Raises:
        JournalUnusable: it cannot be used; the sentence says why and what to do.
        JournalError: the database cannot be reached.
    """

    def __init__(self, url: str, clock: Clock | None = None, sessions: Path | None = None) -> None:
        self._clock = clock if clock is not None else SystemClock()
        self._store = Store.open(url, sessions)
        self.url = self._store.target.url
        self._closed = False
        self.sealing: Sealing | None = None
        self.records: Records = PostgresRecords(self._open)

    @property
    def liveness(self) -> str:
        """What tells that a process on another host lives: its ``lock`` or, behind a pooler, its ``heartbeats``."""
        return self._store.liveness

    def _open(self) -> Store:
        if self._closed:
            raise JournalError(f"{self.url}: this journal has been closed; open it again")
        return self._store

    def append(self, writes: Sequence[Write]) -> None:
        plans = [Plan(write) for write in writes]
        if self.sealing is None:
            self._open().append(plans)
            return
        self.sealing.seal(self, plans)
        self._open().append(plans)
        self.sealing.written(plans)

    def entries(self, effect_id: str) -> list[Entry]:
        if not (effect_id.isascii() and effect_id.isprintable()):
            return []  # no effect has such an id, and a database may not take it for text
        rows = self._open().read("entries", (effect_id,))
        if rows and rows[0][0] is None:
            raise Archived(effect_id, json.loads(rows[0][3]))
        return [entry_of(effect_id, *row) for row in rows]

    def effect(self, effect_id: str) -> EffectRow | None:
        rows = self._open().read("effects_by_id", ([effect_id],))
        return _row(rows[0]) if rows else None

    def latest_decision(self, name: str, request_key: str) -> EffectRow | None:
        latest: EffectRow | None = None
        while True:  # they are numbered without gaps
            first = latest.decision + 1 if latest is not None else 1
            numbers = range(first, first + _DECISIONS_AT_ONCE)
            ids = [canonical.effect_id(name, request_key, number) for number in numbers]
            rows = self._open().read("effects_by_id", (ids,))
            latest = _row(rows[-1]) if rows else latest
            if len(rows) < _DECISIONS_AT_ONCE:
                return latest

    def open_effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        return [_row(row) for row in self._open().read("open_effects", (after, limit))]

    def take_up(self, position: int) -> Claim | None:
        return self._open().take_up(position, self._clock)

    def effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        return [_row(row) for row in self._open().read("effects", (after, limit))]

    def claim_due(self, worker: str, now_ms: int, until_ms: int, limit: int = 100) -> list[EffectRow]:
        wanted = {"worker": worker, "now_ms": now_ms, "until_ms": until_ms, "limit": limit}
        return [_row(row) for row in self._open().read("claim_due", wanted)]

    def look_at(self, effect_id: str, at_ms: int | None) -> None:
        if at_ms is None:
            self._open().read("look_no_more", (effect_id,))
        else:
            self._open().read("look_at", (at_ms, effect_id))

    def watched(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        return [_row(row) for row in self._open().read("watched", (after, limit))]

    def next_look(self) -> tuple[int | None, int]:
        ((first, count),) = self._open().read("next_look")
        return first, count

    def archive(self, tombstones: Sequence[Tombstone]) -> None:
        values = [
            [getattr(stone, name) for stone in tombstones]
            for name in ("position", "seq", "ended_ms", "next_position", "text")
        ]
        self._open().write(("archive", values))

    def forget(self, before_ms: int, limit: int = 1000) -> None:
        self._open().write(("forget", (before_ms, limit)))

    def to_forget(self, before_ms: int) -> int:
        count: int = self._open().read("to_forget", (before_ms,))[0][0]
        return count

    def budget(self, name: str) -> BudgetUse:
        rows = self._open().read("budget", (budget_key(name),))
        return BudgetUse(name, *rows[0]) if rows else BudgetUse(name, 0, None)

    def new_slot(self, effect_id: str) -> SendSlot:
        return self._open().new_slot(effect_id, self._clock, self._is_closed)

    def _is_closed(self, effect_id: str) -> bool:
        row = self.effect(effect_id)
        return row is not None and row.phase in (*CLOSED, ARCHIVED)

    def sight(self, send: Send) -> tuple[Sighting, Holder | None]:
        return self._open().sight(send, self._clock)

    def now(self) -> Instant:
        return self._clock.now()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._store.release()


def _row(row: tuple[Any, ...]) -> EffectRow:
    effect_id, position, name, request_key, decision, last_seq, phase = row
    return EffectRow(effect_id, position, from_text(name), from_text(request_key), decision, last_seq, phase)
