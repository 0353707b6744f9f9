"""What every journal promises.

A journal keeps entries and never changes one. It decides races: an append
names the last sequence number that its writer saw, and is refused if there is
a newer entry. It also holds this process's *session*: the proof that the
process lives, and the marks of its sends.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..core.decide import Sighting
from ..core.entries import Entry, Instant, Kind
from ..core.states import Send
from ..errors import JournalError, describe
from .claims import Claim
from .records import Records, Sealing


@dataclass(frozen=True, slots=True)
class Write:
    """Entries to append to one effect.

    Attributes:
        effect_id: the effect.
        expected_seq: the last sequence number that the writer saw; 0 for a new effect.
        entries: consecutive entries from ``expected_seq + 1`` on.
    """

    effect_id: str
    expected_seq: int
    entries: tuple[Entry, ...]


_KINDS = {kind.value: kind for kind in Kind}

ARCHIVED = "archived"
"""The ``phase`` of an effect whose entries were moved to an archive. It is no state of the core: nothing follows."""


@dataclass(frozen=True, slots=True)
class EffectRow:
    """One effect as the journal's index knows it. Derived from the entries alone.

    ``position`` orders effects by when they were first recorded. ``phase`` is
    the value of the effect's phase after its last entry, or ``ARCHIVED``.
    """

    effect_id: str
    position: int
    name: str
    request_key: str
    decision: int
    last_seq: int
    phase: str


@dataclass(frozen=True, slots=True)
class Tombstone:
    """What takes the place of a finished effect's entries.

    Attributes:
        position: of the effect.
        seq: the number of its last entry; if there is a newer one, the effect stays.
        ended_ms: when its request ended, UTC; decides how long the tombstone is kept.
        next_position: of the next decision about the request, which must be archived before; None for the last one.
        text: JSON, for ``errors.Archived``.
    """

    position: int
    seq: int
    ended_ms: int
    next_position: int | None
    text: str


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How much of a budget is taken. ``limit`` is the smallest that was ever recorded; None if none was."""

    name: str
    used: int
    limit: int | None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who runs a send, for a message to a person."""

    session: str
    host: str
    pid: int
    started_ms: int


class Conflict(Exception):
    """An append lost a race: the effect has a newer entry. The writer starts over."""


class OverBudget(Exception):
    """A reservation does not fit. Nothing was written. Attributes: ``budget``, ``amount``, ``used``, ``limit``."""

    def __init__(self, budget: str, amount: int, used: int, limit: int) -> None:
        super().__init__(f"budget {budget}: {used} of {limit} is taken, {amount} more does not fit")
        self.budget = budget
        self.amount = amount
        self.used = used
        self.limit = limit


class SendSlot(Protocol):
    """This process's hold on one send: where its mark is, and whether it may still be sent.

    Hold on to it for as long as the send function runs: once nobody does, the
    send is taken to be over, as if it had been given up.
    """

    @property
    def session(self) -> str:
        """Name of this process's session, for the DISPATCHED entry."""
        ...

    @property
    def mark(self) -> dict[str, Any] | None:
        """Where the mark is, for the DISPATCHED entry; None if this send cannot be marked ("maybe")."""
        ...

    def check(self) -> str | None:
        """Return why this sender must not send any more (its session is over or lost), or None."""
        ...

    def hand_over(self) -> None:
        """Store the mark: bytes may be on the wire from now on. When it returns, the mark survives SIGKILL."""
        ...

    def written(self) -> None:
        """Store that every byte has been handed to the kernel, and when."""
        ...

    def give_up(self) -> None:
        """Say that the send is over though its end could not be recorded; anyone may recover it."""
        ...

    def close(self) -> None:
        """Say that the effect is closed: the slot may serve another effect."""
        ...


def entry_of(effect_id: str, seq: int, kind: str, at_ms: int, body: str) -> Entry:
    """Return an entry as it is stored. Raises ``JournalError`` where that is none."""
    try:
        return Entry(effect_id, seq, _KINDS[kind], at_ms, json.loads(body))
    except (LookupError, TypeError, ValueError, RecursionError) as error:
        raise JournalError(
            f"effect {effect_id}: its entry {seq} is none ({describe(error)}): somebody else wrote to the journal. "
            "Have a person look at the service, and restore the journal from a copy"
        ) from None


