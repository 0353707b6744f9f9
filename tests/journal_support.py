"""What the tests of the SQLite journal share: a file of their own, and other processes that use it."""

from __future__ import annotations

import sqlite3
import tempfile
import unittest
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlock_tools.journal.clock import Clock
from interlock_tools.journal.protocol import Journal
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing.journal_child import Child
from interlock_tools.testing.journal_story import Story


class JournalCase(unittest.TestCase):
    """A test with a journal file of its own."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.path = self.folder / "journal.db"

    def journal(self, clock: Clock | None = None) -> SqliteJournal:
        journal = SqliteJournal(self.path, clock)
        self.addCleanup(journal.close)
        return journal

    def story(self, journal: Journal, key: str = "case 1") -> Story:
        return Story(journal, key)

    def child(self, prefix: Sequence[str] = (), **options: Any) -> Child:
        child = Child(str(self.path), prefix, **options)
        self.addCleanup(child.__exit__)
        child.ask("monotonic")  # the journal is open
        return child

    def raw(self) -> sqlite3.Connection:
        """Open the file as any other program would."""
        connection = sqlite3.connect(self.path, isolation_level=None)
        self.addCleanup(connection.close)
        return connection

    def sessions(self) -> list[Path]:
        """The session files beside the journal."""
        return [path for path in Path(f"{self.path}.sessions").iterdir() if len(path.name) == 32]
