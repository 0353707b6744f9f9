"""The schema: migrations, formats, and what the database itself refuses."""

from __future__ import annotations

import re
import sqlite3
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from journal_support import JournalCase

from interlock_tools.core.entries import Kind
from interlock_tools.core.states import CLOSED_PHASES, TRANSITIONS, Phase
from interlock_tools.errors import JournalUnusable
from interlock_tools.journal import schema
from interlock_tools.journal.schema import MIGRATIONS, QUERIES, migrate, read_sql, statements
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story


def shape(connection: sqlite3.Connection) -> list[tuple[str, str]]:
    """The schema without the spelling of its spaces."""
    rows = connection.execute("SELECT name, sql FROM sqlite_master ORDER BY name")
    return [(name, " ".join((sql or "").split())) for name, sql in rows]


class TestSchema(unittest.TestCase):
    def memory(self) -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None)
        self.addCleanup(connection.close)
        return connection

    def test_the_table_of_transitions_is_that_of_the_core(self) -> None:
        connection = self.memory()
        migrate(connection, Path("x"))
        found = {(before, kind): after for before, kind, after in connection.execute("SELECT * FROM transitions")}
        expected = {(before.value, kind.value): after.value for (before, kind), after in TRANSITIONS.items()}
        rows = [f"    ('{before}', '{kind}', '{after}')" for (before, kind), after in expected.items()]
        self.assertEqual(found, expected, "the INSERT INTO transitions should say:\n" + ",\n".join(rows))

    def test_the_phases_that_sql_takes_for_open_or_closed_are_those_of_the_core(self) -> None:
        open_phases = [phase for phase in Phase if phase not in CLOSED_PHASES and phase is not Phase.NEW]
        listed = ", ".join(f"'{phase.value}'" for phase in open_phases)
        self.assertIn(f"last.phase IN ({listed})", QUERIES["open_effects"])
        self.assertIn(f"last.phase IN ({listed})", QUERIES["list_block"])
        closed = " OR ".join(f"NEW.phase = '{phase.value}'" for phase in Phase if phase in CLOSED_PHASES)
        self.assertIn(f"WHEN {closed}\n", read_sql(MIGRATIONS[0]))

    def test_every_statement_says_what_it_is_for(self) -> None:
        for name in (*MIGRATIONS, "queries.sql"):
            for statement in statements(read_sql(name)):
                self.assertTrue(statement.startswith("-- "), f"{name}: {statement}")

    def test_every_query_fits_the_schema(self) -> None:
        connection = self.memory()
        migrate(connection, Path("x"))
        for name, query in QUERIES.items():
            with self.subTest(name):
                plan = connection.execute(f"EXPLAIN QUERY PLAN {query}", _values(query)).fetchall()
                for row in plan:
                    self.assertNotRegex(row[3], r"SCAN (entries|first|last|more|send)$", name)

    def test_migrations_end_in_the_schema(self) -> None:
        """Also for a journal that was made long ago; the oldest formats here are made up."""
        real = [read_sql(name) for name in MIGRATIONS]
        scripts = [
            *real,
            "-- a column that came later.\nALTER TABLE budgets ADD COLUMN currency TEXT;\n",
            "-- and an index.\nCREATE INDEX budgets_by_use ON budgets (used);\n",
        ]
        new = self.memory()
        migrate(new, Path("x"), scripts)
        for known in range(1, len(scripts)):
            with self.subTest(format=known):
                old = self.memory()
                migrate(old, Path("x"), scripts[:known])
                old.execute("INSERT INTO budgets (name, used) VALUES ('kept', 7)")
                migrate(old, Path("x"), scripts)
                self.assertEqual(shape(old), shape(new))
                self.assertEqual(old.execute("SELECT name, used FROM budgets").fetchall(), [("kept", 7)])
                self.assertEqual(old.execute("PRAGMA user_version").fetchone(), (len(scripts),))

    def test_a_migration_that_fails_changes_nothing(self) -> None:
        connection = self.memory()
        migrate(connection, Path("x"))
        before = shape(connection)
        broken = [*map(read_sql, MIGRATIONS), "-- fine.\nCREATE TABLE t (x);\n", "-- not.\nCREATE TABLE t (x);\n"]
        with self.assertRaises(sqlite3.Error):
            migrate(connection, Path("x"), broken)
        self.assertEqual(shape(connection), before)
        self.assertEqual(connection.execute("PRAGMA user_version").fetchone(), (len(MIGRATIONS),))
        self.assertFalse(connection.in_transaction)

    def test_an_unfinished_statement_is_noticed(self) -> None:
        with self.assertRaises(ValueError):
            list(statements("-- half.\nCREATE TABLE t (x)\n"))


