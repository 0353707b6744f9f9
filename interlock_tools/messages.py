"""The sentences of an outcome: what happened, what changed, whether to try again, who decides.

They are written for a model as much as for a person. Nothing but "it is safe"
may be read as leave to try again, and where something may have happened they
say that it must not be done in another way either. Whatever comes from
elsewhere (names, a service's words, values) is put on one line and cleared of
what looks like a credential.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .core.canonical import encode
from .outcome import APPROVAL, DECIDED, Outcome, Reason, Status
from .redaction import clean

MAX_CHANGES = 4
"""Most failing premises that are spelled out."""


def sentences(outcome: Outcome) -> str:
    """Return one or two plain sentences (a conflicting call adds one about itself)."""
    if outcome.status is Status.COMMITTED:
        return _committed(outcome)
    assert outcome.reason is not None
    return _BY_REASON[outcome.reason](outcome)


# -- parts ---------------------------------------------------------------------------------------------


def _what(outcome: Outcome) -> str:
    return f"{clean(outcome.effect, 80)} for request {shown_key(outcome.request_key)}"


def shown_key(key: str) -> str:
    """The request key; one that could be mistaken for words of the sentence in quotes, odd characters escaped."""
    plain = key.isprintable() and " " not in key and key
    return clean(key, 80) if plain else clean(repr(key), 80)


def _shown(value: Any, most: int = 160) -> str:
    """A value as a reader sees it: text bare, an object by its id where it has one."""
    if isinstance(value, dict) and isinstance(value.get("id"), (str, int)):
        value = str(value["id"])
    return clean(value if isinstance(value, str) else encode(value), most)


def _changes(outcome: Outcome) -> str:
    parts = []
    for name, change in sorted(outcome.changes.items()):
        part = f"{clean(name, 80)}: "
        if "was" in change:
            part += f"was {_shown(change['was'], 80)}, now {_shown(change['now'], 80)}"
        else:
            part += f"is {_shown(change['now'], 80)}"
        if "expected" in change:
            part += f", must be {_shown(change['expected'], 80)}"
        parts.append(part)
    if len(parts) > MAX_CHANGES:
        parts[MAX_CHANGES:] = [f"and {len(parts) - MAX_CHANGES} more"]
    return "; ".join(parts)


def _words(outcome: Outcome) -> str:
    """The code and the words that came with it in brackets, or nothing."""
    words = [clean(part).rstrip(".") for part in (outcome.code, outcome.detail) if part]
    return f" ({': '.join(words)})" if words else ""


def _look_again(outcome: Outcome) -> str:
    when = "later" if outcome.retry_after_s is None else f"in {_duration(outcome.retry_after_s)}"
    return f"Ask again {when} with the same request; that is safe."


def _duration(seconds: float) -> str:
    if seconds <= 120:
        return f"{max(1, math.ceil(seconds))} s"
    if seconds <= 7200:
        return f"{math.ceil(seconds / 60)} min"
    return f"{math.ceil(seconds / 3600)} h"


# -- COMMITTED -----------------------------------------------------------------------------------------


def _committed(outcome: Outcome) -> str:
    if outcome.via == "person":
        who = outcome.result["settled_by"]
        found = f"{clean(who['by'], 80)}: {clean(who['why'])}"
        first = f"Done: a person found that {_what(outcome)} took effect ({found})."
    elif outcome.by_us == "no":
        first = f"Done: {_what(outcome)} is in effect, by someone else's identical action: {_shown(outcome.result)}."
    elif outcome.by_us == "unknown":
        first = (
            f"Done: {_what(outcome)} is in effect, by this request or by someone else's identical action: "
            f"{_shown(outcome.result)}."
        )
    else:
        how = {"lookup": " (found at the service)", "resend": " (the service confirmed it under the same key)"}
        found = f"{how.get(outcome.via or '', '')}: {_shown(outcome.result)}"
        first = f"Done: {_what(outcome)} took effect{found}."
    return f"{first} {_since(outcome)}"


def _since(outcome: Outcome) -> str:
    settlement = outcome.settlement or {}
    state = settlement.get("state")
    if not state or state == "settled":
        return "Do not repeat it."
    detail = settlement.get("detail")
    words = f" ({_shown(detail)})" if detail else ""
    if state == "pending":
        return f"It is not final yet{words}; do not repeat it."
    exposure, currency = settlement.get("exposure"), settlement.get("currency")
    if exposure is not None:
        words += f", {exposure} {clean(str(currency or ''), 8)} in the smallest unit at stake".replace("  ", " ")
    return f"Since then: {clean(str(state), 80)}{words}; do not repeat it, a person has to decide what follows."


# -- REFUSED -------------------------------------------------------------------------------------------


def _refused(why: Callable[[Outcome], str], who: str) -> Callable[[Outcome], str]:
    return lambda outcome: f"Not done: {_what(outcome)} was refused because {why(outcome)}. {_asking(who)}"


def _asking(who: str) -> str:
    return f"Asking again changes nothing; {who}."


_ANEW = "whoever decided it has to decide anew"


def _rejected(outcome: Outcome) -> str:
    if outcome.code == APPROVAL:
        said = f" ({clean(outcome.detail).rstrip('.')})" if outcome.detail else ""
        return f"Not done: a person was asked to approve {_what(outcome)} and rejected it{said}. {_asking(_ANEW)}"
    if outcome.via == "person":
        return f"Not done: a person found that {_what(outcome)} did not take effect{_words(outcome)}. {_asking(_ANEW)}"
    return f"Not done: the service rejected {_what(outcome)}{_words(outcome)}. {_asking(_ANEW)}"


def _unreachable(outcome: Outcome) -> str:
    return (
        f"Not done: {_what(outcome)} never left this machine{_words(outcome)}. "
        "It is safe to ask again with the same request."
    )


def _conflicting(outcome: Outcome) -> str:
    lead = outcome.existing.message if outcome.existing is not None else ""
    tail = (
        "This call asked for something else under the same request and was not sent; "
        "only the application can give it a new request reference."
    )
    return f"{lead} {tail}".strip()


def _already_done(outcome: Outcome) -> str:
    lead = outcome.existing.message if outcome.existing is not None else f"Done before: {_what(outcome)}."
    tail = (
        "A second action on the same subject was not sent; "
        "if one is wanted on purpose, the application has to give it a new request reference."
    )
    return f"{lead} {tail}"


def _replaced(outcome: Outcome) -> str:
    lead = f"Not done under this decision: {_what(outcome)} was decided again, and the later decision stands."
    return f"{lead} {outcome.existing.message}" if outcome.existing is not None else lead


# -- IN_FLIGHT -----------------------------------------------------------------------------------------


def _sending(outcome: Outcome) -> str:
    holder = outcome.holder or {}
    who = f" (process {holder['pid']} on {clean(str(holder['host']), 80)})" if "pid" in holder else ""
    return (
        f"Not known yet: {_what(outcome)} is being sent by a process that is alive{who}; do not do it in another way. "
        f"{_look_again(outcome)}"
    )


def _waiting(outcome: Outcome) -> str:
    if outcome.detail == DECIDED:
        return (
            f"Not done yet: {_what(outcome)} has been decided, and nothing was sent. "
            "The same call carries it out if everything it was decided on still holds."
        )
    return (
        f"Not known yet: {_what(outcome)} was sent and may still take effect{_words(outcome)}; "
        f"do not do it in another way. {_look_again(outcome)}"
    )


def _rate_limited(outcome: Outcome) -> str:
    return (
        f"Not done yet: the service turned {_what(outcome)} away for now{_words(outcome)}, and it stays to be done; "
        f"do not do it in another way. {_look_again(outcome)}"
    )


def _unreadable(outcome: Outcome) -> str:
    return (
        f"Not decided: what {_what(outcome)} depends on could not be read{_words(outcome)}, so nothing was sent now; "
        f"do not do it in another way. {_look_again(outcome)}"
    )


def _awaiting_approval(outcome: Outcome) -> str:
    return (
        f"Not done yet: {_what(outcome)} waits for a person's approval{_words(outcome)}, and nothing was sent. "
        "Asking again does not hurry it; it is for that person to decide."
    )


# -- AMBIGUOUS -----------------------------------------------------------------------------------------


def _ambiguous(why: str) -> Callable[[Outcome], str]:
    return lambda outcome: (
        f"Unknown: {why.format(what=_what(outcome))}{_words(outcome)}. It will not be sent again, and must not be "
        f"done in another way either; a person has to look at the service and settle effect {outcome.effect_id}."
    )


_BY_REASON: dict[Reason, Callable[[Outcome], str]] = {
    Reason.CONFLICTING_PAYLOAD: _conflicting,
    Reason.STALE_PREMISE: _refused(lambda o: f"what it was decided on has changed ({_changes(o)})", _ANEW),
    Reason.PREMISE_NOT_MET: _refused(lambda o: f"a condition for it is not met ({_changes(o)})", _ANEW),
    Reason.NOT_ALLOWED: _refused(
        lambda o: f"no approval covers it{_words(o)}", "whoever gives such approvals has to decide"
    ),
    Reason.OVER_BUDGET: _refused(
        lambda o: f"it does not fit into a shared limit{_words(o)}", "whoever sets the limit has to decide"
    ),
    Reason.REJECTED: _rejected,
    Reason.PRECONDITION_FAILED: _refused(lambda o: f"the service found its precondition false{_words(o)}", _ANEW),
    Reason.UNREACHABLE: _unreachable,
    Reason.ALREADY_DONE: _already_done,
    Reason.REPLACED: _replaced,
    Reason.NO_EVIDENCE: _ambiguous("{what} was sent, and nothing here can tell whether it took effect"),
    Reason.STORED_ERROR: _ambiguous(
        "{what} was sent, and the service keeps answering with an error that does not say whether it took effect"
    ),
    Reason.SENDER_LOST: _ambiguous(
        "contact with the process that was sending {what} was lost, and nothing here can tell whether it took effect"
    ),
    Reason.UNVERIFIABLE: _ambiguous("the records about {what} contradict each other"),
    Reason.SENDING: _sending,
    Reason.WAITING: _waiting,
    Reason.RATE_LIMITED: _rate_limited,
    Reason.UNREADABLE: _unreadable,
    Reason.AWAITING_APPROVAL: _awaiting_approval,
}
