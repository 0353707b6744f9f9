"""Visits every state, breadth first, so that what is found first is found by a shortest trace."""

from __future__ import annotations

import time
from array import array
from dataclasses import dataclass

from .model import Model
from .world import Snapshot

Label = tuple[object, ...]


@dataclass(frozen=True)
class Trace:
    """A shortest way to a broken invariant. ``steps``: what happened, and the world after it."""

    broken: str
    steps: tuple[tuple[Label, Snapshot], ...]


@dataclass(frozen=True)
class Found:
    """What an exploration has found.

    Attributes:
        title: of the setup.
        states, transitions: how many.
        emptied: whether every reachable state has been visited.
        trace: to a broken invariant, or None.
        seconds: how long it took.
    """

    title: str
    states: int
    transitions: int
    emptied: bool
    trace: Trace | None
    seconds: float

    @property
    def clean(self) -> bool:
        return self.emptied and self.trace is None

    def __str__(self) -> str:
        frontier = "frontier emptied" if self.emptied else "TRUNCATED"
        end = f"BROKEN: {self.trace.broken} ({len(self.trace.steps)} steps)" if self.trace else "clean"
        return (
            f"{self.title:34} {self.states:>9,} states {self.transitions:>10,} transitions  "
            f"{self.seconds:6.1f} s  {frontier}  {end}"
        )


def explore(model: Model, most_states: int = 5_000_000) -> Found:
    """Visit every state that can be reached, at most ``most_states``; stop at the first broken invariant."""
    began = time.monotonic()
    first = model.first()
    visited: dict[Snapshot, int] = {first: 0}
    states: list[Snapshot] = [first]
    parents = array("l", [-1])
    labels: list[Label] = [()]
    sources, targets = array("l"), array("l")
    transitions = 0
    current = 0
    trace = None
    while current < len(states) and trace is None and len(states) <= most_states:
        snapshot = states[current]
        for label, after, bad, broken in model.moves(snapshot):
            transitions += 1
            if broken:
                trace = Trace(broken, (*_way(current, states, parents, labels), (label, after)))
                break
            number = visited.get(after)
            if number is None:
                number = visited[after] = len(states)
                states.append(after)
                parents.append(current)
                labels.append(label)
            if not bad:
                sources.append(current)
                targets.append(number)
        current += 1
    emptied = current == len(states) and trace is None
    if emptied:
        stuck = _stuck(model, states, sources, targets)
        if stuck >= 0:
            trace = Trace(
                "I10: from here no end is reached, though the service answers", _way(stuck, states, parents, labels)
            )
    return Found(
        model.setup.title, len(states), transitions, emptied or trace is not None, trace, time.monotonic() - began
    )


def _way(
    number: int, states: list[Snapshot], parents: array[int], labels: list[Label]
) -> tuple[tuple[Label, Snapshot], ...]:
    steps = []
    while number > 0:
        steps.append((labels[number], states[number]))
        number = parents[number]
    return tuple(reversed(steps))


def _stuck(model: Model, states: list[Snapshot], sources: array[int], targets: array[int]) -> int:
    """The first state from which no end can be reached unless something more goes wrong; -1 if there is none."""
    before: list[list[int]] = [[] for _ in states]
    for source, target in zip(sources, targets):
        before[target].append(source)
    reached = bytearray(len(states))
    todo = [number for number, snapshot in enumerate(states) if model.is_end(snapshot)]
    for number in todo:
        reached[number] = 1
    while todo:
        for source in before[todo.pop()]:
            if not reached[source]:
                reached[source] = 1
                todo.append(source)
    return reached.find(0)
