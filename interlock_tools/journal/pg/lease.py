"""A session's presence in the database: a lock on a connection of its own, and a lease that is renewed.

What the database knows of a session proves nothing about its process: the
connection can end while the process goes on. So a sender must stop by itself
when its lease runs out, and whoever finds the lock free waits for that.
"""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg

from ...errors import JournalError
from ..clock import Clock
from . import pool
from .schema import queries
from .target import Target

log = logging.getLogger("interlock_tools.journal")

LOCK, HEARTBEATS = "lock", "heartbeats"
_RENEWALS = 3
"""How often a lease is renewed before it runs out."""

_END_WAIT_S = 5.0


class Lease:
    """The lease of this process's session. Made by ``Lease.begin``; safe to use from any thread.

    Attributes:
        mode: ``lock``, or ``heartbeats`` behind a transaction pooler.
    """

    def __init__(self, target: Target, name: str, clock: Clock, connection: pool.Connection, mode: str) -> None:
        self.mode = mode
        self._target = target
        self._name = name
        self._clock = clock
        self._connection = connection
        self._backend = connection.info.backend_pid if mode == LOCK else None
        self._sql = queries(target.schema)
        self._until_ms = 0
        self._lost: str | None = None
        self._ended = threading.Event()
        self._mutex = threading.Lock()

    @staticmethod
    def begin(target: Target, name: str, clock: Clock, path: Path, mode: str) -> Lease:
        """Record the session, take its lock, and renew its lease in the background from now on.

        Args:
            target: the database.
            name: of the session.
            clock: measures the lease.
            path: the session's file.
            mode: ``lock`` if the connection allows for it.

        Raises:
            JournalError: the database cannot be reached, or refuses.
        """
        connection = pool.connect(target, application_name=f"interlock session {name}")
        try:
            if mode == LOCK and pool.behind_pooler(connection):
                mode = HEARTBEATS
            lease = Lease(target, name, clock, connection, mode)
            lease._record(path)
        except psycopg.Error as error:
            connection.close()
            raise JournalError(
                f"{target.url}: no session can be kept there ({target.clean(str(error))}); nothing was written"
            ) from None
        except BaseException:
            connection.close()
            raise
        threading.Thread(target=lease._keep, name=f"interlock lease {name[:8]}", daemon=True).start()
        return lease

    def _record(self, path: Path) -> None:
        started = self._clock.now()
        key = int(self._name[:16], 16) - (1 << 63)
        if self.mode == LOCK:
            # The server finds out by itself, and soon, that a host has vanished.
            idle_s = max(1, self._target.lease_ms // 3000)
            for setting, value in (
                ("tcp_keepalives_idle", idle_s),
                ("tcp_keepalives_interval", idle_s),
                ("tcp_keepalives_count", 3),
                ("tcp_user_timeout", self._target.lease_ms),
                ("idle_session_timeout", 0),
            ):
                self._connection.execute("SELECT set_config(%s, %s, false)", (setting, str(value)))
            if not self._connection.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchall()[0][0]:
                raise JournalError(f"{self._target.url}: somebody else holds the lock of a new session; call again")
        values: dict[str, Any] = {
            "name": self._name,
            "host": socket.gethostname(),
            "machine": machine(),
            "pid": os.getpid(),
            "boot": started.boot,
            "inode": str(path.stat().st_ino),
            "started_ms": started.wall_ms,
            "mode": self.mode,
            "lock_key": key,
            "lease_ms": self._target.lease_ms,
        }
        self._connection.execute(self._sql["open_session"], values)
        self._until_ms = started.boottime_ms + self._target.lease_ms

    # -- the lease ------------------------------------------------------------------------------------

    def refusal(self) -> str | None:
        """Return why nothing may be sent any more under this lease, or None."""
        if self._clock.now().boottime_ms >= self._until_ms:
            return "its session at the database has not been renewed in time, so that others may take it for gone"
        return None

    def is_over(self) -> bool:
        """Whether nothing more may be sent under it, after one more try to renew it where it has run out."""
        if self._lost is not None or self._ended.is_set():
            return True
        return self.refusal() is not None and not (self.renew() and self.refusal() is None)

    def _keep(self) -> None:
        interval_s = self._target.lease_ms / 1000 / _RENEWALS
        while not self._ended.wait(interval_s):
            if not self.renew():
                return

    def renew(self) -> bool:
        """Renew the lease, counted from when this began. False, for good, if the session is lost."""
        with self._mutex:
            if self._ended.is_set() or self._lost is not None:
                return False
            began = self._clock.now()
            try:
                backend = self._connection.execute(self._sql["renew"], (self._name,)).fetchall()[0][0]
                why = "it was found lost, or was not renewed in time" if backend is None else None
                if backend is not None and self._backend not in (None, backend):
                    why = "its connection leads to another backend now"
            except psycopg.Error as error:
                why = self._target.clean(str(error))
                if not self._connection.closed:
                    return True  # the session is still there; the lease goes on as long as it lasts
                if self.mode == HEARTBEATS and began.boottime_ms < self._until_ms:
                    self._reconnect()
                    return True
            if why is None:
                self._until_ms = began.boottime_ms + self._target.lease_ms
                return True
            self._lost = why
            log.warning("%s: session %s is lost: %s. The next send opens another.", self._target.url, self._name, why)
            with contextlib.suppress(psycopg.Error):
                self._connection.close()
            return False

    def _reconnect(self) -> None:
        """Without a lock to lose, a new connection does as well. If there is none, the next renewal tries again."""
        with contextlib.suppress(JournalError):
            self._connection = pool.connect(self._target, application_name=f"interlock session {self._name}")

    # -- recovery ------------------------------------------------------------------------------------

    def take_up(self, position: int) -> Callable[[], None] | None:
        """Take an effect up for recovery, by a lock of this session; what lets go of it, or None if another has it."""
        if self.mode != LOCK or self._lost is not None:
            return lambda: None
        key = zlib.crc32(self._target.schema.encode()) - (1 << 31), position & 0x7FFFFFFF
        with self._mutex:
            try:
                found = self._connection.execute("SELECT pg_try_advisory_lock(%s, %s)", key).fetchall()[0][0]
            except psycopg.Error:
                return lambda: None  # the next renewal finds out what is wrong; nothing rests on this

        def let_go() -> None:
            with self._mutex, contextlib.suppress(psycopg.Error):
                if not self._connection.closed:
                    self._connection.execute("SELECT pg_advisory_unlock(%s, %s)", key)

        return let_go if found else None

    # -- the end --------------------------------------------------------------------------------------

    def end(self) -> None:
        """Say that no send of this session is running, and let go of the lock."""
        self._ended.set()
        if not self._mutex.acquire(timeout=_END_WAIT_S):
            return  # a renewal hangs; the lock goes with the process
        try:
            self._until_ms = 0
            with contextlib.suppress(psycopg.Error):
                if not self._connection.closed:
                    self._connection.execute(self._sql["end_session"], (self._name,))
                self._connection.close()
        finally:
            self._mutex.release()


def machine() -> str:
    """Return what tells this machine from others across restarts, as far as anything does."""
    try:
        found = Path("/etc/machine-id").read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        found = ""
    return f"{found}/{socket.gethostname()}"