def _values(query: str) -> dict[str, None] | list[None]:
    names = re.findall(r":([a-z]+)", query)
    return dict.fromkeys(names) if names else [None] * query.count("?")


class TestFormat(JournalCase):
    def test_a_newer_format_is_refused_and_both_are_named(self) -> None:
        self.journal().close()
        raw = self.raw()
        raw.execute("PRAGMA user_version=99")
        with self.assertRaisesRegex(JournalUnusable, rf"format 99, .* up to {len(MIGRATIONS)}\. Install"):
            self.journal()
        self.assertEqual(raw.execute("PRAGMA user_version").fetchone(), (99,))

    def test_an_older_format_is_migrated_when_it_is_opened(self) -> None:
        self.story(self.journal()).append(Kind.PROPOSED).journal.close()
        names = MIGRATIONS
        self.addCleanup(setattr, schema, "MIGRATIONS", names)
        self.addCleanup(setattr, schema, "read_sql", read_sql)
        schema.MIGRATIONS = (*names, "later")  # type: ignore[assignment]
        schema.read_sql = lambda name: "-- later.\nCREATE TABLE later (x);\n" if name == "later" else read_sql(name)
        journal = self.journal()
        self.assertEqual(len(journal.effects()), 1)
        raw = self.raw()
        self.assertEqual(raw.execute("SELECT count(*) FROM later").fetchone(), (0,))
        self.assertEqual(raw.execute("PRAGMA user_version").fetchone(), (len(names) + 1,))

    def test_another_programs_database_is_refused_and_left_alone(self) -> None:
        raw = self.raw()
        raw.execute("CREATE TABLE theirs (x)")
        before = self.path.read_bytes()
        with self.assertRaisesRegex(JournalUnusable, "another program's database"):
            self.journal()
        self.assertEqual([name for name, _ in shape(raw)], ["theirs"])
        self.assertEqual(raw.execute("PRAGMA user_version").fetchone(), (0,))
        self.assertEqual(len(before), self.path.stat().st_size)


class TestTheDatabaseRefuses(JournalCase):
    """Whatever program writes to it."""

    def setUp(self) -> None:
        super().setUp()
        story = self.story(self.journal()).append(*TO_DISPATCHED)
        self.before = story.journal.entries(story.effect_id)
        self.connection = self.raw()
        self.first: int = self.connection.execute("SELECT min(id) FROM entries").fetchone()[0]

    def refused(self, sql: str, *values: object) -> None:
        with self.assertRaises(sqlite3.IntegrityError):
            self.connection.execute(sql, values)
        self.assertFalse(self.connection.in_transaction)
        journal = self.journal()
        self.assertEqual(journal.entries(self.before[0].effect_id), self.before)
        self.assertEqual(len(journal.effects()), 1)

    def add(
        self, offset: int, kind: str, phase: str, effect_id: str | None = None
    ) -> tuple[str, int, str, str, object]:
        sql = "INSERT INTO entries (id, kind, at_ms, phase, body, effect_id) VALUES (?, ?, 0, ?, '{}', ?)"
        return sql, self.first + offset, kind, phase, effect_id

    def test_a_legal_step_is_taken(self) -> None:
        self.connection.execute("BEGIN")
        sql, *values = self.add(3, "committed", "committed")
        self.connection.execute(sql, values)
        self.connection.execute("ROLLBACK")

    def test_illegal_steps(self) -> None:
        for kind in Kind:
            for phase in Phase:
                if TRANSITIONS.get((Phase.DISPATCHED, kind)) is not phase:
                    with self.subTest(kind=kind, phase=phase):
                        self.refused(*self.add(3, kind.value, phase.value))

    def test_a_gap(self) -> None:
        self.refused(*self.add(4, "committed", "committed"))
        self.refused(*self.add((1 << 20) + 1, "committed", "committed"))

    def test_an_entry_that_is_there(self) -> None:
        sql, *values = self.add(2, "dispatched", "dispatched")
        self.refused(sql, *values)
        self.refused(sql.replace("INSERT", "INSERT OR REPLACE"), *values)
        self.refused(sql.replace("INSERT", "INSERT OR IGNORE"), *values)

    def test_an_effect_that_is_there(self) -> None:
        self.refused(*self.add(1 << 20, "proposed", "proposed", self.before[0].effect_id))

    def test_a_first_entry_that_does_not_say_what_it_is(self) -> None:
        self.refused(*self.add(1 << 20, "proposed", "proposed"))
        self.refused(*self.add(3, "committed", "committed", "f" * 32))

    def test_a_change(self) -> None:
        self.refused("UPDATE entries SET at_ms = 0")
        self.refused("UPDATE entries SET body = '{}' WHERE id = ?", self.first)

    def test_a_removal(self) -> None:
        self.refused("DELETE FROM entries")
        self.refused("DELETE FROM entries WHERE id = ?", self.first + 2)


