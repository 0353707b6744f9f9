"""One pass over what was committed: what became of it, and who has to hear of that.

Settlements are evidence. They decide nothing, and nothing is ever sent from
here; the one consequence that they have, budgets that are free again, is an
entry of its own (RELEASED).
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .commands import Call, run
from .core.entries import Entry, Kind
from .core.states import Phase, State, fold
from .definition import Definition
from .errors import describe
from .hooks import TOLD, Hook, Notice
from .journal.protocol import ARCHIVED, Conflict, EffectRow, Write
from .outcome import Outcome
from .recording import copy_of
from .reporting import outcome_of
from .settlement import FREEING, Settlement

if TYPE_CHECKING:
    from .gate import Gate

log = logging.getLogger("interlock_tools")

PASS = 1000
"""Most effects that one pass looks at, unless it is told otherwise."""

AT_ONCE = 500
"""Effects that a worker takes in hand at a time."""

IN_HAND_S = 600.0
"""How long a worker has them in hand; one that dies lets go of them then."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 30.0, 6 * 3600.0
"""Pauses between looks at what stays pending and says nothing of when: a tenth of its age, within these."""


@dataclass
class Watched:
    """One effect, as a watch function for many is given it.

    Attributes:
        effect_id: its id.
        arguments: what it was called with.
        evidence: what the service returned or a lookup found.
        committed_ms: when that was recorded, UTC.
    """

    effect_id: str
    arguments: dict[str, Any]
    evidence: Any
    committed_ms: int


@dataclass
class WatchReport:
    """What one pass found.

    Attributes:
        looked: how many effects were looked at.
        changed: the outcomes of those that had changed.
        unreadable: effects that could not be looked at, and why; they are looked at again.
        untold: effects whose change a hook did not take; it is told again.
        left: more effects were due than the pass was allowed to look at.
        next_look_s: when the next one is due, in seconds from now; None if none is.
    """

    looked: int = 0
    changed: list[Outcome] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    untold: list[str] = field(default_factory=list)
    left: bool = False
    next_look_s: float | None = None


