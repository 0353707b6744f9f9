"""Records: in-toto Statements v1 in RFC 8785 bytes.

One record says what one journal entry says. Two more statements exist: a key
change, which adds or retires a key, and a head, which says how many records a
receipt holds and which is the last. All three are written in exactly one way
and read back strictly.

A record's hash is that of its log leaf, SHA-256(0x00 ‖ PAE), in hex. ``prev``
is the hash of the same effect's previous record.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from interlock_tools.core.entries import Entry, Kind

from .bodies import check_body
from .dsse import IN_TOTO, pae
from .errors import FormatError
from .keys import NOTE_SIGNATURE, VerifierKey, parse_verifier_key
from .merkle import HASH_SIZE, leaf_hash
from .strict import canonical_json, members, parse_canonical_json, parse_hex

STATEMENT = "https://in-toto.io/Statement/v1"
RECORD = "urn:interlock-tools:record:v1"
KEY_CHANGE = "urn:interlock-tools:key-change:v1"
HEAD = "urn:interlock-tools:receipt-head:v1"

_EFFECT_ID_BYTES = 16
_KINDS = {kind.value: kind for kind in Kind}
_OPTIONAL: dict[str, type] = {"service": dict, "covered_by": int}


def record_hash(payload: bytes) -> bytes:
    """Return the hash of a record from its payload: what goes into the log and into the next record's ``prev``."""
    return leaf_hash(pae(IN_TOTO, payload))


def record_payload(
    entry: Entry, body_text: str, prev: str | None, service_text: str | None = None, covered_by: int | None = None
) -> bytes:
    """Return the canonical bytes of a record from canonical parts. On the path of every effect, so written out."""
    service = "" if service_text is None else f',"service":{service_text}'
    covered = "" if covered_by is None else f'"covered_by":{covered_by},'
    chained = "null" if prev is None else f'"{prev}"'
    text = (
        f'{{"_type":"{STATEMENT}","predicate":{{"at_ms":{entry.at_ms},"body":{body_text},{covered}'
        f'"kind":"{entry.kind._value_}","prev":{chained},"seq":{entry.seq}{service}}},'
        f'"predicateType":"{RECORD}","subject":[{{"digest":{{"effectId":"{entry.effect_id}"}}}}]}}'
    )
    return text.encode("utf-8")


@dataclass(frozen=True, slots=True)
class Record:
    """One journal entry, chained.

    Attributes:
        entry: the entry; private values in its body are replaced by salted digests.
        prev: hex hash of the effect's previous record, None for its first.
        service: whom it was done at: ``name``, ``account`` and what else tells accounts apart.
        covered_by: the number of the later record whose signature covers this one, which has none of its own: the
            last of those that were committed together. None: it has a signature of its own.
    """

    entry: Entry
    prev: str | None
    service: Mapping[str, str] | None = None
    covered_by: int | None = None

    def payload(self, body_text: str | None = None) -> bytes:
        """Return the canonical bytes of the statement.

        Args:
            body_text: the body's canonical text, where the caller has it
                already; it is the larger part of the work.

        Raises:
            FormatError: something has no canonical form.
        """
        if body_text is None:
            body_text = canonical_json(self.entry.body).decode("utf-8")
        service = None if self.service is None else canonical_json(dict(self.service)).decode("utf-8")
        return record_payload(self.entry, body_text, self.prev, service, self.covered_by)

    @staticmethod
    def parse(payload: bytes) -> Record:
        """Read the canonical bytes of a record. Raises ``FormatError``."""
        subject, predicate = _parse_statement(payload, RECORD)
        effect_id = _effect_id(subject)
        prev = predicate.pop("prev", "")
        if prev is not None and type(prev) is not str:
            raise FormatError("record: prev is neither a hash nor null")
        fields = members(predicate, "record", {"kind": str, "seq": int, "at_ms": int, "body": dict}, _OPTIONAL)
        if fields["kind"] not in _KINDS:
            raise FormatError(f"record of an unknown kind: {fields['kind'][:40]!r}")
        if prev is not None:
            parse_hex(prev, HASH_SIZE, "record: prev")
        service = fields.get("service")
        if service is not None and not all(type(value) is str for value in service.values()):
            raise FormatError("record: service holds something other than text")
        covered_by = fields.get("covered_by")
        if covered_by is not None and covered_by <= fields["seq"]:
            raise FormatError("record: it is covered by a record that does not follow it")
        kind = _KINDS[fields["kind"]]
        check_body(kind, fields["body"])
        entry = Entry(effect_id, fields["seq"], kind, fields["at_ms"], fields["body"])
        return Record(entry, prev, service, covered_by)