class Journal(Protocol):
    """One append-only journal. Every method may be called from any thread and after a fork.

    Every method raises ``JournalError`` (or a subclass) when the journal
    itself fails; then nothing was written unless the docstring says otherwise.
    """

    url: str
    sealing: Sealing | None
    """What makes signed records of entries; None where signing is off."""
    records: Records
    """The signed log."""

    def append(self, writes: Sequence[Write]) -> None:
        """Append entries to one or more effects in one transaction.

        When it has returned, all of them are durable, the budgets named in a
        first DISPATCHED are reserved, and those of a REFUSED, RELEASED or
        RESOLVED (not landed) effect are free. If the process dies before it
        returns, either all of that is so or none of it.

        Raises:
            Conflict: an effect has a newer entry than its writer saw.
            OverBudget: a reservation does not fit.
            ValueError: the entries are not consecutive, or one must not follow (``IllegalTransition``); nothing was
                written.
            JournalError: the journal failed; nothing was written.
            CommitUnknown: a JournalError after which nobody can tell; read back.
        """
        ...

    def entries(self, effect_id: str) -> list[Entry]:
        """Return the effect's entries in order; empty if there is no such effect.

        Raises:
            Archived: they were moved to an archive.
        """
        ...

    def effect(self, effect_id: str) -> EffectRow | None:
        """Return the index row of one effect."""
        ...

    def latest_decision(self, name: str, request_key: str) -> EffectRow | None:
        """Return the row of the request's latest decision."""
        ...

    def open_effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        """Return effects that are not closed, oldest first, with ``position`` greater than ``after``.

        Open are the phases proposed, authorized, dispatched and ambiguous. The
        cost does not depend on how many closed effects there are.
        """
        ...

    def take_up(self, position: int) -> Claim | None:
        """Take an open effect up for recovery; None if another worker has. It saves work and decides nothing.

        ``close`` what is returned. It goes with the process that holds it.
        """
        ...

    def effects(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        """Return all effects, oldest first, with ``position`` greater than ``after``."""
        ...

    def claim_due(self, worker: str, now_ms: int, until_ms: int, limit: int = 100) -> list[EffectRow]:
        """Take in hand effects that are due to be looked at, the longest due first, and return them.

        Args:
            worker: a fresh name for each call; no two callers get the same effect.
            now_ms: UTC.
            until_ms: when they are due again if nothing is said of them, UTC.
            limit: how many at most.
        """
        ...

    def look_at(self, effect_id: str, at_ms: int | None) -> None:
        """Say when an effect is due to be looked at (UTC, milliseconds), or with None that it is not any more."""
        ...

    def watched(self, after: int = 0, limit: int = 100) -> list[EffectRow]:
        """Return the effects that are on the list of those to look at, oldest first."""
        ...

    def next_look(self) -> tuple[int | None, int]:
        """Return when the first effect is due (UTC, milliseconds; None if none is), and how many are on the list."""
        ...

    def archive(self, tombstones: Sequence[Tombstone]) -> None:
        """Put tombstones in the place of finished effects' entries, in order, in one transaction.

        An effect that is open, watched, or has a newer entry than its tombstone
        says stays as it is. What the others take of budgets stays taken, and
        their records stay in the log. When it has returned, that is durable; if
        the process dies before, all of it is so or none of it.
        """
        ...

    def forget(self, before_ms: int, limit: int = 1000) -> None:
        """Remove tombstones of effects that ended before (UTC, milliseconds), the oldest first, in one transaction."""
        ...

    def to_forget(self, before_ms: int) -> int:
        """Return how many tombstones there are of effects that ended before and that ``forget`` removes."""
        ...

    def budget(self, name: str) -> BudgetUse:
        """Return how much of a budget is taken now."""
        ...

    def new_slot(self, effect_id: str) -> SendSlot:
        """Reserve a slot for a send of this effect, opening this process's session on first use."""
        ...

    def sight(self, send: Send) -> tuple[Sighting, Holder | None]:
        """Look at the sender of a running send: is it alive, and is the send marked?

        A dead sender's session is held (its lock, shared) while its marks are
        read, so that what is seen can no longer change.
        """
        ...

    def now(self) -> Instant:
        """Read the clocks."""
        ...

    def close(self) -> None:
        """Close connections and end this process's session, unless a send of it is running."""
        ...
