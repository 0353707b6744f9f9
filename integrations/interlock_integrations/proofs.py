"""What an error of a service proves, and what a send function raises to say so."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeVar

from interlock_tools import DefiniteNo, InProgress, PreconditionFailed, RateLimited, SendError, StoredError
from interlock_tools.redaction import clean

A = TypeVar("A")

MAX_RETRY_AFTER_S = 3600.0
"""Longest wait that a service's ``Retry-After`` is believed for."""


class Proof(str, Enum):
    """What an error proves."""

    DEFINITE_NO = "definite no"
    PRECONDITION_FAILED = "precondition failed"
    IN_PROGRESS = "in progress"
    STORED = "replayed earlier answer that says nothing"
    RATE_LIMITED = "rate limited"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Row(Generic[A]):
    """One row of a service's table: ``when`` it fits an answer, what that ``proves``, why, and whence that is known."""

    name: str
    when: Callable[[A], bool]
    proves: Proof
    why: str
    source: str


def anything_else() -> Row[A]:
    """Return the row for what no other fits."""
    return Row(
        "anything else",
        lambda answer: True,
        Proof.UNKNOWN,
        "An answer of a kind that this table does not know proves nothing.",
        "-",
    )


def first_that_fits(table: Sequence[Row[A]], answer: A, otherwise: Row[A]) -> Row[A]:
    """Return the first row of a table that fits an answer."""
    return next((row for row in table if row.when(answer)), otherwise)


def to_raise(
    proves: Proof,
    message: str,
    code: str | None,
    *,
    stored: bool = False,
    retry_after_s: float | None = None,
) -> SendError | None:
    """Return what a send function raises for an answer; None where it proves nothing and passes as it is."""
    words, name = clean(message), clean(code or "", 100) or None
    if proves is Proof.DEFINITE_NO:
        return DefiniteNo(words, code=name, stored=stored)
    if proves is Proof.PRECONDITION_FAILED:
        return PreconditionFailed(words, code=name, stored=stored)
    if proves is Proof.IN_PROGRESS:
        return InProgress(words, code=name)
    if proves is Proof.STORED:
        return StoredError(words, code=name)
    if proves is Proof.RATE_LIMITED:
        return RateLimited(words, code=name, retry_after=retry_after_s)
    return None


@contextlib.contextmanager
def raising(classify: Callable[[Exception], SendError | None]) -> Generator[None, None, None]:
    """Turn the errors of one send into what they prove. What proves nothing passes through as it is."""
    try:
        yield
    except SendError:
        raise
    except Exception as error:
        known = classify(error)
        if known is None:
            raise
        raise known from error


def seconds(value: str | None) -> float | None:
    """Return a ``Retry-After`` in seconds, bounded; None for anything else (it may also be a date)."""
    return min(float(value), MAX_RETRY_AFTER_S) if value and value.isascii() and value.isdigit() else None
