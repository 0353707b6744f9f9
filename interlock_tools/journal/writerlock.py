"""One process at a time: a lock beside the journal, held while it is opened, committed to, and closed for good."""

from __future__ import annotations

import fcntl
import os
import threading
import time
from pathlib import Path

from ..errors import JournalError

_FIRST_PAUSE_S = 0.00005
_LONGEST_PAUSE_S = 0.002


class WriterLock:
    """An exclusive ``flock``. Also excludes the other threads of this process.

    SQLite keeps writers apart too, but by record locks of the log's index, and
    those are dropped when the host program reads that file. And SQLite before
    3.51.3 can lose a commit when one process moves the log's pages into the
    database in the same instant as another begins the log anew.

    Args:
        path: the lock's file; made if it is not there.
        timeout_s: how long to wait for another process.
    """

    def __init__(self, path: Path, timeout_s: float) -> None:
        self._path = path
        self._timeout_s = timeout_s
        self._mutex = threading.Lock()
        self._fd: int | None = None

    def acquire(self) -> None:
        """Wait for the lock. Raises ``JournalError`` if that takes too long or the file cannot be made."""
        if not self._mutex.acquire(timeout=self._timeout_s):
            raise self._late("another thread")
        try:
            fd = self._fd if self._fd is not None else self._open()
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait(fd)
        except BaseException:
            self._mutex.release()
            raise

    def release(self) -> None:
        """Let the next one in."""
        if self._fd is not None:
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        self._mutex.release()

    def close(self) -> None:
        """Close the file; the next use opens it again. In a forked child: the lock stays the parent's."""
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *exc_info: object) -> None:
        self.release()

    def _open(self) -> int:
        try:
            self._path.parent.mkdir(exist_ok=True)
            self._fd = os.open(self._path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise JournalError(f"{self._path} cannot be made ({error.strerror}); nothing was written") from error
        return self._fd

    def _wait(self, fd: int) -> None:
        pause_s, deadline = _FIRST_PAUSE_S, time.monotonic() + self._timeout_s
        while True:
            time.sleep(pause_s)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise self._late("another process") from None
                pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)

    def _late(self, who: str) -> JournalError:
        return JournalError(
            f"{self._path.parent}: {who} has been committing for {self._timeout_s:.0f} s; it may be stopped. Nothing "
            "was written; let it go on or end it, then call again."
        )
