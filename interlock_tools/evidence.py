"""What counts as evidence that an effect happened, and how it is kept."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from .core.canonical import MAX_INTEGER, canonical, digest
from .errors import describe
from .redaction import BLOT, names_a_secret

ByUs = Literal["yes", "no", "unknown"]

MAX_CHARACTERS = 200_000
"""Largest canonical text of a piece of evidence that is kept whole."""


class InvalidEvidence(ValueError):
    """A value that proves nothing (``True``, 0, an empty dict) or cannot be kept."""


class Evidence:
    """A service's proof, with more said about it than the bare value says.

    Send functions and lookups may return one in place of a plain value.

    Args:
        value: what the service returned: an id, an object as a dict.
        by_us: ``yes``; ``no`` where someone else did the identical thing (a
            person merged the pull request); ``unknown``.
    """

    __slots__ = ("by_us", "value")

    def __init__(self, value: Any, by_us: ByUs = "yes") -> None:
        self.value = value
        self.by_us = by_us


def keep(result: Any) -> tuple[Any, str]:
    """Return evidence as canonical values, and by whom.

    What has no exact byte form is kept as text: numbers with a fraction or
    beyond 2^53, dates, names that are not ASCII. Fields named like a
    credential (``client_secret``) are blotted out, and of an object larger than
    ``MAX_CHARACTERS`` only its id and digest are kept.

    Raises:
        InvalidEvidence: the value is empty, a bare truth value, or of a type
            that cannot be kept.
    """
    by_us: str = "yes"
    if isinstance(result, Evidence):
        result, by_us = result.value, result.by_us
    if by_us not in ("yes", "no", "unknown"):
        raise InvalidEvidence(f"by_us must be yes, no or unknown, not {by_us!r}")
    if isinstance(result, bool) or (isinstance(result, (int, float, decimal.Decimal)) and not result):
        raise InvalidEvidence(f"{result!r} proves nothing; return what the service returned, such as the object's id")
    try:
        plain = _plain(result, 0)
        if _says_nothing(plain):
            raise InvalidEvidence(_NOTHING.format("None" if plain is None else f"an empty {type(plain).__name__}"))
        text = canonical(plain)
    except InvalidEvidence:
        raise
    except Exception as error:
        raise InvalidEvidence(f"{type(result).__name__} cannot be kept ({describe(error)})") from None
    if len(text) > MAX_CHARACTERS:
        name = plain.get("id") if isinstance(plain, dict) else None
        plain = {"id": name if isinstance(name, (str, int)) else None, "sha256": digest(text), "characters": len(text)}
    return plain, by_us


_NOTHING = "{} proves nothing; a send returns what the service returned, a lookup returns None where nothing was found"


def _says_nothing(plain: Any) -> bool:
    """Whether there is nothing in it at all: ``{"id": None}`` is as empty as ``{}``."""
    if isinstance(plain, dict):
        return all(map(_says_nothing, plain.values()))
    if isinstance(plain, list):
        return all(map(_says_nothing, plain))
    return plain is None or (isinstance(plain, str) and not plain.strip())


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if depth > 24:
        raise InvalidEvidence("nested too deeply to be kept")
    if isinstance(value, enum.Enum):
        return _plain(value.value, depth + 1)
    if isinstance(value, str):
        return str(value).encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, int):
        return int(value) if -MAX_INTEGER <= value <= MAX_INTEGER else str(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, (float, decimal.Decimal, uuid.UUID)):
        return str(value)
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {_name(key): _field(key, item, depth) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    return _plain(_as_dict(value), depth + 1)


def _name(key: Any) -> str:
    text = str(key)
    if text.isascii() and text.isprintable():
        return text
    return text.encode("unicode_escape").decode("ascii")


def _field(key: Any, item: Any, depth: int) -> Any:
    return BLOT if item and names_a_secret(str(key)) else _plain(item, depth + 1)


def _as_dict(value: Any) -> Any:
    """The fields of an SDK's object: a pydantic model, a Stripe object, a dataclass."""
    if not isinstance(value, type):
        if callable(dump := getattr(value, "model_dump", None)):
            return dump(mode="json")
        if callable(to_dict := getattr(value, "to_dict", None)):
            return to_dict()
        if dataclasses.is_dataclass(value):
            return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise InvalidEvidence(f"{type(value).__name__} cannot be kept; return the service's object as a dict, or its id")
