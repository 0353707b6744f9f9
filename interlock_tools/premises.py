"""Facts that a decision rests on: captured, compared with what was decided and with what is expected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .core.canonical import encode, normalise
from .core.decide import Checks
from .core.entries import Instant

ABSENT = "(absent)"
"""Shown in place of a fact that a reading did not contain."""


@dataclass(frozen=True, slots=True)
class Reading:
    """One reading of the premises and the grant.

    Attributes:
        checks: whether they hold.
        facts: what was read.
        decided: the facts that the decision is held to.
        grant: the grant as recorded, or None.
        reason: why they do not hold: ``stale_premise``, ``premise_not_met`` or ``not_allowed``.
        changes: per failing premise what it was, is and should be.
        failing: names of the failing premises.
        why: for UNREADABLE and ``not_allowed``: the reason in words.
        at: when the reading ended.
    """

    checks: Checks
    facts: dict[str, Any]
    decided: dict[str, Any]
    grant: dict[str, Any] | None
    at: Instant
    reason: str = ""
    changes: dict[str, Any] | None = None
    failing: frozenset[str] = frozenset()
    why: str = ""


def capture(facts: Any) -> dict[str, Any]:
    """Return a plain copy of what a premise function returned.

    Raises:
        TypeError: it is not a dict.
        CanonicalError: a value in it has no canonical form.
    """
    if not isinstance(facts, dict):
        raise TypeError(f"premises must return a dict of facts, not {type(facts).__name__}")
    plain: dict[str, Any] = normalise(facts, "premises")
    return plain


def compare(
    decided: Mapping[str, Any], read: Mapping[str, Any], expected: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """Compare a reading with what was decided and with what is expected.

    Returns:
        The reason (``stale_premise`` if anything changed since it was decided,
        else ``premise_not_met`` if anything is not as expected, else empty) and
        per failing premise a dict of ``was``, ``now`` and ``expected`` as they apply.
    """
    changes: dict[str, Any] = {}
    changed = False
    for name in {**decided, **read}:
        was, now = decided.get(name, ABSENT), read.get(name, ABSENT)
        if not same(was, now):
            changes[name] = {"was": was, "now": now}
            changed = True
    for name, wanted in expected.items():
        now = read.get(name, ABSENT)
        if not same(now, wanted):
            changes.setdefault(name, {"now": now})["expected"] = wanted
    return ("stale_premise" if changed else "premise_not_met") if changes else "", changes


def same(left: Any, right: Any) -> bool:
    """Whether two canonical values are the same. True and 1 are not."""
    return left is right or encode(left) == encode(right)
