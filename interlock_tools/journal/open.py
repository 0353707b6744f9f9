"""Opens a journal by its URL."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import cast
from urllib.parse import unquote, urlsplit

from ..errors import JournalUnusable
from .protocol import Journal


def open_journal(url: str | Path) -> Journal:
    """Open the journal at ``url``, creating it if it does not exist.

    Args:
        url: a path (``refunds.db``, ``/var/lib/agent/refunds.db``), ``sqlite:///var/lib/agent/refunds.db``
            (always absolute), or ``postgresql://…`` when agents run on several hosts.

    Raises:
        JournalUnusable: it cannot be opened here; the sentence says why and what to do.
    """
    text = str(url)
    scheme, separator, rest = text.partition("://")
    if not separator:
        return _sqlite(text)
    if scheme == "sqlite":
        if not rest.startswith("/") or urlsplit(text).query:
            raise JournalUnusable(f"{text}: write sqlite:///absolute/path.db, or just the path")
        return _sqlite(unquote(rest))
    if scheme in ("postgresql", "postgres"):
        return _postgres(text)
    raise JournalUnusable(f"unknown kind of journal {scheme}://; use a path, sqlite:///… or postgresql://…")


def _sqlite(path: str) -> Journal:
    from .sqlite import SqliteJournal

    return SqliteJournal(path)


def _postgres(url: str) -> Journal:
    try:
        module = import_module(f"{__package__}.postgres")
    except ImportError as error:
        raise JournalUnusable(
            f"a PostgreSQL journal needs a package that is not installed ({error.name}): "
            "pip install 'interlock-tools[postgres]'"
        ) from None
    return cast(Journal, module.PostgresJournal(url))