@dataclass(frozen=True, slots=True)
class KeyChange:
    """A key that may be used from now on, or no longer.

    Attributes:
        action: ``add`` or ``retire``.
        role: ``writer``, or ``log`` where the log moves to another key.
        key: the key.
        at_ms: the writer's UTC clock.
    """

    action: str
    role: str
    key: VerifierKey
    at_ms: int

    def payload(self) -> bytes:
        """Return the canonical bytes of the statement. Raises ``FormatError``."""
        predicate = {"action": self.action, "role": self.role, "key": str(self.key), "at_ms": self.at_ms}
        return _statement(KEY_CHANGE, _key_subject(self.key), predicate)

    @staticmethod
    def parse(payload: bytes) -> KeyChange:
        """Read the canonical bytes of a key change. Raises ``FormatError``."""
        subject, predicate = _parse_statement(payload, KEY_CHANGE)
        fields = members(predicate, "key change", {"action": str, "role": str, "key": str, "at_ms": int})
        if fields["action"] not in ("add", "retire") or fields["role"] not in ("writer", "log"):
            raise FormatError("key change: action is add or retire, role is writer or log")
        key = parse_verifier_key(fields["key"], (NOTE_SIGNATURE,))
        if subject != _key_subject(key):
            raise FormatError("key change: its subject is another key")
        return KeyChange(fields["action"], fields["role"], key, fields["at_ms"])


@dataclass(frozen=True, slots=True)
class Head:
    """How many records of an effect there were when a receipt was issued, and the hash of the last.

    Attributes:
        effect_id: the effect.
        records: how many.
        last: hex hash of the last one.
        issued_at_ms: the issuer's UTC clock.
    """

    effect_id: str
    records: int
    last: str
    issued_at_ms: int

    def payload(self) -> bytes:
        """Return the canonical bytes of the statement. Raises ``FormatError``."""
        predicate = {"records": self.records, "last": self.last, "issued_at_ms": self.issued_at_ms}
        return _statement(HEAD, _effect_subject(self.effect_id), predicate)

    @staticmethod
    def parse(payload: bytes) -> Head:
        """Read the canonical bytes of a head. Raises ``FormatError``."""
        subject, predicate = _parse_statement(payload, HEAD)
        fields = members(predicate, "head", {"records": int, "last": str, "issued_at_ms": int})
        parse_hex(fields["last"], HASH_SIZE, "head: last")
        return Head(_effect_id(subject), fields["records"], fields["last"], fields["issued_at_ms"])


def _statement(predicate_type: str, subject: dict[str, Any], predicate: dict[str, Any]) -> bytes:
    return canonical_json(
        {"_type": STATEMENT, "predicateType": predicate_type, "subject": [subject], "predicate": predicate}
    )


def _parse_statement(payload: bytes, predicate_type: str) -> tuple[dict[str, Any], dict[str, Any]]:
    value = parse_canonical_json(payload)
    fields = members(value, "statement", {"_type": str, "predicateType": str, "subject": list, "predicate": dict})
    if fields["_type"] != STATEMENT:
        raise FormatError(f"not an in-toto Statement v1: {fields['_type'][:60]!r}")
    if fields["predicateType"] != predicate_type:
        raise FormatError(f"a statement of type {fields['predicateType'][:60]!r} where {predicate_type} belongs")
    if len(fields["subject"]) != 1:
        raise FormatError("a statement with other than one subject")
    return fields["subject"][0], fields["predicate"]


def _effect_subject(effect_id: str) -> dict[str, Any]:
    return {"digest": {"effectId": effect_id}}


def _effect_id(subject: Any) -> str:
    digest = members(members(subject, "subject", {"digest": dict})["digest"], "digest", {"effectId": str})
    effect_id: str = digest["effectId"]
    parse_hex(effect_id, _EFFECT_ID_BYTES, "effect id")
    return effect_id


def _key_subject(key: VerifierKey) -> dict[str, Any]:
    return {"name": key.name, "digest": {"sha256": hashlib.sha256(key.public_key).hexdigest()}}
