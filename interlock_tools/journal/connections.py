"""The SQLite connections of one process to one file: one that writes, and a pool that reads."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..errors import JournalError, JournalUnusable
from .guard import Guard
from .schema import migrate

Values = Sequence[Any] | Mapping[str, Any]
"""What is bound to a query."""

BUSY_TIMEOUT_S = 30.0
"""How long to wait for another program that has locked the file."""

WAL_PAGES = 1000
"""After so many pages a commit also moves the write-ahead log's pages into the database file."""

_PAGE_BYTES = 4096
_MAX_IDLE_READERS = 8


class Connections:
    """Connects on first use. Closing a connection never removes the write-ahead log; only ``finish`` may."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._wal = f"{path}-wal"
        self._opening = threading.Lock()
        self._guard: Guard | None = None
        self._writer: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._idle: list[sqlite3.Connection] = []
        self._reading = 0
        self._paused = False
        self._changed = threading.Condition(threading.Lock())

    def is_open(self) -> bool:
        """Whether the file is guarded, and so may be connected to."""
        return self._guard is not None

    def open(self) -> None:
        """Connect, create or migrate the schema, and guard the file. Does nothing if that is done.

        Raises:
            JournalUnusable: not a journal, corrupt, of a newer format, or not writable.
        """
        with self._opening:
            if self._guard is not None:
                return
            writer = None
            try:
                writer = self._connect()
                migrate(writer, self.path)
                guard = Guard(self.path)
                wal_bytes = os.stat(self._wal).st_size  # noqa: PTH116
            except (sqlite3.Error, OSError, JournalUnusable) as error:
                if writer is not None:
                    writer.close()
                raise unusable(self.path, error) from error
            if wal_bytes < WAL_PAGES * _PAGE_BYTES:
                _lengthen_wal(writer)
            self._writer, self._cursor = writer, writer.cursor()
            self._guard = guard

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        try:
            mode = connection.execute("PRAGMA journal_mode=WAL").fetchall()[0][0]
            connection.execute("PRAGMA synchronous=FULL")
            synchronous = connection.execute("PRAGMA synchronous").fetchall()[0][0]
            connection.execute(f"PRAGMA wal_autocheckpoint={WAL_PAGES}")
        except sqlite3.Error:
            connection.close()
            raise
        if mode != "wal" or synchronous != 2:
            connection.close()
            raise JournalUnusable(
                f"{self.path}: SQLite answers journal_mode={mode} and synchronous={synchronous} where wal and 2 "
                "were asked for, so commits would not be durable"
            )
        return connection

    # -- writing, by one thread at a time: the caller sees to that -----------------------------------

    def cursor(self) -> sqlite3.Cursor:
        """Return the writing connection's cursor."""
        if self._cursor is None:
            self.open()
            if self._cursor is None:
                self._writer = self._connect()
                self._cursor = self._writer.cursor()
        return self._cursor

    def drop_writer(self) -> None:
        """Close the writing connection after an error; the next use makes another."""
        writer, self._writer, self._cursor = self._writer, None, None
        if writer is not None:
            with contextlib.suppress(sqlite3.Error):
                writer.close()

    def wal_moved(self) -> bool:
        """Whether the log that this process commits to is no longer the one that others find."""
        return self._guard is None or self._guard.is_void()

    # -- reading ------------------------------------------------------------------------------------

    def read(self, query: str, values: Values) -> list[Any]:
        """Run one query on a connection of its own, so that it never waits for a commit."""
        with self._changed:
            if self._paused and not self._changed.wait_for(lambda: not self._paused, BUSY_TIMEOUT_S):
                raise JournalError(f"{self.path}: its connections are being closed, and that takes too long")
            self._reading += 1
            connection = self._idle.pop() if self._idle else None
        kept = False
        try:
            if connection is None:
                self.open()
                connection = self._connect()
            rows = connection.execute(query, values).fetchall()
            kept = len(self._idle) < _MAX_IDLE_READERS
            return rows
        finally:
            if connection is not None and not kept:
                connection.close()
            with self._changed:
                self._reading -= 1
                if connection is not None and kept:
                    self._idle.append(connection)
                if self._paused:
                    self._changed.notify_all()

    # -- closing: while no commit is running ---------------------------------------------------------

    def close_all(self, timeout_s: float) -> bool:
        """Close every connection and keep reads waiting until ``resume``. False if a read does not end."""
        with self._changed:
            self._paused = True
            if not self._changed.wait_for(lambda: self._reading == 0, timeout_s):
                return False
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        self.drop_writer()
        return True

    def resume(self) -> None:
        """Let reads go on."""
        with self._changed:
            self._paused = False
            self._changed.notify_all()

    def reopen(self, timeout_s: float) -> bool:
        """Connect anew, to the files that are at their paths now. False if a read does not end."""
        done = self.close_all(timeout_s)
        if done:
            self.abandon_guard()
        self.resume()
        if done:
            self.open()
        return done

    def finish(self, timeout_s: float) -> None:
        """Close for good. The last process to do so moves the log into the database file and removes it."""
        writer, self._writer, self._cursor = self._writer, None, None
        if self.close_all(timeout_s) and self._guard is not None:
            self._guard.let_last_close()
            if writer is not None:
                writer.close()
            self._guard.close()
            self._guard = None
        self.resume()

    def disown(self) -> None:
        """In a forked child: forget what is the parent's. Connections not closed before are kept for ever.

        To close them, or to let the interpreter do so when it ends, would write to files and locks of the parent.
        """
        for connection in (self._writer, *self._idle):
            if connection is not None:
                _immortal(connection)
        self.abandon_guard()

    def abandon_guard(self) -> None:
        """Let go of the files' guard: this process has no connections to them."""
        guard, self._guard = self._guard, None
        if guard is not None:
            guard.abandon()


def _lengthen_wal(writer: sqlite3.Connection) -> None:
    """Make the log as long as it will become, so that no commit has to wait for a change of its size.

    A transaction that is larger than the cache spills into the log and is rolled back.
    """
    with contextlib.suppress(sqlite3.Error):  # a full disk, for example: it is only for speed
        size = writer.execute("PRAGMA cache_size").fetchall()[0][0]
        try:
            writer.execute("PRAGMA cache_size=10")
            writer.execute("BEGIN IMMEDIATE")
            writer.execute("CREATE TABLE filler (content BLOB)")
            writer.execute("INSERT INTO filler VALUES (zeroblob(?))", (WAL_PAGES * _PAGE_BYTES,))
        finally:
            if writer.in_transaction:
                writer.execute("ROLLBACK")
            writer.execute(f"PRAGMA cache_size={size}")


def _immortal(connection: sqlite3.Connection) -> None:
    import ctypes

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(connection))


def unusable(path: Path, error: Exception) -> JournalUnusable:
    """Say why the file cannot be opened as a journal."""
    if isinstance(error, JournalUnusable):
        return error
    words = str(error)
    if "not a database" in words or "malformed" in words or "encrypted" in words:
        return JournalUnusable(
            f"{path} is not a SQLite database, or it is damaged ({words}). It was left as it is; restore it from a "
            "backup, or name another file."
        )
    if "readonly" in words or "unable to open" in words or isinstance(error, PermissionError):
        return JournalUnusable(f"{path} cannot be opened for writing ({words}); a journal needs to write its directory")
    return JournalUnusable(f"{path} cannot be opened as a journal: {words}")
