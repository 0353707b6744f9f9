"""Allowed values, their one byte form, and digests.

A payload, a set of facts and a piece of evidence have exactly one byte form,
used for the digest, the display, the approval, the journal and the wire. The
form is that of RFC 8785. The standard library's encoder writes the same bytes
as long as there are no floats, integers are exact in a double and keys are
printable ASCII, so those limits are enforced at the door.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from json import encoder as json_encoder
from typing import Any

MAX_INTEGER = 2**53 - 1
"""Largest magnitude of an integer that survives every JSON reader."""

MAX_DEPTH = 32
"""Deepest nesting of lists and dicts."""


def _make_encode() -> Callable[[Any], str]:
    """Make the encoder once. ``JSONEncoder.encode`` makes one for each value, which takes as long as a small value."""
    encoder = json.JSONEncoder(
        ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False, check_circular=False
    )
    make: Any = getattr(json_encoder, "c_make_encoder", None)
    basestring: Any = getattr(json_encoder, "encode_basestring", None)
    try:
        chunks = make(None, encoder.default, basestring, None, ":", ",", True, False, False)
        sample = {"b": ["é\n", -1, None], "a": {"c": True}}
        if "".join(chunks(sample, 0)) == encoder.encode(sample):
            return lambda value: "".join(chunks(value, 0))
    except TypeError:
        pass  # an interpreter that makes it in another way, or in Python alone
    return encoder.encode


_encode = _make_encode()


class CanonicalError(ValueError):
    """A value that has no canonical form.

    Attributes:
        path: where in the value, for example ``amount`` or ``items[2].price``.
        why: what is wrong and what to use instead.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path or 'value'}: {why}")
        self.path = path
        self.why = why


def normalise(value: Any, path: str = "", depth: int = 0) -> Any:
    """Return a plain copy of ``value`` made of dict, list, str, int, bool and None.

    Raises:
        CanonicalError: for floats, integers beyond ±(2^53−1), keys that are not
            printable ASCII strings, lone surrogates, and every other type.
    """
    kind = type(value)
    if kind is str:
        return _text(value, path)
    if kind is bool or value is None:
        return value
    if kind is int:
        if -MAX_INTEGER <= value <= MAX_INTEGER:
            return value
        raise CanonicalError(path, "integers must lie within ±(2^53−1); pass larger ones as text")
    if depth >= MAX_DEPTH:
        raise CanonicalError(path, f"nested deeper than {MAX_DEPTH} levels")
    if kind is dict:
        plain = {}
        for key, item in value.items():
            if type(key) is not str or not (key.isascii() and key.isprintable()):
                raise CanonicalError(path, f"key {key!r} is not printable ASCII text")
            plain[key] = normalise(item, f"{path}.{key}" if path else key, depth + 1)
        return plain
    if kind is list:
        return [normalise(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    return _refuse(value, path)


def _text(value: str, path: str) -> str:
    if value.isascii():
        return value
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise CanonicalError(path, "text holds a lone surrogate; it is not valid Unicode") from None
    return value


def _refuse(value: Any, path: str) -> Any:
    if isinstance(value, float):
        raise CanonicalError(path, "floats are not exact; use integer cents, or text")
    if isinstance(value, str):  # an enumeration of texts
        return _text(str.__str__(value), path)
    if isinstance(value, int):  # an enumeration of integers
        return normalise(int(value), path)
    if isinstance(value, (tuple, set, frozenset)):
        raise CanonicalError(path, f"{type(value).__name__} has no canonical form; use a list")
    raise CanonicalError(path, f"{type(value).__name__} has no canonical form; use text, integers, lists and dicts")


def encode(value: Any) -> str:
    """Return the canonical text of an already normalised value."""
    return _encode(value)


def canonical(value: Any) -> str:
    """Check ``value`` and return its canonical text. Raises ``CanonicalError``."""
    return _encode(normalise(value))


def digest(text: str) -> str:
    """Return the SHA-256 of canonical text as 64 hex digits."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def effect_id(name: str, request_key: str, decision: int) -> str:
    """Return the id of a decision's effect, 32 hex digits.

    It is the idempotency key at the service, so it depends on the effect's
    name, the request key and the decision number and on nothing else.
    """
    return hashlib.sha256(_encode([name, request_key, decision]).encode("utf-8")).hexdigest()[:32]
