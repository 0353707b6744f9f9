"""This process's presence at a journal: the proof that it lives, and the marks of its sends.

A session is a small file in ``<journal>.sessions/``, held under an exclusive
``flock`` for as long as its process lives. It starts with a page that says who
holds it; then come the slots, one for each send, in memory that is shared with
the kernel and therefore outlives the process (not the machine).
"""

from __future__ import annotations

import fcntl
import json
import mmap
import os
import re
import secrets
import socket
import threading
import weakref
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..core.decide import Mark, Sender, Sighting
from ..core.entries import Instant
from ..core.states import Send
from ..errors import JournalError
from .clock import Clock
from .protocol import Holder

HEADER_BYTES = 4096
SLOTS = 4096
"""How many sends of open effects one process can mark. Further ones are unmarked ("maybe")."""

_WORD_BYTES = 8
_WORDS = 3
_HANDED_OVER, _WRITTEN, _GAVE_UP = range(_WORDS)
FILE_BYTES = HEADER_BYTES + SLOTS * _WORDS * _WORD_BYTES

_NAME = re.compile(r"[0-9a-f]{32}")
_TRIES = 16


class Session:
    """The session of this process. Opened by ``Session.start``; safe to use from any thread.

    Attributes:
        name: names the session and its file; random, 32 hex digits.
    """

    def __init__(self, name: str, path: Path, lock_fd: int, memory: mmap.mmap, clock: Clock) -> None:
        self.name = name
        self.pid = os.getpid()
        self.over = False
        self._path = str(path)
        self._lock_fd = lock_fd
        self._memory = memory
        self._bytes = memoryview(memory)
        self._words = self._bytes[HEADER_BYTES:].cast("Q")
        self._clock = clock
        status = os.fstat(lock_fd)
        self._identity = (status.st_dev, status.st_ino)
        self._boot = clock.now().boot
        self._mutex = threading.Lock()
        self._free: deque[int] = deque(range(SLOTS))
        self._owners: dict[int, tuple[str, weakref.ref[Slot]]] = {}
        self._unmarked: weakref.WeakSet[Slot] = weakref.WeakSet()

    @staticmethod
    def start(directory: Path, clock: Clock) -> Session:
        """Create a session file, preallocate it and lock it.

        Raises:
            JournalError: the directory cannot be written.
        """
        for _ in range(_TRIES):
            name = secrets.token_hex(16)
            path = directory / name
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise JournalError(f"{directory}: no session can be opened there ({error.strerror})") from error
            try:
                if _fill_and_lock(fd, path, name, clock):
                    return Session(name, path, fd, _map(path, fd), clock)
            except OSError as error:
                os.close(fd)
                raise JournalError(f"{path}: this session cannot be written ({error.strerror})") from error
            os.close(fd)  # a process that tidies up was faster
        raise JournalError(f"{directory}: no session file could be kept there; something removes them at once")

    # -- slots ----------------------------------------------------------------------------------

    def new_slot(self, effect_id: str, is_closed: Callable[[str], bool]) -> Slot:
        """Reserve a slot. ``is_closed`` is asked about effects only when all slots are taken."""
        with self._mutex:
            if not self._free:
                self._reclaim(is_closed)
            index = self._free.popleft() if self._free else None
            slot = Slot(self, index)
            if index is None:
                self._unmarked.add(slot)
            else:
                self._zero(index)
                self._owners[index] = (effect_id, weakref.ref(slot))
            return slot

    def _reclaim(self, is_closed: Callable[[str], bool]) -> None:
        """Look for slots whose send is over and whose effect is closed; stop at the first few."""
        for index, (effect_id, reference) in list(self._owners.items())[:64]:
            owner = self._owners.pop(index)
            if (reference() is None or self._read(index, _GAVE_UP)) and is_closed(effect_id):
                self._free.append(index)
                return
            self._owners[index] = owner  # to the end of the line

    def release(self, index: int) -> None:
        with self._mutex:
            if self._owners.pop(index, None) is not None:
                self._zero(index)
                self._free.append(index)

    def _zero(self, index: int) -> None:
        for word in range(_WORDS):
            self._words[index * _WORDS + word] = 0

    def store(self, index: int, word: int) -> None:
        self._words[index * _WORDS + word] = self._clock.now().boottime_ms or 1

    def _read(self, index: int, word: int) -> int:
        return self._words[index * _WORDS + word]

    def mark(self, index: int) -> dict[str, Any]:
        device, inode = self._identity
        return {"file": self.name, "device": str(device), "inode": str(inode), "boot": self._boot, "slot": index}

    def lost(self) -> str | None:
        """Return why nothing may be sent under this session any more, or None."""
        if self.over:
            return "its session is closed"
        if os.getpid() != self.pid:
            return "the process has forked since; a child must make the call itself"
        try:
            status = os.stat(self._path)
        except OSError:
            return "its session file has been removed"
        if (status.st_dev, status.st_ino) != self._identity:
            return "its session file has been replaced"
        return None

    # -- sightings ------------------------------------------------------------------------------

    def sight_own(self, send: Send) -> Sighting:
        """Look at a send of this very process: is it still running?"""
        index = _slot_of(send, self.name, self._identity, self._boot)
        if index is None:
            return Sighting(Sender.LIVE if self._unmarked else Sender.RETURNED)
        owner = self._owners.get(index)
        running = owner is not None and owner[1]() is not None and not self._read(index, _GAVE_UP)
        return _read_slot(self._words, index, Sender.LIVE if running else Sender.RETURNED, self._boot)

    def is_running(self) -> bool:
        """Whether any send of this session may still be running."""
        with self._mutex:
            marked = any(
                reference() is not None and not self._read(index, _GAVE_UP)
                for index, (_, reference) in self._owners.items()
            )
            return marked or bool(self._unmarked)

    def holder(self) -> Holder | None:
        return _holder(bytes(self._bytes[:HEADER_BYTES]))

    # -- the end --------------------------------------------------------------------------------

    def end_if_idle(self) -> bool:
        """Let go of the lock, unless a send may still be running. What the marks say stays readable."""
        if self.is_running():
            return False
        self.over = True
        os.close(self._lock_fd)
        return True

    def disown(self) -> None:
        """In a forked child: close its copy of the descriptor. The lock stays the parent's."""
        os.close(self._lock_fd)


