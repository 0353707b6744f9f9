"""Archive files: what was moved out of a journal, one line of JSON for each effect.

A file is written under another name first (``.partial``). It gets its own only
after it has been forced to disk, read back and found to be what was written, so
that a file ``*.jsonl`` is whole, whatever happened to its writer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import IO, Any

from .errors import InterlockError, NotDecidable

_BLOCK = 1 << 20


class ArchiveUnusable(InterlockError):
    """The archive cannot be written or read, or does not hold what was written. The journal is as it was."""


class Writer:
    """Writes one archive file. Use it as a context manager; what is not finished is left as a ``.partial`` file.

    Args:
        directory: where to; it is made if it is not there.
        at_ms: the time for the file's name, UTC milliseconds.

    Attributes:
        path: the file, once it is finished.

    Raises:
        ArchiveUnusable: it cannot be written.
    """

    def __init__(self, directory: Path, at_ms: int) -> None:
        at = datetime.fromtimestamp(at_ms / 1000, timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        self.path = directory / f"interlock-{at}-{secrets.token_hex(4)}.jsonl"
        self._draft = self.path.with_suffix(".partial")
        self._digest = hashlib.sha256()
        try:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            fd = os.open(self._draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise _unusable(directory, error) from None
        self._file: IO[bytes] = os.fdopen(fd, "w+b")

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *exc_info: object) -> None:
        with contextlib.suppress(OSError):  # what could not be written was said before
            self._file.close()

    def add(self, line: dict[str, Any]) -> None:
        """Write one line, which begins with its effect's id."""
        data = json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8") + b"\n"
        self._digest.update(data)
        try:
            self._file.write(data)
        except OSError as error:
            raise _unusable(self._draft, error) from None

    def finish(self) -> None:
        """Force the file to disk, read it back, and give it its name. Raises ``ArchiveUnusable``."""
        try:
            self._file.flush()
            os.fsync(self._file.fileno())
            if hasattr(os, "posix_fadvise"):  # so that it is read from the disk, as far as the system can be told to
                os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            self._file.seek(0)
            found = hashlib.sha256()
            while block := self._file.read(_BLOCK):
                found.update(block)
            if found.digest() != self._digest.digest():
                raise ArchiveUnusable(f"{self._draft} does not hold what was written to it; nothing was removed")
            self._draft.rename(self.path)
            _sync_directory(self.path.parent)
        except OSError as error:
            raise _unusable(self._draft, error) from None

    def discard(self) -> None:
        """Remove the file: there was nothing to write."""
        self._draft.unlink()


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Return the lines of a finished archive file, in order. Raises ``ArchiveUnusable``."""
    try:
        with path.open("rb") as file:
            for line in file:
                value: dict[str, Any] = json.loads(line)
                yield value
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None


def receipt(directory: Path, effect_id: str, disclosing: Sequence[str] = ()) -> bytes:
    """Return the receipt of an archived effect, from the archive alone; the latest, if there are several.

    Args:
        directory: where the archive files are.
        effect_id: the effect.
        disclosing: private values that the reader may see, such as ``payload.to``.

    Raises:
        NotDecidable: the effect is in no file there, or a value was not declared private.
        ArchiveUnusable: there is no such directory, or a file in it cannot be read or is not of an archive.
    """
    start = json.dumps({"effect_id": effect_id}, separators=(",", ":")).encode()[:-1] + b","
    try:
        files = sorted((file for file in directory.iterdir() if file.suffix == ".jsonl"), reverse=True)
    except OSError as error:
        raise _unusable(directory, error) from None
    for path in files:
        try:
            with path.open("rb") as file:
                found = [line for line in file if line.startswith(start)]
            document = json.loads(found[-1])["receipt"] if found else None
            if document is not None:
                return _showing(document, disclosing)
        except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise _unusable(path, error) from None
    raise NotDecidable(f"effect {effect_id} is in no archive file in {directory}")


def _showing(document: dict[str, Any], disclosing: Sequence[str]) -> bytes:
    """A receipt with only those private values that are asked for. The archive holds all of them."""
    from .receipts.private import covering, parse_paths

    known = document.pop("disclosures", [])
    asked = parse_paths(disclosing)
    held = {tuple(item["path"]) for item in known}
    if not set(asked) <= held:
        words = ", ".join(sorted(".".join(path) for path in held)) or "nothing"
        raise NotDecidable(f"only what was declared private can be disclosed; of this effect that is: {words}")
    shown = set(covering(asked))
    if shown:
        document["disclosures"] = [item for item in known if tuple(item["path"]) in shown]
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"


def _sync_directory(directory: Path) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _unusable(path: Path, error: Exception) -> ArchiveUnusable:
    words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return ArchiveUnusable(f"the archive {path} cannot be used: {words}; nothing was removed")
