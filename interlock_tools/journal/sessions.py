"""This process's presence at a journal: the proof that it lives, and the marks of its sends.

A session is a small file in ``<journal>.sessions/``, held under an exclusive
``flock`` for as long as its process lives. It starts with a page that says who
holds it; then come the slots, one for each send, in memory that is shared with
the kernel and therefore outlives the process (not the machine).
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import secrets
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.decide import Sender, Sighting
from ..core.states import Send
from ..errors import JournalError
from . import marks
from .clock import Clock
from .protocol import Holder

_TRIES = 16
_RECLAIM_AT_ONCE = 64


class Session:
    """The session of this process. Opened by ``Session.start``; safe to use from any thread.

    Attributes:
        name: names the session and its file.
    """

    def __init__(self, path: Path, lock_fd: int, clock: Clock) -> None:
        self.name = path.name
        self.pid = os.getpid()
        self._path = str(path)
        self._lock_fd = lock_fd
        self._clock = clock
        self._boot = clock.now().boot
        self._over = False
        status = os.fstat(lock_fd)
        self._identity = (status.st_dev, status.st_ino)
        self._memory = _map(path, self._identity)
        self._words = memoryview(self._memory)[marks.HEADER_BYTES :].cast("Q")
        self._mutex = threading.Lock()
        self._free: deque[int] = deque(range(marks.SLOTS))
        self._owners: dict[int, tuple[str, weakref.ref[Slot]]] = {}
        self._unmarked: weakref.WeakSet[Slot] = weakref.WeakSet()
        self._had_unmarked = False

    @staticmethod
    def start(directory: Path, clock: Clock) -> Session:
        """Create a session file, preallocate it and lock it.

        Raises:
            JournalError: the directory cannot be written, or the disk is full.
        """
        for _ in range(_TRIES):
            path = directory / secrets.token_hex(16)
            fd = -1
            try:
                directory.mkdir(exist_ok=True)
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
                os.posix_fallocate(fd, 0, marks.FILE_BYTES)
                os.pwrite(fd, marks.header(path.name, os.getpid(), clock.now()), 0)
                if _lock(fd, path):
                    return Session(path, fd, clock)
            except OSError as error:
                with contextlib.suppress(OSError):
                    path.unlink()  # nobody was told its name
                if fd >= 0:
                    os.close(fd)
                raise JournalError(f"{directory}: no session can be kept there ({error.strerror})") from error
            os.close(fd)  # a process that tidies up was faster
        raise JournalError(f"{directory}: no session can be kept there; something removes the files at once")

    # -- slots ------------------------------------------------------------------------------------------

    def new_slot(self, effect_id: str, is_closed: Callable[[str], bool]) -> Slot:
        """Reserve a slot. ``is_closed`` is asked about effects only when all slots are taken."""
        with self._mutex:
            if not self._free:
                self._reclaim(is_closed)
            index = self._free.popleft() if self._free else None
            slot = Slot(self, index)
            if index is None:
                self._unmarked.add(slot)
                self._had_unmarked = True
            else:
                self._zero(index)
                self._owners[index] = (effect_id, weakref.ref(slot))
        return slot

    def _reclaim(self, is_closed: Callable[[str], bool]) -> None:
        """Find a slot whose send is over and whose effect is closed, among some of those that wait longest."""
        for index in list(self._owners)[:_RECLAIM_AT_ONCE]:
            effect_id, reference = self._owners.pop(index)
            if not self._runs(index, reference) and is_closed(effect_id):
                self._free.append(index)
                return
            self._owners[index] = (effect_id, reference)  # to the end of the line

    def release(self, index: int) -> None:
        """Take back the slot of a closed effect."""
        with self._mutex:
            if self._owners.pop(index, None) is not None:
                self._zero(index)
                self._free.append(index)

    def _zero(self, index: int) -> None:
        for word in range(marks.WORDS):
            self._words[index * marks.WORDS + word] = 0

    def store(self, index: int, word: int) -> None:
        """Store that something happened, and when."""
        self._words[index * marks.WORDS + word] = self._clock.now().boottime_ms or 1

    def mark(self, index: int) -> dict[str, Any]:
        """Say where a slot is, for the DISPATCHED entry."""
        return marks.mark(*self._identity, index)

    def lost(self) -> str | None:
        """Return why nothing may be sent under this session any more, or None."""
        if self._over:
            return "the journal has been closed"
        if os.getpid() != self.pid:
            return "the process has forked since; the child must make the call itself"
        try:
            status = os.stat(self._path)  # noqa: PTH116
        except OSError:
            return "the file that proves that this process lives has been removed"
        if (status.st_dev, status.st_ino) != self._identity:
            return "the file that proves that this process lives has been replaced"
        return None

    # -- sightings ------------------------------------------------------------------------------------

    def sight(self, send: Send) -> tuple[Sighting, Holder | None]:
        """Look at a send of this very process: is it still running?"""
        holder = marks.holder(self._memory[: marks.HEADER_BYTES])
        index = marks.slot_of(send, *self._identity, self._boot)
        if index is None:
            return Sighting(Sender.LIVE if len(self._unmarked) else Sender.RETURNED), holder
        owner = self._owners.get(index)
        sender = Sender.LIVE if owner is not None and self._runs(index, owner[1]) else Sender.RETURNED
        words = self._words[index * marks.WORDS : (index + 1) * marks.WORDS]
        seen = marks.sighting(sender, words[marks.HANDED_OVER], words[marks.WRITTEN], self._clock.now())
        return seen, holder

    def _runs(self, index: int, reference: weakref.ref[Slot]) -> bool:
        return reference() is not None and not self._words[index * marks.WORDS + marks.GAVE_UP]

    def is_running(self) -> bool:
        """Whether any send of this session may still be running."""
        with self._mutex:
            owners = list(self._owners.items())
        return bool(len(self._unmarked)) or any(self._runs(index, owner[1]) for index, owner in owners)

    # -- the end --------------------------------------------------------------------------------------

    def end(self) -> None:
        """Let go of the lock. The file stays if an open effect may refer to it."""
        with self._mutex:
            unused = not self._owners and not self._had_unmarked and self.lost() is None
            self._over = True
        if unused:
            with contextlib.suppress(OSError):
                os.unlink(self._path)  # noqa: PTH108
        os.close(self._lock_fd)

    def disown(self) -> None:
        """In a forked child: close its copy of the descriptor. The lock stays the parent's."""
        os.close(self._lock_fd)


