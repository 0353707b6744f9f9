"""Reads the clocks of this machine."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Protocol

from ..core.entries import Instant
from ..errors import JournalUnusable

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
TIME_OFFSETS = Path("/proc/self/timens_offsets")


class Clock(Protocol):
    """Anything that reads the clocks. Tests inject their own."""

    def now(self) -> Instant:
        """Return the present moment."""
        ...


class SystemClock:
    """The clocks of the kernel: boot id, CLOCK_BOOTTIME and UTC.

    A container may run in a time namespace of its own, which shifts its
    CLOCK_BOOTTIME but not its boot id. The shift is taken out, so that two
    containers of one machine read the same time.

    Raises:
        JournalUnusable: the kernel does not say which boot this is.
    """

    def __init__(self) -> None:
        self._boot = _boot_id()
        self._shift_ms = _namespace_shift_ms()

    def now(self) -> Instant:
        boottime_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000 - self._shift_ms
        return Instant(self._boot, boottime_ms, time.time_ns() // 1_000_000)


def _boot_id() -> str:
    try:
        boot = BOOT_ID.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise JournalUnusable(
            f"{BOOT_ID} cannot be read ({error}). Without the boot id nobody can tell what a restart of the machine "
            "ended. Run on Linux, with /proc mounted."
        ) from None
    if not boot:
        raise JournalUnusable(f"{BOOT_ID} is empty, so nobody can tell what a restart of the machine ended.")
    return boot


def _namespace_shift_ms() -> int:
    """Milliseconds that this process's CLOCK_BOOTTIME is ahead of the machine's."""
    try:
        lines = TIME_OFFSETS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return 0  # a kernel without time namespaces
    for line in lines:
        words = line.split()
        if len(words) == 3 and words[0] in ("boottime", "7"):
            return int(words[1]) * 1000 + int(words[2]) // 1_000_000
    return 0
