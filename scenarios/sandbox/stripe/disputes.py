"""Disputes: inquiries, their escalation, chargebacks and their verdicts.

Seen against the live service in test mode: an inquiry marks the charge as disputed and leaves it refundable; the
evidence text ``escalate_inquiry_evidence`` puts it under review, and the chargeback posts seconds later; a chargeback
withdraws the whole charge whatever has been refunded, with a fee of 15.00 (documented). The texts
``winning_evidence`` and ``losing_evidence`` are documented under "Testing".
"""

from __future__ import annotations

from typing import Any

from scenarios.sandbox.stripe.charges import CHARGED_BACK, disputes_of
from scenarios.sandbox.stripe.errors import refused
from scenarios.sandbox.stripe.refunds import fail_refund
from scenarios.sandbox.stripe.routes import LIST_PARAMS, endpoint, ledger, listing
from scenarios.sandbox.stripe.world import DAY_S, Call, Obj, World

CAUGHT_REASON = "charge_for_pending_refund_disputed"
DISPUTE_FEE = 1500
OPEN_FOR_EVIDENCE = ("warning_needs_response", "needs_response")

EVIDENCE_TEXTS = (
    "access_activity_log",
    "billing_address",
    "cancellation_policy_disclosure",
    "cancellation_rebuttal",
    "customer_email_address",
    "customer_name",
    "customer_purchase_ip",
    "duplicate_charge_explanation",
    "duplicate_charge_id",
    "product_description",
    "refund_policy_disclosure",
    "refund_refusal_explanation",
    "service_date",
    "shipping_address",
    "shipping_carrier",
    "shipping_date",
    "shipping_tracking_number",
    "uncategorized_text",
)
EVIDENCE_FILES = (
    "cancellation_policy",
    "customer_communication",
    "customer_signature",
    "duplicate_charge_documentation",
    "receipt",
    "refund_policy",
    "service_documentation",
    "shipping_documentation",
    "uncategorized_file",
)


def open_inquiry(world: World, charge: Obj) -> Obj:
    """The bank asks about the charge; no money moves and refunds still work."""
    return _open(world, charge, "warning_needs_response")


def post_chargeback(world: World, charge: Obj) -> Obj:
    """The chargeback posts now: an open inquiry escalates, or a new dispute opens. Returns the dispute.

    Refunds that were created only just before fail with it. Does nothing if the charge is charged back already.
    """
    disputes = disputes_of(world, charge)
    if disputes and disputes[-1]["status"] in CHARGED_BACK:
        return disputes[-1]
    for refund in world.all("refund"):
        age_s = world.clock.now() - refund["_at"]
        if refund["charge"] == charge["id"] and age_s <= world.timing.caught_refund_s:
            fail_refund(world, refund, CAUGHT_REASON)
    if disputes and disputes[-1]["status"].startswith("warning"):
        dispute = disputes[-1]
        # Evidence that was sent for the inquiry does not answer the chargeback.
        details = {**dispute["evidence_details"], "due_by": world.now() + 9 * DAY_S}
        world.change(
            dispute,
            "charge.dispute.updated",
            status="needs_response",
            is_charge_refundable=False,
            evidence_details=details,
            payment_method_details=_card_details(charge, "chargeback"),
        )
    else:
        dispute = _open(world, charge, "needs_response")
    _withdraw(world, charge, dispute)
    dispute["_posted_at"] = world.clock.now()
    return dispute


def _open(world: World, charge: Obj, status: str) -> Obj:
    inquiry = status.startswith("warning")
    dispute = world.add(
        "du",
        "dispute",
        {
            "amount": charge["amount_captured"],
            "balance_transactions": [],
            "charge": charge["id"],
            "currency": charge["currency"],
            "enhanced_eligibility_types": [],
            "evidence": {
                **dict.fromkeys((*EVIDENCE_TEXTS, *EVIDENCE_FILES)),
                "enhanced_evidence": {},
            },
            "evidence_details": {
                "due_by": world.now() + 9 * DAY_S,
                "enhanced_eligibility": {},
                "has_evidence": False,
                "past_due": False,
                "submission_count": 0,
                "submission_method": "not_submitted",
            },
            "is_charge_refundable": inquiry,
            "metadata": {},
            "network_reason_code": "10.4",
            "payment_intent": charge["payment_intent"],
            "payment_method_details": _card_details(charge, "inquiry" if inquiry else "chargeback"),
            "reason": "fraudulent",
            "status": status,
            "_posted_at": None,
        },
    )
    world.change(charge, "charge.updated", disputed=True)
    world.emit("charge.dispute.created", dispute)
    return dispute


def _card_details(charge: Obj, case: str) -> Obj:
    brand = charge["payment_method_details"]["card"]["brand"]
    return {
        "card": {"brand": brand, "case_type": case, "network": brand, "network_reason_code": "10.4"},
        "type": "card",
    }


