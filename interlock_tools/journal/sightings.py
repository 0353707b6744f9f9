"""Looks at the sessions of other processes: which of them live, and what the marks of the dead say."""

from __future__ import annotations

import fcntl
import os
import random
import struct
from collections.abc import Callable, Collection, Container
from pathlib import Path

from ..core.decide import Sender, Sighting
from ..core.entries import Instant
from ..core.states import Send
from ..errors import JournalError
from . import marks
from .protocol import Holder

_TIDY_AT_ONCE = 64


def sight(directory: Path, send: Send, now: Instant) -> tuple[Sighting, Holder | None]:
    """Look at a send of another process. The lock of its session decides; a pid proves nothing.

    Death is final, so the lock need not be held any longer than it takes to
    read what the dead cannot change.

    Raises:
        JournalError: the session's file cannot be read.
    """
    rebooted = send.dispatched.boot != now.boot
    path = directory / send.session
    try:
        if not marks.NAME.fullmatch(send.session):
            raise FileNotFoundError
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        # A live sender whose file is gone refuses to send.
        return Sighting(Sender.DEAD if rebooted else Sender.LOST), None
    except OSError as error:
        raise JournalError(f"{path}: the session cannot be read ({error.strerror})") from error
    try:
        dead = try_shared(fd)
        holder = marks.holder(os.pread(fd, marks.HEADER_BYTES, 0))
        sender = Sender.DEAD if dead else Sender.LIVE
        status = os.fstat(fd)
        index = marks.slot_of(send, status.st_dev, status.st_ino, now.boot)
        if index is None or holder is None or holder.session != send.session or status.st_size < marks.FILE_BYTES:
            if dead and not rebooted and send.mark is not None:
                return Sighting(Sender.LOST), holder  # not the file that the sender holds: it may live
            return Sighting(sender), holder
        if not dead and _words(fd, index)[marks.GAVE_UP]:
            sender = Sender.RETURNED
        words = _words(fd, index)  # read after it is known that they cannot change any more
    except OSError as error:
        raise JournalError(f"{path}: the session cannot be read ({error.strerror})") from error
    finally:
        os.close(fd)
    return marks.sighting(sender, words[marks.HANDED_OVER], words[marks.WRITTEN], now), holder


def _words(fd: int, index: int) -> tuple[int, ...]:
    content = os.pread(fd, marks.SLOT_BYTES, marks.HEADER_BYTES + index * marks.SLOT_BYTES)
    return struct.unpack(f"{marks.WORDS}Q", content)


def try_shared(fd: int) -> bool:
    """Try to lock a session's file together with others who look at it. True if its process is dead."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def tidy(directory: Path, own: Container[str], referred: Callable[[], Collection[str] | None]) -> None:
    """Remove files of dead sessions that no open effect refers to. Looks at a bounded number of them.

    Args:
        own: this process's sessions.
        referred: returns the sessions that open effects refer to, or None if
            there are too many; asked once it is known that the others are dead.
    """
    names = [path.name for path in directory.iterdir() if path.name not in own and marks.NAME.fullmatch(path.name)]
    held: dict[str, int] = {}
    try:
        for name in random.sample(names, min(len(names), _TIDY_AT_ONCE)):
            try:
                fd = os.open(directory / name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            if try_shared(fd):
                held[name] = fd
            else:
                os.close(fd)
        needed = referred() if held else None
        if needed is not None:
            for name in held.keys() - set(needed):
                (directory / name).unlink(missing_ok=True)
    finally:
        for fd in held.values():
            os.close(fd)
