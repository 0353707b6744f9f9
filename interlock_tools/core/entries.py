"""What a journal holds: entries, the kinds they come in, and readings of the clock."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple


class Kind(str, Enum):
    """The closed set of entry kinds. Values are what the journal stores."""

    PROPOSED = "proposed"
    """A decision: request, payload, and the facts it rests on. Binds the payload."""
    AUTHORIZED = "authorized"
    """Premises held and the grant covered the payload when this was written."""
    DISPATCHED = "dispatched"
    """One send is about to be handed to the network; reserves the budgets."""
    UNKNOWN = "unknown"
    """A send came back without a known outcome."""
    NOT_LANDED = "not_landed"
    """Sends that are proven not to have landed and unable to, and by what."""
    ORPHANED = "orphaned"
    """The death of a send's process was proven, and when."""
    SENDER_LOST = "sender_lost"
    """Only the session of a send was lost, and when. Its process may live."""
    COMMITTED = "committed"
    """The effect happened, on the service's evidence."""
    REFUSED = "refused"
    """The effect did not happen and will not, and why."""
    AMBIGUOUS = "ambiguous"
    """Nobody can know from here; a person decides."""
    RESOLVED = "resolved"
    """A person said whether it landed, and why."""
    REPLACED = "replaced"
    """A later decision took this one's place."""
    APPROVAL_REQUESTED = "approval_requested"
    APPROVED = "approved"
    REJECTED = "rejected"
    RELEASED = "released"
    """Frees the budgets of an effect that landed and was undone."""
    SETTLED = "settled"
    """What became of it after the commit. Evidence only; it changes no decision."""
    LATE = "late"
    """A result that came after the effect was closed."""


class Instant(NamedTuple):
    """A reading of the clocks. Milliseconds throughout.

    ``boottime_ms`` is CLOCK_BOOTTIME, which cannot be set and counts suspended
    time, but means something only within one boot of one machine, named by
    ``boot``. ``wall_ms`` is UTC since 1970 and comparable everywhere, as far
    as clocks agree.
    """

    boot: str
    boottime_ms: int
    wall_ms: int

    def to_json(self) -> dict[str, Any]:
        return {"boot": self.boot, "boottime_ms": self.boottime_ms, "wall_ms": self.wall_ms}

    @staticmethod
    def from_json(value: dict[str, Any]) -> Instant:
        return Instant(value["boot"], value["boottime_ms"], value["wall_ms"])


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of an effect. ``seq`` counts from 1 within the effect; ``at_ms`` is the writer's UTC clock.

    ``body`` is made of canonical values (see ``canonical``). What each kind's body holds:

    ================== =========================================================================================
    proposed           ``effect``, ``key``, ``decision``, ``payload``, ``payload_digest``, ``facts`` (or null),
                       ``decided_by`` (call, propose, grant, redecide), optional ``by``, ``context``
    authorized         ``grant`` (or null)
    dispatched         ``send``, ``session``, ``mark`` (or null; with ``maybe`` where the send may leave the
                       process unseen, so that its mark proves nothing), ``clock``, optional ``budgets``,
                       ``facts``, ``grant``, ``resend`` (true when an earlier send may have landed),
                       ``reconstructed`` (its own record was lost; this one was made from what was found)
    unknown            ``send``, ``cause``, ``clock``, optional ``detail``, ``stored`` (a replayed stored error)
    not_landed         ``sends``, ``proof`` (mark, not_sent, withheld, rate_limited, definite_no, precondition_failed,
                       lookup), optional ``detail``
    orphaned           ``send``, ``clock``
    sender_lost        ``send``, ``clock``, ``lease_ms``
    committed          ``evidence``, ``by_us`` (yes, no, unknown), ``via`` (send, resend, lookup), optional ``send``
    refused            ``reason``, optional ``grant``, ``changes``, ``code``, ``detail``
    ambiguous          ``reason``, optional ``detail``
    resolved           ``landed``, ``by``, ``why``
    replaced           ``effect_id`` of the later decision, ``by``
    approval_requested ``digest``, ``expires_at_ms``
    approved, rejected ``digest``, ``by``, ``why``
    released           ``why``
    settled            ``state``, ``detail``
    late               ``send``, ``result``
    ================== =========================================================================================
    """

    effect_id: str
    seq: int
    kind: Kind
    at_ms: int
    body: dict[str, Any]