def _withdraw(world: World, charge: Obj, dispute: Obj) -> None:
    amount = charge["amount_captured"]
    fee = DISPUTE_FEE if charge["currency"] == "usd" else 0
    moved = world.move("adjustment", -amount, charge["currency"], dispute["id"], fee=fee, category="dispute")
    entries = [*dispute["balance_transactions"], moved]
    world.change(dispute, "charge.dispute.funds_withdrawn", balance_transactions=entries)


def _reinstate(world: World, dispute: Obj) -> None:
    amount = dispute["amount"]
    moved = world.move("adjustment", amount, dispute["currency"], dispute["id"], category="dispute_reversal")
    entries = [*dispute["balance_transactions"], moved]
    world.change(dispute, "charge.dispute.funds_reinstated", balance_transactions=entries)


@endpoint("POST", "/v1/disputes/{id}", "evidence", "metadata", "submit")
def update_dispute(world: World, call: Call) -> Obj:
    dispute = world.at_path("dispute", call, "dispute")
    given = call.params.child("evidence")
    given.check_known(frozenset((*EVIDENCE_TEXTS, *EVIDENCE_FILES, "enhanced_evidence")))
    metadata = call.params.metadata(dispute["metadata"])
    submit = call.params.boolean("submit", True)
    if not given.values:
        world.change(dispute, "charge.dispute.updated", metadata=metadata)
        return dispute
    if dispute["status"] not in OPEN_FOR_EVIDENCE:
        raise refused("This dispute is already closed for evidence.")
    evidence = {**dispute["evidence"], **{name: given.text(name) for name in given.values if name in EVIDENCE_TEXTS}}
    details = {**dispute["evidence_details"], "has_evidence": True}
    changes: dict[str, Any] = {"evidence": evidence, "metadata": metadata, "evidence_details": details}
    if submit:
        details.update(submission_count=details["submission_count"] + 1, submission_method="manual")
        inquiry = dispute["status"].startswith("warning")
        changes["status"] = "warning_under_review" if inquiry else "under_review"
    world.change(dispute, "charge.dispute.updated", **changes)
    if submit:
        _judge_later(world, dispute, evidence["uncategorized_text"])
    return dispute


def _judge_later(world: World, dispute: Obj, text: str | None) -> None:
    """Schedule what the documented evidence texts bring about; other evidence stays under review."""
    charge = world.get("charge", dispute["charge"], "charge")
    if text == "escalate_inquiry_evidence" and dispute["status"] == "warning_under_review":
        world.clock.call_later(world.timing.escalation_s, lambda: _escalate(world, charge, dispute))
    elif text in ("winning_evidence", "losing_evidence"):
        world.clock.call_later(world.timing.evidence_s, lambda: close(world, dispute, won=text == "winning_evidence"))


def _escalate(world: World, charge: Obj, dispute: Obj) -> None:
    if dispute["status"] == "warning_under_review":
        post_chargeback(world, charge)


def close(world: World, dispute: Obj, *, won: bool) -> None:
    """The bank's verdict. An inquiry that is won is closed as a warning; a chargeback that is won pays back."""
    if dispute["status"] in ("won", "lost", "warning_closed"):
        return
    if dispute["status"].startswith("warning"):
        if won:
            world.change(dispute, "charge.dispute.closed", status="warning_closed")
        return
    world.change(dispute, "charge.dispute.closed", status="won" if won else "lost")
    if won:
        _reinstate(world, dispute)


@endpoint("POST", "/v1/disputes/{id}/close")
def close_dispute(world: World, call: Call) -> Obj:
    dispute = world.at_path("dispute", call, "dispute")
    if dispute["status"] not in OPEN_FOR_EVIDENCE:
        raise refused("This dispute is already closed.")
    status = "warning_closed" if dispute["status"].startswith("warning") else "lost"
    world.change(dispute, "charge.dispute.closed", status=status)
    return dispute


@endpoint("GET", "/v1/disputes/{id}")
def retrieve_dispute(world: World, call: Call) -> Obj:
    return world.at_path("dispute", call, "dispute")


@endpoint("GET", "/v1/disputes", *LIST_PARAMS, "charge", "payment_intent")
def list_disputes(world: World, call: Call) -> Obj:
    return listing(world, call, world.all("dispute"), ["charge", "payment_intent"])


@ledger
def disputes_ledger(world: World) -> dict[str, Any]:
    """Every dispute; ``posted_at`` is the sandbox time of the chargeback, None for an inquiry."""
    return {
        "disputes": [
            {
                "id": dispute["id"],
                "payment_intent": dispute["payment_intent"],
                "charge": dispute["charge"],
                "amount": dispute["amount"],
                "status": dispute["status"],
                "created_at": dispute["_at"],
                "posted_at": dispute["_posted_at"],
                "history": dispute["_history"],
                "withdrawn": -sum(entry["amount"] for entry in dispute["balance_transactions"]),
            }
            for dispute in world.all("dispute")
        ]
    }
