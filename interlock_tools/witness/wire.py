"""The bytes of C2SP ``tlog-witness``: requests and answers of ``add-checkpoint``.

A request is ``old <size>``, up to 63 lines of consistency proof, an empty line,
and the signed checkpoint. 200 answers with signature lines; 409 with the size
that the witness has seen, as ``text/x.tlog.size``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from interlock_tools.receipts.checkpoint import Checkpoint, parse_signed_checkpoint
from interlock_tools.receipts.errors import FormatError
from interlock_tools.receipts.merkle import HASH_SIZE
from interlock_tools.receipts.note import Note
from interlock_tools.receipts.strict import format_base64, parse_base64, parse_decimal

SIZE_TYPE = "text/x.tlog.size"
MAX_PROOF = 63
MAX_BODY_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class Submission:
    """A checkpoint handed to a witness, with the proof that it extends the one of size ``old``."""

    old: int
    proof: tuple[bytes, ...]
    checkpoint: Checkpoint
    note: Note


def format_submission(old: int, proof: Sequence[bytes], note: Note) -> bytes:
    """Return the body of an ``add-checkpoint`` request."""
    lines = [f"old {old}", *map(format_base64, proof), ""]
    return ("".join(f"{line}\n" for line in lines) + str(note)).encode("utf-8")


def parse_submission(body: bytes) -> Submission:
    """Read the body of an ``add-checkpoint`` request. Raises ``FormatError``."""
    if len(body) > MAX_BODY_BYTES:
        raise FormatError(f"a request of more than {MAX_BODY_BYTES} bytes")
    try:
        head, separator, rest = body.decode("utf-8").partition("\n\n")
    except UnicodeDecodeError:
        raise FormatError("a request that is not UTF-8") from None
    first, *lines = head.split("\n")
    if not separator or not first.startswith("old "):
        raise FormatError("a request is 'old <size>', proof lines, an empty line and a checkpoint")
    if len(lines) > MAX_PROOF:
        raise FormatError(f"a consistency proof of more than {MAX_PROOF} hashes")
    proof = tuple(parse_base64(line, "proof hash", HASH_SIZE) for line in lines)
    checkpoint, note = parse_signed_checkpoint(rest)
    return Submission(parse_decimal(first.removeprefix("old "), "old size"), proof, checkpoint, note)


def format_size(size: int) -> bytes:
    """Return the body of a 409 answer."""
    return f"{size}\n".encode("ascii")


def parse_size(body: bytes) -> int:
    """Read the body of a 409 answer. Raises ``FormatError``."""
    text = body.decode("utf-8", "replace")
    if not text.endswith("\n"):
        raise FormatError("a size that does not end in a newline")
    return parse_decimal(text[:-1], "size")


def origin_hash(origin: str) -> str:
    """Return the path element under which a witness shows the head that it has seen of a log."""
    return hashlib.sha256(origin.encode("utf-8")).hexdigest()
