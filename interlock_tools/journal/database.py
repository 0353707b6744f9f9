"""One SQLite file in one process: its connections, the shared commits, and what guards it.

All journals of a process that open the same file share one ``Database``.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import JournalError, JournalUnusable
from .clock import Clock
from .protocol import Conflict, OverBudget
from .schema import APPLICATION_ID, FORMAT, migration
from .sessions import Session
from .writes import Plan, apply

BUSY_TIMEOUT_S = 30
"""How long a writer waits for another process's commit."""

WAL_PAGES = 1000
"""Pages after which a commit also moves the write-ahead log's pages into the database."""

MAX_BATCH = 64
"""Most appends that share one commit."""

PAGE_BYTES = 4096


class _Job:
    """One caller's append, waiting to be committed."""

    __slots__ = ("done", "error", "plans", "wake")

    def __init__(self, plans: Sequence[Plan]) -> None:
        self.plans = plans
        self.error: BaseException | None = None
        self.done = False
        self.wake: threading.Lock | None = None


_open: dict[tuple[int, int], Database] = {}
_open_mutex = threading.Lock()


class Database:
    """The open database file. Use ``Database.open``."""

    @staticmethod
    def open(name: str) -> Database:
        """Open the file, or share it with whoever has it open in this process."""
        path = Path(os.path.realpath(name))
        with _open_mutex:
            if path.exists():
                status = path.stat()
                found = _open.get((status.st_dev, status.st_ino))
                if found is not None:
                    found.users += 1
                    return found
            database = Database(path)
            database.users = 1
            _open[database.identity] = database
            return database

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = Path(f"{path}.sessions")
        self.own_session: Session | None = None
        self._session_mutex = threading.Lock()
        self.users = 0
        self.pid = os.getpid()
        self._wal = f"{path}-wal"
        self._mutex = threading.Lock()
        self._queue: deque[_Job] = deque()
        self._leading = False
        self._writer: sqlite3.Connection | None = None
        self._cursor: sqlite3.Cursor | None = None
        self._readers: list[sqlite3.Connection] = []
        try:
            self.directory.mkdir(exist_ok=True)
            self._migrate(self._open_writer())
        except sqlite3.Error as error:
            raise JournalUnusable(f"{path}: {error}") from error
        except OSError as error:
            raise JournalUnusable(f"{path}: {error}") from error
        status = path.stat()
        self.identity = (status.st_dev, status.st_ino)

    def _migrate(self, cursor: sqlite3.Cursor) -> None:
        if cursor.execute("PRAGMA user_version").fetchone()[0] == FORMAT:
            return
        cursor.execute("BEGIN IMMEDIATE")
        version = cursor.execute("PRAGMA user_version").fetchone()[0]
        if version > FORMAT:
            cursor.execute("ROLLBACK")
            raise JournalUnusable(f"{self.path} has format {version}; this version of the package knows {FORMAT}")
        for number in range(version + 1, FORMAT + 1):
            for statement in migration(number):
                cursor.execute(statement)
        cursor.execute(f"PRAGMA application_id={APPLICATION_ID}")
        cursor.execute(f"PRAGMA user_version={FORMAT}")
        cursor.execute("COMMIT")

    def session(self, clock: Clock) -> Session:
        """Return this process's session, opened on first use."""
        session = self.own_session
        if session is None:
            with self._session_mutex:
                session = self.own_session
                if session is None:
                    session = self.own_session = Session.start(self.directory, clock)
        return session

    def release(self) -> None:
        with _open_mutex:
            self.users -= 1
            if self.users > 0:
                return
            _open.pop(self.identity, None)
        self.close()

    # -- appends --------------------------------------------------------------------------------

    def append(self, plans: Sequence[Plan]) -> None:
        """Commit one append, alone or together with those of other threads. Durable when it returns."""
        job = _Job(plans)
        with self._mutex:
            lead = not self._leading
            if lead:
                self._leading = True
            else:
                job.wake = threading.Lock()
                job.wake.acquire()
                self._queue.append(job)
        if not lead:
            assert job.wake is not None
            job.wake.acquire()
            lead = not job.done
        if lead:
            self._lead(job)
        if job.error is not None:
            raise job.error

    def _lead(self, own: _Job) -> None:
        """Commit the own job and all that wait, then let the next one in line lead."""
        batch = [own]
        with self._mutex:
            while self._queue and len(batch) < MAX_BATCH:
                batch.append(self._queue.popleft())
        try:
            self._commit(batch)
        except BaseException as error:
            for job in batch:
                job.error = job.error or error
        finally:
            with self._mutex:
                heir = self._queue.popleft() if self._queue else None
                self._leading = heir is not None
            if heir is not None:
                heir.wake.release()  # type: ignore[union-attr]
            for job in batch[1:]:
                job.done = True
                job.wake.release()  # type: ignore[union-attr]

    def _commit(self, batch: list[_Job]) -> None:
        try:
            self._transaction(batch)
        except _Broken as broken:
            if len(batch) == 1:
                raise broken.error from None
            for job in batch:
                job.error = None
                try:
                    self._transaction([job])
                except _Broken as own:
                    job.error = own.error

    def _transaction(self, batch: list[_Job]) -> None:
        cursor = self._cursor or self._open_writer()
        try:
            cursor.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _Broken(_translate(error, self.path)) from error
        try:
            good = 0
            for job in batch:
                try:
                    apply(cursor, job.plans)
                    good += 1
                except (Conflict, OverBudget, ValueError, JournalError) as error:
                    job.error = error
            cursor.execute("COMMIT" if good else "ROLLBACK")
        except BaseException as error:
            self._rollback(cursor)
            if isinstance(error, sqlite3.Error):
                raise _Broken(_translate(error, self.path)) from error
            raise

    def _rollback(self, cursor: sqlite3.Cursor) -> None:
        try:
            if cursor.connection.in_transaction:
                cursor.execute("ROLLBACK")
        except sqlite3.Error:
            self._writer = self._cursor = None

    # -- reads ----------------------------------------------------------------------------------

    def read(self, query: str, values: Sequence[Any]) -> list[Any]:
        """Run one query on a connection of its own, so that it never waits for a commit."""
        try:
            try:
                connection = self._readers.pop()
            except IndexError:
                connection = self._connect()
            rows = connection.execute(query, values).fetchall()
            self._readers.append(connection)
            return rows
        except sqlite3.Error as error:
            raise _translate(error, self.path) from error

    # -- connections ----------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
        mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
        connection.execute("PRAGMA synchronous=FULL")
        synchronous = connection.execute("PRAGMA synchronous").fetchone()[0]
        if mode != "wal" or synchronous != 2:
            raise JournalUnusable(f"{self.path}: journal_mode is {mode} and synchronous {synchronous}, not wal and 2")
        return connection

    def _open_writer(self) -> sqlite3.Cursor:
        self._writer = self._connect()
        self._cursor = self._writer.cursor()
        return self._cursor

    def close(self) -> None:
        if self.own_session is not None and not self.own_session.is_running():
            self.own_session.end()
            self.own_session = None
        for connection in self._readers:
            connection.close()
        self._readers.clear()
        if self._writer is not None:
            self._writer.close()
        self._writer = self._cursor = None


class _Broken(Exception):
    """A transaction that failed as a whole and was rolled back."""

    def __init__(self, error: JournalError) -> None:
        self.error = error


def _translate(error: sqlite3.Error, path: Path) -> JournalError:
    return JournalError(f"{path}: {error}")
