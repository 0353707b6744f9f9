"""Reads the world for an effect: premises, grant, and the lookup at the service."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from .authority import Grant
from .commands import Call
from .core.approval import Standing, standing
from .core.canonical import normalise
from .core.decide import Checks, Lookup
from .core.entries import Instant
from .core.states import State
from .definition import Definition, Reader
from .errors import CannotKnow, describe
from .evidence import keep
from .journal.protocol import Journal
from .outcome import Reason
from .premises import Reading, capture, compare
from .recording import Steps, copy_of
from .redaction import clean
from .reporting import moment

log = logging.getLogger("interlock_tools")


@dataclass
class Looked:
    """What has been read of the world for one state of one effect. Stale after any wait."""

    reading: Reading | None = None
    lookup: Lookup = Lookup.NOT_ASKED
    lookup_why: str = ""
    began: Instant | None = None
    evidence: tuple[Any, str] | None = None

    @property
    def why(self) -> str:
        """What could not be read."""
        if self.lookup is Lookup.UNREADABLE:
            return self.lookup_why
        return self.reading.why if self.reading else ""


def read_checks(
    journal: Journal,
    definition: Definition,
    effect_id: str,
    payload: dict[str, Any],
    payload_digest: str,
    decided: Mapping[str, Any] | None,
    *,
    grant_may_be_missing: bool = False,
) -> Steps:
    """Read premises and grant, and compare. Returns a ``Reading``.

    Args:
        journal: for the clock.
        definition: the effect.
        effect_id: its id, for readers that leave the effect's own result out.
        payload: its arguments.
        payload_digest: their digest, for the grant.
        decided: the facts that the decision is held to; None: this reading is the decision.
        grant_may_be_missing: for a decision that comes before its approval.
    """

    def ask(reader: Reader) -> Any:
        return Call(reader.function, reader.arguments(copy_of(payload), effect_id))

    try:
        facts = capture((yield ask(definition.premises))) if definition.premises is not None else {}
        expect = definition.expect
        expected = capture((yield ask(expect))) if isinstance(expect, Reader) else expect or {}
        grant = _checked((yield ask(definition.allowed)) if definition.allowed is not None else None)
        above = definition.rules.allowed
        general = _checked((yield Call(partial(above, definition.asked(payload)), {})) if above is not None else None)
        granted_facts = normalise(dict(grant.facts), "grant.facts") if grant and grant.facts else {}
        recorded = _recorded(grant, general)
        amount = definition.amount_of(payload)
    except Exception as error:
        why = describe(error)
        log.warning("effect %s: premises or grant could not be read: %s", effect_id, why)
        return Reading(Checks.UNREADABLE, {}, {}, None, journal.now(), why=why)
    now = journal.now()
    held_to = {**facts, **granted_facts} if decided is None else dict(decided)
    reason, changes = compare(held_to, facts, expected)
    if reason:
        return Reading(Checks.FAIL, facts, held_to, recorded, now, reason, changes, frozenset(changes))
    for given, wanted in ((grant, definition.allowed), (general, above)):
        why_not = None
        if given is not None:
            why_not = given.refusal(payload_digest, amount, now.wall_ms)
        elif wanted is not None and not grant_may_be_missing:
            why_not = "no approval is in force"
        if why_not is not None:
            return Reading(Checks.FAIL, facts, held_to, recorded, now, "not_allowed", why=why_not)
    return Reading(Checks.HOLD, facts, held_to, recorded, now)


def _checked(grant: Any) -> Grant | None:
    if grant is not None and not isinstance(grant, Grant):
        raise TypeError(f"allowed= must return a Grant or None, not {type(grant).__name__}")
    return grant


def _recorded(grant: Grant | None, general: Grant | None) -> dict[str, Any] | None:
    """What is recorded: the effect's own grant, and under which general one of the gate."""
    if grant is None or general is None:
        given = grant or general
        return given.to_json() if given else None
    return {**grant.to_json(), "under": general.to_json()}


def under_approval(state: State, reading: Reading) -> Reading:
    """The reading; one that fails where the approval that the effect rests on does not stand at that moment."""
    if state.approval is None or reading.checks is not Checks.HOLD:
        return reading
    stands = standing(state, reading.at.wall_ms)
    if stands is Standing.APPROVED:
        return reading
    why = "no person's approval of it is in force"
    if stands is Standing.EXPIRED:
        why = f"its approval expired at {moment(state.approval.expires_at_ms)}"
    return replace(reading, checks=Checks.FAIL, reason=Reason.NOT_ALLOWED.value, why=why)


def look_up(
    journal: Journal,
    definition: Definition,
    effect_id: str,
    payload: dict[str, Any],
    looked: Looked,
    decided: Mapping[str, Any] | None,
) -> Steps:
    """Ask the service for evidence. What raises, and what proves nothing, is not an answer."""
    reader = definition.lookup
    assert reader is not None
    looked.began = journal.now()
    try:
        found = yield Call(reader.function, reader.arguments(copy_of(payload), effect_id, copy_of(dict(decided or {}))))
        looked.evidence = keep(found) if found is not None else None
        looked.lookup = Lookup.NOT_FOUND
    except CannotKnow as error:
        looked.lookup = Lookup.CANNOT_KNOW
        looked.lookup_why = clean(str(error))
    except Exception as error:
        looked.lookup = Lookup.UNREADABLE
        looked.lookup_why = describe(error)
        log.warning("effect %s: lookup failed: %s", effect_id, looked.lookup_why)
