"""What the parts of the journal kit share."""

from __future__ import annotations

import threading
import unittest
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.entries import Instant
from ..journal.clock import Clock
from ..journal.protocol import Journal
from .journal_story import Story

if TYPE_CHECKING:
    Base = unittest.TestCase
else:
    Base = object


class FixedClock:
    """A clock that a test sets."""

    def __init__(self, boot: str = "boot-1", boottime_ms: int = 1_000_000, wall_ms: int = 1_700_000_000_000) -> None:
        self.boot = boot
        self.boottime_ms = boottime_ms
        self.wall_ms = wall_ms

    def now(self) -> Instant:
        return Instant(self.boot, self.boottime_ms, self.wall_ms)


class KitBase(Base):
    """What a test case supplies, and what the parts share."""

    def open(self, clock: Clock | None = None) -> Journal:
        """Open this test's journal. Each call returns another object for the same store."""
        raise NotImplementedError

    def url(self) -> str:
        """Return what opens this test's journal in another process."""
        raise NotImplementedError

    def journal(self, clock: Clock | None = None) -> Journal:
        """Open this test's journal and close it at the end."""
        journal = self.open(clock)
        self.addCleanup(journal.close)
        return journal

    def story(self, journal: Journal, key: str = "case 1", decision: int = 1) -> Story:
        return Story(journal, key, decision)

    def in_threads(self, functions: Sequence[Callable[[], Any]]) -> list[Any]:
        """Run functions at the same time; return their results, or what they raised."""
        start = threading.Barrier(len(functions))
        results: list[Any] = [None] * len(functions)

        def run(index: int) -> None:
            start.wait()
            try:
                results[index] = functions[index]()
            except Exception as error:
                results[index] = error

        threads = [threading.Thread(target=run, args=(index,)) for index in range(len(functions))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive(), "an append hangs")
        return results
