"""Signing keys at rest: in a file of mode 0600, in the environment, or elsewhere behind a function.

A private key is one line, ``PRIVATE+KEY+<name>+<key id>+<base64 of type and
seed>``, as the Go signed-note tools write it. It never appears in an error.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path

from .errors import InterlockError
from .receipts.errors import FormatError
from .receipts.keys import NOTE_SIGNATURE, KeySigner, check_name, key_id
from .receipts.strict import format_base64, parse_base64, parse_hex

_PREFIX = "PRIVATE+KEY+"
_MAX_BYTES = 4096


class KeyUnusable(InterlockError):
    """A signing key that is missing, malformed or readable by others. The message says what to do; no key is in it."""


def load_key(path: str | os.PathLike[str], name: str | None = None) -> KeySigner:
    """Read a signing key from a file.

    Args:
        path: the file; nobody but its owner may be able to read it.
        name: the name that the key must have, if given.

    Raises:
        KeyUnusable: the file is missing, readable by others, or not a key of that name.
    """
    file = Path(path)
    try:
        with file.open("rb") as opened:
            mode = os.fstat(opened.fileno()).st_mode
            data = opened.read(_MAX_BYTES)
    except OSError as error:
        raise KeyUnusable(f"the key file {file} cannot be read: {error.strerror}") from None
    if stat.S_IMODE(mode) & 0o077:
        raise KeyUnusable(f"the key file {file} can be read by others; run: chmod 600 {file}")
    return _checked(_parse(data.decode("utf-8", "replace").strip(), str(file)), name, str(file))


def load_or_create_key(path: str | os.PathLike[str], name: str) -> KeySigner:
    """Read a signing key from a file, or make one there on first use, with mode 0600.

    When it has returned, the key is durable. Two processes that come at once
    get the same key.

    Raises:
        KeyUnusable: as ``load_key``, or the file cannot be written.
        FormatError: ``name`` cannot be a key's name.
    """
    file = Path(path)
    if not file.exists():
        _create(file, check_name(name))
    return load_key(file, name)


def make_key(path: str | os.PathLike[str], name: str, seed: bytes | None = None) -> None:
    """Make a key file with mode 0600 unless there is one; durable when it returns. Raises as ``load_or_create_key``."""
    file = Path(path)
    if not file.exists():
        _create(file, check_name(name), seed)


def key_from_environment(variable: str, name: str | None = None) -> KeySigner:
    """Read a signing key from an environment variable. Raises ``KeyUnusable``."""
    text = os.environ.get(variable)
    if not text:
        raise KeyUnusable(f"the environment variable {variable} is not set; it should hold a private key")
    return _checked(_parse(text.strip(), variable), name, variable)


def format_private_key(name: str, seed: bytes) -> str:
    """Return the one line that is kept. It is the secret."""
    signer = KeySigner(name, seed)
    hint = key_id(name, NOTE_SIGNATURE, signer.public_key)
    return f"{_PREFIX}{name}+{hint.hex()}+{format_base64(bytes([NOTE_SIGNATURE]) + seed)}"


def _parse(text: str, where: str) -> KeySigner:
    parts = text.removeprefix(_PREFIX).split("+", 2)
    try:
        if not text.startswith(_PREFIX) or len(parts) != 3:
            raise FormatError("no private key")
        name, hint, encoded = parts
        raw = parse_base64(encoded, "private key", 33)
        signer = KeySigner(name, raw[1:])
        if raw[0] != NOTE_SIGNATURE or parse_hex(hint, 4) != key_id(name, NOTE_SIGNATURE, signer.public_key):
            raise FormatError("no private key")
    except FormatError:
        raise KeyUnusable(f"{where} does not hold a private key (PRIVATE+KEY+name+id+base64)") from None
    return signer


def _checked(signer: KeySigner, name: str | None, where: str) -> KeySigner:
    if name is not None and signer.name != name:
        raise KeyUnusable(f"{where} holds the key of {signer.name!r}, not of {name!r}")
    return signer


def _create(file: Path, name: str, seed: bytes | None = None) -> None:
    """Write a new key to a file of its own and link it in place, so that it is there whole or not at all."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    line = format_private_key(name, seed if seed is not None else secrets.token_bytes(32)) + "\n"
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(descriptor, line.encode("utf-8"))
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileExistsError):  # another process was first; its key counts
            os.link(draft, file)
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise KeyUnusable(f"the key file {file} cannot be written: {error.strerror}") from None
    finally:
        with contextlib.suppress(OSError):
            draft.unlink()
