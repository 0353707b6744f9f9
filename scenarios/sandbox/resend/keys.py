"""Idempotency keys as Resend keeps them.

Documented ("Idempotency keys") and observed: up to 256 characters, kept for 24 hours; a repeat answers the first
email's id with ``Idempotent-Replayed: true``; another body under the key is 409 ``invalid_idempotent_request``; while
the first is in progress 409 ``concurrent_idempotent_requests``. Assumed: what was refused leaves its key free, so
that a probe of a fresh key does not use it up, and keys are forgotten right after 24 hours.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from scenarios.sandbox.base import Reply
from scenarios.sandbox.resend.errors import ResendFailure, key_in_use, key_misused

KEPT_S = 24 * 3600
MAX_KEY = 256


@dataclass
class Entry:
    body: str
    first_used: float
    owner: int
    """Number of the request on the wire that is carried out under this key."""
    reply: Reply | None = None


class Keys:
    """Answers by key. Times are the sandbox's, in seconds."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def begin(self, key: str, body: Any, owner: int, now: float) -> Reply | None:
        """Take a key for a request, or return what is to be replayed. Raises the 400 and the 409s."""
        if not 1 <= len(key) <= MAX_KEY:
            words = f"The idempotency key must be between 1-{MAX_KEY} chars."
            raise ResendFailure(400, "invalid_idempotency_key", words)
        text = json.dumps(body, sort_keys=True)
        entry = self._entries.get(key)
        if entry is not None and entry.reply is not None and now - entry.first_used >= KEPT_S:
            entry = None
        if entry is None:
            self._entries[key] = Entry(text, now, owner)
            return None
        if entry.reply is None and entry.owner != owner:
            raise key_in_use()
        if entry.body != text:
            raise key_misused()
        return entry.reply

    def finish(self, key: str, reply: Reply | None) -> None:
        """Remember the answer; None where nothing is to be remembered and the key is free again."""
        if reply is None:
            self._entries.pop(key, None)
        else:
            self._entries[key].reply = reply

    def abandon(self, key: str, owner: int) -> None:
        """The request that held the key is not carried out after all."""
        entry = self._entries.get(key)
        if entry is not None and entry.owner == owner and entry.reply is None:
            del self._entries[key]

    def status(self) -> dict[str, str]:
        """Each key, and whether its request is in progress or answered."""
        return {
            key: "in progress" if entry.reply is None else f"answered {entry.reply.status}"
            for key, entry in self._entries.items()
        }
