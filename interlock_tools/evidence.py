"""What counts as evidence that an effect happened, and how it is kept."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Mapping
from typing import Any, Literal

from .core.canonical import normalise

ByUs = Literal["yes", "no", "unknown"]


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

    Numbers with a fraction are kept as text, since they have no exact byte form.

    Raises:
        InvalidEvidence: the value is empty, a bare truth value, or of a type
            that cannot be kept.
    """
    by_us: str = "yes"
    if isinstance(result, Evidence):
        result, by_us = result.value, result.by_us
    if by_us not in ("yes", "no", "unknown"):
        raise InvalidEvidence(f"by_us must be yes, no or unknown, not {by_us!r}")
    if isinstance(result, bool) or result is None or (isinstance(result, (int, float)) and not result):
        raise InvalidEvidence(f"{result!r} proves nothing; return what the service returned, such as the object's id")
    plain = _plain(result, 0)
    if isinstance(plain, (str, dict, list)) and not plain:
        raise InvalidEvidence(f"an empty {type(plain).__name__} proves nothing; return None where nothing was found")
    try:
        return normalise(plain, "evidence"), by_us
    except ValueError as error:
        raise InvalidEvidence(str(error)) from None


def _plain(value: Any, depth: int) -> Any:
    if value is None or type(value) in (str, int, bool):
        return value
    if depth > 24:
        raise InvalidEvidence("nested too deeply to be kept")
    if isinstance(value, (float, decimal.Decimal)):
        return str(value)
    if isinstance(value, (dt.datetime, dt.date)):
        return value.isoformat()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, depth + 1) for item in value]
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return _plain(dump(mode="json"), depth + 1)
    if isinstance(value, (str, int)):
        return value
    raise InvalidEvidence(f"{type(value).__name__} cannot be kept; return the service's object as a dict, or its id")
