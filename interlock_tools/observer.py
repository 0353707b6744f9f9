"""The seam for whoever watches the gate at work, such as ``telemetry``. Nothing is called where nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from .core.states import State
    from .recording import Recorder, Steps


class Observation(Protocol):
    """Is told of one run over one effect. What it raises would reach the run, so it must not raise."""

    def appended(self, before: State, after: State) -> None:
        """Entries are durable; the effect went from ``before`` to ``after``."""


class Observer(Protocol):
    """Is told of a gate's runs. None of these may raise."""

    def observed(self, flow: Recorder, steps: Steps, run: str) -> Steps:
        """Return steps that do what ``steps`` do. ``run`` is ``call``, ``propose``, ``recover`` or ``settle``."""
        ...

    def decided(self, effect_id: str, before: State, after: State) -> None:
        """A person's decision is durable."""

    def closed(self) -> None:
        """The gate is closed; its journal may no longer be read."""


def observed(observer: Observer | None, flow: Recorder, steps: Steps, run: str) -> Steps:
    """Return the steps as they are, or as the observer passes them on."""
    return steps if observer is None else observer.observed(flow, steps, run)
