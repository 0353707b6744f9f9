"""Making records and receipts. What the journal calls, with values it already has.

When an entry is written: ``seal_entry`` makes its record, ``Tree.append`` its
place in the log; both are stored in the entry's transaction. When a checkpoint
is due: ``sign_checkpoint``. When a receipt is asked for: ``prove`` picks the
checkpoints and proofs, ``build_receipt`` writes the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from interlock_tools.core.entries import Entry

from .checkpoint import parse_checkpoint
from .dsse import Envelope, seal
from .errors import FormatError
from .keys import Signer
from .merkle import ReadNode, consistency_proof, inclusion_proof
from .note import Note
from .private import Disclosure, Path, conceal
from .proof import Proof
from .record import Head, KeyChange, Record, record_hash
from .strict import format_base64, members, parse_base64, parse_decimal

RECEIPT = "urn:interlock-tools:receipt:v1"
"""The ``type`` of a receipt file."""


@dataclass(frozen=True, slots=True)
class Sealed:
    """A record as it is stored beside its entry, and its hash: the log's leaf, and the next record's ``prev``."""

    envelope: Envelope
    hash: bytes


@dataclass(frozen=True, slots=True)
class Consistency:
    """That the log of ``new`` records extends the log of ``old`` records."""

    old: int
    new: int
    hashes: tuple[bytes, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as it stands in a receipt; sizes are text, like in a checkpoint."""
        return {"old": str(self.old), "new": str(self.new), "hashes": [format_base64(item) for item in self.hashes]}

    @staticmethod
    def from_json(value: Any) -> Consistency:
        """Read it back. Raises ``FormatError``."""
        fields = members(value, "consistency proof", {"old": str, "new": str, "hashes": list})
        if len(fields["hashes"]) > 64 or not all(type(item) is str for item in fields["hashes"]):
            raise FormatError("consistency proof: hashes is not a list of at most 64 texts")
        hashes = tuple(parse_base64(item, "consistency proof hash", 32) for item in fields["hashes"])
        return Consistency(parse_decimal(fields["old"], "old size"), parse_decimal(fields["new"], "new size"), hashes)


def seal_entry(
    entry: Entry,
    prev: bytes | None,
    signer: Signer | None,
    *,
    service: Mapping[str, str] | None = None,
    private: Sequence[Path] = (),
    secret: bytes = b"",
    body_text: str | None = None,
    covered_by: int | None = None,
) -> Sealed:
    """Return the record of a journal entry, signed if there is a signer and no later record covers it.

    Args:
        entry: the entry as it is written to the journal.
        prev: the hash of the effect's previous record, None for the first.
        signer: the writer's key, or None where signing is off.
        service: whom the effect is done at, for the first record.
        private: values to hide (see ``private``).
        secret: the effect's secret, needed where something is private.
        body_text: the canonical text of the entry's body, where the journal has
            it at hand.
        covered_by: the number of the last entry that is committed together with
            this one, whose signature covers it; None for that one itself.

    Raises:
        FormatError: something has no canonical form, or a secret is needed.
    """
    if private:
        if len(secret) < 16:
            raise FormatError("private values need a secret of at least 16 bytes")
        entry, body_text = replace(entry, body=conceal(entry.body, private, secret)), None
    payload = Record(entry, prev.hex() if prev is not None else None, service, covered_by).payload(body_text)
    return Sealed(seal(payload, signer if covered_by is None else None), record_hash(payload))


def seal_key_change(change: KeyChange, signer: Signer | None) -> Sealed:
    """Return the record of a key change, signed by a key that is already trusted."""
    payload = change.payload()
    return Sealed(seal(payload, signer), record_hash(payload))


def prove(positions: Sequence[int | None], notes: Sequence[Note], read: ReadNode) -> list[Proof | None]:
    """Return for each record the proof that leads to the earliest of the checkpoints that covers it.

    Args:
        positions: where each record is in the log; None where it is in none yet.
        notes: signed checkpoints of the log, in any order, with the cosignatures
            that they have. Give those that were witnessed, and the latest one.
        read: the log's stored nodes.
    """
    checkpoints = sorted(((parse_checkpoint(note.text), note) for note in notes), key=lambda pair: pair[0].size)
    proofs: list[Proof | None] = []
    for position in positions:
        found = None
        for checkpoint, note in checkpoints if position is not None else ():
            if position is not None and position < checkpoint.size:
                path = inclusion_proof(position, checkpoint.size, read)
                found = Proof(position, tuple(path), checkpoint, note)
                break
        proofs.append(found)
    return proofs


def connect(proofs: Sequence[Proof | None], read: ReadNode) -> list[Consistency]:
    """Return the consistency proofs between the checkpoints of ``proofs``, from each size to the next."""
    sizes = sorted({proof.checkpoint.size for proof in proofs if proof is not None})
    return [Consistency(old, new, tuple(consistency_proof(old, new, read))) for old, new in pairwise(sizes)]


def build_receipt(
    records: Sequence[Envelope],
    signer: Signer | None,
    issued_at_ms: int,
    *,
    proofs: Sequence[Proof | None] = (),
    consistency: Sequence[Consistency] = (),
    keys: Sequence[tuple[Envelope, Proof | None]] = (),
    disclosures: Sequence[Disclosure] = (),
) -> bytes:
    """Return a receipt file.

    Args:
        records: all records of one effect, in order; at least one.
        signer: the writer's key, to sign how many records there are.
        issued_at_ms: UTC milliseconds since 1970.
        proofs: one for each record, None for those that no checkpoint covers; or empty.
        consistency: as ``connect`` returns them for all proofs, those of ``keys`` too.
        keys: key changes that lead from keys of a policy to those used here, in order.
        disclosures: private values that this reader may see.

    Raises:
        FormatError: no records, or another number of proofs than of records.
    """
    if not records:
        raise FormatError("a receipt needs at least one record")
    if proofs and len(proofs) != len(records):
        raise FormatError(f"{len(proofs)} proofs for {len(records)} records")
    last = records[-1].payload
    head = Head(Record.parse(last).entry.effect_id, len(records), record_hash(last).hex(), issued_at_ms)
    document: dict[str, Any] = {
        "type": RECEIPT,
        "records": [record.to_json() for record in records],
        "head": seal(head.payload(), signer).to_json(),
    }
    if any(proof is not None for proof in proofs):
        document["proofs"] = [None if proof is None else str(proof) for proof in proofs]
    if consistency:
        document["consistency"] = [item.to_json() for item in consistency]
    if keys:
        document["keys"] = [
            {"record": envelope.to_json(), "proof": None if proof is None else str(proof)} for envelope, proof in keys
        ]
    if disclosures:
        document["disclosures"] = [item.to_json() for item in disclosures]
    return json.dumps(document, ensure_ascii=False, indent=1).encode("utf-8") + b"\n"
