"""The PostgreSQL journal passes the kit."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_support import PostgresCase

from interlock_tools.testing.journal_kit import JournalKit


class TestPostgresJournal(PostgresCase, JournalKit, unittest.TestCase):
    """The whole kit; no capability is skipped."""
