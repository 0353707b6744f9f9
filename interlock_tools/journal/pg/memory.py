"""What this process has written lately, so that it notices a database that has forgotten it.

A failover to a standby that lags, or a restore under running agents, loses the
newest commits, and only those. So if the newest that this process knows of is
there, everything older is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import psycopg

from ...errors import JournalError, RecordsMissing
from ..writes import Plan
from .schema import queries
from .target import Target

log = logging.getLogger("interlock_tools.journal")

AGES_S = 24 * 3600.0
"""An entry older than this is not asked for: its effect may have been archived, and its tombstone forgotten."""


class Memory:
    """The newest appends that the database has acknowledged to this process. Safe to use from any thread."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._query = queries(target.schema)["effects_by_id"]
        # Threads note their appends in another order than they were committed in, but only those under way together.
        self._known: deque[tuple[str, int, float]] = deque(maxlen=target.pool + 1)
        self._mutex = threading.Lock()
        self._missing: str | None = None

    def note(self, plans: Sequence[Plan]) -> None:
        """Remember one append that was acknowledged. All of it is there, or nothing."""
        plan = plans[0]
        with self._mutex:
            self._known.append((plan.effect_id, plan.expected_seq + len(plan.rows), time.monotonic()))

    def compare(self, connection: psycopg.Connection[Any]) -> None:
        """Look, on a new connection, whether the database there holds what another acknowledged.

        Raises:
            JournalError: it does not, and is a standby.
        """
        with self._mutex:
            newest = time.monotonic() - AGES_S
            known = {effect_id: seq for effect_id, seq, at in self._known if at > newest}
        if not known or self._missing is not None:
            return
        rows = connection.execute(self._query, (list(known),)).fetchall()
        held = {row[0]: row for row in rows}
        for effect_id, seq in known.items():
            row = held.get(effect_id)
            if row is not None and (row[6] == "archived" or row[5] >= seq):
                continue
            if connection.execute("SELECT pg_is_in_recovery()").fetchall()[0][0]:
                raise JournalError(f"{self._target.url}: this is a standby that lags; nothing was written")
            self._missing = effect_id
            log.error("%s: the entries of effect %s that were acknowledged are gone", self._target.url, effect_id)
            return

    def require_all(self) -> None:
        """Refuse to go on sending where something is missing.

        Raises:
            RecordsMissing: something is.
        """
        if self._missing is not None:
            raise RecordsMissing(
                f"{self._target.url}: entries that this process has written are missing, as after a failover or a "
                f"restore that lost the last commits (effect {self._missing}). Nothing was sent. Stop the agents, "
                "compare the services with the journal for that time, and start them again."
            )
