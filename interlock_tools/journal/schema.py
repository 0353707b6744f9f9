"""The statements in ``sql/``: migrations in order, and named queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path

from ..errors import JournalUnusable

APPLICATION_ID = 0x494E544C
"""Marks a database file as a journal of this project ("INTL")."""

MIGRATIONS = ("0001_journal.sql", "0002_records.sql", "0003_watched.sql", "0004_archived.sql")
"""The script that leads from each format to the next. A journal's format is the number of those it went through."""


def statements(script: str) -> Iterator[str]:
    """Split a script into statements. A trigger is one statement."""
    text = ""
    for line in script.splitlines(keepends=True):
        text += line
        if line.rstrip().endswith(";") and sqlite3.complete_statement(text):
            yield text.strip()
            text = ""
    if text.strip():
        raise ValueError(f"unfinished statement: {text.strip()[:60]}")


def read_sql(name: str) -> str:
    """Return one of the files in ``sql/``."""
    return (files("interlock_tools.journal") / "sql" / name).read_text(encoding="utf-8")


def migrate(connection: sqlite3.Connection, path: Path, scripts: Sequence[str] | None = None) -> None:
    """Create the schema, or bring an older one up to date, in one transaction.

    Args:
        connection: in autocommit mode.
        path: for messages.
        scripts: the migrations, in order; those of this package by default.

    Raises:
        JournalUnusable: another program's database, or a newer format; it was left as it is.
        sqlite3.Error: it cannot be read or written.
    """
    known = len(scripts if scripts is not None else MIGRATIONS)
    if _format(connection, path, known) == known:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for script in (scripts or [read_sql(name) for name in MIGRATIONS])[_format(connection, path, known) :]:
            for statement in statements(script):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version={known}")
        connection.execute("COMMIT")
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def _format(connection: sqlite3.Connection, path: Path, known: int) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchall()[0][0]
    if connection.execute("PRAGMA application_id").fetchall()[0][0] != APPLICATION_ID:
        if found or connection.execute("SELECT count(*) FROM sqlite_master").fetchall()[0][0]:
            raise JournalUnusable(f"{path} is another program's database, not a journal; name another file")
        return 0
    if found > known:
        raise JournalUnusable(
            f"{path} is a journal of format {found}, and this version of interlock_tools knows formats up to {known}. "
            "Install the version that wrote it, or a later one."
        )
    return found


def _queries() -> dict[str, str]:
    found = {}
    for statement in statements(read_sql("queries.sql")):
        comment, _, sql = statement.partition("\n")
        found[comment.removeprefix("-- ").partition(":")[0]] = sql.strip().rstrip(";")
    return found


QUERIES = _queries()
"""Every query by its name."""
