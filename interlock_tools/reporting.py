"""From the state of an effect to the outcome that a caller is told."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from .core.states import Phase, State
from .errors import Archived
from .outcome import DECIDED, Outcome, Reason, Status


def outcome_of(effect_id: str, state: State) -> Outcome:
    """Return the outcome of an effect as its entries alone tell it.

    An open effect is reported as ``IN_FLIGHT:waiting``; whoever has looked at
    its sender can say more.
    """
    base: dict[str, Any] = {"effect_id": effect_id, "effect": state.name, "request_key": state.request_key}
    if state.is_open:
        reason, detail = _why_open(state)
        return Outcome(Status.IN_FLIGHT, reason=reason, detail=detail, **base)
    closing = state.closing
    assert closing is not None
    body = closing.body
    base["since_ms"] = closing.at_ms
    base["at_recovery"] = bool(body.get("at_recovery"))
    if state.settled is not None:
        base["settlement"] = state.settled.body
    if state.phase is Phase.COMMITTED:
        return Outcome(Status.COMMITTED, result=body["evidence"], via=body["via"], by_us=body["by_us"], **base)
    if state.phase is Phase.RESOLVED:
        return _resolved(body, base)
    if state.phase is Phase.REPLACED:
        return Outcome(Status.REFUSED, reason=Reason.REPLACED, **base)
    if state.contradicted:
        base["detail"] = "a later answer of the service shows that it happened"
        if state.phase is Phase.REFUSED:
            return Outcome(Status.AMBIGUOUS, reason=Reason.UNVERIFIABLE, **base)
    status = Status.REFUSED if state.phase is Phase.REFUSED else Status.AMBIGUOUS
    base.setdefault("detail", body.get("detail"))
    return Outcome(
        status, reason=Reason(body["reason"]), changes=body.get("changes") or {}, code=body.get("code"), **base
    )


def tombstone_of(effect_id: str, outcome: Outcome, payload_digest: str, archive: str) -> dict[str, Any]:
    """Return what a journal goes on knowing of a finished request: how it ended, in short form.

    Args:
        effect_id: the decision that the tombstone is for.
        outcome: of its last decision; COMMITTED or REFUSED.
        payload_digest: of its last decision, so that a call with another payload is told apart.
        archive: the name of the file that holds its receipts.
    """
    kept = {name: value for name in _KEPT if (value := getattr(outcome, name)) not in (None, {})}
    kept["status"] = outcome.status.value
    if outcome.effect_id != effect_id:
        kept["effect_id"] = outcome.effect_id
    if outcome.reason is not None:
        kept["reason"] = outcome.reason.value
    return {"archive": archive, "payload_digest": payload_digest, "outcome": kept}


def outcome_of_tombstone(gone: Archived, name: str, request_key: str) -> Outcome:
    """Return the outcome of an archived effect's request, whose name and key the journal's index has."""
    fields = {"effect_id": gone.effect_id, "effect": name, "request_key": request_key, **gone.tombstone["outcome"]}
    fields["status"] = Status(fields["status"])
    if "reason" in fields:
        fields["reason"] = Reason(fields["reason"])
    return Outcome(**fields)


_KEPT = (
    "result",
    "via",
    "by_us",
    "since_ms",
    "changes",
    "code",
    "detail",
    "settlement",
)
"""What of an outcome is kept as it is."""


def _resolved(body: dict[str, Any], base: dict[str, Any]) -> Outcome:
    who = {"by": body["by"], "why": body["why"]}
    if body["landed"]:
        return Outcome(Status.COMMITTED, result={"settled_by": who}, via="person", by_us="unknown", **base)
    detail = f"{body['by']}: {body['why']}"
    return Outcome(Status.REFUSED, reason=Reason.REJECTED, via="person", detail=detail, **base)


def _why_open(state: State) -> tuple[Reason, str | None]:
    if state.phase not in (Phase.PROPOSED, Phase.AUTHORIZED):
        return Reason.WAITING, None
    asked = state.approval
    if asked is None or asked.answer == "approved":
        return Reason.WAITING, DECIDED
    return Reason.AWAITING_APPROVAL, f"asked for at {moment(asked.asked_at_ms)}, until {moment(asked.expires_at_ms)}"


def moment(at_ms: int) -> str:
    """A time as people read it, to the second."""
    return f"{datetime.fromtimestamp(at_ms / 1000, timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
