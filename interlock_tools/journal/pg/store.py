"""One PostgreSQL journal in one process: its connections, its sessions, and what a fork does to them.

All journals of a process with the same URL share one ``Store``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psycopg

from ...core.decide import Sender, Sighting
from ...core.states import Send
from ...errors import CommitUnknown, JournalError, JournalUnusable
from .. import marks, sightings
from ..claims import Claim, claim
from ..clock import Clock
from ..filesystems import require_safe
from ..protocol import Holder, SendSlot
from ..sessions import Session, Slot
from ..writes import Plan
from . import pool
from .appends import Append, translated
from .lease import HEARTBEATS, LOCK, Lease, machine
from .pool import Pool
from .schema import migrate, queries
from .target import Target, parse

log = logging.getLogger("interlock_tools.journal")

FORK_WAIT_S = 10.0
_MAX_SENDS = 1000
_open: dict[tuple[str, ...], Store] = {}
_open_mutex = threading.Lock()
_forked_mutex = threading.Lock()
_fork_holds = False


class Store:
    """An open journal. Made by ``Store.open``.

    Attributes:
        liveness: ``lock``, or ``heartbeats`` behind a transaction pooler.
    """

    @staticmethod
    def open(url: str, sessions: Path | None = None) -> Store:
        """Connect, or share what this process has open under this URL.

        Raises:
            JournalUnusable: it cannot be used; the sentence says why and what to do.
            JournalError: the database cannot be reached.
        """
        target = parse(url, sessions)
        key = (url, str(target.sessions))
        with _open_mutex:
            store = _open.get(key)
            if store is None:
                store = Store(target, key)
                store._connect()
                _open[key] = store
            store.users += 1
            return store

    def __init__(self, target: Target, key: tuple[str, ...]) -> None:
        self.target = target
        self.users = 0
        self.sql = queries(target.schema)
        self.directory = target.sessions
        self.liveness = LOCK
        self._key = key
        self._start()

    def _start(self) -> None:
        """Set up for this process: at first, and in a forked child."""
        self._pid = os.getpid()
        self._pool = Pool(self.target)
        self._session: tuple[Session, Lease] | None = None
        self._sessions: dict[str, tuple[Session, Lease]] = {}
        self._session_mutex = threading.Lock()

    def _connect(self) -> None:
        """Find out whether this server keeps what it acknowledges, and create or migrate the tables."""
        shown = self.target.url
        try:
            with self._pool.connection() as connection:
                _require_durable(connection, shown)
                journal_id = migrate(connection, self.target.schema, shown)
                if pool.behind_pooler(connection):
                    self.liveness = HEARTBEATS
        except psycopg.Error as error:
            self._pool.close()
            raise translated(error, self.target) from None
        except BaseException:
            self._pool.close()
            raise
        if self.liveness == HEARTBEATS:
            log.warning(
                "%s: a connection pooler stands before this database, so that locks of a session do not stay. Whether "
                "a process on another host lives is told by its heartbeats.",
                shown,
            )
        self.directory = self.target.sessions / journal_id
        try:
            self.directory.mkdir(mode=0o755, parents=True, exist_ok=True)
        except OSError as error:
            raise JournalUnusable(
                f"{self.directory} cannot be made ({error.strerror}). It keeps this host's session files; set "
                "INTERLOCK_SESSIONS to a directory on a local disk that every process of this host can write."
            ) from None
        require_safe(self.directory / "session", self.directory)

    # -- appends and reads -----------------------------------------------------------------------------

    def append(self, plans: Sequence[Plan]) -> None:
        """Commit one append. Durable when it returns."""
        self._here()
        append = Append(plans)
        append.carry_out(self._pool, self.target, self.sql[append.query])

    @property
    def pool(self) -> Pool:
        """This process's connections."""
        self._here()
        return self._pool

    def read(self, query: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> list[Any]:
        """Run one query by its name. Once more if the connection was a stale one."""
        self._here()
        for last in (False, True):
            with self._pool.connection() as connection:
                try:
                    return connection.execute(self.sql[query], values).fetchall()
                except psycopg.Error as error:
                    if last or not connection.closed:
                        raise translated(error, self.target) from None
            self._pool.drop_idle()
        raise AssertionError

    def transact(self, work: Callable[[psycopg.Connection[Any], dict[str, bytes]], Any]) -> Any:
        """Do something in one durable transaction.

        Raises:
            CommitUnknown: the connection ended, and it may have been committed.
            JournalError: nothing was written.
        """
        try:
            with self.pool.connection() as connection, connection.transaction():
                connection.execute("SELECT set_config('synchronous_commit', 'on', true)")
                done = work(connection, self.sql)
                if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                    # The server would answer COMMIT with ROLLBACK, which the driver takes for success.
                    raise JournalError(f"{self.target.url}: it has failed; nothing was written: call again")
                return done
        except psycopg.Error as error:
            if error.sqlstate is None:  # no answer of the server
                words = self.target.clean(str(error))
                raise CommitUnknown(
                    f"{self.target.url}: the connection died in a commit ({words}); read back"
                ) from None
            raise translated(error, self.target) from None

    def write(self, *statements: tuple[str, Sequence[Any]]) -> None:
        """Run queries by their names in one durable transaction."""

        def work(connection: psycopg.Connection[Any], sql: dict[str, bytes]) -> None:
            for query, values in statements:
                connection.execute(sql[query], values)

        self.transact(work)

    # -- this process's session -------------------------------------------------------------------------

    def new_slot(self, effect_id: str, clock: Clock, is_closed: Callable[[str], bool]) -> SendSlot:
        """Reserve a slot under this process's session."""
        session, lease = self._own(clock)
        return LeasedSlot(session.new_slot(effect_id, is_closed), lease)

    def take_up(self, position: int, clock: Clock) -> Claim | None:
        """Take an effect up for recovery. Behind a pooler, where locks do not stay, only within this process."""
        _, lease = self._own(clock)
        return claim(f"{self.directory}", position, lambda: lease.take_up(position))

    def _own(self, clock: Clock) -> tuple[Session, Lease]:
        """This process's session, opened on first use, and anew if it has been lost."""
        self._here()
        own = self._session
        if own is not None and own[0].lost() is None and own[1].refusal() is None and not own[1].is_over():
            return own
        with self._session_mutex:
            own = self._session
            if own is None or own[0].lost() is not None or own[1].is_over():
                self._end_idle()
                own = self._session = self._begin(clock)
                self._sessions[own[0].name] = own
                with contextlib.suppress(OSError, JournalError):
                    sightings.tidy(self.directory, self._sessions, self._referred)
        return own

    def _begin(self, clock: Clock) -> tuple[Session, Lease]:
        session = Session.start(self.directory, clock)
        try:
            return session, Lease.begin(self.target, session.name, clock, self.directory / session.name, self.liveness)
        except BaseException:
            session.end()
            raise

    def _end_idle(self) -> bool:
        """End the sessions of which no send is running. Returns whether that were all."""
        for name, (session, lease) in list(self._sessions.items()):
            if not session.is_running():
                lease.end()
                session.end()
                del self._sessions[name]
        return not self._sessions

    def _referred(self) -> set[str] | None:
        """The sessions that open effects refer to; None if there are too many to tell."""
        rows = self.read("open_sends", (_MAX_SENDS + 1,))
        if len(rows) > _MAX_SENDS:
            return None
        return {str(json.loads(body).get("session")) for (body,) in rows}

    # -- other processes' sessions ------------------------------------------------------------------------

    def sight(self, send: Send, clock: Clock) -> tuple[Sighting, Holder | None]:
        """Look at a send: in this process, in this host's session files, and last in the database.

        Only the lock on the session's own file, on the host where it lies, proves a death.
        """
        self._here()
        own = self._sessions.get(send.session)
        if own is not None:
            return own[0].sight(send)
        here = None
        if marks.NAME.fullmatch(send.session) and (self.directory / send.session).exists():
            here = sightings.sight(self.directory, send, clock.now())
            if here[0].sender in (Sender.LIVE, Sender.RETURNED):
                return here
        if here is not None and here[0].sender is Sender.DEAD and self._is_its_file(send, clock):
            return here
        return self._sight_afar(send)

    def _is_its_file(self, send: Send, clock: Clock) -> bool:
        """Whether the file found here is the one that the sender held, and not a copy of it."""
        if send.dispatched.boot == clock.now().boot and send.mark is not None:
            return True  # its device and inode have been compared
        rows = self.read("session", (send.session,))
        if not rows:
            return False
        inode = str((self.directory / send.session).stat().st_ino)
        return bool(rows[0][6] == machine() and rows[0][7] == inode)

    def _sight_afar(self, send: Send) -> tuple[Sighting, Holder | None]:
        rows = self.read("sight", (send.session.replace("\0", ""),))
        if not rows:
            return Sighting(Sender.LOST, lease_ms=self.read("longest_lease")[0][0]), None
        state, _, lease_ms, host, pid, started_ms, _, _ = rows[0]
        holder = Holder(send.session, host, pid, started_ms)
        if state == "open":
            return Sighting(Sender.LIVE), holder
        if state == "ended":
            return Sighting(Sender.DEAD), holder
        return Sighting(Sender.LOST, lease_ms=lease_ms), holder

    # -- the end -------------------------------------------------------------------------------------------

    def release(self) -> None:
        """One user less. After the last one, close, but keep a session while a send of it is running."""
        with _open_mutex:
            self.users -= 1
            if self.users > 0:
                return
            self._pool.close()
            if self._end_idle():
                self._session = None
                _open.pop(self._key, None)
            else:
                self._pool = Pool(self.target)

    # -- forks -----------------------------------------------------------------------------------------------

    def _here(self) -> None:
        """Notice a fork that nobody announced, made by C code."""
        if os.getpid() != self._pid:
            with _forked_mutex:
                if os.getpid() != self._pid:
                    _after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Begin anew. What is the parent's is let go of without a word to it or to the server."""
        for session, _ in self._sessions.values():
            session.disown()
        self._start()


class LeasedSlot:
    """A send's slot in the session file, under the session's lease; see ``protocol.SendSlot``."""

    __slots__ = ("_lease", "_slot")

    def __init__(self, slot: Slot, lease: Lease) -> None:
        self._slot = slot
        self._lease = lease

    @property
    def session(self) -> str:
        return self._slot.session

    @property
    def mark(self) -> dict[str, Any] | None:
        return self._slot.mark

    def check(self) -> str | None:
        return self._slot.check() or self._lease.refusal()

    def hand_over(self) -> None:
        self._slot.hand_over()

    def written(self) -> None:
        self._slot.written()

    def give_up(self) -> None:
        self._slot.give_up()

    def close(self) -> None:
        self._slot.close()


def _require_durable(connection: pool.Connection, shown: str) -> None:
    rows = connection.execute(
        "SELECT current_setting('fsync'), pg_is_in_recovery(), current_setting('server_encoding'), "
        "current_setting('server_version_num')::integer, current_setting('full_page_writes')"
    ).fetchall()
    fsync, standby, encoding, version, whole_pages = rows[0]
    if version < 140000:
        raise JournalUnusable(f"{shown}: PostgreSQL {version // 10000} is too old; 14 or later is needed")
    if standby:
        raise JournalUnusable(f"{shown} is a standby, which cannot be written to; name the primary")
    if fsync != "on":
        raise JournalUnusable(
            f"{shown}: the server runs with fsync={fsync}, so that what it acknowledges can be lost. Set fsync=on."
        )
    if whole_pages != "on":
        log.warning("%s: the server runs with full_page_writes=%s; a crash can damage it", shown, whole_pages)
    if encoding != "UTF8":
        raise JournalUnusable(f"{shown}: the database's encoding is {encoding}; create it with ENCODING 'UTF8'")


def _before_fork() -> None:
    global _fork_holds
    _fork_holds = pool.connecting.acquire(timeout=FORK_WAIT_S)


def _after_fork_in_parent() -> None:
    if _fork_holds:
        pool.connecting.release()


def _after_fork_in_child() -> None:
    global _open_mutex, _forked_mutex
    _open_mutex, _forked_mutex = threading.Lock(), threading.Lock()
    pool.connecting = threading.Lock()
    pool.disown_all()
    for store in list(_open.values()):
        store.after_fork_in_child()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
