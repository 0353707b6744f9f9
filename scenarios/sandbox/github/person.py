"""A person with a clone, who commits and runs a real ``git push``. For tests and scenarios; standard library only."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from urllib.parse import urlsplit

GIT_TIMEOUT_S = 60


class GitFailed(Exception):
    """A git command failed; the message has what it printed."""


class Clone:
    """A working clone of one repository of the sandbox, in a folder that is gone after the ``with`` block.

        with Clone(sandbox.url, "acme/shop", "alice") as clone:
            sha = clone.commit("fix", {"price.txt": "12"}, start="main")
            clone.push("fix")

    Raises GitFailed where git does.
    """

    def __init__(self, url: str, repo: str, login: str, password: str = "x") -> None:
        where = urlsplit(url)
        self._remote = f"{where.scheme}://{login}:{password}@{where.netloc}/{repo}.git"
        self._login = login
        self._folder = tempfile.TemporaryDirectory(prefix="clone-", ignore_cleanup_errors=True)
        self.path = Path(self._folder.name) / "work"

    def __enter__(self) -> Clone:
        self._run(Path(self._folder.name), "clone", "--quiet", self._remote, "work")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._folder.cleanup()

    def git(self, *arguments: str) -> str:
        """Run git in the clone; what it printed, without the last newline."""
        return self._run(self.path, *arguments)

    def commit(self, branch: str, files: Mapping[str, str], message: str = "Change files", start: str = "") -> str:
        """Commit files on a branch (a new one from ``start``, where that is given); the commit's sha."""
        if start:
            self.git("checkout", "--quiet", "-B", branch, f"origin/{start}")
        else:
            self.git("checkout", "--quiet", branch)
        for name, text in files.items():
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / name).write_text(text, encoding="utf-8")
        self.git("add", "--all")
        self.git("commit", "--quiet", "-m", message)
        return self.git("rev-parse", "HEAD")

    def push(self, branch: str, *, force: bool = False) -> None:
        self.git("push", "--quiet", *(["--force"] if force else []), "origin", branch)

    def _run(self, folder: Path, *arguments: str) -> str:
        environment = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": self._folder.name,
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_AUTHOR_NAME": self._login,
            "GIT_AUTHOR_EMAIL": f"{self._login}@example.com",
            "GIT_COMMITTER_NAME": self._login,
            "GIT_COMMITTER_EMAIL": f"{self._login}@example.com",
            "LC_ALL": "C.UTF-8",
        }
        done = subprocess.run(
            ["git", *arguments], cwd=folder, env=environment, capture_output=True, text=True, timeout=GIT_TIMEOUT_S
        )
        if done.returncode != 0:
            raise GitFailed(f"git {' '.join(arguments)}: {done.stderr.strip()}".replace(self._remote, "REMOTE"))
        return done.stdout.rstrip("\n")
