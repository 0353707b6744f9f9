"""Private values: a salted digest in the record, the value itself in the journal alone.

A declared value is replaced by ``{"private_sha256": …}`` before its record is
written. Later the value and its salt can be disclosed to whoever verifies, or
both be erased: no signature and no proof depends on them. Free text (``detail``,
``why``) is not searched for values; keep them out of it.

One secret per effect gives every path its own salt, the same in all records of
the effect, so that two hidden values at one path can be seen to be equal. To
erase the private values of an effect, erase them and its secret in the journal.
A digest over a payload with a private value is hidden along with it; it would
let anybody guess the value.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .errors import FormatError
from .strict import canonical_json, check_text, format_base64, members, parse_base64

Path = tuple[str, ...]
"""The keys that lead to a value in an entry's body, for example ``("payload", "to")``."""

_MARK = "private_sha256"
_SALT_BYTES = 16
_PAYLOAD_DIGESTS: tuple[Path, ...] = (("payload_digest",), ("grant", "payload_digest"), ("digest",))


def is_hidden(value: Any) -> bool:
    """Whether ``value`` stands for a private value."""
    return type(value) is dict and value.keys() == {_MARK} and type(value[_MARK]) is str


def has_hidden(value: Any) -> bool:
    """Whether ``value`` or anything in it is hidden."""
    if is_hidden(value):
        return True
    if type(value) is dict:
        return any(map(has_hidden, value.values()))
    return type(value) is list and any(map(has_hidden, value))


@dataclass(frozen=True, slots=True)
class Disclosure:
    """A private value made known. ``seq`` and ``path`` say where; the digest there must be that of salt and value."""

    seq: int
    path: Path
    salt: bytes
    value: Any

    def to_json(self) -> dict[str, Any]:
        """Return the disclosure as it stands in a receipt."""
        return {"seq": self.seq, "path": list(self.path), "salt": format_base64(self.salt), "value": self.value}

    @staticmethod
    def from_json(value: Any) -> Disclosure:
        """Read it back. Raises ``FormatError``."""
        if type(value) is not dict or "value" not in value:
            raise FormatError("a disclosure without a value")
        rest = {name: item for name, item in value.items() if name != "value"}
        fields = members(rest, "disclosure", {"seq": int, "path": list, "salt": str})
        if not fields["path"] or not all(type(key) is str for key in fields["path"]):
            raise FormatError("disclosure: path is not a list of keys")
        salt = parse_base64(fields["salt"], "salt", _SALT_BYTES)
        return Disclosure(fields["seq"], tuple(fields["path"]), salt, value["value"])


def parse_paths(names: Iterable[str]) -> tuple[Path, ...]:
    """Read declared names such as ``payload.to``; keys that hold a dot cannot be named. Raises ``FormatError``."""
    paths = tuple(tuple(check_text(name).split(".")) for name in names)
    if any("" in path for path in paths):
        raise FormatError("a private value is named like payload.to: keys joined by dots")
    return paths


def conceal(body: dict[str, Any], paths: Sequence[Path], secret: bytes) -> dict[str, Any]:
    """Return ``body`` with the values at ``paths`` hidden; paths that lead nowhere are passed over.

    Args:
        body: an entry's body; it is not changed.
        paths: what is private.
        secret: the effect's secret, at least 16 random bytes, kept in the journal.
    """
    for path in covering(paths):
        value = _at(body, path)
        if value is not None and not is_hidden(value):
            body = _replaced(body, path, {_MARK: _digest(_salt(secret, path), value)})
    return body


def disclose(seq: int, body: dict[str, Any], paths: Sequence[Path], secret: bytes) -> list[Disclosure]:
    """Return what makes the values at ``paths`` of an entry's full body known."""
    found = []
    for path in covering(paths):
        value = _at(body, path)
        if value is not None:
            found.append(Disclosure(seq, path, _salt(secret, path), value))
    return found


def reveal(body: dict[str, Any], disclosure: Disclosure) -> dict[str, Any]:
    """Return ``body`` with the disclosed value in its place.

    Raises:
        FormatError: nothing is hidden there, or the value is another one.
    """
    hidden = _at(body, disclosure.path)
    name = ".".join(disclosure.path)[:60]
    if not is_hidden(hidden):
        raise FormatError(f"record {disclosure.seq} hides nothing at {name!r}")
    if hidden[_MARK] != _digest(disclosure.salt, disclosure.value):
        raise FormatError(f"the value disclosed for {name!r} of record {disclosure.seq} is not the one that was hidden")
    return _replaced(body, disclosure.path, disclosure.value)


def covering(paths: Sequence[Path]) -> list[Path]:
    """``paths``, and where else an entry repeats the same values or digests over them."""
    found = list(paths)
    for path in paths:
        if len(path) > 1 and path[0] == "facts":
            found.append(("changes", path[1]))
        if path[:1] == ("evidence",):
            found.append(("result", *path))
    if any(path[:1] == ("payload",) for path in paths):
        found.extend(_PAYLOAD_DIGESTS)
    return list(dict.fromkeys(found))


def _salt(secret: bytes, path: Path) -> bytes:
    label = "payload_digest" if path in _PAYLOAD_DIGESTS else "\n".join(path)
    return hmac.new(secret, label.encode("utf-8"), hashlib.sha256).digest()[:_SALT_BYTES]


def _digest(salt: bytes, value: Any) -> str:
    return hashlib.sha256(salt + canonical_json(value)).hexdigest()


def _at(body: Any, path: Path) -> Any:
    for key in path:
        if type(body) is not dict or key not in body:
            return None
        body = body[key]
    return body


def _replaced(body: dict[str, Any], path: Path, value: Any) -> dict[str, Any]:
    inner = value if len(path) == 1 else _replaced(body[path[0]], path[1:], value)
    return {**body, path[0]: inner}
