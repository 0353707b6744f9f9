"""Which keys sign: from a directory, a file, the environment, or a function that asks a KMS."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from ..keyfiles import KeyUnusable, key_from_environment, load_key, load_or_create_key, make_key
from ..receipts.keys import KeySigner, Signer, verifier_key

ENVIRONMENT = "env:"
"""Prefix of a key source that names an environment variable."""

_NUMBERED = re.compile(r"(writer|log)(?:-([1-9][0-9]{0,5}))?\.key", re.ASCII)

KeySource = Signer | str | os.PathLike[str]
"""A signer, ``env:VARIABLE``, or the path of a key file."""


@dataclass(frozen=True)
class Signing:
    """How a gate signs what it records.

    Attributes:
        writer: signs records: a ``Signer`` (``KeySigner``, or ``CallSigner`` for a KMS), ``env:VARIABLE``, or the
            path of a key file, which is made there on first use with mode 0600.
        log: signs checkpoints, likewise; its name is the log's, so no other journal may use it. None: no checkpoints.
        name: what keys that are made here are called, for example ``refunds.example.com``; a random name otherwise.
        flush_s: how often a checkpoint is signed, in seconds.
        flush_records: after how many records it is signed sooner.
    """

    writer: KeySource
    log: KeySource | None = None
    name: str | None = None
    flush_s: float = 1.0
    flush_records: int = 100

    def keys(self) -> Keys:
        """Load the keys, or make those that are not there. Raises ``KeyUnusable``."""
        base = self.name or f"interlock-{secrets.token_hex(4)}"
        writer = _signer(self.writer, f"{base}/writer")
        log = None if self.log is None else _signer(self.log, f"{base}/log")
        return Keys(writer, [] if log is None else [log])


class Keys:
    """The keys of one journal: the writer's, and those of its log under all names that it has had."""

    def __init__(self, writer: Signer, logs: list[Signer], directory: Path | None = None) -> None:
        self.writer = writer
        self.logs = logs
        self.directory = directory

    @staticmethod
    def in_directory(path: str | os.PathLike[str], name: str | None = None) -> Keys:
        """Load the keys of a directory, ``writer.key`` and ``log.key``; make them on first use, with mode 0600.

        Where keys were changed, ``writer-2.key`` and so on: the one with the highest number counts.

        Raises:
            KeyUnusable: the directory or a key in it cannot be used.
        """
        directory = Path(path)
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise KeyUnusable(f"{directory} cannot be made for signing keys: {error.strerror}") from None
        base = name or f"interlock-{secrets.token_hex(4)}"
        for role in ("writer", "log"):
            make_key(directory / f"{role}.key", f"{base}/{role}")
        writers = numbered(directory, "writer")
        return Keys(load_key(writers[max(writers)]), _loaded(directory), directory)

    def log(self, origin: str | None) -> list[Signer]:
        """Return the keys of the log of this name, oldest first; of the first log, where it has no name yet."""
        if origin is None:
            return self.logs[:1]
        return [signer for signer in self.logs if signer.name == origin]

    def add(self, role: str, signer: KeySigner, seed: bytes) -> Path:
        """Keep a new key in the directory; from now on it counts. Returns its file.

        Raises:
            KeyUnusable: these keys are not kept in a directory, or it cannot be written.
        """
        directory = self.require_directory()
        taken = numbered(directory, role)
        file = directory / f"{role}-{max(taken) + 1}.key"
        make_key(file, signer.name, seed)
        if role == "writer":
            self.writer = signer
        else:
            self.logs.append(signer)
        return file

    def require_directory(self) -> Path:
        """Return the directory. Raises ``KeyUnusable`` where the keys are kept elsewhere."""
        if self.directory is None:
            raise KeyUnusable("these keys are not kept in a directory; hand the new key over as a signer")
        return self.directory

    def policy(self) -> str:
        """Return the lines that a policy needs to trust these keys."""
        lines = [f"writer {verifier_key(self.writer)}\n"]
        lines += [f"log {verifier_key(signer)}\n" for signer in self.logs]
        return "".join(lines)


def open_keys(source: Signing | Keys | str | os.PathLike[str]) -> Keys:
    """Return the keys that a gate's ``signing=`` names. Raises ``KeyUnusable``."""
    if isinstance(source, Keys):
        return source
    return source.keys() if isinstance(source, Signing) else Keys.in_directory(source)


def new_key(name: str) -> tuple[KeySigner, bytes]:
    """Return a new key and its seed, which is the secret."""
    seed = secrets.token_bytes(32)
    return KeySigner(name, seed), seed


def numbered(directory: Path, role: str) -> dict[int, Path]:
    """The key files of a role by number; the first one is number 1."""
    found = {}
    for file in directory.iterdir():
        match = _NUMBERED.fullmatch(file.name)
        if match is not None and match[1] == role:
            found[int(match[2] or 1)] = file
    return found


def _loaded(directory: Path) -> list[Signer]:
    return [load_key(file) for _, file in sorted(numbered(directory, "log").items())]


def _signer(source: KeySource, name: str) -> Signer:
    if isinstance(source, (str, os.PathLike)):
        text = os.fspath(source)
        if text.startswith(ENVIRONMENT):
            return key_from_environment(text.removeprefix(ENVIRONMENT))
        return load_key(text) if Path(text).exists() else load_or_create_key(text, name)
    return source
