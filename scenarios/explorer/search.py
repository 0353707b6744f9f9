"""Visits every state, breadth first, so that what is found first is found by a shortest trace; or walks at random."""

from __future__ import annotations

import random
import time
from array import array
from dataclasses import dataclass

from .model import Model
from .tell import tell
from .world import Move, Snapshot

Label = tuple[object, ...]
Way = list[tuple[Label, Snapshot]]

MOST_STATES = 20_000_000
MOST_STEPS = 2_000
"""Bound on the length of a random walk."""

STUCK = "I10: from here no end is reached, though the service answers"


@dataclass(frozen=True)
class Trace:
    """A way to a broken invariant: which one, how many moves, and the story in words."""

    broken: str
    length: int
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return "\n".join([f"{self.broken} after {self.length} moves", *self.lines])


@dataclass(frozen=True)
class Found:
    """What an exploration has found.

    Attributes:
        title: of the setup.
        states, transitions: how many.
        emptied: whether every reachable state has been visited.
        trace: to a broken invariant, or None.
        seconds: how long it took.
        taken: which rules of recovery have led to which actions.
    """

    title: str
    states: int
    transitions: int
    emptied: bool
    trace: Trace | None
    seconds: float
    taken: frozenset[tuple[int, str]]

    @property
    def clean(self) -> bool:
        """Whether nothing is broken and nothing was left out. Truncation is a failure."""
        return self.emptied and self.trace is None

    def __str__(self) -> str:
        frontier = "frontier emptied" if self.emptied else "stopped" if self.trace else "TRUNCATED"
        end = f"BROKEN: {self.trace.broken} after {self.trace.length} moves" if self.trace else ""
        return (
            f"{self.title:70} {self.states:>9,} states {self.transitions:>10,} transitions "
            f"{self.seconds:7.1f} s  {frontier}  {end}"
        ).rstrip()


def explore(model: Model, most_states: int = MOST_STATES) -> Found:
    """Visit every state that can be reached, at most ``most_states``; stop at the first broken invariant."""
    began = time.monotonic()
    first = model.first()
    visited: dict[Snapshot, int] = {first: 0}
    states: list[Snapshot] = [first]
    parents = array("l", [-1])
    labels: list[Label] = [()]
    sources, targets = array("l"), array("l")
    transitions = current = 0
    trace = None
    while current < len(states) <= most_states and trace is None:
        for label, after, bad, broken in model.moves(states[current]):
            transitions += 1
            if broken:
                trace = _trace(model, broken, [*_way(current, states, parents, labels), (label, after)])
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
            trace = _trace(model, STUCK, _way(stuck, states, parents, labels))
    seconds = time.monotonic() - began
    taken = frozenset(model.bridge.taken)
    return Found(model.setup.title, len(states), transitions, emptied, trace, seconds, taken)


def _trace(model: Model, broken: str, way: Way) -> Trace:
    return Trace(broken, len(way), tell(way, model.bridge))


def _way(number: int, states: list[Snapshot], parents: array[int], labels: list[Label]) -> Way:
    steps = []
    while number > 0:
        steps.append((labels[number], states[number]))
        number = parents[number]
    return steps[::-1]


def _stuck(model: Model, states: list[Snapshot], sources: array[int], targets: array[int]) -> int:
    """The first state from which no end can be reached unless something more goes wrong; -1 if there is none."""
    before: list[list[int]] = [[] for _ in states]
    for source, target in zip(sources, targets, strict=True):
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


def walk(model: Model, seed: int) -> Trace | None:
    """Walk at random from the start, until nothing more can happen; then to an end. Returns what was broken.

    The same seed walks the same way.
    """
    dice = random.Random(seed)
    snapshot = model.first()
    way: Way = []
    troubled = True
    for count in range(MOST_STEPS):
        if troubled and count >= MOST_STEPS // 2:
            troubled = False  # from now on nothing more goes wrong
        moves = list(model.moves(snapshot))
        moves = [move for move in moves if troubled or not move.bad]
        if not moves:
            break
        move = _choose(dice, moves)
        way.append((move.label, move.after))
        if move.broken:
            return _trace(model, move.broken, way)
        snapshot = move.after
        if not troubled and model.is_end(snapshot):
            break
    return None if model.is_end(snapshot) else _trace(model, STUCK, way)


def _choose(dice: random.Random, moves: list[Move]) -> Move:
    """Any move; but time passes less often than other things happen."""
    if len(moves) > 1 and moves[-1].label == ("tick",) and dice.random() < 0.7:
        return dice.choice(moves[:-1])
    return dice.choice(moves)
