"""What every journal must pass, whole: a mixin for ``unittest.TestCase``.

::

    class TestMyJournal(JournalKit, unittest.TestCase):
        def open(self, clock=None):
            return MyJournal(self.place, clock=clock)

        def url(self):
            return str(self.place)

``setUp`` gives each test a journal of its own. Nothing is skipped.
"""

from __future__ import annotations

from .journal_kit_archive import ArchiveKit
from .journal_kit_base import FixedClock
from .journal_kit_budgets import BudgetsKit
from .journal_kit_entries import EntriesKit
from .journal_kit_processes import ProcessesKit, SessionsKit
from .journal_kit_records import RecordsKit
from .journal_kit_watched import WatchedKit

__all__ = ["FixedClock", "JournalKit"]


class JournalKit(EntriesKit, BudgetsKit, WatchedKit, ArchiveKit, RecordsKit, SessionsKit, ProcessesKit):
    """All parts of the kit."""
