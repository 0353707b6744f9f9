"""The receipt of an effect, from what a journal holds. Without signing it is one of unsigned records."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..core.entries import Entry
from ..errors import NotDecidable, SigningFailed
from ..journal.protocol import Journal
from ..journal.records import Stored
from ..receipts.build import build_receipt, connect, prove
from ..receipts.dsse import Envelope, Signature
from ..receipts.keys import Signer
from ..receipts.note import Note, parse_note
from ..receipts.private import Disclosure, disclose, parse_paths
from ..receipts.record import record_hash
from .sealer import paths_of, payload_of

SUFFIX = ".receipt.json"


def receipt(journal: Journal, effect_id: str, signer: Signer | None, disclosing: Sequence[str] = ()) -> bytes:
    """Return the receipt of an effect as it stands.

    Args:
        journal: where it is recorded.
        effect_id: the effect.
        signer: the writer's key, to sign how many records there are; None where signing is off.
        disclosing: private values that the reader may see, such as ``payload.to``.

    Raises:
        NotDecidable: there is no such effect.
        SigningFailed: an entry is not what its record was signed over.
        FormatError: a name in ``disclosing`` is not one.
    """
    entries = journal.entries(effect_id)
    if not entries:
        raise NotDecidable(f"there is no effect {effect_id} in this journal")
    records = journal.records
    stored = {found.seq: found for found in records.of(effect_id)}
    envelopes = _envelopes(journal, entries, stored)
    changes = records.key_changes() if stored else []
    positions = [found.leaf if (found := stored.get(entry.seq)) is not None else None for entry in entries]
    change_positions = [change.leaf for change in changes]
    notes = _notes(journal, positions, change_positions)
    read = functools.cache(records.node)  # neighbours share most of their paths
    proofs = prove(positions, notes, read)
    change_proofs = prove(change_positions, notes, read)
    return build_receipt(
        envelopes,
        signer,
        journal.now().wall_ms,
        proofs=proofs,
        consistency=connect([*proofs, *change_proofs], read),
        keys=[(_key_change(change), proof) for change, proof in zip(changes, change_proofs, strict=True)],
        disclosures=_disclosures(journal, entries, disclosing),
    )


def _envelopes(journal: Journal, entries: Sequence[Entry], stored: dict[int, Stored]) -> list[Envelope]:
    """The records, made again from the entries and compared with what was signed."""
    found = journal.records.secret(entries[0].effect_id) if stored else None
    paths, secret = (paths_of(found), found.secret) if found is not None else ((), b"")
    previous = None
    envelopes = []
    for entry in entries:
        record = stored.get(entry.seq)
        service = _service(record)
        payload = payload_of(entry, previous, service, paths, secret, _covered_by(entry.seq, stored))
        previous = record_hash(payload)
        if record is None:
            envelopes.append(Envelope(payload))
            continue
        if record.seal.hash != previous:
            raise SigningFailed(
                f"entry {entry.seq} of effect {entry.effect_id} is not what its record was signed over: somebody "
                "changed the journal. Keep it as it is, and have a person compare it with a copy"
            )
        envelopes.append(Envelope(payload, signatures=_signatures(record.seal.signature)))
    return envelopes


def _service(record: Stored | None) -> Any:
    text = record.seal.service if record is not None else None
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None  # not what was signed, whatever it was


def _covered_by(seq: int, stored: dict[int, Stored]) -> int | None:
    """The record whose signature covers this one; None if it has one of its own, or was not signed at all."""
    record = stored.get(seq)
    if record is None or record.seal.signature:
        return None
    return next(number for number in range(seq + 1, max(stored) + 2) if number not in stored or signed(stored[number]))


def signed(record: Stored) -> bool:
    """Whether a record has a signature of its own."""
    return bool(record.seal.signature)


def _signatures(stored: bytes) -> tuple[Signature, ...]:
    return (Signature(stored[:4].hex(), stored[4:]),) if stored else ()


def _key_change(change: Stored) -> Envelope:
    statement = (change.seal.statement or "").encode("utf-8")
    return Envelope(statement, signatures=_signatures(change.seal.signature))


def _notes(journal: Journal, positions: Sequence[int | None], changes: Sequence[int | None]) -> list[Note]:
    """The checkpoints that are needed: for each record the first one that covers it and was witnessed.

    For a change of a key the first one, which is where a log moves: both keys signed it.
    """
    records = journal.records
    texts = {records.checkpoint_after(position): None for position in positions if position is not None}
    texts.update({records.first_checkpoint(position): None for position in changes if position is not None})
    return [parse_note(text) for text in texts if text is not None]


def _disclosures(journal: Journal, entries: Sequence[Entry], names: Sequence[str]) -> list[Disclosure]:
    if not names:
        return []
    paths = parse_paths(names)
    secret = journal.records.secret(entries[0].effect_id)
    if secret is None or not set(paths) <= set(paths_of(secret)):
        declared = ", ".join(".".join(path) for path in paths_of(secret)) if secret is not None else "nothing"
        raise NotDecidable(f"only what was declared private can be disclosed; of this effect that is: {declared}")
    return [item for entry in entries for item in disclose(entry.seq, entry.body, paths, secret.secret)]


def write_receipt(directory: Path, effect_id: str, content: bytes) -> Path:
    """Write a receipt to ``<effect id>.receipt.json``, whole or not at all, readable by its owner."""
    file = directory / f"{effect_id}{SUFFIX}"
    draft = directory / f".{effect_id}.{os.getpid()}"
    draft.write_bytes(content)
    draft.chmod(0o600)
    draft.replace(file)
    return file


def plain(content: bytes) -> dict[str, Any]:
    """Return a receipt as plain JSON values."""
    value: dict[str, Any] = json.loads(content)
    return value
