"""The receipt file, read strictly into values. Nothing is verified here."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from .build import RECEIPT, Consistency
from .dsse import IN_TOTO, Envelope
from .errors import FormatError
from .private import Disclosure
from .proof import Proof, parse_proof
from .record import Head, KeyChange, Record, record_hash
from .strict import members, parse_json

MAX_RECEIPT_BYTES = 1 << 24
_MOST = {"records": 2000, "proofs": 2000, "consistency": 64, "keys": 200, "disclosures": 2000}
_MAX_CHECKPOINTS = 64


@dataclass(frozen=True, slots=True)
class Item:
    """A logged statement: its envelope, its hash, and the proof where it is in the log."""

    envelope: Envelope
    hash: bytes
    proof: Proof | None

    @property
    def position(self) -> int | None:
        """Where in the log the proof puts it."""
        return self.proof.index if self.proof is not None else None


@dataclass(frozen=True, slots=True)
class Opened:
    """A receipt that could be read."""

    items: tuple[Item, ...]
    records: tuple[Record, ...]
    head_envelope: Envelope
    head: Head
    consistency: tuple[Consistency, ...]
    keys: tuple[tuple[Item, KeyChange], ...]
    disclosures: tuple[Disclosure, ...]

    @property
    def logged(self) -> list[Item]:
        """Everything in the receipt that comes with a proof."""
        return [item for item in (*self.items, *(item for item, _ in self.keys)) if item.proof is not None]


def open_receipt(data: bytes | dict[str, Any]) -> Opened:
    """Read a receipt.

    Raises:
        FormatError: for anything that is not exactly a receipt, and where it is not.
    """
    document = parse_json(_as_bytes(data), MAX_RECEIPT_BYTES)
    lists: dict[str, type] = {"proofs": list, "consistency": list, "keys": list, "disclosures": list}
    fields = members(document, "receipt", {"type": str, "records": list, "head": dict}, lists)
    if fields["type"] != RECEIPT:
        raise FormatError(f"a receipt of type {fields['type'][:60]!r}, which is not known here")
    for name, most in _MOST.items():
        if len(fields.get(name, ())) > most:
            raise FormatError(f"a receipt with more than {most} {name}")
    if not fields["records"]:
        raise FormatError("a receipt without records")
    proofs = [_proof(item) for item in fields.get("proofs", [None] * len(fields["records"]))]
    if len(proofs) != len(fields["records"]):
        raise FormatError(f"{len(proofs)} proofs for {len(fields['records'])} records")
    items = tuple(_item(record, proof) for record, proof in zip(fields["records"], proofs, strict=True))
    head = Envelope.from_json(fields["head"])
    opened = Opened(
        items,
        tuple(Record.parse(item.envelope.payload) for item in items),
        head,
        Head.parse(_in_toto(head).payload),
        tuple(map(Consistency.from_json, fields.get("consistency", []))),
        tuple(map(_key_change, fields.get("keys", []))),
        tuple(map(Disclosure.from_json, fields.get("disclosures", []))),
    )
    if len({str(item.proof.note) for item in opened.logged if item.proof is not None}) > _MAX_CHECKPOINTS:
        raise FormatError(f"a receipt with more than {_MAX_CHECKPOINTS} checkpoints")
    return opened


def _as_bytes(data: bytes | dict[str, Any]) -> bytes:
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    try:
        return json.dumps(data, allow_nan=False).encode("ascii")
    except (TypeError, ValueError, RecursionError):
        raise FormatError("a receipt is bytes, or a dict of plain JSON values") from None


def _proof(value: Any) -> Proof | None:
    if value is None:
        return None
    if type(value) is not str:
        raise FormatError("a proof that is neither text nor null")
    return parse_proof(value)


def _item(envelope: Any, proof: Proof | None) -> Item:
    sealed = _in_toto(Envelope.from_json(envelope))
    return Item(sealed, record_hash(sealed.payload), proof)


def _in_toto(envelope: Envelope) -> Envelope:
    if envelope.payload_type != IN_TOTO:
        raise FormatError(f"an envelope of type {envelope.payload_type[:60]!r} where {IN_TOTO} belongs")
    return envelope


def _key_change(value: Any) -> tuple[Item, KeyChange]:
    if type(value) is not dict or value.keys() != {"record", "proof"}:
        raise FormatError("a key change is an object with record and proof")
    item = _item(value["record"], _proof(value["proof"]))
    return item, KeyChange.parse(item.envelope.payload)
