"""One SQLite file in one process: its commits, its session, and what a fork does to them.

All journals of a process that open the same file share one ``Database``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import CommitUnknown, JournalError, JournalUnusable, describe
from .clock import Clock
from .commits import CommitQueue, Job, Statements
from .connections import BUSY_TIMEOUT_S, Connections, Values
from .filesystems import require_safe
from .protocol import Conflict, OverBudget
from .records import Seal
from .schema import QUERIES
from .sessions import Session
from .sightings import tidy
from .writerlock import WriterLock
from .writes import Batch, Guess, Plan, append_at_once

FORK_WAIT_S = 10.0
"""How long a fork waits for commits and reads to end."""

_MAX_REDO = 3
_MAX_SENDS = 1000
_open: dict[tuple[int, int], Database] = {}
_open_mutex = threading.Lock()
_forked_mutex = threading.Lock()
_fork_holds_mutex = False


class Database:
    """The open database file. Made by ``Database.open``."""

    @staticmethod
    def open(name: str) -> Database:
        """Open the file, or share it with whoever has it open in this process.

        Raises:
            JournalUnusable: it cannot be opened here; the sentence says why.
        """
        path = _checked(name)
        with _open_mutex:
            database = _open.get(_identity(path))
            if database is None:
                database = Database(path)
                database.connect()
                _open[database.identity] = database
            database.users += 1
            return database

    def __init__(self, path: Path) -> None:
        self.path = path
        self.directory = Path(f"{path}.sessions")
        self.users = 0
        require_safe(path, self.directory)
        self._start()

    def _start(self) -> None:
        """Set up for this process: at first, and in a forked child."""
        self._pid = os.getpid()
        self._session: Session | None = None
        self._sessions: dict[str, Session] = {}
        self._session_mutex = threading.Lock()
        self.connections = Connections(self.path)
        self._queue = CommitQueue(self._commit)
        self._guess = Guess()
        self._lock = WriterLock(self.directory / "writer.lock", BUSY_TIMEOUT_S)

    def connect(self) -> None:
        """Create or open the file, while no other process does so or commits."""
        with self._lock:
            self.connections.open()

    @property
    def identity(self) -> tuple[int, int]:
        return _identity(self.path)

    # -- appends ------------------------------------------------------------------------------------

    def append(self, plans: Sequence[Plan]) -> None:
        """Commit one append, alone or together with those of other threads. Durable when it returns."""
        self._here()
        self._queue.run(plans)

    def write_log(self, statements: Statements, key_changes: Sequence[Seal] = ()) -> None:
        """Commit what belongs to the signed log and to no effect. Durable when it returns."""
        self._here()
        self._queue.run((), statements, key_changes)

    def read(self, query: str, values: Values) -> list[Any]:
        """Run one query."""
        self._here()
        try:
            if not self.connections.is_open():
                self.connect()
            return self.connections.read(query, values)
        except sqlite3.Error as error:
            raise translated(self.path, error) from error

    def _commit(self, jobs: Sequence[Job]) -> None:
        """Commit a batch. If the log is not the one at its path any more, find out what others see, and go on there."""
        self._lock.acquire()
        try:
            self._transact(jobs)
            left = jobs
            for _ in range(_MAX_REDO):
                if not self.connections.wal_moved():
                    break
                left = self._redo(left)
            else:
                raise CommitUnknown(f"{self.path}: its write-ahead log is being replaced all the time; read back")
        finally:
            self._lock.release()
        for job in jobs:
            if job.error is None:
                for plan in job.plans:
                    self._guess.note(plan)

    def _transact(self, jobs: Sequence[Job]) -> None:
        try:
            cursor = self.connections.cursor()
            only = jobs[0].plans if len(jobs) == 1 else ()
            if len(only) == 1 and append_at_once(cursor, only[0], self._guess):
                return
            self._together(cursor, jobs)
        except sqlite3.Error as error:
            self._after_error(jobs, error)

    def _together(self, cursor: sqlite3.Cursor, jobs: Sequence[Job]) -> None:
        """One transaction for all. A job that does not fit writes nothing and leaves the others alone."""
        try:
            cursor.execute("BEGIN IMMEDIATE")
            batch = Batch(cursor, [plan for job in jobs for plan in job.plans], self._guess.tree)
            for job in jobs:
                try:
                    batch.add(job.plans)
                except (Conflict, OverBudget, ValueError, JournalError) as error:
                    job.error = error
            batch.write()
            for job in jobs:
                batch.write_more(job.statements, job.key_changes)
            cursor.execute("COMMIT")
            self._guess.last_position = batch.last_position
            self._guess.tree = batch.tree or self._guess.tree
        finally:
            if cursor.connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    cursor.execute("ROLLBACK")

    def _after_error(self, jobs: Sequence[Job], error: sqlite3.Error) -> None:
        """Find out which jobs have come through nevertheless, and blame the error for the others."""
        self._guess.forget()
        self.connections.drop_writer()
        for job in jobs:
            if job.error is None and not self._is_there(job):
                job.error = translated(self.path, error)

    def _redo(self, jobs: Sequence[Job]) -> Sequence[Job]:
        """Connect to the files that others use, and append there what is not there."""
        self._guess.forget()
        if not self.connections.reopen(BUSY_TIMEOUT_S):
            raise CommitUnknown(f"{self.path}: its write-ahead log was replaced, and a read does not end; read back")
        again = [job for job in jobs if job.error is None and not self._is_there(job)]
        if again:
            self._transact(again)
        return again

    def _is_there(self, job: Job) -> bool:
        """Whether the job's entries can be read back."""
        if not job.plans:
            return False  # what belongs to the log alone is written again
        try:
            for plan in job.plans:
                rows = self.connections.read(QUERIES["entries"], (plan.effect_id,))
                if rows[plan.expected_seq : plan.expected_seq + len(plan.rows)] != plan.rows:
                    return False
        except (sqlite3.Error, JournalError) as error:
            raise CommitUnknown(
                f"{self.path}: a commit failed and nobody can read what became of it ({error})"
            ) from error
        return True

    # -- sessions -------------------------------------------------------------------------------------

    def session(self, clock: Clock) -> Session:
        """Return this process's session, opened on first use, and anew if its file has been removed."""
        self._here()
        session = self._session
        if session is not None and session.lost() is None:
            return session
        with self._session_mutex:
            session = self._session
            if session is None or session.lost() is not None:
                session = self._session = Session.start(self.directory, clock)
                self._sessions[session.name] = session
                with contextlib.suppress(OSError, JournalError):
                    tidy(self.directory, self._sessions, self._referred_sessions)
        return session

    def own_session(self, name: str) -> Session | None:
        """Return the session of this name, if it is this process's."""
        self._here()
        return self._sessions.get(name)

    def _referred_sessions(self) -> set[str] | None:
        """The sessions that open effects refer to; None if there are too many to tell."""
        rows = self.read(QUERIES["open_sends"], (_MAX_SENDS + 1,))
        if len(rows) > _MAX_SENDS:
            return None
        return {str(json.loads(body).get("session")) for (body,) in rows}

    # -- the end --------------------------------------------------------------------------------------

    def release(self) -> None:
        """One user less. After the last one, close, but keep the session while a send of it is running."""
        with _open_mutex:
            self.users -= 1
            if self.users > 0:
                return
            identity = self.identity
            if self._queue.pause(FORK_WAIT_S):
                with contextlib.suppress(JournalError), self._lock:
                    self.connections.finish(FORK_WAIT_S)
            self._queue.resume()
            self._lock.close()
            for name, session in list(self._sessions.items()):
                if not session.is_running():
                    session.end()
                    del self._sessions[name]
            if not self._sessions:
                self._session = None
                _open.pop(identity, None)

    # -- forks ----------------------------------------------------------------------------------------

    def _here(self) -> None:
        """Notice a fork that nobody announced, made by C code."""
        if os.getpid() != self._pid:
            with _forked_mutex:
                if os.getpid() != self._pid:
                    self.after_fork_in_child()

    def before_fork(self) -> None:
        """Come to rest: no transaction and no connection, so that the child inherits none."""
        self._queue.pause(FORK_WAIT_S)
        self.connections.close_all(FORK_WAIT_S)

    def after_fork_in_parent(self) -> None:
        """Go on."""
        self.connections.resume()
        self._queue.resume()

    def after_fork_in_child(self) -> None:
        """Begin anew. What is the parent's is let go of without a word to it."""
        self.connections.disown()
        for session in self._sessions.values():
            session.disown()
        self._lock.close()
        self._start()


