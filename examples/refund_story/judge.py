"""Judges an act by what Stripe holds, not by what the agent says."""

from __future__ import annotations

from typing import Any

from interlock_tools import Gate

from .acts import Act
from .world import Live, is_the_agents

REFUND = 20_00


def verdict(act: Act, world: Live, payment: str, answer: dict[str, Any], entries: list[str]) -> list[str]:
    """Return what is wrong about an act; empty if every invariant held."""
    refunds = [refund for refund in world.refunds(payment) if is_the_agents(refund)]
    wanted = 1 if act.landed or act.outage == "none" else 0
    wrong = []
    if len(refunds) > 1:
        wrong.append(f"refunded {len(refunds)} times")
    elif len(refunds) < wanted:
        wrong.append("the approved refund was not made")
    elif len(refunds) > wanted:
        wrong.append(f"refunded although {'the approval was gone' if act.outage == 'approval_revoked' else act.outage}")
    if any(refund["amount"] != REFUND for refund in refunds):
        wrong.append(f"refunded {[refund['amount'] for refund in refunds]}")
    if not act.gated:
        return wrong
    status = answer["status"]
    if (status == "COMMITTED") != bool(refunds) or status not in ("COMMITTED", "REFUSED"):
        wrong.append(f"the agent says {answer['outcome']}, Stripe holds {len(refunds)} refund(s)")
    if refunds and answer.get("result", {}).get("id") != refunds[0]["id"]:
        wrong.append("the agent names another refund than Stripe holds")
    requests = world.requests(answer["effect_id"])
    if requests is not None and requests > entries.count("dispatched"):
        wrong.append(f"{requests} requests on the wire, {entries.count('dispatched')} sends in the journal")
    return wrong


def entries_of(journal: str, effect_id: str) -> tuple[list[str], bool]:
    """Return the kinds of an effect's entries, and whether it is still open."""
    gate = Gate(journal)
    try:
        is_open = any(row.effect_id == effect_id for row in gate.open_effects())
        return [entry.kind.value for entry in gate.history(effect_id)], is_open
    finally:
        gate.close()
