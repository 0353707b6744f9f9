"""DSSE v1.0.2 envelopes, signed with Ed25519.

What is signed is PAE(payload type, payload). The same bytes are the leaf of
the log, so a signature and an inclusion proof always speak of the same thing.
The key id is a hint: it decides nothing. Stricter than the specification when
reading: standard base64 only, no unknown members.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from .errors import FormatError
from .keys import Signer, VerifierKey, verifier_key
from .strict import format_base64, members, parse_base64

IN_TOTO = "application/vnd.in-toto+json"
"""Payload type of an in-toto Statement."""

_MAX_SIGNATURES = 16


@dataclass(frozen=True, slots=True)
class Signature:
    """A raw signature and the hint which key made it."""

    keyid: str
    sig: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A payload, what it is, and its signatures; none where signing is off."""

    payload: bytes
    payload_type: str = IN_TOTO
    signatures: tuple[Signature, ...] = ()

    @property
    def pae(self) -> bytes:
        """The bytes that are signed and logged."""
        return pae(self.payload_type, self.payload)

    def to_json(self) -> dict[str, Any]:
        """Return the envelope as the JSON object of the specification."""
        return {
            "payload": format_base64(self.payload),
            "payloadType": self.payload_type,
            "signatures": [{"keyid": s.keyid, "sig": format_base64(s.sig)} for s in self.signatures],
        }

    @staticmethod
    def from_json(value: Any) -> Envelope:
        """Read the JSON object of the specification. Raises ``FormatError``."""
        fields = members(value, "envelope", {"payload": str, "payloadType": str, "signatures": list})
        if len(fields["signatures"]) > _MAX_SIGNATURES:
            raise FormatError(f"an envelope with more than {_MAX_SIGNATURES} signatures")
        signatures = []
        for item in fields["signatures"]:
            signature = members(item, "signature", {"sig": str}, {"keyid": str})
            signatures.append(Signature(signature.get("keyid", ""), parse_base64(signature["sig"], "signature")))
        return Envelope(parse_base64(fields["payload"], "payload"), fields["payloadType"], tuple(signatures))


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the pre-authentication encoding. Raises ``FormatError`` for a type that is not Unicode text."""
    try:
        kind = payload_type.encode("utf-8")
    except UnicodeEncodeError:
        raise FormatError("a payload type that is not Unicode text") from None
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def seal(payload: bytes, signer: Signer | None, payload_type: str = IN_TOTO) -> Envelope:
    """Return an envelope around ``payload``, signed if there is a signer."""
    if signer is None:
        return Envelope(payload, payload_type)
    signature = Signature(verifier_key(signer).key_id.hex(), signer.sign(pae(payload_type, payload)))
    return Envelope(payload, payload_type, (signature,))


def signed_by(envelope: Envelope, keys: Iterable[VerifierKey]) -> VerifierKey | None:
    """Return the first of ``keys`` that made one of the envelope's signatures, or None."""
    message = envelope.pae
    candidates = [(signature, key) for key in keys for signature in envelope.signatures]
    candidates.sort(key=lambda pair: pair[0].keyid != pair[1].key_id.hex())  # the hint only orders the tries
    for signature, key in candidates:
        if key.verifies(signature.sig, message):
            return key
    return None
