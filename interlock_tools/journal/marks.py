"""What a session file looks like, and when a mark in it is believed."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

from ..core.decide import Mark, Sender, Sighting
from ..core.entries import Instant
from ..core.states import Send
from .protocol import Holder

HEADER_BYTES = 4096
SLOTS = 4096
"""How many sends of open effects one process can mark. Further ones are unmarked ("maybe")."""

WORD_BYTES = 8
WORDS = 3
HANDED_OVER, WRITTEN, GAVE_UP = range(WORDS)
"""The words of a slot: when it happened, in milliseconds of CLOCK_BOOTTIME; 0 for not yet."""

SLOT_BYTES = WORDS * WORD_BYTES
FILE_BYTES = HEADER_BYTES + SLOTS * SLOT_BYTES

NAME = re.compile(r"[0-9a-f]{32}")
"""What sessions are called: 128 random bits, so that no two sessions ever share a name."""


def header(name: str, pid: int, now: Instant) -> bytes:
    """Return the first page of a session file: who holds it."""
    text = json.dumps(
        {"session": name, "boot": now.boot, "host": socket.gethostname(), "pid": pid, "started_ms": now.wall_ms}
    )
    return text.encode().ljust(HEADER_BYTES, b"\0")


def holder(page: bytes) -> Holder | None:
    """Return who holds a session, from its first page; None if the page says nothing intelligible."""
    try:
        found = json.loads(page.rstrip(b"\0"))
        return Holder(str(found["session"]), str(found["host"]), int(found["pid"]), int(found["started_ms"]))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def mark(device: int, inode: int, index: int) -> dict[str, Any]:
    """Return what a DISPATCHED entry records about a slot, beside its session and boot.

    Device and inode are texts: they may be too large for JSON's integers.
    """
    return {"device": str(device), "inode": str(inode), "slot": index}


def slot_of(send: Send, device: int, inode: int, boot: str) -> int | None:
    """Return the number of the slot that holds a send's mark; None if what is found there is not to be believed.

    Args:
        send: its session is the one whose file was looked at.
        device, inode: of that file.
        boot: the present one.
    """
    if send.mark is None or send.dispatched.boot != boot:
        return None
    if send.mark.get("device") != str(device) or send.mark.get("inode") != str(inode):
        return None
    index = send.mark.get("slot")
    return index if type(index) is int and 0 <= index < SLOTS else None


def sighting(sender: Sender, handed_over: int, written_ms: int, now: Instant) -> Sighting:
    """Return what a slot says about a send."""
    written = None
    if written_ms:
        written = Instant(now.boot, written_ms, now.wall_ms - (now.boottime_ms - written_ms))
    return Sighting(sender, Mark.YES if handed_over else Mark.NO, written)
