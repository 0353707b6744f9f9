"""Taking open effects up for recovery, so that workers who recover at the same time divide them among themselves.

It saves work and decides nothing: two that recover the same effect are safe,
as the compare-and-set lets one of them write. A claim goes with its process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path

_mutex = threading.Lock()
_held: dict[tuple[str, int], Claim] = {}


class Claim:
    """One effect that this worker recovers. ``close`` lets go of it."""

    def __init__(self, key: tuple[str, int], let_go: Callable[[], None]) -> None:
        self._key = key
        self._let_go = let_go

    def close(self) -> None:
        """Let go of it. Does nothing the second time."""
        with _mutex:
            if _held.get(self._key) is not self:
                return
            del _held[self._key]
        self._let_go()


def claim(store: str, position: int, take: Callable[[], Callable[[], None] | None]) -> Claim | None:
    """Take an effect up, if neither this process nor another has.

    Args:
        store: names the journal.
        position: the effect's.
        take: takes it from other processes, and returns what lets go of it; or None if another has it.
    """
    key = (store, position)
    with _mutex:
        if key in _held:
            return None
        let_go = take()
        if let_go is None:
            return None
        made = _held[key] = Claim(key, let_go)
        return made


def take_in_file(path: Path, position: int) -> Callable[[], None] | None:
    """Lock the byte of a file that stands for an effect. The lock is this open file's, and goes with the process."""
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, position, 1, 0))
    except OSError:
        os.close(fd)
        return None
    _open.add(fd)

    def let_go() -> None:
        _open.discard(fd)
        with contextlib.suppress(OSError):  # a fork may have a copy, so closing alone does not unlock
            fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_UNLCK, os.SEEK_SET, position, 1, 0))
            os.close(fd)

    return let_go


_open: set[int] = set()


def _after_fork_in_child() -> None:
    """What the parent has taken up is the parent's."""
    global _mutex
    _mutex = threading.Lock()
    _held.clear()
    for fd in _open:
        with contextlib.suppress(OSError):
            os.close(fd)
    _open.clear()


os.register_at_fork(after_in_child=_after_fork_in_child)
