"""C2SP tlog-checkpoint and tlog-cosignature (v1, Ed25519).

A checkpoint is a note whose text is the log's origin, its size, its root hash
in base64, and possibly extension lines. The log signs it with a note key whose
name is the origin. A witness signs the same text with the time in front.
"""

from __future__ import annotations

from dataclasses import dataclass

from .errors import FormatError
from .keys import COSIGNATURE, Signer, VerifierKey, check_name, verifier_key
from .merkle import EMPTY_ROOT, HASH_SIZE
from .note import Note, NoteSignature, check_note_text, parse_note, sign_note
from .strict import format_base64, parse_base64, parse_decimal

_COSIGNED = "cosignature/v1\ntime {time_s}\n{text}"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a log says of itself: it has ``size`` records, and their Merkle root is ``root``."""

    origin: str
    size: int
    root: bytes
    extensions: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = (self.origin, str(self.size), format_base64(self.root), *self.extensions)
        return "".join(f"{line}\n" for line in lines)


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse the text of a checkpoint (without signatures).

    Raises:
        FormatError: missing lines, a size that is not a plain decimal, a root
            that is not 32 bytes, a tree of size 0 with another root than the
            empty tree's, or an empty extension line.
    """
    lines = check_note_text(text)[:-1].split("\n")
    if len(lines) < 3:
        raise FormatError("a checkpoint has at least three lines: origin, size and root")
    size = parse_decimal(lines[1], "tree size")
    root = parse_base64(lines[2], "root hash", HASH_SIZE)
    if size == 0 and root != EMPTY_ROOT:
        raise FormatError("a checkpoint of size 0 whose root is not the empty tree's")
    return Checkpoint(check_name(lines[0]), size, root, tuple(lines[3:]))


def parse_signed_checkpoint(data: str) -> tuple[Checkpoint, Note]:
    """Parse a signed note that holds a checkpoint. Raises ``FormatError``; verifies nothing."""
    note = parse_note(data)
    return parse_checkpoint(note.text), note


def sign_checkpoint(checkpoint: Checkpoint, *signers: Signer) -> Note:
    """Return the checkpoint signed by the log's key, or by its old and new key where the log moves.

    Raises:
        FormatError: a signer whose name is not the origin.
    """
    for signer in signers:
        if signer.name != checkpoint.origin:
            raise FormatError(f"the log {checkpoint.origin!r} is signed by a key of that name, not {signer.name!r}")
    return sign_note(str(checkpoint), *signers)


def cosign(text: str, signer: Signer, time_s: int) -> NoteSignature:
    """Return a witness's signature line for a checkpoint's text, made at ``time_s`` (UTC seconds since 1970)."""
    message = _COSIGNED.format(time_s=time_s, text=text).encode("utf-8")
    signature = time_s.to_bytes(8, "big") + signer.sign(message)
    return NoteSignature(signer.name, verifier_key(signer, COSIGNATURE).key_id, signature)


def cosigned_at(note: Note, key: VerifierKey) -> int | None:
    """Return when ``key``, a witness's, first cosigned the note (UTC seconds), or None where it did not.

    Raises:
        FormatError: when a line names this key and does not verify.
    """
    if key.type != COSIGNATURE:
        raise FormatError(f"{key.name} is not a key for cosignatures")
    times = [_check_cosignature(note.text, key, line.signature) for line in note.of(key)]
    return min(times, default=None)


def _check_cosignature(text: str, key: VerifierKey, signature: bytes) -> int:
    if len(signature) != 72:
        raise FormatError(f"the cosignature of {key.name} has {len(signature)} bytes instead of 72")
    time_s = int.from_bytes(signature[:8], "big")
    message = _COSIGNED.format(time_s=time_s, text=text).encode("utf-8")
    if not key.verifies(signature[8:], message):
        raise FormatError(f"the cosignature of {key.name} does not verify")
    return time_s
