"""Which keys count, and for which part of the log: those of the policy, and those that they lead to.

Trust starts at the policy. A key change signed by a trusted writer adds a
writer key for records after it, or retires one from there on. A log moves to
another key by a key change that names the new key, in a checkpoint signed by
both: the old key counts up to that size, the new one from there.
"""

from __future__ import annotations

from .dsse import Envelope, signed_by
from .errors import FormatError
from .file import Item, Opened
from .keys import VerifierKey
from .note import Note, note_signed_by
from .policy import Policy
from .proof import Proof
from .record import KeyChange

Span = tuple[int, int | None]
"""From here, and up to and without there (None: without end)."""


class Keyring:
    """The keys that a receipt's key changes and a policy lead to.

    Attributes:
        problems: key changes that do not follow from trusted keys, in words.
    """

    def __init__(self, policy: Policy, opened: Opened) -> None:
        self.problems: list[str] = []
        self._ordered = bool(policy.logs)  # without a trusted log nobody vouches for the order of records
        self._writers: dict[VerifierKey, Span] = dict.fromkeys(policy.writers, (0, None))
        self._logs: dict[VerifierKey, Span] = dict.fromkeys(policy.logs, (0, None))
        if policy.writers:
            for item, change in opened.keys:
                self._take(item, change)

    def _take(self, item: Item, change: KeyChange) -> None:
        name = change.key.name
        if self.writer_of(item) is None:
            self.problems.append(f"the change of key {name!r} is not signed by a trusted writer")
        elif change.role == "log":
            self._move_log(item, change)
        elif change.action == "add":
            if change.key not in self._writers:
                self._writers[change.key] = ((item.position or 0) + 1 if self._ordered else 0, None)
        elif change.key in self._writers:
            start = self._writers[change.key][0]
            self._writers[change.key] = (start, item.position if self._ordered and item.proof else 0)

    def _move_log(self, item: Item, change: KeyChange) -> None:
        proof, new = item.proof, change.key
        if not self._logs:
            return
        if change.action != "add" or proof is None or new.name != proof.checkpoint.origin:
            self.problems.append(f"the log key {new.name!r} is added without a checkpoint of its log")
            return
        try:
            old = self.log_key_of(proof)
        except FormatError:
            old = None
        if old is None or not _signed(proof.note, new):
            self.problems.append(
                f"the log {new.name!r} moves in a checkpoint that its old and new key did not both sign"
            )
            return
        size = proof.checkpoint.size
        self._logs[old] = (self._logs[old][0], size + 1)
        self._logs.setdefault(new, (size, None))

    def writer_of(self, item: Item) -> VerifierKey | None:
        """Return the trusted writer key that signed a logged statement, valid where it stands in the log."""
        return self.signer_of(item.envelope, item.position)

    def signer_of(self, envelope: Envelope, position: int | None) -> VerifierKey | None:
        """Return the trusted writer key that signed ``envelope``; ``position`` None: after everything."""
        valid = [key for key, span in self._writers.items() if _within(span, position)]
        return signed_by(envelope, valid)

    def log_key_of(self, proof: Proof) -> VerifierKey | None:
        """Return the trusted key that signed a proof's checkpoint, valid for its size.

        Raises:
            FormatError: a trusted key is named by a signature that does not verify.
        """
        found = None
        for key, span in self._logs.items():
            if key.name == proof.checkpoint.origin and note_signed_by(proof.note, key):
                found = key if _within(span, proof.checkpoint.size) else found
        return found


def _within(span: Span, position: int | None) -> bool:
    start, end = span
    if position is None:
        return end is None
    return start <= position and (end is None or position < end)


def _signed(note: Note, key: VerifierKey) -> bool:
    try:
        return note_signed_by(note, key)
    except FormatError:
        return False
