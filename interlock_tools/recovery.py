"""Finds the open effects of a journal and brings each to an end, or says what keeps it open."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from .commands import Sleep, Work
from .core.states import Phase
from .definition import Definition
from .errors import RecordsMissing
from .flow import EffectFlow
from .journal.protocol import EffectRow, Journal
from .observer import Observer, observed
from .outcome import Outcome, Reason, Status
from .recording import Contradiction, Steps

log = logging.getLogger("interlock_tools")

PAGE = 200
"""How many open effects are read at a time."""


@dataclass
class Report:
    """What one recovery found. Iterates over one outcome per open effect, oldest first.

    Attributes:
        outcomes: one per open effect whose code is loaded here, blocked ones included.
        unregistered: open effects whose code is not loaded here. They stay as they are.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    unregistered: list[EffectRow] = field(default_factory=list)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def blocked(self) -> list[Outcome]:
        """The outcomes that are still open, each saying by whom or until when."""
        return [outcome for outcome in self.outcomes if outcome.status is Status.IN_FLIGHT]


def recover(
    journal: Journal,
    definitions: Mapping[str, Definition],
    *,
    wait_s: float,
    retry_s: float,
    observer: Observer | None = None,
) -> Steps:
    """Bring every open effect to an end. Returns a ``Report``.

    First every effect is looked at without waiting, so that none holds up
    another; then those that are blocked are looked at again while ``wait_s`` lasts.
    Workers who do so at the same time divide the effects: what one has taken up the others leave alone.
    """
    deadline = time.monotonic() + wait_s
    retry_until = time.monotonic() + retry_s  # for all effects together
    report = Report()
    blocked: list[tuple[int, EffectRow]] = []
    after = 0
    while True:
        rows: list[EffectRow] = yield Work(journal.open_effects, (after, PAGE))
        for row in rows:
            definition = definitions.get(row.name)
            if definition is None:
                report.unregistered.append(row)
                continue
            left = max(0.0, retry_until - time.monotonic())
            flow = EffectFlow(journal, definition, row.effect_id, retry_s=left, at_recovery=True)
            outcome = yield from _unless_taken(journal, flow, row, observer)
            if outcome is None or (outcome.status is Status.IN_FLIGHT and row.phase == Phase.DISPATCHED.value):
                blocked.append((len(report.outcomes), row))
            report.outcomes.append(outcome if outcome is not None else _taken(row))
        if len(rows) < PAGE:
            break
        after = rows[-1].position
    for index, row in blocked:
        definition = definitions[row.name]
        while True:
            left = max(0.0, deadline - time.monotonic())
            taken = report.outcomes[index].detail == TAKEN
            if left <= 0 and not taken:
                break
            flow = EffectFlow(journal, definition, row.effect_id, wait_s=left, retry_s=retry_s, at_recovery=True)
            outcome = yield from _unless_taken(journal, flow, row, observer)
            if outcome is not None:
                report.outcomes[index] = outcome
            if outcome is not None or left <= 0:
                break
            yield Sleep(min(left, LOOK_AGAIN_S), TAKEN)
    return report


TAKEN = "another worker is recovering it"
LOOK_AGAIN_S = 0.05
"""Pause between looks at what another worker has taken up, while there is time to wait for it."""


def _taken(row: EffectRow) -> Outcome:
    return Outcome(
        Status.IN_FLIGHT,
        row.effect_id,
        row.name,
        row.request_key,
        reason=Reason.WAITING,
        detail=TAKEN,
        at_recovery=True,
    )


def _unless_taken(journal: Journal, flow: EffectFlow, row: EffectRow, observer: Observer | None) -> Any:
    """Recover one effect, or tell what became of it; None while another worker is at it."""
    claim = yield Work(journal.take_up, (row.position,))
    if claim is None:
        state = yield from flow.load()
        return flow.outcome(state) if state.is_closed else None
    try:
        return (yield from observed(observer, flow, _one(flow, row), "recover"))
    finally:
        claim.close()


def _one(flow: EffectFlow, row: EffectRow) -> Any:
    """Recover one effect. One whose entries make no sense is reported and does not keep the others waiting."""
    try:
        state = yield from flow.load()
        return (yield from flow.settle(state))
    except RecordsMissing as error:
        return Outcome(
            Status.IN_FLIGHT,
            row.effect_id,
            row.name,
            row.request_key,
            reason=Reason.WAITING,
            detail=str(error),
            at_recovery=True,
        )
    except Contradiction as error:
        log.error("%s", error)
        return Outcome(
            Status.AMBIGUOUS,
            row.effect_id,
            row.name,
            row.request_key,
            reason=Reason.UNVERIFIABLE,
            detail="its entries contradict each other",
            at_recovery=True,
        )
