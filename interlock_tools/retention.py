"""Moves finished effects out of a journal: into an archive file first, and only then out of the tables.

What stays in the journal is a tombstone for each effect (its request key and
how it ended, so that the same request is never sent again), what it takes of
budgets, and the nodes of the signed log. A prune that dies at any instant has
lost nothing, and the next one ends what it began.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from .archive import Writer, lines
from .core.canonical import effect_id as id_of
from .core.canonical import encode
from .core.decide import Sender
from .core.entries import Entry, Kind
from .core.states import CLOSED_PHASES, Phase, SendStatus, State, fold
from .errors import Archived, BadArguments, InterlockError, JournalUnusable, describe
from .gate import Gate
from .journal.protocol import ARCHIVED, Conflict, EffectRow, Journal, Tombstone, Write
from .journal.records import Secret
from .outcome import Outcome, Reason, Status
from .reporting import outcome_of, tombstone_of
from .signed import is_signed

PAGE = 500
AT_ONCE = 100
"""How many effects leave the journal in one transaction: few enough for others not to wait."""
_MOST_PAUSE_S = 1.0
_MAX_DECISIONS = 1000
_NEWER = "newer"
_CLOSED = frozenset(phase.value for phase in CLOSED_PHASES)


@dataclass
class Pruned:
    """What a prune did, or with ``dry_run`` would do.

    Attributes:
        file: the archive file; None if nothing was archived.
        archived: how many effects were archived, by their names.
        kept: why requests that began before stay, and how many: ``open``, ``young`` (ended later), ``watched``,
            ``sending``, ``unreachable`` (a call would still try again), ``unsettled`` (a person has to look).
        failed: effects that could not be archived, and why. They stay as they are.
        forgotten: how many tombstones were removed, whose requests can be made again from now on.
    """

    file: Path | None = None
    archived: Counter[str] = field(default_factory=Counter)
    kept: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)
    forgotten: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "file": None if self.file is None else str(self.file),
            "archived": dict(sorted(self.archived.items())),
            "kept": dict(sorted(self.kept.items())),
            "failed": self.failed,
            "forgotten": self.forgotten,
        }


class _Decision(NamedTuple):
    row: EffectRow
    entries: list[Entry]


class _Finished(NamedTuple):
    """A request that may go: its decisions that are not archived yet, and what its tombstones say."""

    decisions: list[_Decision]
    ended_ms: int
    outcome: Outcome
    digest: str
    next_position: int | None
    reserved: bool = False


def prune(
    gate: Gate,
    before: datetime | timedelta,
    archive: str | os.PathLike[str],
    *,
    keep_keys: timedelta | None = None,
    free_budgets: bool = False,
    dry_run: bool = False,
) -> Pruned:
    """Move requests that ended before an instant from the journal into a new file of the archive.

    Everything about a request goes together. What is open, watched, being sent,
    still to be tried again, or for a person to settle stays. Other processes go
    on working meanwhile.

    Args:
        gate: whose journal; with its keys, where it is signed.
        before: an instant with its time zone, or an age.
        archive: the directory for archive files. It holds private values as the journal does.
        keep_keys: for how long after its end a request stays known as done; None: for ever.
        free_budgets: give back what the effects take of budgets; by default it counts for ever.
        dry_run: only say what would be done.

    Raises:
        BadArguments: an instant without time zone or in the future, or an age that is negative.
        JournalUnusable: the journal is signed, and the gate has no keys.
        RecordsMissing: a witness remembers more than the journal holds.
        ArchiveUnusable: the archive cannot be written or read; the journal is as it was.
        JournalError: the journal failed. Run it again.
    """
    now_ms = gate.journal.now().wall_ms
    pruner = _Pruner(gate, _instant_ms(before, now_ms))
    forget_ms = None if keep_keys is None else _instant_ms(keep_keys, now_ms)
    report = pruner.report
    if dry_run:
        for finished in pruner.finished():
            report.archived.update(decision.row.name for decision in finished.decisions)
        if forget_ms is not None:
            report.forgotten = gate.journal.to_forget(forget_ms)
        return report
    if free_budgets:
        pruner.free_budgets()
    pruner.archive(Path(archive), now_ms)
    if forget_ms is not None:
        report.forgotten = _forget(gate.journal, forget_ms)
    return report


def _instant_ms(when: datetime | timedelta, now_ms: int) -> int:
    if isinstance(when, timedelta):
        found = now_ms - round(when.total_seconds() * 1000)
    elif isinstance(when, datetime) and when.tzinfo is not None:
        found = round(when.timestamp() * 1000)
    else:
        raise BadArguments(f"give an instant with its time zone, or an age, not {when!r}")
    if found > now_ms:
        raise BadArguments(f"{when} is in the future; only what has ended can be moved to an archive")
    return found


def _forget(journal: Journal, before_ms: int) -> int:
    count = left = journal.to_forget(before_ms)
    while left:
        journal.forget(before_ms)
        before, left = left, journal.to_forget(before_ms)
        if left >= before:
            break  # somebody else is at it, or adds to it
    return count


class _Pruner:
    def __init__(self, gate: Gate, before_ms: int) -> None:
        self._gate = gate
        self._journal = gate.journal
        self._before_ms = before_ms
        self.report = Pruned()
        self._front = gate.records.front
        if self._front is None and is_signed(self._journal):
            raise JournalUnusable(
                f"{self._journal.url}: what is written to this journal is signed; open it with signing=…, or set "
                "INTERLOCK_SIGNING for the command line. Nothing was removed"
            )
        if self._front is not None:
            self._front.require_complete()

    # -- what may go -----------------------------------------------------------------------------------

    def finished(self) -> Iterator[_Finished]:
        """Return the requests that may go, oldest first."""
        self.report.kept.clear()
        self.report.failed.clear()
        watched = self._watched()
        after = newer = 0
        while rows := self._journal.effects(after, PAGE):
            for row in rows:
                if row.decision != 1 or row.phase == ARCHIVED:
                    continue  # what belongs to a request is found from its first decision, which goes last
                try:
                    found = self._look(row, watched)
                except (InterlockError, ValueError) as error:
                    self.report.failed[row.effect_id] = describe(error)
                    continue
                newer = newer + 1 if found == _NEWER else 0
                if newer >= PAGE:
                    return  # they are in the order in which they began, but for clocks that were wrong
                if found == _NEWER:
                    continue
                if isinstance(found, str):
                    self.report.kept[found] += 1
                else:
                    yield found
            after = rows[-1].position

    def _watched(self) -> set[int]:
        found: set[int] = set()
        after = 0
        while rows := self._journal.watched(after, PAGE):
            found.update(row.position for row in rows)
            after = rows[-1].position
        return found

    def _look(self, first: EffectRow, watched: set[int]) -> _Finished | str:
        """Look at a request: what goes, or why it stays."""
        entries = {first.effect_id: self._journal.entries(first.effect_id)}
        if entries[first.effect_id][0].at_ms >= self._before_ms:
            return _NEWER
        rows = [first]
        while rows[-1].phase == Phase.REPLACED.value and len(rows) < _MAX_DECISIONS:
            following = self._journal.effect(id_of(first.name, first.request_key, rows[-1].decision + 1))
            if following is None:
                return "unsettled"
            rows.append(following)
        last = rows[-1]
        gone = rows.pop() if last.phase == ARCHIVED else None  # a prune took it, and not what came before
        if last.phase not in _CLOSED and gone is None:
            return "open"
        if any(row.position in watched for row in rows):
            return "watched"
        decisions = [_Decision(row, entries.get(row.effect_id) or self._journal.entries(row.effect_id)) for row in rows]
        ended = [entry.at_ms for one in decisions for entry in one.entries if entry.kind is not Kind.RELEASED]
        if max(ended) >= self._before_ms:
            return "young"
        states = [fold(one.entries) for one in decisions]
        if any(self._is_sending(state) for state in states):
            return "sending"
        if gone is not None:
            outcome, digest = self._gate.outcome(gone.effect_id), self._digest_of(gone.effect_id)
            return _Finished(decisions, max(ended), outcome, digest, gone.position)
        outcome = outcome_of(last.effect_id, fold(self._concealed(decisions[-1].entries)))
        if outcome.reason is Reason.UNREACHABLE:
            return "unreachable"
        if outcome.status not in (Status.COMMITTED, Status.REFUSED):
            return "unsettled"
        reserved = bool(states[-1].reserved)
        return _Finished(decisions, max(ended), outcome, states[-1].payload_digest, None, reserved)

    def _is_sending(self, state: State) -> bool:
        """Whether somebody is still at it, as with an effect that a person settled while its sender hung."""
        running = [send for send in state.sends if send.status is SendStatus.RUNNING]
        return any(self._journal.sight(send)[0].sender is Sender.LIVE for send in running)

    def _digest_of(self, effect_id: str) -> str:
        try:
            self._journal.entries(effect_id)
        except Archived as gone:
            return str(gone.tombstone["payload_digest"])
        raise Conflict(f"effect {effect_id} is there again")

    def _concealed(self, entries: list[Entry]) -> list[Entry]:
        """The entries as a receipt shows them: a tombstone holds no private value."""
        secret = self._secret(entries[0].effect_id)
        if secret is None:
            return entries
        from .receipts.private import conceal

        paths = [tuple(path) for path in json.loads(secret.paths)]
        return [
            Entry(one.effect_id, one.seq, one.kind, one.at_ms, conceal(one.body, paths, secret.secret))
            for one in entries
        ]

    def _secret(self, effect_id: str) -> Secret | None:
        return self._journal.records.secret(effect_id) if self._front is not None else None

    def free_budgets(self) -> None:
        """Give back what finished effects take of budgets, by entries that their receipts show."""
        for finished in self.finished():
            row = finished.decisions[-1].row
            if finished.reserved:
                at_ms = self._journal.now().wall_ms
                entry = Entry(row.effect_id, row.last_seq + 1, Kind.RELEASED, at_ms, {"why": "archived"})
                with contextlib.suppress(Conflict):  # it has changed, and is looked at again
                    self._journal.append([Write(row.effect_id, row.last_seq, (entry,))])

    # -- moving it ---------------------------------------------------------------------------------------

    def archive(self, directory: Path, at_ms: int) -> None:
        """Write what may go into a file, check it, and take it out of the journal."""
        if self._front is not None and self._front.log is not None:
            self._front.log.flush()  # so that a checkpoint covers every record, and receipts have their proofs
        report = self.report
        with Writer(directory, at_ms) as writer:
            for finished in self.finished():
                try:
                    found = self._lines(finished, writer.path.name)
                except InterlockError as error:
                    report.failed[finished.decisions[-1].row.effect_id] = describe(error)
                    continue
                for line in found:
                    writer.add(line)
                report.archived.update(decision.row.name for decision in finished.decisions)
            if not report.archived:
                writer.discard()
                return
            writer.finish()
        report.file = writer.path
        remove(self._journal, writer.path)

    def _lines(self, finished: _Finished, name: str) -> list[dict[str, Any]]:
        """The lines of a request, its last decision first, which is the order in which they leave the journal."""
        found = []
        following = finished.next_position
        for row, _ in reversed(finished.decisions):
            found.append(
                {
                    "effect_id": row.effect_id,
                    "effect": row.name,
                    "request_key": row.request_key,
                    "decision": row.decision,
                    "position": row.position,
                    "seq": row.last_seq,
                    "ended_ms": finished.ended_ms,
                    "next_position": following,
                    "tombstone": tombstone_of(row.effect_id, finished.outcome, finished.digest, name),
                    "receipt": self._receipt(row.effect_id),
                }
            )
            following = row.position
        return found

    def _receipt(self, effect_id: str) -> dict[str, Any]:
        """The receipt with all private values, which the archive keeps as the journal did."""
        secret = self._secret(effect_id)
        names = [] if secret is None else [".".join(path) for path in json.loads(secret.paths)]
        return self._gate.receipt(effect_id, disclosing=names)


def remove(journal: Journal, file: Path) -> None:
    """Take what a finished archive file holds out of the journal, a bounded number in each transaction."""
    found = (
        Tombstone(line["position"], line["seq"], line["ended_ms"], line["next_position"], encode(line["tombstone"]))
        for line in lines(file)
    )
    while batch := list(islice(found, AT_ONCE)):
        began = time.monotonic()
        journal.archive(batch)
        time.sleep(min(time.monotonic() - began, _MOST_PAUSE_S))  # others have as much time as this took


__all__: Sequence[str] = ("Pruned", "prune")
