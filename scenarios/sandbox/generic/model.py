"""What one account at the generic service holds, and how it answers. No I/O; the time is an argument, in seconds.

It knows nothing of journals or gates: it is the ground truth that their answers are judged by.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

FOREVER = math.inf


@dataclass(frozen=True)
class Terms:
    """What the service offers. Durations in seconds.

    Attributes:
        dedupes_s: how long it remembers a key after the first request under it; 0: not at all.
        enforces: it refuses a request whose ``version`` is not the present one, and every effect makes a new version.
        lag_s: how stale its lookup is.
        timeout_s: a request that is older than this when it would be applied is thrown away.
    """

    dedupes_s: float = 0.0
    enforces: bool = False
    lag_s: float = 0.0
    timeout_s: float = 1.0


@dataclass(frozen=True)
class Call:
    """One request for an effect. ``handed_over``: when its sender let go of it; ``number`` names it in the log."""

    key: str
    body: dict[str, Any]
    handed_over: float
    number: int
    version: int | None = None

    @property
    def digest(self) -> str:
        return hashlib.sha256(json.dumps(self.body, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Answer:
    """An HTTP status and a JSON body. ``replayed``: it is the stored answer to this key."""

    status: int
    body: dict[str, Any]
    replayed: bool = False


@dataclass(frozen=True)
class Held:
    """One effect that exists at the service."""

    id: str
    key: str
    body: dict[str, Any]
    at: float
    number: int


@dataclass
class Remembered:
    """What is kept for a key. ``answer`` is None while request ``owner`` executes."""

    first: float
    digest: str
    owner: int
    answer: Answer | None = None


@dataclass
class Account:
    """One account: its terms, its effects, and the facts that others can change."""

    name: str
    terms: Terms
    version: int = 1
    owner: str = "ann"
    approval: str | None = "approval-1"
    readable: bool = True
    next: list[str] = field(default_factory=list)
    """What the next requests meet: ``decline`` (a definite no), ``fail`` (a 500 that is remembered), ``busy`` (429)."""
    effects: list[Held] = field(default_factory=list)
    remembered: dict[str, Remembered] = field(default_factory=dict)
    log: list[dict[str, Any]] = field(default_factory=list)

    def begin(self, call: Call, now: float) -> None:
        """The request is being worked on from now; repeats of its key are told so."""
        if self.terms.dedupes_s and self._known(call.key, now) is None:
            self.remembered[call.key] = Remembered(now, call.digest, call.number)

    def abandon(self, call: Call) -> None:
        """The request that was worked on comes to nothing."""
        known = self.remembered.get(call.key)
        if known is not None and known.answer is None and known.owner == call.number:
            del self.remembered[call.key]

    def do(self, call: Call, now: float, stored: Answer | None = None) -> Answer:
        """Apply a request, or say why not. ``stored``: remember this in place of the answer."""
        answer = self._do(call, now, stored)
        self.log.append({"number": call.number, "key": call.key, "at": now, "status": answer.status})
        return answer

    def _do(self, call: Call, now: float, stored: Answer | None) -> Answer:
        if now - call.handed_over > self.terms.timeout_s:
            self.abandon(call)
            return Answer(504, {"error": "expired"})
        known = self._known(call.key, now)
        if known is not None and known.digest != call.digest:
            return Answer(400, {"error": "key_reused"})
        if known is not None and known.answer is None and known.owner != call.number:
            return Answer(409, {"error": "in_progress"})
        if known is not None and known.answer is not None:
            return replace(known.answer, replayed=True)
        answer = self._handle(call, now)
        if self.terms.dedupes_s and answer.status not in (412, 429):
            first = known.first if known is not None else now
            self.remembered[call.key] = Remembered(first, call.digest, call.number, stored or answer)
        elif known is not None:
            self.abandon(call)
        return answer

    def _handle(self, call: Call, now: float) -> Answer:
        """What a request meets whose key is new."""
        trouble = self.next.pop(0) if self.next else ""
        if trouble == "busy":
            return Answer(429, {"error": "busy"})
        if trouble == "decline":
            return Answer(402, {"error": "declined"})
        if trouble == "fail":
            return Answer(500, {"error": "failed"})
        if self.terms.enforces:
            if call.version != self.version:
                return Answer(412, {"error": "version"})
            self.version += 1
        held = Held(f"{self.name}-{len(self.effects) + 1}", call.key, call.body, now, call.number)
        self.effects.append(held)
        return Answer(200, {"id": held.id})

    def _known(self, key: str, now: float) -> Remembered | None:
        known = self.remembered.get(key)
        if known is None or now - known.first >= self.terms.dedupes_s:
            return None
        return known

    def find(self, key: str, now: float, lag_s: float | None = None) -> Held | None:
        """Look an effect up, as it stood ``lag_s`` (by default the longest lag) ago."""
        horizon = now - (self.terms.lag_s if lag_s is None else lag_s)
        return next((held for held in self.effects if held.key == key and held.at <= horizon), None)

    def facts(self, without: str | None) -> dict[str, Any]:
        """The facts, leaving out what the effect under the key ``without`` has changed itself."""
        own = sum(held.key == without for held in self.effects) if self.terms.enforces else 0
        return {"owner": self.owner, "version": self.version - own}

    def to_json(self) -> dict[str, Any]:
        return {"effects": [vars(held) for held in self.effects], "log": self.log}
