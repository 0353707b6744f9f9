"""C2SP signed notes: a text, an empty line, and signature lines.

A note is UTF-8 without control characters other than the newline. A signature
line is ``— <key name> <base64 of 4-byte key id and signature>``. Signatures by
keys that the reader does not know are ignored; one by a known key that does
not verify spoils the note.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from .errors import FormatError
from .keys import NOTE_SIGNATURE, Signer, VerifierKey, check_name, verifier_key
from .strict import format_base64, parse_base64

MAX_NOTE_BYTES = 1_000_000
MAX_SIGNATURES = 100
_DASH = "— "


@dataclass(frozen=True, slots=True)
class NoteSignature:
    """One signature line. ``signature`` is what follows the key id; its form depends on the key's type."""

    name: str
    key_id: bytes
    signature: bytes

    def __str__(self) -> str:
        return f"{_DASH}{self.name} {format_base64(self.key_id + self.signature)}"


@dataclass(frozen=True, slots=True)
class Note:
    """A text that ends in a newline, and its signatures."""

    text: str
    signatures: tuple[NoteSignature, ...] = ()

    def __str__(self) -> str:
        return self.text + "\n" + "".join(f"{signature}\n" for signature in self.signatures)

    def with_signatures(self, more: Iterable[NoteSignature]) -> Note:
        """Return the note with signatures added that it does not have yet."""
        return Note(self.text, tuple(dict.fromkeys((*self.signatures, *more))))

    def of(self, key: VerifierKey) -> list[NoteSignature]:
        """Return the signature lines that name ``key``."""
        return [s for s in self.signatures if s.name == key.name and s.key_id == key.key_id]


def check_note_text(text: str) -> str:
    """Return ``text`` if a note may carry it.

    Raises:
        FormatError: empty, not ending in a newline, or with control characters.
    """
    if not text.endswith("\n") or text.startswith("\n") or "\n\n" in text:
        raise FormatError("a note's text has at least one line, no empty ones, and ends in a newline")
    if any((ch < " " and ch != "\n") or ch == "\x7f" for ch in text):
        raise FormatError("a note's text has no control characters")
    return text


def parse_note(data: str) -> Note:
    """Parse a signed note with at least one signature line.

    Raises:
        FormatError: for anything the format does not allow, or too large.
    """
    if len(data) > MAX_NOTE_BYTES:
        raise FormatError(f"a note of more than {MAX_NOTE_BYTES} characters")
    body, separator, lines = data.rpartition("\n\n")
    if not separator:
        raise FormatError("a note without an empty line before its signatures")
    return Note(check_note_text(body + "\n"), parse_signature_lines(lines))


def parse_signature_lines(text: str) -> tuple[NoteSignature, ...]:
    """Parse one or more signature lines, each ending in a newline. Raises ``FormatError``."""
    if not text.endswith("\n"):
        raise FormatError("signature lines that do not end in a newline")
    lines = text[:-1].split("\n")
    if len(lines) > MAX_SIGNATURES:
        raise FormatError(f"a note with more than {MAX_SIGNATURES} signatures")
    return tuple(map(_parse_line, lines))


def _parse_line(line: str) -> NoteSignature:
    name, space, encoded = line.removeprefix(_DASH).partition(" ")
    if not line.startswith(_DASH) or not space:
        raise FormatError(f"not a signature line: {line[:60]!r}")
    raw = parse_base64(encoded, "note signature")
    if len(raw) < 5:
        raise FormatError("a note signature without a signature")
    return NoteSignature(check_name(name), raw[:4], raw[4:])


def sign_note(text: str, *signers: Signer) -> Note:
    """Return ``text`` signed by each signer. Raises ``FormatError`` where the text is not a note's."""
    message = check_note_text(text).encode("utf-8")
    return Note(
        text,
        tuple(NoteSignature(s.name, verifier_key(s).key_id, s.sign(message)) for s in signers),
    )


def note_signed_by(note: Note, key: VerifierKey) -> bool:
    """Whether ``key``, a note key, signed the note.

    Raises:
        FormatError: when a line names this key and does not verify.
    """
    if key.type != NOTE_SIGNATURE:
        raise FormatError(f"{key.name} is not a key for notes")
    found = note.of(key)
    message = note.text.encode("utf-8")
    if any(not key.verifies(line.signature, message) for line in found):
        raise FormatError(f"the note's signature by {key.name} does not verify")
    return bool(found)
