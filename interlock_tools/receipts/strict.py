"""Readers that accept exactly one spelling of every value.

What is signed must not be read in two ways, so nothing here is lenient: JSON
without floats and without repeated keys, decimals without signs, separators,
leading zeros or foreign digits, base64 and hex in their canonical form only.
Everything raises ``FormatError`` and nothing else.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any, NoReturn

import rfc8785

from interlock_tools.core.canonical import MAX_DEPTH, MAX_INTEGER, CanonicalError, encode, normalise

from .errors import FormatError

MAX_TREE_SIZE = 2**63 - 1
"""Largest tree size or index that is read or written; a signed 64-bit integer, as databases hold it."""

_DECIMAL = re.compile(r"(?:0|[1-9][0-9]{0,18})", re.ASCII)
_HEX = re.compile(r"[0-9a-f]*", re.ASCII)
_JSON_DEPTH = 2 * MAX_DEPTH  # a receipt nests records, which nest values of up to MAX_DEPTH


def canonical_json(value: Any) -> bytes:
    """Return the RFC 8785 bytes of ``value``.

    Written with the standard library's encoder, which equals RFC 8785 for the
    values that ``core.canonical`` lets through.

    Raises:
        FormatError: for floats, integers beyond ±(2^53−1), keys that are not
            printable ASCII, lone surrogates and types that JSON does not have.
    """
    try:
        return encode(normalise(value)).encode("utf-8")
    except CanonicalError as error:
        raise FormatError(str(error)) from None


def parse_json(data: bytes, max_bytes: int = 1 << 24) -> Any:
    """Parse UTF-8 JSON strictly.

    Raises:
        FormatError: too large, not UTF-8, not JSON, a repeated key, a float,
            NaN, an integer beyond ±(2^53−1), or nested too deep.
    """
    if len(data) > max_bytes:
        raise FormatError(f"more than {max_bytes} bytes of JSON")
    try:
        text = data.decode("utf-8")
        value = json.loads(
            text,
            object_pairs_hook=_no_repeated_keys,
            parse_int=_bounded_integer,
            parse_float=_no_float,
            parse_constant=_no_float,
        )
    except UnicodeDecodeError:
        raise FormatError("not UTF-8") from None
    except RecursionError:
        raise FormatError("JSON nested too deep") from None
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error.msg} at character {error.pos}") from None
    _check_tree(value)
    return value


def parse_canonical_json(data: bytes) -> Any:
    """Parse JSON and require that ``data`` is its one RFC 8785 form.

    Checked with the ``rfc8785`` package and not with the encoder that wrote it.

    Raises:
        FormatError: as ``parse_json``, or when the bytes are not canonical.
    """
    value = parse_json(data)
    try:
        canonical = rfc8785.dumps(value)
    except (rfc8785.CanonicalizationError, UnicodeEncodeError):
        raise FormatError("JSON without a canonical form") from None
    if canonical != data:
        raise FormatError("JSON that is not in RFC 8785 form")
    return value


def _no_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FormatError("a JSON object names a key twice")
    return found


def _bounded_integer(text: str) -> int:
    if len(text) > 17 or abs(value := int(text)) > MAX_INTEGER:
        raise FormatError("an integer beyond ±(2^53−1)")
    if text == "-0":
        raise FormatError("the integer -0")
    return value


def _no_float(text: str) -> NoReturn:
    raise FormatError(f"the number {text[:20]}: only integers are allowed")


def _check_tree(value: Any) -> None:
    """Refuse nesting beyond the limit and text that is not Unicode; level by level, so that no depth is too much."""
    level = [value]
    for _ in range(_JSON_DEPTH):
        if not level:
            return
        inner: list[Any] = []
        for item in level:
            if type(item) is dict:
                inner.extend(item.keys())
                inner.extend(item.values())
            elif type(item) is list:
                inner.extend(item)
            elif type(item) is str:
                check_text(item)
        level = inner
    raise FormatError(f"JSON nested deeper than {_JSON_DEPTH} levels")


def check_text(text: str) -> str:
    """Return ``text`` if it is Unicode without lone surrogates. Raises ``FormatError``."""
    if not text.isascii():
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise FormatError("text with a lone surrogate; it is not Unicode") from None
    return text


def parse_decimal(text: str, what: str = "number", maximum: int = MAX_TREE_SIZE) -> int:
    """Parse an ASCII decimal: ``0``, or digits that do not begin with 0; at most ``maximum``.

    Raises:
        FormatError: for ``042``, ``-1``, ``+1``, ``4_2``, ``４２``, spaces, or too large a value.
    """
    if _DECIMAL.fullmatch(text) is None or (value := int(text)) > maximum:
        raise FormatError(f"{what} is not a plain decimal up to {maximum}: {text[:24]!r}")
    return value


def parse_base64(text: str, what: str = "value", length: int | None = None) -> bytes:
    """Decode canonical, padded RFC 4648 base64; of ``length`` bytes where that is given.

    Raises:
        FormatError: for any other spelling or another length.
    """
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise FormatError(f"{what} is not base64") from None
    if format_base64(raw) != text:
        raise FormatError(f"{what} is not in canonical base64")
    if length is not None and len(raw) != length:
        raise FormatError(f"{what} has {len(raw)} bytes instead of {length}")
    return raw


def format_base64(raw: bytes) -> str:
    """Return canonical, padded base64."""
    return base64.b64encode(raw).decode("ascii")


def parse_hex(text: str, length: int, what: str = "digest") -> bytes:
    """Decode lower-case hex of exactly ``length`` bytes. Raises ``FormatError``."""
    if len(text) != 2 * length or _HEX.fullmatch(text) is None:
        raise FormatError(f"{what} is not {2 * length} lower-case hex digits")
    return bytes.fromhex(text)


def members(
    value: Any, what: str, required: dict[str, type], optional: dict[str, type] | None = None
) -> dict[str, Any]:
    """Return ``value`` if it is an object with exactly the named members, each of its type.

    Raises:
        FormatError: for another type, or a missing, unknown or wrongly typed member.
    """
    if type(value) is not dict:
        raise FormatError(f"{what} is not a JSON object")
    allowed = {**required, **(optional or {})}
    if missing := sorted(required.keys() - value.keys()):
        raise FormatError(f"{what} lacks {', '.join(missing)}")
    if unknown := sorted(value.keys() - allowed.keys()):
        raise FormatError(f"{what} has members that are not known here: {', '.join(map(repr, unknown))[:120]}")
    for name, item in value.items():
        if type(item) is not allowed[name]:
            raise FormatError(f"{what}: {name} is not {_JSON_NAMES[allowed[name]]}")
    return value


_JSON_NAMES = {str: "text", int: "an integer", dict: "an object", list: "a list", bool: "true or false"}