def _checked(name: str) -> Path:
    if name in ("", ":memory:") or name.startswith("file:"):
        raise JournalUnusable(f"{name or 'an empty path'}: a journal must outlive its process; name a file")
    try:
        path = Path(os.path.realpath(name))
        if not path.parent.is_dir():
            raise JournalUnusable(f"{path}: there is no directory {path.parent}; create it first")
        if path.is_dir():
            raise JournalUnusable(f"{path} is a directory; name a file in it")
    except (OSError, ValueError) as error:  # too long, not allowed to be looked at, or with a NUL character
        raise JournalUnusable(f"{name!r:.200} cannot be opened as a journal: {describe(error)}") from None
    return path


def _identity(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except FileNotFoundError:
        return (0, 0)
    return (status.st_dev, status.st_ino)


def translated(path: Path, error: sqlite3.Error) -> JournalError:
    """Say what a failure of SQLite means here, and what to do."""
    words = str(error)
    if "full" in words:
        return JournalError(f"{path}: the disk is full; nothing was written. Make room and call again.")
    if "locked" in words:
        return JournalError(
            f"{path}: another program has locked it for {BUSY_TIMEOUT_S:.0f} s; nothing was written. End its "
            "transaction and call again."
        )
    if "malformed" in words or "not a database" in words:
        return JournalUnusable(f"{path} is damaged ({words}). Restore it from a backup.")
    return JournalError(f"{path}: {words}; nothing was written")


def _before_fork() -> None:
    global _fork_holds_mutex
    _fork_holds_mutex = _open_mutex.acquire(timeout=FORK_WAIT_S)
    for database in _open.values():
        database.before_fork()


def _after_fork_in_parent() -> None:
    for database in _open.values():
        database.after_fork_in_parent()
    if _fork_holds_mutex:
        _open_mutex.release()


def _after_fork_in_child() -> None:
    global _open_mutex, _forked_mutex
    _open_mutex, _forked_mutex = threading.Lock(), threading.Lock()
    for database in _open.values():
        database.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
