"""The values that make up one state of the explored world."""

from __future__ import annotations

from typing import NamedTuple

from interlock_tools.core.decide import Step

from .service import Service

ALIVE = frozenset({"dispatched", "marked", "waiting", "ended"})
"""Stages of a send whose process lives and which is not over for the journal."""


class Job(NamedTuple):
    """One send, as the machine knows it.

    Attributes:
        number: of the send within the effect.
        host: where its process runs or ran.
        stage: ``dispatched`` (``on_send`` not called), ``marked`` (no byte has left), ``waiting`` (for the answer),
            ``ended`` (its end is not recorded), ``gave up`` (it could not be) or ``dead`` (its process is).
        mark: 0: not set; 1: set; 2: the machine has been restarted since, so the memory is gone.
        answer: what ended it.
        written: ticks since its bytes were written, where that was stored; -1: not.
        cut: ticks since its session was lost though its process lives; -1: not.
        window: ``on_send`` checks that the service still knows the key.
    """

    number: int
    host: int
    stage: str = "dispatched"
    mark: int = 0
    answer: str = ""
    written: int = -1
    cut: int = -1
    window: bool = False


class Gather(NamedTuple):
    """One worker's view in the making, and then the step that it is about to record.

    Attributes:
        host: where the worker runs.
        base: number of the journal's state that it read.
        stage: ``read`` (a lookup is due), ``asked`` (it was answered) or ``ready`` (to append).
        age: ticks since it began.
        truth: what the reading of the checks really showed: ``hold``, ``fail``, ``unreadable``, or "" for no reading.
        checks, failing, failed: what the core is told of the checks, and how many ticks ago they failed.
        lookup, found, began: what the core is told of the lookup, and how many ticks ago it began; -1: it did not.
        seen: for ``ready``: number of the state after the entries that record what was seen of the sends.
        step: for ``ready``: the core's step.
        again: the effect was refused as unreachable, and is asked for again.
    """

    host: int
    base: int
    stage: str
    age: int = 0
    truth: str = ""
    checks: str = "not_read"
    failing: frozenset[str] = frozenset()
    failed: int = -1
    lookup: str = "not_asked"
    found: bool = False
    began: int = -1
    seen: int = -1
    step: Step | None = None
    again: bool = False


class Budget(NamedTuple):
    """How much may still go wrong."""

    crashes: int
    faults: int
    moves: int
    unread: int


class Memory(NamedTuple):
    """Since when a recovering process has seen the same premises fail."""

    host: int
    age: int
    failing: frozenset[str]


class Snapshot(NamedTuple):
    """One state.

    ``premise`` is what the service does not enforce, as it was last read:
    ``holds``, ``fails``, or the grant is ``revoked``.
    """

    journal: int
    jobs: tuple[Job, ...]
    gathers: tuple[Gather, ...]
    service: Service
    premise: str
    left: Budget
    memory: Memory | None = None


class Move(NamedTuple):
    """One thing that can happen. ``bad``: it takes something going wrong. ``broken``: the invariant that it breaks."""

    label: tuple[object, ...]
    after: Snapshot
    bad: bool = False
    broken: str = ""
