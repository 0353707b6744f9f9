"""The journal in one SQLite file, for agents that run on one host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ..core import canonical
from ..core.decide import Sighting
from ..core.entries import Entry, Instant, Kind
from ..core.states import Send
from . import sessions
from .clock import Clock, SystemClock
from .database import Database
from .protocol import BudgetUse, EffectRow, Holder, SendSlot, Write
from .schema import QUERIES
from .writes import CLOSED, prepare

_KINDS = {kind.value: kind for kind in Kind}


class SqliteJournal:
    """A journal in one SQLite file. See ``protocol.Journal`` for what each method promises.

    Args:
        path: the database file. Beside it lie SQLite's own ``-wal`` and ``-shm``
            files and the directory ``<path>.sessions``; they belong together.
        clock: what tells the time; the system's clocks by default.

    Raises:
        JournalUnusable: it cannot be opened here; the sentence says why.
    """

    def __init__(self, path: str | Path, clock: Clock | None = None) -> None:
        self.url = str(path)
        self._clock = clock if clock is not None else SystemClock()
        self._database = Database.open(self.url)

    def append(self, writes: Sequence[Write]) -> None:
        self._database.append([prepare(write) for write in writes])

    def entries(self, effect_id: str) -> list[Entry]:
        rows = self._database.read(QUERIES["entries"], (effect_id,))
        return [Entry(effect_id, seq, _KINDS[kind], at_ms, json.loads(body)) for seq, kind, at_ms, body in rows]

    def effect(self, effect_id: str) -> EffectRow | None:
        rows = self._database.read(QUERIES["effect"], (effect_id,))
        return EffectRow(*rows[0]) if rows else None

    def latest_decision(self, name: str, request_key: str) -> EffectRow | None:
        latest = None
        decision = 1
        while (row := self.effect(canonical.effect_id(name, request_key, decision))) is not None:
            latest = row
            decision += 1
        return latest

    def open_effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        return [EffectRow(*row) for row in self._database.read(QUERIES["open_effects"], (after, limit))]

    def effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        return [EffectRow(*row) for row in self._database.read(QUERIES["effects"], (after, limit))]

    def budget(self, name: str) -> BudgetUse:
        rows = self._database.read(QUERIES["budget"], (name,))
        return BudgetUse(name, *rows[0]) if rows else BudgetUse(name, 0, None)

    def new_slot(self, effect_id: str) -> SendSlot:
        return self._database.session(self._clock).new_slot(effect_id, self._is_closed)

    def _is_closed(self, effect_id: str) -> bool:
        row = self.effect(effect_id)
        return row is not None and row.phase in CLOSED

    def sight(self, send: Send) -> tuple[Sighting, Holder | None]:
        own = self._database.own_session
        if own is not None and own.name == send.session:
            return own.sight_own(send), own.holder()
        return sessions.sight_other(self._database.directory, send, self._clock.now().boot)

    def now(self) -> Instant:
        return self._clock.now()

    def close(self) -> None:
        self._database.release()