class Watcher:
    """See ``Gate.watch``."""

    def __init__(self, gate: Gate, hooks: Sequence[Hook] = ()) -> None:
        self.gate = gate
        self.journal = gate.journal
        self.hooks = list(hooks)
        self.report = WatchReport()

    def watch(self, limit: int = PASS) -> WatchReport:
        """Look at what is due, at most ``limit`` effects."""
        while self.report.looked < limit:
            now_ms = self.journal.now().wall_ms
            until_ms = now_ms + round(IN_HAND_S * 1000)
            count = min(AT_ONCE, limit - self.report.looked)
            rows = self.journal.claim_due(secrets.token_hex(8), now_ms, until_ms, count)
            if not rows:
                break
            self.look(rows)
        first, _ = self.journal.next_look()
        if first is not None:
            self.report.next_look_s = max(0.0, (first - self.journal.now().wall_ms) / 1000)
            self.report.left = self.report.looked >= limit and self.report.next_look_s == 0
        return self.report

    def look(self, rows: Iterable[EffectRow]) -> None:
        """Look at these effects now."""
        by_name: dict[str, list[tuple[EffectRow, State]]] = {}
        for row in rows:
            self.report.looked += 1
            if row.phase == ARCHIVED:
                self.journal.look_at(row.effect_id, None)
                continue
            state = fold(self.journal.entries(row.effect_id))
            if state.phase is Phase.AMBIGUOUS:
                self._tell_ambiguous(row, state)
            elif state.phase is Phase.REFUSED and state.contradicted:
                self._tell("ambiguous", row, state)  # and again, until a person has settled it
                self.journal.look_at(row.effect_id, self._in_s(LONGEST_PAUSE_S))
            elif state.phase is Phase.COMMITTED or (state.phase is Phase.RESOLVED and _landed(state)):
                by_name.setdefault(row.name, []).append((row, state))
            else:
                self.journal.look_at(row.effect_id, None)
        for name, some in by_name.items():
            definition = self.gate.definition(name)
            if definition is None or definition.watch is None:
                self._not_watched(some, definition is None)
            else:
                self._look_at_some(definition, some)

    def _look_at_some(self, definition: Definition, some: list[tuple[EffectRow, State]]) -> None:
        found = self._ask(definition, [_watched(row, state) for row, state in some])
        for row, state in some:
            settlement = found.get(row.effect_id)
            if isinstance(settlement, Settlement):
                self._keep(row, state, settlement)
            else:
                self._unreadable(row, state, str(settlement or "the watch function said nothing of it"))

    def _ask(self, definition: Definition, some: list[Watched]) -> Mapping[str, Settlement | str]:
        """Ask the service; a settlement or why there is none, by effect."""
        if definition.watch_many is not None and len(some) > 1:
            try:
                many = run(_calling(definition.watch_many, {"effects": some}))
                return {key: value for key, value in many.items() if isinstance(value, Settlement)}
            except Exception as error:
                return {one.effect_id: describe(error) for one in some}
        found: dict[str, Settlement | str] = {}
        for one in some:
            try:
                reader = definition.watch
                assert reader is not None
                arguments = reader.arguments(one.arguments, one.effect_id, evidence=one.evidence)
                found[one.effect_id] = run(_calling(reader.function, arguments))
            except Exception as error:
                found[one.effect_id] = describe(error)
        return found

    def _not_watched(self, some: list[tuple[EffectRow, State]], unregistered: bool) -> None:
        for row, _ in some:
            if unregistered:
                self.report.unreadable[row.effect_id] = f"{row.name} is not declared in this process"
                self.journal.look_at(row.effect_id, self._in_s(LONGEST_PAUSE_S))
            else:
                self.journal.look_at(row.effect_id, None)

    def _unreadable(self, row: EffectRow, state: State, why: str) -> None:
        log.warning("effect %s: what became of it could not be read: %s", row.effect_id, why)
        self.report.unreadable[row.effect_id] = why
        self.journal.look_at(row.effect_id, self._in_s(self._pause_s(state)))

    def _keep(self, row: EffectRow, state: State, settlement: Settlement) -> None:
        """Record a settlement if it says something new, and tell whoever has to hear of it."""
        body = settlement.body()
        before = state.settled.body if state.settled is not None else {}
        same = all(before.get(name) == body.get(name) for name in ("state", "detail", "exposure", "currency"))
        event = _event(settlement)
        told = before.get("told", True) if same else event is None
        if settlement.look_again is not None:
            again = self._in_s(settlement.look_again.total_seconds())
        elif settlement.state == "pending":
            again = self._in_s(self._pause_s(state))
        else:
            again = None
        if same and told:
            self.journal.look_at(row.effect_id, again)
            return
        if event is not None:
            told = self._tell(event, row, state._replace(settled=_entry(row, state, body)))
        if not told:
            again = min(again or self._in_s(LONGEST_PAUSE_S), self._in_s(self._pause_s(state)))
        recorded = {**body, **({} if told else {"told": False}), **({} if again is None else {"look_at_ms": again})}
        self._append(row, state, recorded, release=settlement.state in FREEING)

    def _append(self, row: EffectRow, state: State, body: dict[str, Any], release: bool) -> None:
        at_ms = self.journal.now().wall_ms
        entries = [Entry(row.effect_id, state.seq + 1, Kind.SETTLED, at_ms, body)]
        if release and state.reserved:
            why = f"{body['state']}: {body.get('detail', '')}".rstrip(": ")
            entries.append(Entry(row.effect_id, state.seq + 2, Kind.RELEASED, at_ms, {"why": why}))
        try:
            self.journal.append((Write(row.effect_id, state.seq, tuple(entries)),))
        except Conflict:
            self.journal.look_at(row.effect_id, at_ms)  # somebody else wrote meanwhile; look again
            return
        self.report.changed.append(outcome_of(row.effect_id, fold(entries, state)))
        self.gate.records.write([row.effect_id])

    def _tell_ambiguous(self, row: EffectRow, state: State) -> None:
        if self._tell("ambiguous", row, state):
            self.journal.look_at(row.effect_id, None)
        else:
            self.journal.look_at(row.effect_id, self._in_s(self._pause_s(state)))

    def _tell(self, event: str, row: EffectRow, state: State) -> bool:
        """Call the hooks; whether all of them took it. Without hooks it is logged."""
        outcome = outcome_of(row.effect_id, state)
        log.warning("effect %s: %s: %s", row.effect_id, event, outcome.message)
        taken = True
        for hook in self.hooks:
            try:
                hook(Notice(event, outcome))
            except Exception as error:
                taken = False
                log.error("effect %s: a hook failed on %s: %s", row.effect_id, event, describe(error))
        if not taken:
            self.report.untold.append(row.effect_id)
        return taken

    def _pause_s(self, state: State) -> float:
        """How long to wait before the next look at what says nothing of it: the older it is, the longer."""
        closing = state.closing
        age_s = (self.journal.now().wall_ms - (closing.at_ms if closing is not None else 0)) / 1000
        return min(LONGEST_PAUSE_S, max(FIRST_PAUSE_S, age_s / 10))

    def _in_s(self, seconds: float) -> int:
        return self.journal.now().wall_ms + round(seconds * 1000)


def _event(settlement: Settlement) -> str | None:
    """What a hook is told of a settlement, if anything."""
    if settlement.state in TOLD:
        return settlement.state
    return "unknown_status" if settlement.detail.startswith(UNKNOWN) else None


UNKNOWN = "unknown status"
"""How the detail of a settlement begins whose status the integration does not know: it is held, and told."""


def unknown_status(status: object, look_again: timedelta = timedelta(hours=1)) -> Settlement:
    """A settlement for a status that is not known: it stays pending, and somebody is told."""
    return Settlement("pending", f"{UNKNOWN}: {status}", look_again=look_again)


def _landed(state: State) -> bool:
    return state.closing is not None and bool(state.closing.body.get("landed"))


def _entry(row: EffectRow, state: State, body: dict[str, Any]) -> Entry:
    return Entry(row.effect_id, state.seq + 1, Kind.SETTLED, 0, body)


def _watched(row: EffectRow, state: State) -> Watched:
    closing = state.closing
    evidence = closing.body.get("evidence") if closing is not None else None
    return Watched(row.effect_id, copy_of(state.payload), evidence, closing.at_ms if closing is not None else 0)


def _calling(function: Any, arguments: dict[str, Any]) -> Any:
    return (yield Call(function, arguments))
