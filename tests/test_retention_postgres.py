"""Retention with a PostgreSQL journal: the tests of the SQLite journal, and what the database itself refuses."""

from __future__ import annotations

import os
import subprocess
import sys
import unittest
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_retention
from postgres_support import URL, server
from test_sealing_postgres import OnPostgres

from interlock_tools import Gate
from interlock_tools.journal.protocol import ARCHIVED
from interlock_tools.testing.postgres import binaries


class Retention(OnPostgres, test_retention.Retention):
    def test_the_database_lets_nothing_else_go(self) -> None:
        import psycopg

        refund = self.refund()
        for case in ("gone", "stays"):
            refund(case)
        self.clock.advance(31 * test_retention.DAY_S)
        young = refund.propose("open")
        self.prune()
        refund("later")
        self.assertEqual(self.phases(), [ARCHIVED, ARCHIVED, "proposed", "committed"])
        raw = self.raw()
        before = self.gate.history(young.effect_id)
        for statement in (
            "DELETE FROM {}.entries",
            "DELETE FROM {}.effects WHERE phase = 'committed'",
            "TRUNCATE {}.entries",
            "TRUNCATE {}.effects",
            "UPDATE {}.effects SET phase = 'archived', tombstone = '', ended_ms = 0 WHERE phase = 'proposed'",
            "UPDATE {}.effects SET phase = 'archived' WHERE phase = 'committed'",
            "UPDATE {}.effects SET phase='archived', tombstone='', ended_ms=0, name='x' WHERE phase = 'committed'",
            "UPDATE {}.effects SET phase = 'committed' WHERE phase = 'archived'",
            "UPDATE {}.effects SET tombstone = '' WHERE phase = 'archived'",
        ):
            with self.subTest(statement=statement), self.assertRaises(psycopg.Error):
                raw.execute(statement.format(self.schema).encode())
        self.assertEqual(self.phases(), [ARCHIVED, ARCHIVED, "proposed", "committed"])
        self.assertEqual(self.gate.history(young.effect_id), before)


class Killed(OnPostgres, test_retention.Killed):
    def steps(self) -> dict[str, Callable[[Gate], None]]:
        """Those that touch the database."""
        return {name: arm for name, arm in super().steps().items() if "removal" in name}

    def more_steps(self) -> dict[str, Callable[[Gate], None]]:
        return {}  # one removal is one statement


class Amnesia(OnPostgres, test_retention.Amnesia):
    """The backup is one of pg_dump, and restored by psql."""

    def save(self, copy: Path) -> None:
        self.run_program("pg_dump", "-n", self.schema, "-f", str(copy))

    def restore(self, copy: Path) -> None:
        self.drop()
        self.run_program("psql", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(copy))

    def run_program(self, name: str, *arguments: str) -> None:
        url = os.environ.get(URL) or server().url()
        done = subprocess.run([binaries() / name, *arguments, "-d", url], capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
