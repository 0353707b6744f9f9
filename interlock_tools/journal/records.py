"""The signed log of a journal: what is stored beside the entries, and what a journal offers to whoever signs.

A journal writes records in the transaction of their entries and knows nothing
of keys. What makes them is its ``sealing`` (see ``interlock_tools.sealing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..errors import JournalError

if TYPE_CHECKING:
    from ..core.entries import Entry

HASH_BYTES = 32


class Seal(NamedTuple):
    """One record, ready to be stored.

    Attributes:
        hash: the record's hash, its leaf of the log.
        signature: key id (4 bytes) and signature (64 bytes); empty where the last record of its commit covers it.
        service: canonical JSON, for an effect's first record.
        statement: canonical JSON, for a change of a key.
    """

    hash: bytes
    signature: bytes
    service: str | None = None
    statement: str | None = None


class Secret(NamedTuple):
    """What salts the private values of an effect, and which those are (a JSON list of paths)."""

    secret: bytes
    paths: str


class Stored(NamedTuple):
    """A stored record. ``leaf`` is its place in the log; None while it has none."""

    seq: int
    leaf: int | None
    seal: Seal


class Sealable(Protocol):
    """One effect's part of an append, as far as whoever signs has to know it."""

    effect_id: str
    expected_seq: int
    entries: Sequence[Entry]
    rows: Sequence[tuple[int, str, int, str]]
    seals: Sequence[Seal]
    secret: Secret | None


class Sealing(Protocol):
    """Makes records of entries; what a journal calls before and after it appends."""

    waits: bool
    """Whether a send waits for witnesses."""

    def seal(self, journal: Any, plans: Sequence[Any]) -> None:
        """Give each plan its seals. Raises ``RecordsMissing``, or ``JournalError`` where nothing can be signed."""
        ...

    def written(self, plans: Sequence[Any]) -> None:
        """Take note of what is durable now."""
        ...

    def clear(self, effect_id: str) -> str | None:
        """Wait until witnesses have seen the effect's last record; return why they have not, or None."""
        ...


class Records(Protocol):
    """The signed log as a journal stores it. Every method raises ``JournalError`` when the journal fails."""

    def place(self) -> int:
        """Give every record its place in the log, and return how many there are. They are durable."""
        ...

    def node(self, level: int, position: int) -> bytes:
        """Return the hash of a complete subtree."""
        ...

    def of(self, effect_id: str) -> list[Stored]:
        """Return an effect's records in order. Entries that were written without signing have none."""
        ...

    def secret(self, effect_id: str) -> Secret | None:
        """Return what salts an effect's private values; None if it has none, or they were erased."""
        ...

    def key_changes(self) -> list[Stored]:
        """Return the changes of keys in order; their ``seq`` is 0."""
        ...

    def add_key_change(self, seal: Seal) -> None:
        """Append a change of a key. Durable when it returns."""
        ...

    def checkpoint_after(self, leaf: int) -> str | None:
        """Return the first checkpoint that covers a record, rather one that enough witnesses signed."""
        ...

    def first_checkpoint(self, leaf: int) -> str | None:
        """Return the first checkpoint that covers a record, whoever signed it."""
        ...

    def keep_checkpoint(self) -> None:
        """Never remove the latest checkpoint, because the log moves to another key in it."""
        ...

    def put_checkpoint(self, size: int, note: str, witnessed: bool) -> None:
        """Keep a checkpoint in place of earlier ones that no witness signed."""
        ...

    def erase(self, effect_id: str, bodies: dict[int, str]) -> None:
        """Replace bodies of an effect's entries, by number, and forget what salts its private values.

        When it has returned, that is durable; if the process dies before, all of it is so or none of it.
        """
        ...

    def fact(self, name: str) -> str | None:
        """Return a fact about the log."""
        ...

    def put_facts(self, facts: dict[str, str | None], *, new_log: bool = False) -> None:
        """Remember facts about the log, or forget those that are None; ``new_log`` forgets all checkpoints."""
        ...


def last_leaf(level: int, position: int) -> int:
    """Return the leaf that completes a subtree; its record holds the subtree's hash."""
    return ((position + 1) << level) - 1


def hash_in(rows: Sequence[Any], level: int) -> bytes:
    """Return one of the hashes that a record completes, from what was found of it: a row with its nodes.

    Raises:
        JournalError: it is not there.
    """
    nodes = bytes(rows[0][0]) if rows else b""
    found = nodes[level * HASH_BYTES : (level + 1) * HASH_BYTES]
    if len(found) != HASH_BYTES:
        raise JournalError(
            "a record of the signed log is not there any more: somebody changed the journal. Nothing was written. "
            "Keep it as it is, and have a person compare it with a copy"
        )
    return found
