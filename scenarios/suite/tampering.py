"""Whether a changed copy of a record is caught by somebody without the writer's keys, for several kinds of change.

The one who changes it has the file and can make keys of his own, as anybody
can; he does not have the writer's. Each change keeps the file well-formed.
"""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

Receipt = dict[str, Any]


def tampered(record: Mapping[str, Any]) -> dict[str, str]:
    """By kind of change: ``caught`` if the copy does not verify under the published keys, else ``not caught``.

    A record that carries nothing to check it by catches nothing. If the
    genuine one does not verify, that is what is told.
    """
    if record.get("policy") is None:
        return dict.fromkeys(CHANGES, "not caught")
    from interlock_tools import parse_policy, verify

    policy = parse_policy(record["policy"])
    genuine = verify(record["receipt"], policy)
    if genuine.failed:
        return dict.fromkeys(CHANGES, f"the genuine one fails: {', '.join(genuine.failed)}")
    found = {}
    for name, change in CHANGES.items():
        copy: Receipt = json.loads(json.dumps(record["receipt"]))
        change(copy)
        found[name] = "caught" if verify(copy, policy).failed else "not caught"
    return found


def _edit(receipt: Receipt) -> None:
    """The last record is moved by a millisecond."""
    last = receipt["records"][-1]
    statement = json.loads(base64.b64decode(last["payload"]))
    statement["predicate"]["at_ms"] += 1
    text = json.dumps(statement, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    last["payload"] = base64.b64encode(text.encode()).decode()


def _delete(receipt: Receipt) -> None:
    """A record in the middle is taken out."""
    del receipt["records"][len(receipt["records"]) // 2]


def _reorder(receipt: Receipt) -> None:
    """The last two records change places."""
    records = receipt["records"]
    records[-1], records[-2] = records[-2], records[-1]


def _truncate(receipt: Receipt) -> None:
    """What came last is cut off, back to the signed record before it, and a new head is signed for the rest."""
    records = receipt["records"]
    records.pop()
    while len(records) > 1 and not records[-1]["signatures"]:
        records.pop()
    _new_head(receipt)


def _append(receipt: Receipt) -> None:
    """A record is forged, linked to the last one and signed, with a head that counts it."""
    from interlock_tools.core.entries import Entry, Kind
    from interlock_tools.receipts.dsse import Envelope
    from interlock_tools.receipts.record import Record, record_hash

    last = Envelope.from_json(receipt["records"][-1])
    parsed = Record.parse(last.payload)
    kind, body = Kind.SETTLED, {"state": "reversed", "detail": None}
    if parsed.entry.kind not in (Kind.COMMITTED, Kind.SETTLED):
        kind, body = Kind.LATE, {}
    entry: Entry = replace(parsed.entry, seq=parsed.entry.seq + 1, kind=kind, body=body)
    forged = Record(entry, record_hash(last.payload).hex()).payload()
    receipt["records"].append(_sealed(forged, last))
    _new_head(receipt)


def _new_head(receipt: Receipt) -> None:
    from interlock_tools.receipts.dsse import Envelope
    from interlock_tools.receipts.record import Head, record_hash

    old = Envelope.from_json(receipt["head"])
    last = Envelope.from_json(receipt["records"][-1])
    head = replace(Head.parse(old.payload), records=len(receipt["records"]), last=record_hash(last.payload).hex())
    receipt["head"] = _sealed(head.payload(), old)


def _sealed(payload: bytes, like: Any) -> dict[str, Any]:
    """An envelope signed by a key that was made just now, under the key id of a genuine one."""
    from interlock_tools.receipts.dsse import Envelope, seal
    from interlock_tools.receipts.keys import KeySigner

    sealed = seal(payload, KeySigner("forger", secrets.token_bytes(32)))
    known = like.signatures[0].keyid if like.signatures else "0" * 8
    signatures = tuple(replace(one, keyid=known) for one in sealed.signatures)
    return Envelope(sealed.payload, sealed.payload_type, signatures).to_json()


CHANGES: dict[str, Callable[[Receipt], None]] = {
    "edit": _edit,
    "delete": _delete,
    "reorder": _reorder,
    "truncate": _truncate,
    "append": _append,
}
"""What is tried, by name."""
