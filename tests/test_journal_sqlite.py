"""The SQLite journal passes the kit."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from interlock_tools.journal.clock import Clock
from interlock_tools.journal.protocol import Journal
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.testing.journal_kit import JournalKit


class TestSqliteJournal(JournalKit, unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name) / "journal.db"

    def open(self, clock: Clock | None = None) -> Journal:
        return SqliteJournal(self.path, clock)

    def url(self) -> str:
        return str(self.path)
