"""What the services' answers to a receipt share: weighing what is there against what the receipt says.

Each service's ``confirm(subject, client)`` asks with the access of whoever
verifies, reads and never writes, and says what its answer rests on: a field
that the service fills in by itself (strong), or one that the account can edit
(weak). Whatever it raises means that it cannot tell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock_tools.receipts.report import Answer, Carrier, ServiceFinding, Subject

SAID = {"committed": True, "refused": False, "replaced": False}
"""Whether a receipt says that it happened, by the effect's phase. The others leave it open."""


class CannotTell(LookupError):
    """What the service shows, or what the receipt names, does not settle it."""


def finding(subject: Subject, there: bool, says: str, carrier: Carrier = Carrier.STRONG) -> ServiceFinding:
    """Return what the service's answer is worth.

    Args:
        subject: what the receipt is about.
        there: whether the service shows the effect.
        says: what it shows, in a sentence.
        carrier: what that rests on.
    """
    said = SAID.get(subject.phase)
    if said is None:
        return ServiceFinding(Answer.UNKNOWN, f"{says} The receipt leaves open whether it happened.", carrier)
    return ServiceFinding(Answer.YES if there == said else Answer.NO, says, carrier)


def other(says: str, carrier: Carrier = Carrier.STRONG) -> ServiceFinding:
    """Return that the service shows something else than what the receipt says."""
    return ServiceFinding(Answer.NO, says, carrier)


def text(subject: Subject, name: str) -> str:
    """Return an argument of the effect. Raises ``CannotTell`` where the receipt hides it or has none."""
    value = subject.payload.get(name)
    if not isinstance(value, str):
        raise CannotTell(f"the receipt does not tell {name}; ask for one that discloses payload.{name}")
    return value


def evidence_id(subject: Subject) -> str | None:
    """Return the id that the receipt gives as evidence, or None where it gives none."""
    evidence = subject.evidence
    found = evidence.get("id") if isinstance(evidence, Mapping) else evidence
    return found if isinstance(found, str) else None


def differences(names: Mapping[str, Any], shown: Mapping[str, Any]) -> str:
    """Return which values the service shows otherwise, in words; empty if there are none."""
    found = [f"{name} {shown.get(name)!r}, not {value!r}" for name, value in names.items() if shown.get(name) != value]
    return ", ".join(found)


def what(subject: Subject) -> str:
    """Return what kind of effect it is: as its first record says, or by the last part of its name."""
    return subject.service.get("kind") or subject.name.rpartition(".")[2]
