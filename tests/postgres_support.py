"""A real PostgreSQL for tests: from the wheel that carries one, or the one that INTERLOCK_TEST_POSTGRES names."""

from __future__ import annotations

import atexit
import importlib.util
import os
import secrets
import tempfile
import unittest
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

from interlock_tools.journal.clock import Clock
from interlock_tools.testing.postgres import NoServer, Server

URL = "INTERLOCK_TEST_POSTGRES"


FULL = "INTERLOCK_ALL_POSTGRES"
"""Set to 1 for a full run: what is missing on this machine is a failure."""


def missing(what: str) -> NoReturn:
    """Skip the test because something is missing, saying what; fail in a full run."""
    if os.environ.get(FULL) == "1":
        raise AssertionError(f"{FULL}=1, and {what}")
    raise unittest.SkipTest(what)


def new_server(settings: str = "") -> Server:
    """Start a server, or skip the test, saying what is missing."""
    require_driver()
    try:
        return Server(settings)
    except NoServer as error:
        missing(f"{error}, or set {URL}")


def require_driver() -> None:
    """Skip the test if there is no driver."""
    if importlib.util.find_spec("psycopg") is None:
        missing("no psycopg: pip install 'interlock-tools[postgres]'")


_shared: Server | None = None


def server() -> Server:
    """Return the server that all tests of this process share, where none is named by the environment."""
    global _shared
    if _shared is None:
        _shared = new_server()
        atexit.register(_shared.remove)
    return _shared


class PostgresCase(unittest.TestCase):
    """A test with a journal of its own: a schema of its own, and a directory for sessions."""

    pool = 8

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        require_driver()
        if not os.environ.get(URL):
            server()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name).resolve()
        self.schema = f"t_{secrets.token_hex(8)}"
        self.addCleanup(self.drop)
        before = os.environ.get("INTERLOCK_SESSIONS")
        os.environ["INTERLOCK_SESSIONS"] = str(self.folder / "sessions")
        self.addCleanup(_restore, "INTERLOCK_SESSIONS", before)

    def url(self, **parameters: Any) -> str:
        parameters = {"interlock_schema": self.schema, "interlock_pool": self.pool, **parameters}
        named = os.environ.get(URL)
        if not named:
            return server().url(**parameters)
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())
        return f"{named}{'&' if '?' in named else '?'}{query}"

    def open(self, clock: Clock | None = None) -> Any:
        from interlock_tools.journal.postgres import PostgresJournal

        return PostgresJournal(self.url(), clock)

    def raw(self) -> Any:
        """Connect as any other program would."""
        import psycopg

        connection = psycopg.connect(os.environ.get(URL) or server().url(), autocommit=True)
        self.addCleanup(connection.close)
        return connection

    def drop(self) -> None:
        self.raw().execute(f"DROP SCHEMA IF EXISTS {self.schema} CASCADE")


def _restore(name: str, value: str | None) -> None:
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value
