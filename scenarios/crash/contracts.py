"""What the service promises in a cell. Plain data, used by the worker, the oracle and the service's set-up alike."""

from __future__ import annotations

from dataclasses import dataclass

SEND_TIMEOUT_S = 0.8
"""After this a request is thrown away by the service, in every cell."""


@dataclass(frozen=True)
class Contract:
    """What the service promises. Durations in seconds.

    Attributes:
        dedupes_s: how long a key is remembered; -1 for ever, 0 not at all.
        enforces: the service refuses a request for another version, and a landing makes a new one.
        own_seen: the premises do not leave out what the effect itself changed.
        final: the declaration says that nobody can bring an old version back.
        lookup, lag_s: an effect can be found by its id, and how stale the answer is.
        marks: the declaration lets marks count.
        on_send: the send function takes ``on_send``.
    """

    dedupes_s: float = 0.0
    enforces: bool = False
    own_seen: bool = False
    final: bool = False
    lookup: bool = False
    lag_s: float = 0.0
    marks: bool = True
    on_send: bool = True

    @property
    def window(self) -> str:
        """Whether a key that has been used is still known when recovery comes: ``none``, ``open`` or ``either``."""
        if not self.dedupes_s:
            return "none"
        return "open" if self.dedupes_s == -1 or self.dedupes_s > 30 else "either"


SHORT_S = SEND_TIMEOUT_S + 0.5
"""A window of which little or nothing is left when a process has been restarted."""

CONTRACTS: dict[str, Contract] = {
    "neither": Contract(),
    "dedupes": Contract(dedupes_s=-1),
    "dedupes_day": Contract(dedupes_s=86_400),
    "dedupes_short": Contract(dedupes_s=SHORT_S),
    "enforces": Contract(enforces=True),
    "enforces_own_seen": Contract(enforces=True, own_seen=True),
    "lookup": Contract(lookup=True),
    "lookup_lag": Contract(lookup=True, lag_s=0.3),
    "lookup_unmarked": Contract(lookup=True, marks=False),
    "dedupes+enforces": Contract(dedupes_s=-1, enforces=True),
    "dedupes+lookup": Contract(dedupes_s=-1, lookup=True, lag_s=0.3),
    "dedupes_short+lookup": Contract(dedupes_s=SHORT_S, lookup=True),
    "enforces+lookup": Contract(enforces=True, lookup=True, lag_s=0.3),
    "enforces_own_seen+lookup": Contract(enforces=True, own_seen=True, lookup=True),
    "enforces_final+lookup": Contract(enforces=True, final=True, lookup=True, lag_s=0.3),
    "dedupes+enforces+lookup": Contract(dedupes_s=-1, enforces=True, lookup=True),
    "neither_no_hook": Contract(on_send=False),
    "lookup_no_hook": Contract(lookup=True, on_send=False),
}