class Slot:
    """This process's hold on one send; see ``protocol.SendSlot``.

    The send is taken to be over when nobody holds this object any more.
    """

    __slots__ = ("__weakref__", "_closed", "_index", "_mark", "_session")

    def __init__(self, session: Session, index: int | None) -> None:
        self._session = session
        self._index = index
        self._mark = None if index is None else session.mark(index)
        self._closed = False

    @property
    def session(self) -> str:
        return self._session.name

    @property
    def mark(self) -> dict[str, Any] | None:
        return self._mark

    def check(self) -> str | None:
        return "its effect is closed" if self._closed else self._session.lost()

    def hand_over(self) -> None:
        self._store(marks.HANDED_OVER)

    def written(self) -> None:
        self._store(marks.WRITTEN)

    def give_up(self) -> None:
        self._store(marks.GAVE_UP)

    def close(self) -> None:
        if self._closed or os.getpid() != self._session.pid:
            return
        self._closed = True
        if self._index is not None:
            self._session.release(self._index)

    def _store(self, word: int) -> None:
        if self._closed:
            raise JournalError("this send is over: its effect is closed")
        if os.getpid() != self._session.pid:
            raise JournalError("this send belongs to the process that forked; the child must make the call itself")
        if self._index is not None:
            self._session.store(self._index, word)

    def __del__(self) -> None:
        with contextlib.suppress(Exception):
            if not self._closed:
                self.give_up()


def _lock(fd: int, path: Path) -> bool:
    """Lock a new session's file. False if somebody was faster, or the file is not at its path any more."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        there = path.stat()
    except (BlockingIOError, FileNotFoundError):
        return False
    own = os.fstat(fd)
    return (there.st_dev, there.st_ino) == (own.st_dev, own.st_ino)


def _map(path: Path, identity: tuple[int, int]) -> mmap.mmap:
    """Map the file by a descriptor of its own: a mapping keeps one, and in a forked child it must not hold the lock."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != identity:
            raise JournalError(f"{path}: this session's file has been replaced")
        return mmap.mmap(fd, marks.FILE_BYTES)
    finally:
        os.close(fd)
