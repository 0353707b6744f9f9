"""A book of records in memory, and stories to fill it with: for trying what makes and checks receipts.

``Book`` does what a journal does with the functions of ``receipts.build``:
chain, sign, log, checkpoint, hand out receipts. ``STORIES`` holds one effect
for each way in which an effect can go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from interlock_tools.core.canonical import canonical, digest, effect_id
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.receipts.build import (
    Consistency,
    Sealed,
    build_receipt,
    connect,
    prove,
    seal_entry,
    seal_key_change,
)
from interlock_tools.receipts.checkpoint import Checkpoint, cosign, sign_checkpoint
from interlock_tools.receipts.keys import KeySigner, Signer
from interlock_tools.receipts.merkle import Tree, consistency_proof
from interlock_tools.receipts.note import Note
from interlock_tools.receipts.private import Disclosure, Path, disclose
from interlock_tools.receipts.record import KeyChange

Story = list[tuple[Kind, dict[str, Any]]]

NAME = "stripe.refund"
PAYLOAD = {"payment_intent": "pi_3Qx", "amount": 2000, "reason": "requested_by_customer"}
FACTS = {"refunded_by_others": 0, "chargebacks": []}
START_MS = 1_790_000_000_000  # 2026-09-21 UTC


def clock(ms: int) -> dict[str, Any]:
    """Return a reading of the clocks, ``ms`` after the start."""
    return {"boot": "b1", "boottime_ms": 5_000_000 + ms, "wall_ms": START_MS + ms}


def proposed(key: str, **more: Any) -> tuple[Kind, dict[str, Any]]:
    """Return the first entry of the refund for ``key``."""
    body: dict[str, Any] = {
        "effect": NAME,
        "key": key,
        "decision": 1,
        "payload": PAYLOAD,
        "payload_digest": digest(canonical(PAYLOAD)),
        "facts": FACTS,
        "decided_by": "call",
    }
    return Kind.PROPOSED, {**body, **more}


def asked(key: str) -> tuple[Kind, dict[str, Any]]:
    """Return the entry that asks for an approval of the refund for ``key``."""
    body: dict[str, Any] = {
        "effect": NAME,
        "key": key,
        "decision": 1,
        "payload_digest": digest(canonical(PAYLOAD)),
        "facts": FACTS,
    }
    return Kind.APPROVAL_REQUESTED, {"digest": digest(canonical(body)), "expires_at_ms": START_MS + 600_000}


def grant(**more: Any) -> dict[str, Any]:
    """Return a grant that covers the refund."""
    return {"id": "appr_7", "by": "dana", "max_amount": 5000, "expires_at_ms": START_MS + 3_600_000, **more}


def dispatched(send: int = 1, **more: Any) -> tuple[Kind, dict[str, Any]]:
    """Return the entry of a send."""
    body = {"send": send, "session": "s1", "mark": {"slot": send}, "clock": clock(send * 1000)}
    if send == 1:
        body["budgets"] = [{"budget": "case:4471", "amount": 2000, "limit": 3000}]
    else:
        body.update(facts=FACTS, grant=grant())
    return Kind.DISPATCHED, {**body, **more}


def _begun(key: str, **more: Any) -> Story:
    return [proposed(key, **more), (Kind.AUTHORIZED, {"grant": grant()}), dispatched()]


EVIDENCE = {"id": "re_1", "amount": 2000, "status": "succeeded"}
_COMMITTED = (Kind.COMMITTED, {"evidence": EVIDENCE, "by_us": "yes", "via": "send", "send": 1})
_ORPHANED = (Kind.ORPHANED, {"send": 1, "clock": clock(2000)})
_NOT_LANDED = (Kind.NOT_LANDED, {"sends": [1], "proof": "lookup"})


def _stories() -> dict[str, Story]:
    """A table, and as long as it has to be."""
    unknown = (Kind.UNKNOWN, {"send": 1, "cause": "ReadTimeout", "clock": clock(2000)})
    resent = {"evidence": EVIDENCE, "by_us": "yes", "via": "resend", "send": 2}
    ambiguous = [*_begun("ambiguous"), unknown, (Kind.AMBIGUOUS, {"reason": "no_evidence"})]
    refused = [
        proposed("refused"),
        (Kind.REFUSED, {"reason": "stale_premise", "facts": {**FACTS, "refunded_by_others": 500}}),
    ]
    return {
        "committed": [*_begun("committed"), _COMMITTED],
        "settled": [*_begun("settled"), _COMMITTED, (Kind.SETTLED, {"state": "settled", "detail": None})],
        "reversed": [
            *_begun("reversed"),
            _COMMITTED,
            (Kind.SETTLED, {"state": "reversed", "detail": {"failure_reason": "expired_or_canceled_card"}}),
            (Kind.RELEASED, {"why": "reversed"}),
        ],
        "resent": [*_begun("resent"), _ORPHANED, dispatched(2, resend=True), (Kind.COMMITTED, resent)],
        "sent_again": [
            *_begun("sent_again"),
            _ORPHANED,
            _NOT_LANDED,
            dispatched(2),
            (Kind.COMMITTED, {**resent, "via": "send"}),
        ],
        "looked_up": [
            *_begun("looked_up"),
            unknown,
            (Kind.COMMITTED, {"evidence": EVIDENCE, "by_us": "unknown", "via": "lookup"}),
        ],
        "lost": [
            *_begun("lost"),
            (Kind.SENDER_LOST, {"send": 1, "clock": clock(2000), "lease_ms": 15_000}),
            (Kind.COMMITTED, {"evidence": EVIDENCE, "by_us": "yes", "via": "lookup"}),
        ],
        "approved": [
            proposed("approved", decided_by="propose", by="agent-9"),
            asked("approved"),
            (Kind.APPROVED, {"digest": asked("approved")[1]["digest"], "by": "dana", "why": "customer is right"}),
            (Kind.AUTHORIZED, {"grant": None}),
            dispatched(facts=FACTS, grant=None),
            _COMMITTED,
        ],
        "rejected": [
            proposed("rejected"),
            asked("rejected"),
            (Kind.REJECTED, {"digest": asked("rejected")[1]["digest"], "by": "dana", "why": "no"}),
            (Kind.REFUSED, {"reason": "rejected"}),
        ],
        "refused": refused,
        "declined": [
            *_begun("declined"),
            (Kind.NOT_LANDED, {"sends": [1], "proof": "definite_no", "code": "charge_disputed"}),
            (Kind.REFUSED, {"reason": "rejected", "code": "charge_disputed"}),
        ],
        "replaced": [
            proposed("replaced"),
            refused[1],
            (Kind.REPLACED, {"effect_id": "0" * 32, "by": "dana"}),
        ],
        "ambiguous": ambiguous,
        "resolved": [*_retold(ambiguous, "resolved"), (Kind.RESOLVED, {"landed": True, "by": "sam", "why": "seen"})],
        "resolved_no": [
            *_retold(ambiguous, "resolved_no"),
            (Kind.RESOLVED, {"landed": False, "by": "sam", "why": "not on the statement"}),
        ],
        "late": [
            *_begun("late"),
            (Kind.NOT_LANDED, {"sends": [1], "proof": "not_sent"}),
            (Kind.REFUSED, {"reason": "unreachable"}),
            (Kind.LATE, {"send": 1, "result": {"ending": "evidence", "evidence": EVIDENCE}}),
        ],
        "late_resolved": [
            *_begun("late_resolved"),
            (Kind.NOT_LANDED, {"sends": [1], "proof": "not_sent"}),
            (Kind.REFUSED, {"reason": "unreachable"}),
            (Kind.LATE, {"send": 1, "result": {"ending": "evidence", "evidence": EVIDENCE}}),
            (Kind.RESOLVED, {"landed": True, "by": "sam", "why": "it is on the statement"}),
        ],
        "in_flight": _begun("in_flight"),
        "decided": [proposed("decided", decided_by="propose")],
    }


def _retold(story: Story, key: str) -> Story:
    return [proposed(key), *story[1:]]


STORIES = _stories()
"""One effect for each way in which an effect can go, by name; the name is also its request key."""


class Book:
    """Records, a tree and checkpoints in memory.

    Args:
        writer: signs records; None where signing is off.
        log: signs checkpoints, under the log's name.
        private: what is hidden in records.
        shared: whether entries that are written together share a signature, as in a journal.
    """

    def __init__(
        self, writer: Signer | None, log: Signer | None = None, private: Sequence[Path] = (), shared: bool = False
    ) -> None:
        self.shared = shared
        self.writer = writer
        self.log = log
        self.private = private
        self.secret = b"a secret of this book"
        self.tree = Tree()
        self.nodes: dict[tuple[int, int], bytes] = {}
        self.entries: dict[str, list[Entry]] = {}
        self.records: dict[str, list[Sealed]] = {}
        self.positions: dict[str, list[int]] = {}
        self.keys: list[tuple[Sealed, int]] = []
        self.notes: list[Note] = []

    def read(self, level: int, position: int) -> bytes:
        """Return a stored node."""
        return self.nodes[level, position]

    def write(self, story: Story, *, start_ms: int = START_MS) -> str:
        """Append a story and return its effect's id. A story that goes on with an effect has no PROPOSED."""
        first = story[0][1]
        return self.go_on(effect_id(first["effect"], first["key"], first["decision"]), story, start_ms=start_ms)

    def go_on(self, effect: str, story: Story, *, start_ms: int = START_MS) -> str:
        """Append further entries to an effect."""
        entries = self.entries.setdefault(effect, [])
        last = len(entries) + len(story)
        for kind, body in story:
            number = len(entries) + 1
            covered_by = last if self.shared and number != last else None
            self.append(Entry(effect, number, kind, start_ms + number * 1000, body), covered_by)
        return effect

    def append(self, entry: Entry, covered_by: int | None = None) -> None:
        """Append one entry: its record, its leaf."""
        records = self.records.setdefault(entry.effect_id, [])
        prev = records[-1].hash if records else None
        service = {"name": "stripe", "account": "acct_1"} if not records else None
        sealed = seal_entry(
            entry,
            prev,
            self.writer,
            service=service,
            private=self.private,
            secret=self.secret if self.private else b"",
            covered_by=covered_by,
        )
        self.entries.setdefault(entry.effect_id, []).append(entry)
        records.append(sealed)
        self.positions.setdefault(entry.effect_id, []).append(self.grow(sealed.hash))

    def change_key(self, change: KeyChange, signer: Signer | None) -> None:
        """Append a key change."""
        sealed = seal_key_change(change, signer)
        self.keys.append((sealed, self.grow(sealed.hash)))

    def grow(self, leaf: bytes) -> int:
        """Append a leaf (a record's hash) and return its position."""
        position = self.tree.size
        self.tree, new = self.tree.append(leaf)
        self.nodes.update({(node.level, node.position): node.hash for node in new})
        return position

    def checkpoint(
        self, witnesses: Iterable[KeySigner] = (), time_s: int = START_MS // 1000 + 60, *more: Signer
    ) -> Note:
        """Sign the log as it is, have it cosigned, and keep it."""
        assert self.log is not None
        note = sign_checkpoint(Checkpoint(self.log.name, self.tree.size, self.tree.root), self.log, *more)
        note = note.with_signatures(cosign(note.text, witness, time_s) for witness in witnesses)
        self.notes.append(note)
        return note

    def between(self, old: int, new: int) -> list[bytes]:
        """Return a consistency proof."""
        return consistency_proof(old, new, self.read)

    def receipt(self, effect: str, *, disclosing: Sequence[Path] = (), head: Signer | None = None) -> bytes:
        """Return the effect's receipt."""
        proofs = prove(self.positions[effect], self.notes, self.read)
        changes = prove([position for _, position in self.keys], self.notes, self.read)
        consistency: list[Consistency] = connect([*proofs, *changes], self.read)
        disclosures: list[Disclosure] = []
        if disclosing:
            for entry in self.entries[effect]:
                disclosures += disclose(entry.seq, entry.body, disclosing, self.secret)
        return build_receipt(
            [sealed.envelope for sealed in self.records[effect]],
            head or self.writer,
            self.entries[effect][-1].at_ms + 1000,
            proofs=proofs,
            consistency=consistency,
            keys=[(sealed.envelope, proof) for (sealed, _), proof in zip(self.keys, changes, strict=True)],
            disclosures=disclosures,
        )
