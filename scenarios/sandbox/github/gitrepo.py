"""One bare git repository, driven by plumbing commands: real objects, real refs, real merges.

Nothing here touches a working tree. A merge is ``git merge-tree --write-tree`` (git 2.38 and later), a rebase the same
once per commit, and a ref moves by compare-and-swap.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

MAX_COMMITS = 5000
"""Bound on the commits that are read from one branch."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class GitError(Exception):
    """A git command failed; the message has what it printed."""


@dataclass(frozen=True)
class Person:
    """Who wrote or committed something."""

    name: str
    email: str


@dataclass(frozen=True)
class CommitInfo:
    """One commit as git has it. Dates are seconds since the epoch, UTC."""

    sha: str
    tree: str
    parents: tuple[str, ...]
    author: Person
    authored_at: int
    committer: Person
    committed_at: int
    message: str


def git_environment(home: Path) -> dict[str, str]:
    """An environment in which no configuration of this machine or user has a say."""
    return {
        "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
        "HOME": str(home),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
    }


class GitRepo:
    """A bare repository at ``path``. Methods raise GitError; callers serialise those that write."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._environment = git_environment(path.parent)

    async def git(self, *arguments: str, given: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git here; its standard output without the last newline."""
        status, out, err = await self._run(arguments, given, env)
        if status != 0:
            raise GitError(f"git {' '.join(arguments)}: exit {status}: {err.strip()}")
        return out.rstrip("\n")

    async def _run(
        self, arguments: Sequence[str], given: bytes = b"", env: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        process = await asyncio.create_subprocess_exec(
            "git",
            "--git-dir",
            str(self.path),
            *arguments,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**self._environment, **(env or {})},
        )
        out, err = await process.communicate(given)
        assert process.returncode is not None
        return process.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    async def create(self, default_branch: str) -> None:
        """Make the repository, empty."""
        self.path.mkdir(parents=True)
        await self.git("init", "--quiet", "--bare", f"--initial-branch={default_branch}")
        await self.git("config", "http.receivepack", "true")
        await self.git("config", "core.logAllRefUpdates", "false")
        await self.git("config", "gc.auto", "0")
        await self.git("config", "receive.autogc", "false")

    async def branches(self) -> dict[str, str]:
        """Branch names and the commits that they point at."""
        out = await self.git("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/")
        pairs = (line.split(" ", 1) for line in out.splitlines())
        return {name.removeprefix("refs/heads/"): sha for sha, name in pairs}

    async def update_ref(self, ref: str, new: str, old: str | None = None) -> None:
        """Point ``ref`` at ``new``; with ``old``, only if it points there now."""
        await self.git("update-ref", ref, new, *([old] if old is not None else []))

    async def delete_ref(self, ref: str) -> None:
        await self.git("update-ref", "-d", ref)

    async def write_tree(self, base: str | None, files: Mapping[str, str | None]) -> str:
        """The tree of commit ``base`` with ``files`` written over it (None deletes one)."""
        index = self.path / "sandbox-index"
        env = {"GIT_INDEX_FILE": str(index)}
        try:
            await self.git("read-tree", base if base is not None else EMPTY_TREE, env=env)
            lines = []
            for name, text in files.items():
                if text is None:
                    lines.append(f"0 {'0' * 40}\t{name}")
                else:
                    blob = await self.git("hash-object", "-w", "--stdin", given=text.encode("utf-8"))
                    lines.append(f"100644 {blob}\t{name}")
            await self.git("update-index", "--index-info", given="\n".join([*lines, ""]).encode("utf-8"), env=env)
            return await self.git("write-tree", env=env)
        finally:
            index.unlink(missing_ok=True)

    async def commit_tree(
        self,
        tree: str,
        parents: Sequence[str],
        message: str,
        author: Person,
        at: float,
        *,
        committer: Person | None = None,
        authored_at: float | None = None,
    ) -> str:
        """A new commit; its sha. ``at`` is when it is committed, seconds since the epoch."""
        who = committer or author
        env = {
            "GIT_AUTHOR_NAME": author.name,
            "GIT_AUTHOR_EMAIL": author.email,
            "GIT_AUTHOR_DATE": f"@{int(at if authored_at is None else authored_at)} +0000",
            "GIT_COMMITTER_NAME": who.name,
            "GIT_COMMITTER_EMAIL": who.email,
            "GIT_COMMITTER_DATE": f"@{int(at)} +0000",
        }
        given = [part for parent in parents for part in ("-p", parent)]
        return await self.git("commit-tree", tree, *given, "-F", "-", given=message.encode("utf-8"), env=env)

    async def merge_tree(self, ours: str, theirs: str) -> str | None:
        """The tree of a merge of two commits, or None if they conflict."""
        status, out, err = await self._run(("merge-tree", "--write-tree", ours, theirs))
        if status not in (0, 1):
            raise GitError(f"git merge-tree: exit {status}: {err.strip()}")
        return out.split("\n", 1)[0] if status == 0 else None

    async def rebase(self, onto: str, head: str, committer: Person, at: float) -> str | None:
        """``head``'s own commits again on top of ``onto``, each a new commit; the last one, or None on a conflict."""
        listed = await self.git("rev-list", "--reverse", "--no-merges", f"--max-count={MAX_COMMITS}", head, f"^{onto}")
        tip = onto
        for sha in listed.splitlines():
            info = await self.show(sha)
            # A stand-in with the tip's tree and the commit's parent makes that parent the merge base.
            stand_in = await self.commit_tree(await self.tree(tip), info.parents, "stand-in", committer, at)
            tree = await self.merge_tree(stand_in, sha)
            if tree is None:
                return None
            tip = await self.commit_tree(
                tree, [tip], info.message, info.author, at, committer=committer, authored_at=info.authored_at
            )
        return tip

    async def tree(self, commit: str) -> str:
        return await self.git("rev-parse", f"{commit}^{{tree}}")

    async def is_ancestor(self, older: str, newer: str) -> bool:
        """Whether ``older`` is reachable from ``newer``."""
        status, _, err = await self._run(("merge-base", "--is-ancestor", older, newer))
        if status not in (0, 1):
            raise GitError(f"git merge-base: exit {status}: {err.strip()}")
        return status == 0

    async def log(self, tip: str, without: str | None = None, limit: int = MAX_COMMITS) -> list[str]:
        """Commits reachable from ``tip`` (and not from ``without``), newest first."""
        given = [tip] + ([f"^{without}"] if without else [])
        return (await self.git("rev-list", f"--max-count={limit}", *given)).splitlines()

    async def resolve(self, name: str) -> str | None:
        """The commit that a branch name or a (shortened) sha names, or None."""
        for candidate in (f"refs/heads/{name}", name):
            if candidate.startswith("-"):
                continue
            status, out, _ = await self._run(("rev-parse", "--verify", "--quiet", f"{candidate}^{{commit}}"))
            if status == 0:
                return out.strip()
        return None

    async def show(self, sha: str) -> CommitInfo:
        """Read one commit."""
        form = "%H%x00%T%x00%P%x00%an%x00%ae%x00%at%x00%cn%x00%ce%x00%ct%x00%B"
        out = await self.git("show", "--no-patch", f"--format={form}", sha)
        found, tree, parents, an, ae, at, cn, ce, ct, message = out.split("\0", 9)
        return CommitInfo(
            found, tree, tuple(parents.split()), Person(an, ae), int(at), Person(cn, ce), int(ct), message.strip("\n")
        )
