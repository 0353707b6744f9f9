"""The sandbox's clock: it runs with real time plus an offset, and fires what was scheduled by it, in order."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass, field

MAX_FIRED_PER_MOVE = 1_000_000
"""Bound on callbacks that one move of the clock may fire; past it a service schedules without end."""


@dataclass(order=True)
class Timer:
    """Something scheduled by sandbox time. ``cancel()`` is final."""

    due: float
    order: int
    callback: Callable[[], None] | None = field(compare=False)

    def cancel(self) -> None:
        self.callback = None


class Clock:
    """Seconds since the epoch (UTC), as the sandbox sees them.

    It runs with real time (measured by a clock that nobody can set) unless it is frozen. While a scheduled callback
    runs, ``now()`` is exactly the moment that it was due, so what it writes down does not depend on how late the
    machine was. All methods are for the event loop's thread.
    """

    def __init__(self) -> None:
        self._start()

    def _start(self) -> None:
        self._base = time.time() - time.monotonic()
        self._offset = 0.0
        self._held: float | None = None
        self._frozen = False
        self._heap: list[Timer] = []
        self._order = itertools.count()
        self._changed: asyncio.Event | None = None

    @property
    def offset_s(self) -> float:
        """Seconds that this clock is ahead of real time."""
        return self.now() - (self._base + time.monotonic())

    @property
    def frozen(self) -> bool:
        return self._frozen

    def now(self) -> float:
        if self._held is not None:
            return self._held
        return self._base + time.monotonic() + self._offset

    def call_at(self, due: float, callback: Callable[[], None]) -> Timer:
        """Schedule ``callback`` for ``due``; if that is past, it fires at the next look at the clock."""
        timer = Timer(due, next(self._order), callback)
        heapq.heappush(self._heap, timer)
        self._wake()
        return timer

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> Timer:
        return self.call_at(self.now() + delay_s, callback)

    def pending(self) -> list[float]:
        """When each scheduled callback is due, soonest first."""
        return sorted(timer.due for timer in self._heap if timer.callback is not None)

    def fire_due(self) -> int:
        """Run what is due by now, in order of due time; returns how many ran."""
        return self._fire_until(self.now())

    def advance(self, seconds: float) -> int:
        """Move on by ``seconds`` (not negative), firing what falls due on the way; returns how many fired."""
        if seconds < 0:
            raise ValueError("the clock can be advanced only forwards; use set() to put it back")
        target = self.now() + seconds
        fired = self._fire_until(target)
        self._move_to(target)
        return fired

    def set(self, moment: float) -> int:
        """Go to ``moment``. Forwards fires what falls due; backwards fires nothing and leaves the schedule as it is."""
        if moment >= self.now():
            return self.advance(moment - self.now())
        self._move_to(moment)
        return 0

    def freeze(self, frozen: bool) -> None:
        """Stop the clock (only ``advance`` and ``set`` move it then), or let it run on from where it stands."""
        moment = self.now()
        self._frozen = frozen
        self._move_to(moment)

    def reset(self) -> None:
        """Back to real time, nothing scheduled."""
        changed = self._changed
        self._start()
        self._changed = changed
        self._wake()

    async def run(self) -> None:
        """Fire what falls due as real time passes; runs until cancelled."""
        self._changed = asyncio.Event()
        while True:
            self.fire_due()
            due = self.pending()
            wait_s = max(0.0, due[0] - self.now()) if due and not self._frozen else None
            self._changed.clear()
            try:
                await asyncio.wait_for(self._changed.wait(), wait_s)
            except asyncio.TimeoutError:
                continue

    def _move_to(self, moment: float) -> None:
        self._offset = moment - (self._base + time.monotonic())
        self._held = moment if self._frozen else None
        self._wake()

    def _fire_until(self, target: float) -> int:
        resume = self._held
        fired = 0
        try:
            while self._heap and self._heap[0].due <= target:
                timer = heapq.heappop(self._heap)
                if timer.callback is None:
                    continue
                fired += 1
                if fired > MAX_FIRED_PER_MOVE:
                    raise RuntimeError(f"more than {MAX_FIRED_PER_MOVE} scheduled callbacks in one move of the clock")
                self._held = timer.due
                timer.callback()
        finally:
            self._held = resume
        return fired

    def _wake(self) -> None:
        if self._changed is not None:
            self._changed.set()
