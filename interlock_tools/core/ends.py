"""What the end of a send proves, and no more: ``conclude``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from .entries import Instant, Kind
from .states import Phase, SendStatus, State


class Ending(str, Enum):
    """How a send can end."""

    EVIDENCE = "evidence"
    """The service returned what proves the effect."""
    DEFINITE_NO = "definite_no"
    """The service says that this request did nothing, and why (declined, invalid)."""
    PRECONDITION_FAILED = "precondition_failed"
    """An enforced premise was false when this request arrived."""
    NOT_SENT = "not_sent"
    """Not one byte of the request left the process."""
    WITHHELD = "withheld"
    """Not one byte was sent: what it rests on changed while it waited for witnesses. It is decided again."""
    RATE_LIMITED = "rate_limited"
    """The service turned the request away unread; it may come again."""
    STORED_ERROR = "stored_error"
    """The service repeated an earlier answer to this key that says nothing (a stored 500)."""
    UNKNOWN = "unknown"
    """Everything else: time-outs, 5xx, in progress, cancellation, an unclassified exception."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of one send.

    Attributes:
        ending: how it ended.
        evidence: canonical value, for EVIDENCE.
        by_us: ``yes``, ``no`` (someone else's identical action) or ``unknown``, for EVIDENCE.
        stored: the answer is the one that the service stored for this key, so no
            send under the key ever did anything else.
        cause: for UNKNOWN: a short word, such as ``in_progress`` or an exception's type.
        code: the service's error code.
        detail: the service's words, free of secrets.
    """

    ending: Ending
    evidence: Any = None
    by_us: str = "yes"
    stored: bool = False
    cause: str = ""
    code: str | None = None
    detail: str | None = None


_REASON = {
    Ending.DEFINITE_NO: "rejected",
    Ending.PRECONDITION_FAILED: "precondition_failed",
    Ending.NOT_SENT: "unreachable",
}


def conclude(state: State, number: int, end: End, now: Instant) -> list[tuple[Kind, dict[str, Any]]]:
    """Return the entries that record the end of send ``number``; empty if it adds nothing.

    A refusal closes the effect only if every other send of it, earlier or
    later, is proven not to have landed, or the refusal is the service's stored
    answer to the key. Otherwise it ends that send alone.
    """
    if end.ending is Ending.EVIDENCE and state.phase in (Phase.DISPATCHED, Phase.AMBIGUOUS):
        resend = state.dispatched_entry is not None and bool(state.dispatched_entry.body.get("resend"))
        via = "resend" if resend and number == len(state.sends) else "send"
        return [(Kind.COMMITTED, {"evidence": end.evidence, "by_us": end.by_us, "via": via, "send": number})]
    if state.phase is not Phase.DISPATCHED:
        return [(Kind.LATE, {"send": number, "result": _result(end)})]
    send = state.send(number)
    if send is None or send.status is SendStatus.NOT_LANDED:
        return []
    if end.ending is Ending.STORED_ERROR or end.ending is Ending.UNKNOWN:
        return [(Kind.UNKNOWN, _unknown(number, end, now))]
    sends = [s.number for s in state.maybe_landed] if end.stored else [number]
    entries: list[tuple[Kind, dict[str, Any]]] = [
        (Kind.NOT_LANDED, _with_words({"sends": sends, "proof": end.ending.value}, end))
    ]
    others = [s for s in state.maybe_landed if s.number not in sends]
    if not others and end.ending in _REASON:
        entries.append((Kind.REFUSED, _with_words({"reason": _REASON[end.ending]}, end)))
    return entries


def _unknown(number: int, end: End, now: Instant) -> dict[str, Any]:
    body: dict[str, Any] = {"send": number, "cause": end.cause or end.ending.value, "clock": now.to_json()}
    if end.ending is Ending.STORED_ERROR:
        body["stored"] = True
    return _with_words(body, end)


def _with_words(body: dict[str, Any], end: End) -> dict[str, Any]:
    if end.code:
        body["code"] = end.code
    if end.detail:
        body["detail"] = end.detail
    return body


def _result(end: End) -> dict[str, Any]:
    result: dict[str, Any] = {"ending": end.ending.value}
    if end.ending is Ending.EVIDENCE:
        result["evidence"] = end.evidence
        result["by_us"] = end.by_us
    if end.cause:
        result["cause"] = end.cause
    return _with_words(result, end)