class TestTombstones(JournalCase):
    """A closed effect may become a tombstone, and its entries go with that; nothing else may."""

    TO_TOMBSTONE = "UPDATE entries SET kind = 'archived', phase = 'archived', body = '{}' WHERE id = ?"

    def setUp(self) -> None:
        super().setUp()
        journal = self.journal()
        self.closed = self.story(journal, "closed").append(*TO_DISPATCHED, Kind.COMMITTED)
        self.open = self.story(journal, "open").append(*TO_DISPATCHED)
        self.connection = self.raw()

    def id_of(self, story: Story) -> int:
        rows = self.connection.execute("SELECT id FROM entries WHERE effect_id = ?", (story.effect_id,))
        found: int = rows.fetchone()[0]
        return found

    def refused(self, sql: str, *values: object) -> None:
        before = self.connection.execute("SELECT * FROM entries").fetchall()
        with self.subTest(sql), self.assertRaises(sqlite3.IntegrityError):
            self.connection.execute(sql, values)
        self.assertEqual(self.connection.execute("SELECT * FROM entries").fetchall(), before)

    def test_what_is_refused(self) -> None:
        closed, open_ = self.id_of(self.closed), self.id_of(self.open)
        self.refused(self.TO_TOMBSTONE, open_)
        self.refused(self.TO_TOMBSTONE, closed + 1)
        self.refused(self.TO_TOMBSTONE.replace("SET", "SET request_key = 'x',"), closed)
        self.refused(self.TO_TOMBSTONE.replace("SET", "SET nodes = x'00',"), closed)
        self.refused("UPDATE entries SET kind = 'archived' WHERE id = ?", closed)
        self.refused("UPDATE entries SET phase = 'archived' WHERE id = ?", closed)
        self.refused("DELETE FROM entries WHERE id = ?", closed)
        self.connection.execute("INSERT INTO watched (position, due_ms) VALUES (?, 0)", (closed >> 20,))
        self.refused(self.TO_TOMBSTONE, closed)
        self.connection.execute("DELETE FROM watched")
        self.connection.execute(self.TO_TOMBSTONE, (closed,))
        self.assertEqual(self.connection.execute("SELECT count(*) FROM entries").fetchone(), (4,))
        self.refused(self.TO_TOMBSTONE, closed)
        self.refused("UPDATE entries SET body = 'x' WHERE id = ?", closed)
        self.refused("DELETE FROM entries WHERE id > ?", closed)
        self.refused(
            "INSERT INTO entries (id, kind, at_ms, phase, body) VALUES (?, 'late', 0, 'committed', '{}')", closed + 1
        )
        self.connection.execute("DELETE FROM entries WHERE id = ?", (closed,))

    def test_the_last_effect_numbers_the_next_one(self) -> None:
        self.open.append(Kind.COMMITTED)
        self.connection.execute(self.TO_TOMBSTONE, (self.id_of(self.open),))
        self.refused("DELETE FROM entries WHERE id = ?", self.id_of(self.open))

    def test_nodes_of_the_log_stay(self) -> None:
        self.connection.execute("INSERT INTO archived_nodes VALUES (7, x'00')")
        self.refused("DELETE FROM archived_nodes")
        self.refused("UPDATE archived_nodes SET leaf = 8")
        self.refused(
            "INSERT INTO entries (id, kind, at_ms, phase, body, leaf, nodes) "
            "VALUES (?, 'committed', 0, 'committed', '{}', 7, x'00')",
            self.id_of(self.open) + 3,
        )
