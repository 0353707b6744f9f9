"""Makes the records of entries: chained, with private values hidden, signed. What a journal calls when it appends.

Everything here happens before the journal's transaction and needs no lock: a
record names the hash of its effect's previous record, which never changes, and
an append whose writer did not see the last entry is refused by the journal.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from ..core.canonical import encode
from ..core.entries import Entry, Kind
from ..core.states import fold
from ..errors import Archived, JournalError, NotDecidable, SigningFailed, describe
from ..journal.protocol import Journal
from ..journal.records import Seal, Sealable, Secret
from ..receipts.dsse import IN_TOTO
from ..receipts.keys import Signer, verifier_key
from ..receipts.private import Path, conceal, parse_paths
from ..receipts.record import Record, record_hash, record_payload
from ..receipts.strict import canonical_json

_SECRET_BYTES = 32
_PAE = b"DSSEv1 %d %b " % (len(IN_TOTO), IN_TOTO.encode("utf-8"))
"""How what is signed begins; see ``receipts.dsse.pae``."""
_MAX_CHAINS = 10_000


class Declared(NamedTuple):
    """What is declared of an effect that concerns its records."""

    service: Mapping[str, str] | None
    private: tuple[Path, ...]


class Chain(NamedTuple):
    """Where an effect's records stand: the number and hash of the last one, and what is private in the effect."""

    seq: int
    hash: bytes | None
    paths: tuple[Path, ...] = ()
    secret: bytes = b""


class Sealer:
    """Signs records.

    Args:
        writer: whose key; called with each append, so that the key may change.
        declared: what is declared of an effect, by its name.
    """

    def __init__(self, writer: Callable[[], Signer], declared: Callable[[str], Declared | None]) -> None:
        self._writer = writer
        self._declared = declared
        self._chains: dict[str, Chain] = {}

    def seal(self, journal: Journal, plans: Sequence[Sealable]) -> None:
        """Give each plan the records of its entries.

        Raises:
            SigningFailed: something could not be signed; nothing was written.
        """
        try:
            signer = self._writer()
            for plan in plans:
                self._seal(journal, plan, signer)
        except (JournalError, Archived):
            raise
        except Exception as error:
            raise SigningFailed(f"{journal.url}: a record could not be signed ({describe(error)})") from error

    def _seal(self, journal: Journal, plan: Sealable, signer: Signer) -> None:
        service: Mapping[str, str] | None = None
        if plan.expected_seq == 0:
            declared = self._declared(plan.entries[0].body.get("effect", ""))
            chain = Chain(0, None)
            if declared is not None:
                service = declared.service
                if declared.private:
                    chain = Chain(0, None, declared.private, secrets.token_bytes(_SECRET_BYTES))
                    plan.secret = Secret(chain.secret, encode([list(path) for path in chain.paths]))
        else:
            chain = self._chains.get(plan.effect_id) or Chain(-1, None)
            if chain.seq != plan.expected_seq:
                chain = chain_of(journal, plan.effect_id, plan.expected_seq)
        # The same as ``receipts.build.seal_entry``, without what a receipt needs: it is on the path of every effect.
        previous = None if chain.hash is None else chain.hash.hex()
        service_text = None if service is None else canonical_json(dict(service)).decode("utf-8")
        last = plan.entries[-1].seq  # one signature covers what is committed together
        seals = []
        for entry, (seq, _, _, body_text) in zip(plan.entries, plan.rows, strict=True):
            if chain.paths:
                body_text = encode(conceal(entry.body, chain.paths, chain.secret))
            payload = record_payload(entry, body_text, previous, service_text, last if seq != last else None)
            message = b"%b%d %b" % (_PAE, len(payload), payload)
            leaf = sha256(b"\x00" + message).digest()
            signature = b"" if seq != last else verifier_key(signer).key_id + signer.sign(message)
            seals.append(Seal(leaf, signature, service_text))
            previous, service_text = leaf.hex(), None
        plan.seals = seals

    def written(self, plans: Sequence[Sealable]) -> None:
        """Take note of what is durable now."""
        for plan in plans:
            last = plan.entries[-1]
            old = self._chains.pop(plan.effect_id, None)
            if not plan.seals or last.kind in _ENDS:
                continue
            if plan.expected_seq == 0:
                paths, secret = (paths_of(plan.secret), plan.secret.secret) if plan.secret is not None else ((), b"")
            elif old is not None:
                paths, secret = old.paths, old.secret
            else:
                continue  # what is private is not at hand; the journal knows
            if len(self._chains) >= _MAX_CHAINS:
                self._chains.clear()
            self._chains[plan.effect_id] = Chain(last.seq, plan.seals[-1].hash, paths, secret)


_ENDS = frozenset({Kind.COMMITTED, Kind.REFUSED, Kind.REPLACED, Kind.RESOLVED})


def paths_of(secret: Secret) -> tuple[Path, ...]:
    """Return which values are private."""
    return tuple(tuple(path) for path in json.loads(secret.paths))


def declared_paths(names: Sequence[str]) -> tuple[Path, ...]:
    """Read declared names such as ``payload.to``. Raises ``FormatError``."""
    return parse_paths(names)


def chain_of(journal: Journal, effect_id: str, seq: int) -> Chain:
    """Return where an effect's records stand after entry ``seq``. Entries without a record count as if they had one."""
    found = journal.records.secret(effect_id)
    paths, secret = (paths_of(found), found.secret) if found is not None else ((), b"")
    hashes = {stored.seq: stored.seal.hash for stored in journal.records.of(effect_id)}
    if seq in hashes:
        return Chain(seq, hashes[seq], paths, secret)
    previous = None
    for entry in journal.entries(effect_id)[:seq]:
        previous = hashes.get(entry.seq) or record_hash(payload_of(entry, previous, None, paths, secret, None))
    return Chain(seq, previous, paths, secret)


def payload_of(
    entry: Entry,
    previous: bytes | None,
    service: dict[str, Any] | None,
    paths: Sequence[Path],
    secret: bytes,
    covered_by: int | None,
) -> bytes:
    """Return the statement of an entry. Values that were erased are hidden in the entry itself."""
    if paths and secret:
        hidden = conceal(entry.body, paths, secret)
        entry = Entry(entry.effect_id, entry.seq, entry.kind, entry.at_ms, hidden)
    return Record(entry, previous.hex() if previous is not None else None, service, covered_by).payload()


def erase(journal: Journal, effect_id: str) -> None:
    """Hide an effect's private values in the journal itself, and forget their salt. Raises ``NotDecidable``."""
    entries = journal.entries(effect_id)
    if not entries:
        raise NotDecidable(f"there is no effect {effect_id} in this journal")
    if not fold(entries).is_closed:
        raise NotDecidable(f"effect {effect_id} is open, and its values are needed to bring it to an end")
    found = journal.records.secret(effect_id)
    if found is None:
        raise NotDecidable(f"effect {effect_id} has no private values, or they were erased before")
    paths = paths_of(found)
    hidden = {entry.seq: encode(conceal(entry.body, paths, found.secret)) for entry in entries}
    journal.records.erase(effect_id, hidden)
