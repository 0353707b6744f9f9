"""The connections of one process to one database."""

from __future__ import annotations

import contextlib
import os
import select
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import psycopg

from ...errors import JournalError
from .memory import Memory
from .target import Target

Connection = psycopg.Connection[Any]

WAIT_S = 30.0
"""How long to wait for a free connection."""

_PREPARE_AFTER = 2
"""A statement that was executed so often on a connection is prepared."""

_made: weakref.WeakSet[Connection] = weakref.WeakSet()
"""Every connection of this process."""

_inherited: list[Connection] = []
"""In a forked child: its parent's connections, kept for ever, because to let go of one would end it for the parent."""

connecting = threading.Lock()
"""Held while a connection is made, so that no fork takes a copy of one that nobody knows."""


def connect(target: Target, **changes: Any) -> Connection:
    """Connect in autocommit mode.

    Raises:
        JournalError: it cannot be reached, or refuses this user or database.
    """
    try:
        with connecting:
            connection = psycopg.connect(
                **{**target.parameters, **changes}, autocommit=True, prepare_threshold=None, client_encoding="utf8"
            )
            _made.add(connection)
        if not behind_pooler(connection):  # which would mix up prepared statements
            connection.prepare_threshold = _PREPARE_AFTER
        return connection
    except (psycopg.Error, OSError, ValueError) as error:
        raise JournalError(
            f"{target.url}: the database cannot be reached; nothing was written ({target.clean(str(error))})"
        ) from None


def behind_pooler(connection: Connection) -> bool:
    """Whether something between here and the server hands out server connections, so that locks do not stay."""
    answer = connection.execute("SELECT pg_backend_pid()").fetchall()[0][0]
    return bool(answer != connection.info.backend_pid)


class Pool:
    """Connections that are used by one thread at a time, the most recently used one first.

    Attributes:
        memory: what has been acknowledged on them; each new one is asked for it.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self.memory = Memory(target)
        self._idle: list[Connection] = []
        self._free = threading.BoundedSemaphore(target.pool)
        self._mutex = threading.Lock()
        self._closed = False

    @contextlib.contextmanager
    def connection(self) -> Iterator[Connection]:
        """Lend a connection. One that is broken, or left in a transaction, is not used again."""
        if not self._free.acquire(timeout=WAIT_S):
            raise JournalError(
                f"{self._target.url}: all {self._target.pool} connections have been in use for {WAIT_S:.0f} s; nothing "
                "was written. Raise interlock_pool, or look for what holds locks in the database."
            )
        connection = None
        try:
            connection = self._pop()
            if connection is None:
                connection = connect(self._target)
                self._compare(connection)
            yield connection
        finally:
            if connection is not None:
                self._take_back(connection)
            self._free.release()

    def _compare(self, connection: Connection) -> None:
        """Nothing is said on a new connection before it is known whether that database has lost something."""
        try:
            self.memory.compare(connection)
        except JournalError:
            connection.close()
            raise
        except psycopg.Error as error:
            connection.close()
            words = self._target.clean(str(error))
            raise JournalError(f"{self._target.url}: it cannot be read; nothing was written ({words})") from None

    def _pop(self) -> Connection | None:
        """An idle connection that has not ended meanwhile. Nothing has been said on it, so nobody need wonder."""
        while True:
            with self._mutex:
                connection = self._idle.pop() if self._idle else None
            if connection is None or not _has_news(connection):
                return connection
            connection.close()

    def _take_back(self, connection: Connection) -> None:
        idle = psycopg.pq.TransactionStatus.IDLE
        with self._mutex:
            if not connection.closed and connection.info.transaction_status == idle and not self._closed:
                self._idle.append(connection)
                return
        connection.close()

    def drop_idle(self) -> None:
        """Close idle connections: the server has gone, and they with it."""
        with self._mutex:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def close(self) -> None:
        """Close idle connections now and the others when they come back."""
        self._closed = True
        self.drop_idle()


def _has_news(connection: Connection) -> bool:
    """Whether the server has said anything unasked, most likely that it ends the connection."""
    if connection.closed:
        return True
    poll = select.poll()
    poll.register(connection.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def disown_all() -> None:
    """In a forked child: close its copies of the parent's sockets, so that the connections end with the parent."""
    for connection in list(_made):
        _inherited.append(connection)
        with contextlib.suppress(OSError, psycopg.Error):
            os.close(connection.fileno())
    _made.clear()
