"""Idempotency keys as Stripe keeps them (API reference, "Idempotent requests").

The first executed response to a key, success or failure, is kept for 24 hours and replayed with the header
``Idempotent-Replayed: true``. The same key with other parameters or at another endpoint is an ``idempotency_error``.
While the first request executes, a repeat gets 409. After 24 hours this store prunes at once: Stripe says that it may,
and a client that is right when it does is right when it does not.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from scenarios.sandbox.base import Reply
from scenarios.sandbox.stripe.errors import StripeError, invalid, key_in_use

KEPT_S = 24 * 3600
MAX_KEY = 255


@dataclass
class Entry:
    endpoint: str
    params: str
    first_used: float
    owner: int
    """Number of the request on the wire that executes under this key."""
    reply: Reply | None = None
    request_id: str = ""


class IdempotencyStore:
    """Answers by key. Times are the sandbox's, in seconds."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def begin(self, key: str, method: str, path: str, params: Any, owner: int, now: float) -> Entry | None:
        """Start executing under ``key``; an entry with a reply means that this must be replayed instead.

        Raises the 400 for other parameters or another endpoint, and the 409 while another request executes.
        """
        if len(key) > MAX_KEY:
            raise invalid(f"Idempotency-Key is longer than the {MAX_KEY} characters allowed.")
        endpoint, digest = f"{method} {path}", json.dumps(params, sort_keys=True)
        entry = self._entries.get(key)
        if entry is not None and entry.reply is not None and now - entry.first_used >= KEPT_S:
            entry = None
        if entry is None:
            self._entries[key] = Entry(endpoint, digest, now, owner)
            return None
        if entry.endpoint != endpoint:
            raise _mismatch(
                f"Keys for idempotent requests can only be used for the same endpoint they were first used for "
                f"('{path}' vs '{entry.endpoint.split(' ', 1)[1]}').",
                key,
            )
        if entry.params != digest:
            raise _mismatch(
                "Keys for idempotent requests can only be used with the same parameters they were first used with.", key
            )
        if entry.reply is not None:
            return entry
        if entry.owner != owner:
            raise key_in_use(key)
        return None

    def finish(self, key: str, reply: Reply | None, request_id: str) -> None:
        """Remember the reply; None where nothing is to be remembered and the key is free again."""
        if reply is None:
            self._entries.pop(key, None)
        else:
            entry = self._entries[key]
            entry.reply, entry.request_id = reply, request_id

    def abandon(self, key: str, owner: int) -> None:
        """The request that held the key will not be executed."""
        entry = self._entries.get(key)
        if entry is not None and entry.owner == owner and entry.reply is None:
            del self._entries[key]

    def status(self) -> dict[str, str]:
        """Each key and whether its request is executing or answered, and with what status."""
        return {
            key: "executing" if entry.reply is None else f"answered {entry.reply.status}"
            for key, entry in self._entries.items()
        }


def _mismatch(words: str, key: str) -> StripeError:
    return StripeError(
        400,
        f"{words} Try using a key other than '{key}' if you meant to execute a different request.",
        type="idempotency_error",
        stored=False,
    )
