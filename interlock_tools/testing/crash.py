"""Named instants at which a test can end or stop the process, and nothing otherwise.

A test arms one by the environment variable ``INTERLOCK_CRASH``, for example
``after_dispatched``, ``after_dispatched:2`` (the second time it is reached) or
``before_bytes:1:stop`` (SIGSTOP in place of SIGKILL). The signal is a real one,
sent by the process to itself, so nothing is cleaned up. Where
``INTERLOCK_CRASH_FILE`` names a file, what was armed is written to it right
before the signal, so that a parent can tell this death from any other.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from enum import Enum


class CrashPoint(str, Enum):
    """The instants, in the order in which one effect passes them."""

    BEFORE_JOURNAL = "before_journal"
    """Premises and grant have been read; nothing is recorded."""
    AFTER_PROPOSED = "after_proposed"
    """A separate ``propose`` is durable."""
    AFTER_DISPATCHED = "after_dispatched"
    """DISPATCHED is durable; the send function has not been called."""
    BEFORE_MARK = "before_mark"
    """In ``on_send``, before the mark is stored."""
    BEFORE_BYTES = "before_bytes"
    """In ``on_send``, after the mark: not one byte has left, and nobody can tell."""
    IN_FLIGHT = "in_flight"
    """All bytes are written; no answer has been read."""
    AFTER_RESPONSE = "after_response"
    """The send function has returned; its end is not recorded."""
    AFTER_COMMITTED = "after_committed"
    """The end of the effect is durable; the caller has not been told."""
    RECOVERY_STARTED = "recovery_started"
    """An open effect with an earlier send was taken up."""
    RECOVERY_CHECKED = "recovery_checked"
    """Premises and grant have been read again during recovery."""
    RECOVERY_LOOKED_UP = "recovery_looked_up"
    """A lookup has been answered during recovery."""


_armed: Callable[[CrashPoint], None] | None = None


def reach(point: CrashPoint) -> None:
    """Mark that execution has come to ``point``. Does nothing unless a test armed it."""
    if _armed is not None:
        _armed(point)


def arm(point: CrashPoint | None, occurrence: int = 1, action: Callable[[], None] | None = None) -> None:
    """Arm one crash point in this process; None disarms.

    Args:
        point: where.
        occurrence: the how-manieth time it is reached, from 1.
        action: what to do there; by default the process sends itself SIGKILL.
    """
    global _armed
    if point is None:
        _armed = None
        return
    left = occurrence
    act = action if action is not None else _kill

    def check(reached: CrashPoint) -> None:
        nonlocal left
        if reached is point:
            left -= 1
            if left == 0:
                act()

    _armed = check


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def arm_from_environment() -> None:
    """Arm what ``INTERLOCK_CRASH`` names. Done when this module is imported; a forked child may do it again."""
    text = os.environ.get("INTERLOCK_CRASH", "")
    if not text:
        return
    name, _, rest = text.partition(":")
    count, _, how = rest.partition(":")
    act = _stop if how == "stop" else _kill

    def tell_and_act() -> None:
        path = os.environ.get("INTERLOCK_CRASH_FILE")
        if path:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(fd, f"{text}\n".encode())
            os.close(fd)
        act()

    arm(CrashPoint(name), int(count or "1"), tell_and_act)


arm_from_environment()
