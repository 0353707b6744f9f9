"""The journal in one SQLite file, for agents that run on one host."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from ..core import canonical
from ..core.decide import Sighting
from ..core.entries import Entry, Instant
from ..core.states import Send
from ..errors import Archived, JournalError
from . import sightings
from .claims import Claim, claim, take_in_file
from .clock import Clock, SystemClock
from .database import Database
from .protocol import ARCHIVED, BudgetUse, EffectRow, Holder, SendSlot, Tombstone, Write, entry_of
from .records import Records, Sealing
from .schema import QUERIES
from .sqlite_records import SqliteRecords
from .writes import CLOSED, Plan


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
        self._closed = False
        self.sealing: Sealing | None = None
        self.records: Records = SqliteRecords(self._database)

    def _open(self) -> Database:
        if self._closed:
            raise JournalError(f"{self.url}: this journal has been closed; open it again")
        return self._database

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
        rows = self._open().read(QUERIES["entries"], (effect_id,))
        if rows and rows[0][1] == ARCHIVED:
            raise Archived(effect_id, json.loads(rows[0][3]))
        return [entry_of(effect_id, *row) for row in rows]

    def effect(self, effect_id: str) -> EffectRow | None:
        rows = self._open().read(QUERIES["effect"], (effect_id,))
        return EffectRow(*rows[0]) if rows else None

    def latest_decision(self, name: str, request_key: str) -> EffectRow | None:
        latest = None
        for decision in count(1):  # they are numbered without gaps
            row = self.effect(canonical.effect_id(name, request_key, decision))
            if row is None:
                break
            latest = row
        return latest

    def open_effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        rows = self._open().read(QUERIES["open_effects"], {"after": after, "limit": limit})
        return [EffectRow(*row) for row in rows]

    def take_up(self, position: int) -> Claim | None:
        directory = self._open().directory
        return claim(str(directory), position, lambda: take_in_file(directory / "recovery.lock", position))

    def effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        rows = self._open().read(QUERIES["effects"], {"after": after, "limit": limit})
        return [EffectRow(*row) for row in rows]

    def claim_due(self, worker: str, now_ms: int, until_ms: int, limit: int = 100) -> list[EffectRow]:
        first, count = self.next_look()
        if not count or first is None or first > now_ms:
            return []
        self._open().write_log((("claim_due", (worker, until_ms, now_ms, limit)),))
        return [EffectRow(*row) for row in self._open().read(QUERIES["claimed"], (worker,))]

    def look_at(self, effect_id: str, at_ms: int | None) -> None:
        statement = ("look_no_more", (effect_id,)) if at_ms is None else ("look_at", (at_ms, effect_id))
        self._open().write_log((statement,))

    def watched(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        rows = self._open().read(QUERIES["watched"], {"after": after, "limit": limit})
        return [EffectRow(*row) for row in rows]

    def next_look(self) -> tuple[int | None, int]:
        ((first, count),) = self._open().read(QUERIES["next_look"], ())
        return first, count

    def archive(self, tombstones: Sequence[Tombstone]) -> None:
        self._open().write_log(
            [
                (
                    "archive",
                    {
                        "position": stone.position,
                        "seq": stone.seq,
                        "ended": stone.ended_ms,
                        "next": stone.next_position,
                        "tombstone": stone.text,
                    },
                )
                for stone in tombstones
            ]
        )

    def forget(self, before_ms: int, limit: int = 1000) -> None:
        self._open().write_log((("forget", (before_ms, limit)),))

    def to_forget(self, before_ms: int) -> int:
        count: int = self._open().read(QUERIES["to_forget"], (before_ms,))[0][0]
        return count

    def budget(self, name: str) -> BudgetUse:
        rows = self._open().read(QUERIES["budget"], (name,))
        return BudgetUse(name, *rows[0]) if rows else BudgetUse(name, 0, None)

    def new_slot(self, effect_id: str) -> SendSlot:
        return self._open().session(self._clock).new_slot(effect_id, self._is_closed)

    def _is_closed(self, effect_id: str) -> bool:
        row = self.effect(effect_id)
        return row is not None and row.phase in (*CLOSED, ARCHIVED)

    def sight(self, send: Send) -> tuple[Sighting, Holder | None]:
        database = self._open()
        own = database.own_session(send.session)
        if own is not None:
            return own.sight(send)
        return sightings.sight(database.directory, send, self._clock.now())

    def now(self) -> Instant:
        return self._clock.now()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._database.release()
