"""What docs/postgresql.md tells an operator to ask the database is true of a real journal."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_support import PostgresCase

from interlock_tools.core.entries import Kind
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story

PAGE = Path(__file__).resolve().parent.parent / "docs" / "postgresql.md"


class TestQueries(PostgresCase):
    """The queries of the section on watching, in its order."""

    def answers(self) -> dict[str, list[tuple[Any, ...]]]:
        """What each query answers, by the comment before it."""
        block = PAGE.read_text().partition("```sql\n")[2].partition("```")[0]
        found = {}
        raw = self.raw()
        for part in block.strip().split("\n\n"):
            comment, _, query = part.partition("\n")
            found[comment] = raw.execute(
                query.replace("interlock.", f"{self.schema}.").replace("'interlock'", f"'{self.schema}'")
            ).fetchall()
        return found

    def test_they_show_what_they_say(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        Story(journal, "over").append(*TO_DISPATCHED).append(Kind.COMMITTED)
        budgets = [{"budget": "day", "amount": 95, "limit": 100}]
        sent = Story(journal, "sent")
        sent.append(*TO_DISPATCHED, budgets=budgets)
        Story(journal, "running").dispatch()
        raw = self.raw()
        raw.execute(
            f"INSERT INTO {self.schema}.sessions (name, host, machine, pid, boot, inode, started_ms, mode, lock_key, "
            f"lease_ms, state) SELECT 'x', 'gone.example', machine, pid, boot, inode, started_ms, mode, lock_key + 1, "
            f"lease_ms, 'lost' FROM {self.schema}.sessions"
        )
        answers = list(self.answers().values())
        self.assertEqual(len(answers), 8)
        opened, oldest, ambiguous, processes, stale, _, room, caps = answers
        self.assertEqual([row[3] for row in opened], ["sent", "running"])
        self.assertEqual([row[4] for row in opened], ["dispatched"] * 2)
        self.assertIsNotNone(oldest[0][0])
        self.assertEqual(ambiguous, [(0,)])
        self.assertEqual(len(processes), 2)
        self.assertEqual([row[1] for row in stale], ["gone.example"])
        self.assertIn("entries", {row[0] for row in room})
        self.assertEqual([row[:3] for row in caps], [("day", 95, 100)])


if __name__ == "__main__":
    unittest.main()
