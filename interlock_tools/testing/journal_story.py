"""Appends sample entries of one effect to a journal, one after the other. For tests of journals."""

from __future__ import annotations

from typing import Any

from ..core import canonical
from ..core.entries import Entry, Kind
from ..core.states import Send, State, fold
from ..journal.protocol import Journal, SendSlot, Write

TO_DISPATCHED = (Kind.PROPOSED, Kind.AUTHORIZED, Kind.DISPATCHED)
"""The entries of a plain call up to its send."""


class Story:
    """One effect and what happens to it.

    Args:
        journal: where it is recorded.
        key: its request key.
        decision: its decision's number.
        name: the effect's name.
    """

    def __init__(self, journal: Journal, key: str = "case 1", decision: int = 1, name: str = "kit.refund") -> None:
        self.journal = journal
        self.name = name
        self.key = key
        self.decision = decision
        self.effect_id = canonical.effect_id(name, key, decision)
        self.seq = 0
        self.sends = 0
        self.slot: SendSlot | None = None

    def write(self, *kinds: Kind, **changes: Any) -> Write:
        """Return what would append entries of these kinds. ``changes`` replace parts of the last one's body."""
        entries = []
        for index, kind in enumerate(kinds, start=1):
            body = self.body(kind)
            if index == len(kinds):
                body.update(changes)
            entries.append(Entry(self.effect_id, self.seq + index, kind, self.journal.now().wall_ms, body))
        return Write(self.effect_id, self.seq, tuple(entries))

    def append(self, *kinds: Kind, **changes: Any) -> Story:
        """Append entries of these kinds in one transaction."""
        return self.carry_out(self.write(*kinds, **changes))

    def carry_out(self, write: Write) -> Story:
        """Append a write of this story."""
        self.journal.append([write])
        return self.note(write)

    def note(self, write: Write) -> Story:
        """Take note that a write of this story has been appended."""
        self.seq += len(write.entries)
        self.sends += sum(entry.kind is Kind.DISPATCHED for entry in write.entries)
        return self

    def dispatch(self, **changes: Any) -> Story:
        """Record the effect up to a send that has a slot of its own, or a further such send."""
        self.slot = self.journal.new_slot(self.effect_id)
        kinds = TO_DISPATCHED if self.seq == 0 else TO_DISPATCHED[-1:]
        return self.append(*kinds, session=self.slot.session, mark=self.slot.mark, **changes)

    def state(self) -> State:
        """Fold what the journal holds."""
        return fold(self.journal.entries(self.effect_id))

    def last_send(self) -> Send:
        """Return the last send as the journal holds it."""
        return self.state().sends[-1]

    def body(self, kind: Kind) -> dict[str, Any]:
        """Return a body that the core accepts for an entry of this kind that comes next."""
        clock = self.journal.now().to_json()
        payload = {"amount": 2000, "case": self.key}
        bodies: dict[Kind, dict[str, Any]] = {
            Kind.PROPOSED: {
                "effect": self.name,
                "key": self.key,
                "decision": self.decision,
                "payload": payload,
                "payload_digest": canonical.digest(canonical.encode(payload)),
                "facts": {"refunded_by_others": 0},
                "decided_by": "call",
            },
            Kind.AUTHORIZED: {"grant": None},
            Kind.DISPATCHED: {"send": self.sends + 1, "session": "none", "mark": None, "clock": clock},
            Kind.UNKNOWN: {"send": self.sends, "cause": "TimeoutError", "clock": clock},
            Kind.NOT_LANDED: {"sends": [self.sends], "proof": "not_sent"},
            Kind.ORPHANED: {"send": self.sends, "clock": clock},
            Kind.SENDER_LOST: {"send": self.sends, "clock": clock, "lease_ms": 0},
            Kind.COMMITTED: {"evidence": {"id": "re_1"}, "by_us": "yes", "via": "send", "send": self.sends},
            Kind.REFUSED: {"reason": "unreachable"},
            Kind.AMBIGUOUS: {"reason": "no_evidence"},
            Kind.RESOLVED: {"landed": False, "by": "ann", "why": "asked the bank"},
            Kind.REPLACED: {"effect_id": canonical.effect_id(self.name, self.key, self.decision + 1), "by": "ann"},
            Kind.APPROVAL_REQUESTED: {"digest": "d" * 64, "expires_at_ms": self.journal.now().wall_ms + 3_600_000},
            Kind.APPROVED: {"digest": "d" * 64, "by": "ann", "why": ""},
            Kind.REJECTED: {"digest": "d" * 64, "by": "ann", "why": ""},
            Kind.RELEASED: {"why": "reversed"},
            Kind.SETTLED: {"state": "succeeded", "detail": ""},
            Kind.LATE: {"send": max(self.sends, 1), "result": {"ending": "unknown"}},
        }
        return bodies[kind]
