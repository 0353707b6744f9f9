"""What a record's body must hold, kind by kind, before anything is derived from it.

Only what a claim or the state machine rests on is checked. Members that are
not named here are allowed: they are signed like the rest and decide nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from interlock_tools.core.entries import Kind

from .errors import FormatError
from .private import is_hidden

Check = Callable[[Any], bool]


def _text(value: Any) -> bool:
    return type(value) is str


def _whole(value: Any) -> bool:
    return type(value) is int


def _count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _truth(value: Any) -> bool:
    return type(value) is bool


def _object(value: Any) -> bool:
    return type(value) is dict


def _object_or_null(value: Any) -> bool:
    return value is None or type(value) is dict


def _anything(value: Any) -> bool:
    return True


def _digest(value: Any) -> bool:
    return type(value) is str or is_hidden(value)


def _counts(value: Any) -> bool:
    return type(value) is list and bool(value) and all(_count(item) for item in value)


def _clock(value: Any) -> bool:
    return (
        type(value) is dict
        and value.keys() == {"boot", "boottime_ms", "wall_ms"}
        and _text(value["boot"])
        and _whole(value["boottime_ms"])
        and _whole(value["wall_ms"])
    )


def _budgets(value: Any) -> bool:
    return type(value) is list and all(
        type(item) is dict and _text(item.get("budget")) and _whole(item.get("amount")) and _whole(item.get("limit"))
        for item in value
    )


def _grant(value: Any) -> bool:
    """A grant as ``Grant.to_json`` writes it, or null. Members may be private."""
    if value is None or is_hidden(value):
        return True
    if type(value) is not dict or not _text(value.get("id")):
        return False
    checks: dict[str, Check] = {
        "by": _text,
        "max_amount": _whole,
        "payload_digest": _text,
        "expires_at_ms": _whole,
        "under": _grant,
    }
    return all(check(value[name]) or is_hidden(value[name]) for name, check in checks.items() if name in value)


_REQUIRED: dict[Kind, dict[str, Check]] = {
    Kind.PROPOSED: {
        "effect": _text,
        "key": _text,
        "decision": _count,
        "payload": _object,
        "payload_digest": _digest,
        "decided_by": _text,
    },
    Kind.AUTHORIZED: {"grant": _grant},
    Kind.DISPATCHED: {"send": _count, "session": _text, "clock": _clock},
    Kind.UNKNOWN: {"send": _count, "cause": _text, "clock": _clock},
    Kind.NOT_LANDED: {"sends": _counts, "proof": _text},
    Kind.ORPHANED: {"send": _count, "clock": _clock},
    Kind.SENDER_LOST: {"send": _count, "clock": _clock, "lease_ms": _whole},
    Kind.COMMITTED: {"evidence": _anything, "by_us": _text, "via": _text},
    Kind.REFUSED: {"reason": _text},
    Kind.AMBIGUOUS: {"reason": _text},
    Kind.RESOLVED: {"landed": _truth, "by": _text, "why": _text},
    Kind.REPLACED: {"effect_id": _text},
    Kind.APPROVAL_REQUESTED: {"digest": _digest},
    Kind.APPROVED: {"digest": _digest},
    Kind.REJECTED: {},
    Kind.RELEASED: {},
    Kind.SETTLED: {"state": _text},
    Kind.LATE: {},
}

_OPTIONAL: dict[Kind, dict[str, Check]] = {
    Kind.PROPOSED: {"facts": _object_or_null, "by": _text, "context": _object_or_null},
    Kind.DISPATCHED: {
        "mark": _object_or_null,
        "budgets": _budgets,
        "facts": _object_or_null,
        "grant": _grant,
        "resend": _truth,
        "reconstructed": _truth,
    },
    Kind.UNKNOWN: {"stored": _truth},
    Kind.COMMITTED: {"send": _count, "at_recovery": _truth},
    Kind.REFUSED: {"at_recovery": _truth},
    Kind.AMBIGUOUS: {"at_recovery": _truth},
    Kind.REPLACED: {"by": _text},
    Kind.APPROVAL_REQUESTED: {"expires_at_ms": _whole},
    Kind.APPROVED: {"by": _text, "why": _text},
    Kind.REJECTED: {"by": _text, "why": _text},
    Kind.LATE: {"send": _count, "result": _object},
}


def check_body(kind: Kind, body: dict[str, Any]) -> None:
    """Check the members that claims rest on.

    Raises:
        FormatError: one is missing or of the wrong type; the message names it.
    """
    for name, check in _REQUIRED[kind].items():
        if name not in body:
            raise FormatError(f"a {kind.value} record without {name}")
        if not check(body[name]):
            raise FormatError(f"a {kind.value} record whose {name} is not what it should be")
    for name, check in _OPTIONAL.get(kind, {}).items():
        if name in body and not check(body[name]):
            raise FormatError(f"a {kind.value} record whose {name} is not what it should be")
