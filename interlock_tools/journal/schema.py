"""The statements in ``sql/``: migrations in order, and named queries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from importlib.resources import files

from ..core.states import TRANSITIONS

FORMAT = 1
"""Version of the schema that this code writes; kept in the database's ``user_version``."""

APPLICATION_ID = 0x494E544C
"""Marks a database file as a journal of this project ("INTL")."""


def _read(name: str) -> str:
    return (files(__package__) / "sql" / name).read_text(encoding="utf-8")


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


def migration(number: int) -> list[str]:
    """Return the statements that lead from format ``number - 1`` to ``number``."""
    name = next(f.name for f in (files(__package__) / "sql").iterdir() if f.name.startswith(f"{number:04d}_"))
    steps = list(statements(_read(name)))
    if number == 1:
        rows = ", ".join(
            f"('{before.value}', '{kind.value}', '{after.value}')" for (before, kind), after in TRANSITIONS.items()
        )
        steps.append(f"INSERT INTO transitions (before, kind, after) VALUES {rows}")
    return steps


def _queries() -> dict[str, str]:
    found = {}
    for statement in statements(_read("queries.sql")):
        comment, _, sql = statement.partition("\n")
        found[comment.removeprefix("-- ").partition(":")[0]] = sql.strip().rstrip(";")
    return found


QUERIES = _queries()
"""Every query by its name."""
