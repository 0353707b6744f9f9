"""``kill_test``: the test that convinces a reviewer. It kills your own code at each crash point, and counts.

::

    def run(folder):                      # builds everything anew, as your program does when it starts
        gate = Gate(folder / "journal.db")
        gated = gate.wrap(send_invoice(folder), lookup=find_invoice(folder))
        gate.recover()
        agent = create_agent(model, [...], middleware=[InterlockMiddleware([gated])])
        return agent.invoke(...)

    print(kill_test(run, count=lambda folder: invoices_in(folder)))
"""

from __future__ import annotations

import os
import signal
import tempfile
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..redaction import clean
from .crash import CrashPoint, arm

POINTS = (
    CrashPoint.BEFORE_JOURNAL,
    CrashPoint.AFTER_DISPATCHED,
    CrashPoint.AFTER_RESPONSE,
    CrashPoint.AFTER_COMMITTED,
)
"""Crash points that every effect passes: decided; recorded, not acted; acted, not recorded; recorded, not told."""


class NotKilled(AssertionError):
    """A run did not end as it had to: it never came to the crash point, or failed by itself. Says what to look at."""


@dataclass(frozen=True)
class Kill:
    """What came of one kill.

    Attributes:
        point: where the first run was killed.
        effects: how often it took effect, after the second run.
        said: what the second run returned, in short.
    """

    point: str
    effects: int
    said: str


@dataclass(frozen=True)
class KillReport:
    """What came of all of them. ``str`` is a table."""

    kills: tuple[Kill, ...]

    def __iter__(self) -> Iterator[Kill]:
        return iter(self.kills)

    @property
    def once(self) -> bool:
        """Whether it took effect exactly once, wherever the first run was killed."""
        return all(kill.effects == 1 for kill in self.kills)

    def __str__(self) -> str:
        rows = [f"{kill.point:<17}{kill.effects:>4}  {kill.said}" for kill in self.kills]
        return "\n".join([f"{'killed':<17}{'made':>4}  then", *rows])


def kill_test(
    run: Callable[[Path], Any],
    count: Callable[[Path], int],
    *,
    points: Sequence[CrashPoint] = POINTS,
    timeout_s: float = 120.0,
) -> KillReport:
    """Run your code, kill it, run it again, and count; once for each crash point. Real processes, a real SIGKILL.

    Args:
        run: builds gate, tools and agent over a folder and makes the one request. It runs in a forked process, so
            make clients and connections in it, not before.
        count: how often it took effect, by what the service (or what stands for it) holds. It runs in this process.
        points: where to kill. Effects that are wrapped tools and plain ones pass all of ``POINTS``.
        timeout_s: the longest that one run may take, in seconds.

    Raises:
        NotKilled: a run did not end as it had to.
    """
    kills = []
    for point in points:
        with tempfile.TemporaryDirectory(prefix="kill-test-") as name:
            folder = Path(name)
            _killed(run, folder, point, timeout_s)
            said = _finished(run, folder, point, timeout_s)
            kills.append(Kill(point.value, count(folder), said))
    return KillReport(tuple(kills))


def _killed(run: Callable[[Path], Any], folder: Path, point: CrashPoint, timeout_s: float) -> None:
    witness = folder / ".killed"

    def die() -> None:
        witness.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    def first() -> None:
        arm(point, action=die)
        run(folder)

    status, said = _forked(first, folder, timeout_s)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL and witness.exists():
        return
    if status == 0:
        raise NotKilled(f"the run ended before it came to {point.value}; does its request go through a gate?")
    raise NotKilled(f"the run that was to be killed at {point.value} ended by itself: {said}")


def _finished(run: Callable[[Path], Any], folder: Path, point: CrashPoint, timeout_s: float) -> str:
    told = folder / ".told"

    def second() -> None:
        told.write_text(_short(run(folder)), encoding="utf-8")

    status, said = _forked(second, folder, timeout_s)
    if status != 0:
        raise NotKilled(f"the run after the kill at {point.value} did not end well: {said}")
    return told.read_text(encoding="utf-8")


def _forked(function: Callable[[], None], folder: Path, timeout_s: float) -> tuple[int, str]:
    """Run a function in a forked process. Returns how it ended, and the last line of an error."""
    errors = folder / ".errors"
    pid = os.fork()
    if pid == 0:
        try:
            signal.setitimer(signal.ITIMER_REAL, timeout_s)  # SIGALRM ends what hangs
            function()
            os._exit(0)
        except BaseException:
            errors.write_text(traceback.format_exc(), encoding="utf-8")
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    lines = errors.read_text(encoding="utf-8").strip().splitlines() if errors.exists() else []
    return status, clean(lines[-1], 300) if lines else f"wait status {status}"


def _short(found: Any) -> str:
    """What a run returned, in short: an agent's last message, an outcome, or whatever it is."""
    if isinstance(found, dict) and found.get("messages"):
        found = getattr(found["messages"][-1], "text", found["messages"][-1])
    return clean(str(found), 200)
