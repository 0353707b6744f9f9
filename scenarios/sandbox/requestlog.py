"""What came in over the wire: one record a request, kept until the sandbox is reset."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlencode

STAGES = ("incomplete", "arriving", "received", "held", "applied", "finished")
"""How far a request got. Each later stage includes the earlier ones; ``incomplete`` never got its whole body here."""

KEPT_HEADERS = frozenset(
    {
        "content-length",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "stripe-account",
        "stripe-version",
        "user-agent",
    }
)
"""Request headers that are kept. Everything else is dropped, so no credential can stay in a record."""

SECRET_QUERY = frozenset({"access_token", "key", "oauth_token", "token"})


def stamp() -> dict[str, float]:
    """This moment in seconds by three clocks: wall, CLOCK_MONOTONIC, CLOCK_BOOTTIME (one for all processes)."""
    return {
        "wall": time.time(),
        "monotonic": time.monotonic(),
        "boottime": time.clock_gettime(time.CLOCK_BOOTTIME),
    }


@dataclass
class Record:
    """One request on the wire. ``stage`` is one of STAGES; times are stamps, see :func:`stamp`."""

    n: int
    method: str
    path: str
    query: str
    headers: dict[str, str]
    arrived: dict[str, float]
    stage: str = "arriving"
    received: dict[str, float] | None = None
    sandbox_time: float | None = None
    body_bytes: int | None = None
    body_sha256: str | None = None
    fault: str | None = None
    rule: int | None = None
    applied: list[dict[str, float]] = field(default_factory=list)
    status: int | None = None
    answered: dict[str, float] | None = None
    answer_status: int | None = None
    """Status that went back to the client; None if the connection was cut or the client had gone."""

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


class RequestLog:
    """Every request since the last reset, in order of arrival, and a way to wait for the next ones."""

    def __init__(self, kept_headers: frozenset[str] = frozenset()) -> None:
        self._kept = KEPT_HEADERS | kept_headers
        self._records: list[Record] = []
        self._numbers = itertools.count(1)  # goes on over a reset, so that a number names one request for ever
        self._waiters: set[asyncio.Event] = set()

    def arrive(self, method: str, path: str, query: str, headers: Mapping[str, str]) -> Record:
        kept = {name: value for name, value in headers.items() if name in self._kept}
        record = Record(next(self._numbers), method, path, _without_secrets(query), kept, stamp())
        self._records.append(record)
        return record

    def receive(self, record: Record, body: bytes, sandbox_time: float) -> None:
        record.received = stamp()
        record.sandbox_time = sandbox_time
        record.body_bytes = len(body)
        record.body_sha256 = hashlib.sha256(body).hexdigest()
        self.reach(record, "received")

    def reach(self, record: Record, stage: str) -> None:
        record.stage = stage
        for event in self._waiters:
            event.set()

    def select(self, method: str | None = None, path: str | None = None, stage: str | None = None) -> list[Record]:
        """Records of this method whose whole path matches the regular expression, at ``stage`` or further."""
        pattern = re.compile(path) if path else None
        least = STAGES.index(stage) if stage else 0
        return [
            record
            for record in self._records
            if (not method or record.method == method.upper())
            and (pattern is None or pattern.fullmatch(record.path))
            and STAGES.index(record.stage) >= least
        ]

    def counts(self) -> dict[str, int]:
        """Requests whose body was received, by ``"METHOD path"``."""
        return dict(Counter(f"{record.method} {record.path}" for record in self.select(stage="received")))

    async def wait(
        self, count: int, timeout_s: float, method: str | None, path: str | None, stage: str
    ) -> list[Record] | None:
        """The matching records as soon as there are ``count`` of them; None if ``timeout_s`` passed before."""
        deadline = time.monotonic() + timeout_s
        event = asyncio.Event()
        self._waiters.add(event)
        try:
            while True:
                event.clear()
                found = self.select(method, path, stage)
                if len(found) >= count:
                    return found
                try:
                    await asyncio.wait_for(event.wait(), max(0.0, deadline - time.monotonic()))
                except asyncio.TimeoutError:
                    return None
        finally:
            self._waiters.discard(event)

    def clear(self) -> None:
        self._records.clear()


def _without_secrets(query: str) -> str:
    pairs = parse_qsl(query, keep_blank_values=True)
    return urlencode([(name, "…" if name.lower() in SECRET_QUERY else value) for name, value in pairs])