class Slot:
    """This process's hold on one send. See ``protocol.SendSlot``."""

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
        if self._closed:
            return "its effect is closed"
        return self._session.lost()

    def hand_over(self) -> None:
        self._store(_HANDED_OVER)

    def written(self) -> None:
        self._store(_WRITTEN)

    def give_up(self) -> None:
        self._store(_GAVE_UP)

    def close(self) -> None:
        if self._closed or self._session.over or os.getpid() != self._session.pid:
            return
        self._closed = True
        if self._index is not None:
            self._session.release(self._index)

    def _store(self, word: int) -> None:
        if self._closed or os.getpid() != self._session.pid:
            raise JournalError("this send is over, or belongs to another process")
        if self._index is not None:
            self._session.store(self._index, word)


def sight_other(directory: Path, send: Send, boot: str) -> tuple[Sighting, Holder | None]:
    """Look at a send of another process. Its lock decides; a pid proves nothing."""
    if not _NAME.fullmatch(send.session):
        return Sighting(Sender.LOST), None
    other_boot = send.dispatched.boot != boot
    try:
        fd = os.open(directory / send.session, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Sighting(Sender.DEAD if other_boot else Sender.LOST), None
    except OSError as error:
        raise JournalError(f"{directory / send.session}: the session cannot be read ({error.strerror})") from error
    try:
        status = os.fstat(fd)
        content = memoryview(os.pread(fd, FILE_BYTES, 0))
        free = _try_shared(fd)
        if free:
            content = memoryview(os.pread(fd, FILE_BYTES, 0))
    finally:
        os.close(fd)
    holder = _holder(bytes(content[:HEADER_BYTES]))
    sender = Sender.DEAD if free else Sender.LIVE
    if free and other_boot:
        return Sighting(Sender.DEAD), holder
    index = _slot_of(send, send.session, (status.st_dev, status.st_ino), boot)
    if index is None or len(content) != FILE_BYTES:
        return Sighting(sender), holder
    words = content[HEADER_BYTES:].cast("Q")
    if not free and words[index * _WORDS + _GAVE_UP]:
        sender = Sender.RETURNED
    return _read_slot(words, index, sender, boot), holder


def _try_shared(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_slot(words: memoryview, index: int, sender: Sender, boot: str) -> Sighting:
    handed_over = words[index * _WORDS + _HANDED_OVER]
    written_ms = words[index * _WORDS + _WRITTEN]
    written = Instant(boot, written_ms, 0) if written_ms else None
    return Sighting(sender, Mark.YES if handed_over else Mark.NO, written)


def _slot_of(send: Send, name: str, identity: tuple[int, int], boot: str) -> int | None:
    """The number of the send's slot, if its mark can be believed."""
    mark = send.mark
    if mark is None:
        return None
    device, inode = identity
    believed = (
        mark.get("file") == name
        and mark.get("boot") == boot
        and mark.get("device") == str(device)
        and mark.get("inode") == str(inode)
    )
    index = mark.get("slot")
    return index if believed and type(index) is int and 0 <= index < SLOTS else None


def _fill_and_lock(fd: int, path: Path, name: str, clock: Clock) -> bool:
    """Preallocate, say who holds it, and lock it. False if the file is not at its path any more."""
    os.posix_fallocate(fd, 0, FILE_BYTES)
    now = clock.now()
    header = {
        "nonce": name,
        "boot": now.boot,
        "host": socket.gethostname(),
        "pid": os.getpid(),
        "started_ms": now.wall_ms,
    }
    os.pwrite(fd, json.dumps(header).encode()[:HEADER_BYTES], 0)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        status = path.stat()
    except (BlockingIOError, FileNotFoundError):
        return False
    own = os.fstat(fd)
    return (status.st_dev, status.st_ino) == (own.st_dev, own.st_ino)


def _map(path: Path, lock_fd: int) -> mmap.mmap:
    """Map the file by a descriptor of its own: a mapping keeps a duplicate, and a child's must not hold the lock."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        if os.fstat(fd).st_ino != os.fstat(lock_fd).st_ino:
            raise JournalError(f"{path}: this session's file has been replaced")
        return mmap.mmap(fd, FILE_BYTES)
    finally:
        os.close(fd)


def _holder(header: bytes) -> Holder | None:
    try:
        found = json.loads(header.rstrip(b"\0"))
        return Holder(str(found["nonce"]), str(found["host"]), int(found["pid"]), int(found["started_ms"]))
    except (ValueError, KeyError, TypeError):
        return None
