"""The statements in ``sql/postgres/``: migrations in order, and named queries."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import errors

from ...errors import JournalUnusable

MIGRATIONS = ("0001_journal.sql", "0002_records.sql", "0003_watched.sql", "0004_archived.sql")
"""The script that leads from each format to the next. A journal's format is the number of those it went through."""

_LOCK = 0x494E544C
"""Key of the advisory lock under which the schema is changed ("INTL")."""


def read_sql(name: str, schema: str) -> str:
    """Return one of the files in ``sql/postgres/``, for the schema of this name."""
    text = (files("interlock_tools.journal") / "sql" / "postgres" / name).read_text(encoding="utf-8")
    return text if schema == "interlock" else text.replace("interlock.", f"{schema}.")


@cache
def queries(schema: str) -> dict[str, bytes]:
    """Return every query by its name."""
    found: dict[str, bytes] = {}
    for statement in read_sql("queries.sql", schema).split(";\n"):
        comment, _, sql = statement.strip().partition("\n")
        if sql:
            found[comment.removeprefix("-- ").partition(":")[0]] = sql.strip().encode()
    return found


def migrate(connection: psycopg.Connection[Any], schema: str, shown: str, scripts: Sequence[str] | None = None) -> str:
    """Create the tables, or bring older ones up to date, in one transaction, one process at a time.

    Args:
        connection: in autocommit mode.
        schema: where they lie.
        shown: names the journal in messages.
        scripts: the migrations, in order; those of this package by default.

    Returns:
        the journal's id.

    Raises:
        JournalUnusable: another program's tables, or a newer format; they were left as they are.
        psycopg.Error: it cannot be read or written.
    """
    texts = list(scripts) if scripts is not None else [read_sql(name, schema) for name in MIGRATIONS]
    found = _format(connection, schema, shown, len(texts))
    if found is not None and found[0] == len(texts):
        return found[1]
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        found = _format(connection, schema, shown, len(texts))
        start = found[0] if found is not None else 0
        if found is None and not _exists(connection, schema):
            connection.execute(f"CREATE SCHEMA {schema}".encode())
        for text in texts[start:]:
            connection.execute(text.encode())
        if start < len(texts):
            insert = (
                f"INSERT INTO {schema}.journal AS j (format) VALUES (%s) ON CONFLICT (one) DO UPDATE SET format = %s"
            )
            connection.execute(insert.encode(), (len(texts), len(texts)))
        found = _format(connection, schema, shown, len(texts))
    assert found is not None
    return found[1]


def _exists(connection: psycopg.Connection[Any], schema: str) -> bool:
    return bool(connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = %s", (schema,)).fetchall())


def _format(connection: psycopg.Connection[Any], schema: str, shown: str, known: int) -> tuple[int, str] | None:
    """The format and id of the journal that is there; None if there is none."""
    there = connection.execute(
        "SELECT to_regclass(%s || '.journal') IS NOT NULL, EXISTS (SELECT 1 FROM pg_class c JOIN pg_namespace n "
        "ON n.oid = c.relnamespace WHERE n.nspname = %s)",
        (schema, schema),
    ).fetchall()[0]
    if not there[0]:
        if there[1]:
            raise JournalUnusable(
                f"{shown}: the schema {schema} belongs to another program; name another one with ?interlock_schema=…"
            )
        return None
    try:
        with connection.transaction():
            rows = connection.execute(f"SELECT format, id::text FROM {schema}.journal".encode()).fetchall()
    except errors.UndefinedColumn:
        raise JournalUnusable(
            f"{shown}: the schema {schema} belongs to another program; name another one with ?interlock_schema=…"
        ) from None
    if not rows:
        raise JournalUnusable(f"{shown}: the journal's own row is missing. Restore it from a backup.")
    if rows[0][0] > known:
        raise JournalUnusable(
            f"{shown} is a journal of format {rows[0][0]}, and this version of interlock_tools knows formats up to "
            f"{known}. Install the version that wrote it, or a later one."
        )
    return rows[0][0], rows[0][1]
