"""What a person can do about an effect, and what would still be safe, from its record alone."""

from __future__ import annotations

from typing import Any

from ..core.states import Phase, State
from ..deciding import ApprovalRequest, asked, facts_at_refusal
from ..errors import NotDecidable
from ..outcome import Outcome, Reason, Status
from .render import value, when


def advice(outcome: Outcome, state: State) -> list[str]:
    """Return lines: what is known of its sends, what is safe, and the commands that decide."""
    request = asked(outcome.effect_id, state)
    if outcome.reason is Reason.AWAITING_APPROVAL and request is not None:
        return _approval(request)
    if outcome.status is Status.AMBIGUOUS:
        return _ambiguous(outcome, state)
    if outcome.status is Status.REFUSED and state.phase in (Phase.REFUSED, Phase.RESOLVED):
        return _refused(outcome.effect_id, state)
    return []


def plain_advice(outcome: Outcome, state: State) -> dict[str, Any]:
    """Return the same as JSON values."""
    request = asked(outcome.effect_id, state)
    plain: dict[str, Any] = {"arguments": dict(state.payload), "facts": dict(state.facts or {}), "sends": _sends(state)}
    if request is not None:
        plain["approval"] = request.to_json()
    return plain


def _approval(request: ApprovalRequest) -> list[str]:
    until = when(int(request.expires_at.timestamp() * 1000))
    return [
        f"Asked for until {until} UTC. Nothing was sent. What it rests on is read again before it is sent.",
        f"Yes:  interlock approve {request.effect_id} --by WHO --why WHY --digest {request.digest[:12]}",
        f"No:   interlock reject {request.effect_id} --by WHO --why WHY",
    ]


def _ambiguous(outcome: Outcome, state: State) -> list[str]:
    return [
        *(f"Send {one['send']} of {one['at']} UTC: {one['known']}." for one in _sends(state)),
        "Safe: asking again with the same request, and interlock recover. Both look again and send nothing.",
        "Not safe: doing it in any other way.",
        f"Look for {outcome.effect_id} at the service, then:",
        f"  interlock resolve {outcome.effect_id} --landed|--not-landed --by WHO --why WHAT",
    ]


def _refused(effect_id: str, state: State) -> list[str]:
    if state.contradicted:
        return []
    try:
        facts = facts_at_refusal(effect_id, state)
    except NotDecidable:
        facts = {}
    rests = f"It would rest on {value(facts)}, as last read; each reading before a send must then show the same."
    return [
        "No send of it can land any more, so deciding again is safe: it is a new decision under a new key.",
        *([rests] if facts else []),
        f"Again:  interlock redecide {effect_id} --by WHO",
    ]


def _sends(state: State) -> list[dict[str, Any]]:
    known = {
        "not_landed": "proven not to have landed",
        "landed": "landed",
        "unknown": "came back without a known outcome, and may have landed",
        "orphaned": "its process died, and it may have landed",
        "lost": "contact with its process was lost, and it may have landed",
        "running": "its end is not recorded",
    }
    return [
        {
            "send": send.number,
            "at": when(send.dispatched.wall_ms),
            "status": send.status.value,
            "known": known[send.status.value] + (f" ({value(send.cause, 80)})" if send.cause else ""),
        }
        for send in state.sends
    ]
