"""The sentences of an outcome: what happened, what changed, whether to try again, who decides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .core.canonical import encode
from .outcome import Outcome, Reason, Status

_AGAIN = "Asking again with the same request does not change that."


def sentences(outcome: Outcome) -> str:
    """Return one or two plain sentences (a conflicting call adds one about itself)."""
    if outcome.status is Status.COMMITTED:
        return _committed(outcome)
    assert outcome.reason is not None
    return _BY_REASON[outcome.reason](outcome)


def _committed(outcome: Outcome) -> str:
    found = _shown(outcome.result)
    if outcome.via == "person":
        return f"Done, as a person confirmed: {_what(outcome)} took effect ({found}). {_no_more(outcome)}"
    if outcome.by_us == "no":
        first = f"{outcome.effect} for {outcome.request_key} is done, by someone else's identical action: {found}."
        return f"{first} Nothing more will be sent."
    how = {"lookup": " (found at the service)", "resend": " (the service confirmed it under the same key)"}
    how_found = how.get(outcome.via or "", "")
    return f"Done: {_what(outcome)} took effect exactly once{how_found}: {found}. {_no_more(outcome)}"


def _no_more(outcome: Outcome) -> str:
    if outcome.settlement:
        state = outcome.settlement.get("state", "")
        words = outcome.settlement.get("detail") or ""
        if state and state != "settled":
            return f"Since then: {state}{': ' + _shown(words) if words else ''}."
    return "Do not repeat it."


def _shown(value: Any, most: int = 160) -> str:
    """A value as a reader sees it: text bare, an object by its id where it has one."""
    if isinstance(value, dict) and isinstance(value.get("id"), str):
        return str(value["id"])
    text = value if isinstance(value, str) else encode(value)
    return text if len(text) <= most else text[: most - 1] + "…"


def _changes(outcome: Outcome) -> str:
    parts = []
    for name, change in sorted(outcome.changes.items()):
        part = f"{name}: "
        if "was" in change:
            part += f"was {_shown(change['was'], 80)}, now {_shown(change['now'], 80)}"
        else:
            part += f"is {_shown(change['now'], 80)}"
        if "expected" in change:
            part += f", must be {_shown(change['expected'], 80)}"
        parts.append(part)
    return "; ".join(parts)


def _words(outcome: Outcome) -> str:
    """The service's words and code in brackets, or nothing."""
    words = [part for part in (outcome.code, outcome.detail) if part]
    return f" ({': '.join(words)})" if words else ""


def _what(outcome: Outcome) -> str:
    return f"{outcome.effect} for {outcome.request_key}"


def _not_done(why: Callable[[Outcome], str], then: str) -> Callable[[Outcome], str]:
    return lambda outcome: f"Not done: {_what(outcome)} was refused because {why(outcome)}. {then}"


def _conflicting(outcome: Outcome) -> str:
    existing = outcome.existing
    lead = existing.message if existing is not None else ""
    tail = (
        "This call asked for something else under the same request, so it was not sent; "
        "a different action needs a request reference of its own."
    )
    return f"{lead} {tail}".strip()


def _already_done(outcome: Outcome) -> str:
    existing = outcome.existing
    lead = existing.message if existing is not None else f"{_what(outcome)} was done before."
    return (
        f"{lead} A second action on the same subject was not sent; "
        "if it is wanted, ask for it under a new request reference."
    )


def _replaced(outcome: Outcome) -> str:
    lead = f"Not done under this decision: {_what(outcome)} was decided again."
    return f"{lead} {outcome.existing.message}" if outcome.existing is not None else lead


def _sending(outcome: Outcome) -> str:
    holder = outcome.holder or {}
    who = f" (process {holder['pid']} on {holder['host']})" if "pid" in holder else ""
    return f"Not known yet: {_what(outcome)} is being sent by a process that is alive{who}. {_look_again(outcome)}"


def _waiting(outcome: Outcome) -> str:
    if outcome.detail:
        return f"Not known yet: {_what(outcome)}: {outcome.detail}. {_look_again(outcome)}"
    return (
        f"Not known yet: {_what(outcome)} was sent and may still take effect, so it is not sent again. "
        f"{_look_again(outcome)}"
    )


def _look_again(outcome: Outcome) -> str:
    if outcome.retry_after_s is None:
        return "Ask again later with the same request; it is safe."
    return f"Ask again in {max(1, round(outcome.retry_after_s))} s with the same request; it is safe."


def _unreadable(outcome: Outcome) -> str:
    return (
        f"Not decided: what {_what(outcome)} depends on could not be read{_words(outcome)}, so nothing was sent now. "
        f"{_look_again(outcome)}"
    )


def _rate_limited(outcome: Outcome) -> str:
    return f"Not done yet: the service turned {_what(outcome)} away for now{_words(outcome)}. {_look_again(outcome)}"


def _ambiguous(why: str) -> Callable[[Outcome], str]:
    return lambda outcome: (
        f"Unknown: {_what(outcome)} was sent, and {why}{_words(outcome)}. "
        f"It will not be sent again; a person has to look at the service and settle effect {outcome.effect_id}."
    )


_BY_REASON: dict[Reason, Callable[[Outcome], str]] = {
    Reason.CONFLICTING_PAYLOAD: _conflicting,
    Reason.STALE_PREMISE: _not_done(
        lambda o: f"what it was decided on has changed ({_changes(o)})",
        f"{_AGAIN} A person or a new decision is needed.",
    ),
    Reason.PREMISE_NOT_MET: _not_done(
        lambda o: f"a condition for it is not met ({_changes(o)})", f"{_AGAIN} A person or a new decision is needed."
    ),
    Reason.NOT_ALLOWED: _not_done(
        lambda o: f"there is no approval that covers it{_words(o)}", f"{_AGAIN} Whoever approves has to decide."
    ),
    Reason.OVER_BUDGET: _not_done(
        lambda o: f"a shared limit does not allow it{_words(o)}", f"{_AGAIN} Whoever sets the limit has to decide."
    ),
    Reason.REJECTED: lambda o: (
        f"Not done: a person settled that {_what(o)} did not take effect{_words(o)}. {_AGAIN}"
        if o.via == "person"
        else f"Not done: the service rejected {_what(o)}{_words(o)}. {_AGAIN}"
    ),
    Reason.PRECONDITION_FAILED: _not_done(
        lambda o: f"the service found its precondition false{_words(o)}", f"{_AGAIN} A new decision is needed."
    ),
    Reason.UNREACHABLE: lambda o: (
        f"Not done: {_what(o)} never left this machine{_words(o)}. It is safe to ask again with the same request."
    ),
    Reason.ALREADY_DONE: _already_done,
    Reason.REPLACED: _replaced,
    Reason.NO_EVIDENCE: _ambiguous("no answer came back and the service offers no way to find out"),
    Reason.STORED_ERROR: _ambiguous("the service keeps answering with an error that does not say whether it happened"),
    Reason.SENDER_LOST: _ambiguous("contact with its sender was lost"),
    Reason.UNVERIFIABLE: lambda o: (
        f"Unknown: the records about {_what(o)} contradict each other{_words(o)}. "
        f"Nothing will be sent; a person has to look at the service and settle effect {o.effect_id}."
    ),
    Reason.SENDING: _sending,
    Reason.WAITING: _waiting,
    Reason.RATE_LIMITED: _rate_limited,
    Reason.UNREADABLE: _unreadable,
    Reason.AWAITING_APPROVAL: lambda o: (
        f"Not done yet: {_what(o)} waits for a person's approval. Nothing was sent. {_look_again(o)}"
    ),
}
