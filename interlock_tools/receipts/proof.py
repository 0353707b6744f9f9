"""C2SP tlog-proof@v1: a record's place in a log, with the checkpoint that it leads to, in one text."""

from __future__ import annotations

from dataclasses import dataclass

from .checkpoint import Checkpoint, parse_signed_checkpoint
from .errors import FormatError
from .merkle import HASH_SIZE, verify_inclusion
from .note import Note
from .strict import format_base64, parse_base64, parse_decimal

_HEADER = "c2sp.org/tlog-proof@v1"
MAX_PROOF_HASHES = 63


@dataclass(frozen=True, slots=True)
class Proof:
    """That a leaf is at ``index`` of the tree that ``note``, a signed checkpoint, describes."""

    index: int
    hashes: tuple[bytes, ...]
    checkpoint: Checkpoint
    note: Note
    extra: bytes | None = None

    def __str__(self) -> str:
        lines = [_HEADER]
        if self.extra is not None:
            lines.append(f"extra {format_base64(self.extra)}")
        lines.append(f"index {self.index}")
        lines.extend(map(format_base64, self.hashes))
        return "".join(f"{line}\n" for line in lines) + f"\n{self.note}"

    def includes(self, leaf: bytes) -> bool:
        """Whether the proof leads from ``leaf`` (a leaf hash) to the checkpoint's root."""
        return verify_inclusion(self.index, self.checkpoint.size, leaf, self.hashes, self.checkpoint.root)


def parse_proof(data: str) -> Proof:
    """Parse a tlog-proof@v1.

    Raises:
        FormatError: for anything the format does not allow; signatures and
            hashes are not verified here.
    """
    head, separator, rest = data.partition("\n\n")
    if not separator:
        raise FormatError("a proof without an empty line before its checkpoint")
    lines = head.split("\n")
    if lines.pop(0) != _HEADER:
        raise FormatError(f"a proof that does not begin with {_HEADER}")
    extra = None
    if lines and lines[0].startswith("extra "):
        extra = parse_base64(lines.pop(0).removeprefix("extra "), "extra data")
    if not lines or not lines[0].startswith("index "):
        raise FormatError("a proof without an index")
    index = parse_decimal(lines.pop(0).removeprefix("index "), "leaf index")
    if len(lines) > MAX_PROOF_HASHES:
        raise FormatError(f"a proof of more than {MAX_PROOF_HASHES} hashes")
    hashes = tuple(parse_base64(line, "proof hash", HASH_SIZE) for line in lines)
    checkpoint, note = parse_signed_checkpoint(rest)
    return Proof(index, hashes, checkpoint, note, extra)
