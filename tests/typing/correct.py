"""The public API as a program uses it. Type checkers in strict mode find nothing to say."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from interlock_tools import (
    ApprovalRequest,
    Asked,
    AsyncEffect,
    Budget,
    DefiniteNo,
    Effect,
    Evidence,
    Gate,
    Grant,
    Limit,
    OnSend,
    Outcome,
    OutcomeError,
    Policy,
    RateLimited,
    Reason,
    Report,
    Signing,
    Status,
    parse_policy,
    verify,
)

gate = Gate("refunds.db", wait=timedelta(seconds=5), retry=10)


def request_key(case: str) -> str:
    return case


def facts(payment_intent: str, idempotency_key: str) -> dict[str, Any]:
    return {"refunded_by_others": 0, "chargebacks": []}


async def approval(case: str) -> Grant | None:
    return Grant(case, by="kim", max_amount=3000, expires_at=datetime.now(timezone.utc), facts={"open": True})


def budgets(case: str, amount: int) -> list[Budget]:
    return [Budget(f"case:{case}", amount=amount, limit=30_00)]


def find(idempotency_key: str, payment_intent: str) -> Mapping[str, Any] | None:
    return None


@gate.effect(
    "stripe.refund",
    key=request_key,
    premises=facts,
    expect={"chargebacks": []},
    allowed=approval,
    budget=budgets,
    dedupes=timedelta(hours=24),
    enforces=("open",),
    lookup=find,
    lookup_lag=timedelta(seconds=1),
    send_timeout=timedelta(seconds=90),
)
def refund(case: str, payment_intent: str, amount: int, *, idempotency_key: str, on_send: OnSend) -> dict[str, str]:
    on_send()
    on_send.written()
    if amount > 10_000:
        raise DefiniteNo("too much", code="amount_too_large")
    if amount < 0:
        raise RateLimited(retry_after=1.5)
    return {"id": idempotency_key}


@gate.effect("github.merge", key=request_key, dedupes=True)
async def merge(case: str, *, idempotency_key: str) -> Evidence:
    return Evidence({"sha": "9fceb02"}, by_us="no")


@gate.effect("plain", key=request_key)
def plain(case: str) -> str:
    return case


def use() -> str:
    effect: Effect[...] = refund
    outcome: Outcome = effect(case="4471", payment_intent="pi_1", amount=20_00)
    outcome = refund.propose("4471", "pi_1", 20_00, by="kim", facts={"refunded_by_others": 0})
    outcome = refund.redecide(outcome.effect_id, by="kim", arguments={"case": "4471"})
    outcome = refund.invoke(("4471", "pi_1", 20_00), {}, wait=timedelta(seconds=3), context={"tool_call_id": "x"})
    if outcome.status is Status.REFUSED and outcome.reason is Reason.STALE_PREMISE:
        return outcome.message
    since: datetime | None = outcome.since
    existing: Outcome | None = outcome.existing
    try:
        result: Any = outcome.raise_for_status().result
    except OutcomeError as error:
        return str(error.outcome)
    digest: str = refund.digest("4471", "pi_1", 20_00)
    return f"{since} {existing} {result} {digest} {plain('1')}"


async def use_async() -> Outcome:
    effect: AsyncEffect[...] = merge
    report: Report = await gate.arecover(wait=1)
    for found in report:
        print(found.effect_id, found.holder, report.blocked, report.unregistered)
    return await effect(case="4471")


def decide(effect_id: str) -> Outcome:
    for outcome in gate.pending():
        gate.resolve(outcome.effect_id, landed=True, by="kim", why="seen")
    for entry in gate.history(effect_id):
        print(entry.seq, entry.kind.value, entry.body)
    print(gate.budget("case:4471").used, gate.receipt(effect_id)["type"], gate.effects)
    gate.close()
    return gate.settle(effect_id, wait=0.5)


def show_to_others(effect_id: str, policy_text: str) -> int:
    signed = Gate("signed.db", signing=Signing("writer.key", "env:LOG_KEY"), witness="after", witnesses="w.policy")
    signed = Gate("signed.db", signing="keys", receipts_dir="receipts")
    policy: Policy = parse_policy(policy_text)
    report = verify(signed.receipt(effect_id, disclosing=["payload.to"]), policy)
    print(report.word.value, report.line("happened").answer.value, signed.records.policy(), signed.records.flush())
    for found in signed.reconcile([("stripe.refund", {"case": "4471"})], by="kim").found:
        signed.records.erase(found)
    return report.exit_code


def general(asked: Asked) -> Grant | None:
    return Grant("on") if asked.amount is None or asked.arguments["case"] == asked.request_key else None


limited = Gate(
    "agent.db",
    limits=[Limit("agent", 2_000_00, per="day"), Limit("mails:{to}", 3, counts=True, effects=["resend.*"])],
    allowed=general,
    requires_approval=lambda asked: (asked.amount or 0) > 50_00,
)


@limited.effect("large", key=request_key, requires_approval=True, approval_expires=timedelta(hours=1))
def large(case: str) -> str:
    return case


async def approve(effect_id: str) -> Outcome:
    waiting: Outcome = await large.apropose("4471", by="agent")
    request: ApprovalRequest | None = limited.approval(waiting.effect_id)
    if request is not None:
        print(request.arguments, request.facts, request.expires_at, request.to_json())
        limited.approve(effect_id, by="kim", why="right", digest=request.digest)
        limited.approve(effect_id, by="kim", arguments={"case": "4471"})
    limited.redecide(effect_id, by="kim", facts={"open": True})
    return limited.reject(effect_id, by="kim", why="no")
