"""Ed25519 keys: who signs, how a public key is written, and which keys are refused.

A public key travels as a signed-note verifier key, ``<name>+<key id>+<base64>``
(C2SP signed-note). Small-order and non-canonical public keys are refused
wherever one is read: libraries disagree on them, and under a small-order key
anybody can make signatures.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from .errors import FormatError
from .strict import format_base64, parse_base64, parse_hex

NOTE_SIGNATURE = 0x01
"""Signature type of a signed note, and of a writer's key."""

COSIGNATURE = 0x04
"""Signature type of a timestamped checkpoint cosignature (tlog-cosignature v1)."""

_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P
_ORDER_8_Y = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
_SMALL_ORDER_Y = frozenset({0, 1, _P - 1, _ORDER_8_Y, _P - _ORDER_8_Y})


class Signer(Protocol):
    """Whatever can sign with an Ed25519 key that has a name: a key in memory, or a call to a KMS."""

    @property
    def name(self) -> str:
        """The key's name, part of its identity: no spaces, no ``+``."""
        ...

    @property
    def public_key(self) -> bytes:
        """The raw public key, 32 bytes."""
        ...

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte RFC 8032 signature of ``message``."""
        ...


class KeySigner:
    """Signs with a private key held in memory."""

    def __init__(self, name: str, seed: bytes) -> None:
        """Take a 32-byte seed. Raises ``FormatError`` for an unusable name or another length."""
        if len(seed) != 32:
            raise FormatError(f"an Ed25519 seed has 32 bytes, not {len(seed)}")
        self.name = check_name(name)
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.public_key = self._key.public_key().public_bytes_raw()

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature of ``message``."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"KeySigner({self.name!r})"


class CallSigner:
    """Signs by calling a function, for keys that never leave a KMS or a token."""

    def __init__(self, name: str, public_key: bytes, sign: Callable[[bytes], bytes]) -> None:
        """Take the raw public key and the function. Raises ``FormatError`` for a refused name or key."""
        self.name = check_name(name)
        self.public_key = check_public_key(public_key)
        self._sign = sign

    def sign(self, message: bytes) -> bytes:
        """Return the signature. Raises ``FormatError`` when it is not one by this key."""
        signature = self._sign(message)
        if not verify_signature(self.public_key, signature, message):
            raise FormatError(f"the signing function of {self.name} answered with something that does not verify")
        return signature


@dataclass(frozen=True, slots=True)
class VerifierKey:
    """A public key with its name and what it may sign (``NOTE_SIGNATURE`` or ``COSIGNATURE``)."""

    name: str
    public_key: bytes
    type: int = NOTE_SIGNATURE

    @property
    def key_id(self) -> bytes:
        """The 4 bytes that name this key in a note: a hint, not a proof."""
        return key_id(self.name, self.type, self.public_key)

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{format_base64(bytes([self.type]) + self.public_key)}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether ``signature`` is this key's raw Ed25519 signature of ``message``."""
        return verify_signature(self.public_key, signature, message)


@functools.lru_cache(maxsize=256)
def key_id(name: str, kind: int, public_key: bytes) -> bytes:
    """Return the signed-note key id: 4 bytes of SHA-256 over name, newline, type and key."""
    return hashlib.sha256(name.encode("utf-8") + b"\n" + bytes([kind]) + public_key).digest()[:4]


def verifier_key(signer: Signer, kind: int = NOTE_SIGNATURE) -> VerifierKey:
    """Return the public half of ``signer`` for signatures of a type. Raises ``FormatError`` for a refused key."""
    return _checked(signer.name, signer.public_key, kind)


@functools.lru_cache(maxsize=256)
def _checked(name: str, public_key: bytes, kind: int) -> VerifierKey:
    """Checking that a key is a point of the curve costs several signatures, so it is done once."""
    return VerifierKey(check_name(name), check_public_key(public_key), kind)


def parse_verifier_key(text: str, kinds: tuple[int, ...] = (NOTE_SIGNATURE,)) -> VerifierKey:
    """Parse ``<name>+<8 hex digits>+<base64 of type and key>``.

    Raises:
        FormatError: malformed, of a type that is not in ``kinds``, with a key
            id that does not belong to it, or a key that is refused.
    """
    name, plus, rest = text.partition("+")
    written_id, second_plus, encoded = rest.partition("+")
    if not plus or not second_plus:
        raise FormatError(f"not a verifier key (name+id+key): {text[:60]!r}")
    raw = parse_base64(encoded, "verifier key", 33)
    if raw[0] not in kinds:
        raise FormatError(f"the key of {name[:60]!r} is of signature type {raw[0]}, not {' or '.join(map(str, kinds))}")
    key = VerifierKey(check_name(name), check_public_key(raw[1:]), raw[0])
    if parse_hex(written_id, 4, "key id") != key.key_id:
        raise FormatError(f"the key id of {name[:60]!r} does not belong to its key")
    return key


def check_name(name: str) -> str:
    """Return ``name`` if a note may carry it: 1 to 255 bytes, no spaces, no control characters, no ``+``.

    Raises:
        FormatError: otherwise.
    """
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        raise FormatError("a name that is not Unicode text") from None
    if not 0 < size <= 255 or any(ch.isspace() or ch == "+" or ch < " " or ch == "\x7f" for ch in name):
        raise FormatError(f"not a name without spaces and '+', of 1 to 255 bytes: {name[:60]!r}")
    return name


def check_public_key(public_key: bytes) -> bytes:
    """Return ``public_key`` if it is a canonical point of large order on edwards25519.

    Raises:
        FormatError: another length, y not below the field's prime, not on the
            curve, or of small order.
    """
    if len(public_key) != 32:
        raise FormatError(f"an Ed25519 public key has 32 bytes, not {len(public_key)}")
    y = int.from_bytes(public_key, "little") & (2**255 - 1)
    if y >= _P:
        raise FormatError("an Ed25519 public key that is not canonically encoded")
    if y in _SMALL_ORDER_Y:
        raise FormatError("an Ed25519 public key of small order; anybody can sign under it")
    # On the curve: x² = (y² - 1) / (d·y² + 1) must be a square.
    x_squared = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P
    if pow(x_squared, (_P - 1) // 2, _P) != 1:
        raise FormatError("an Ed25519 public key that is not a point of the curve")
    return public_key


def verify_signature(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Whether ``signature`` is the Ed25519 signature of ``message`` under ``public_key``."""
    if len(signature) != 64:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
