"""Keeps SQLite's write-ahead log where it is while any journal has the file open.

SQLite's own locks are POSIX record locks, and those are dropped as soon as the
process closes *any* descriptor of the file, for example after a backup that
reads it. Another process that then closes its connection takes itself for the
last one, and removes the log that this process goes on committing to. Locks of
an open file description have no such rule. A guard holds two of them, shared:
on the bytes of the database file that SQLite must have to itself before it
removes the log, and on the byte of the log's index that says that it is in use.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from pathlib import Path

from ..errors import JournalUnusable

_SHARED_FIRST, _SHARED_BYTES = 0x40000002, 510
"""Where SQLite's shared and exclusive locks of the database file lie (``os_unix.c``)."""

_IN_USE_BYTE = 128
"""The byte of the log's index that every user of it holds shared (``os_unix.c``, UNIX_SHM_DMS)."""

_WAIT_S = 5.0


class Guard:
    """Two shared locks that nothing but this guard lets go of.

    The descriptors must stay open as long as this process has SQLite
    connections to the file: closing one drops SQLite's own locks.

    Raises:
        JournalUnusable: the system has no such locks, or somebody keeps the file to himself.
    """

    def __init__(self, path: Path) -> None:
        self._fds: list[int] = []
        try:
            self._hold(str(path), _SHARED_FIRST, _SHARED_BYTES)
            self._hold(f"{path}-shm", _IN_USE_BYTE, 1)
        except OSError as error:
            self.abandon()
            raise JournalUnusable(f"{path}: its files cannot be locked here ({error.strerror})") from error

    def _hold(self, path: str, start: int, length: int) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        self._fds.append(fd)
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_RDLCK, start, length))
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.001)  # somebody is closing it for the last time

    def is_void(self) -> bool:
        """Whether the log has been removed, so that others use a new one.

        SQLite removes the log's index together with it, and the index is what
        is looked at here. To look at the log itself makes each write after it a
        change of the file's time on Linux 6.13 and later, which costs half an
        fsync.
        """
        return os.fstat(self._fds[1]).st_nlink == 0

    def let_last_close(self) -> None:
        """Let go of the locks, so that the last connection to be closed tidies up. Keeps the descriptors."""
        for fd, start, length in zip(self._fds, (_SHARED_FIRST, _IN_USE_BYTE), (_SHARED_BYTES, 1), strict=False):
            with contextlib.suppress(OSError):
                fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _flock(fcntl.F_UNLCK, start, length))

    def close(self) -> None:
        """Close the descriptors, unless the host program has a connection of its own to the file."""
        own = {os.fstat(fd).st_ino: fd for fd in self._fds}
        if not _others_open(own):
            self.abandon()
        self._fds.clear()

    def abandon(self) -> None:
        """Close the descriptors: no connection of this process needs them."""
        for fd in self._fds:
            with contextlib.suppress(OSError):
                os.close(fd)
        self._fds.clear()


def _flock(kind: int, start: int, length: int) -> bytes:
    return struct.pack("hhqqi4x", kind, os.SEEK_SET, start, length, 0)


def _others_open(own: dict[int, int]) -> bool:
    """Whether this process has other descriptors of the files, as far as can be told."""
    devices = {inode: os.fstat(fd).st_dev for inode, fd in own.items()}
    try:
        found = [int(link.name) for link in Path("/proc/self/fd").iterdir()]
    except OSError:
        return True
    for fd in found:
        try:
            status = os.fstat(fd)
        except OSError:
            continue  # that of the listing
        if devices.get(status.st_ino) == status.st_dev and fd not in own.values():
            return True
    return False
