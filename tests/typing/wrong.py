"""Misuse that both type checkers see. Each line that one must complain about says so; no other line may."""

from __future__ import annotations

from datetime import timedelta

from interlock_tools import Budget, Evidence, Gate, Grant, Outcome, Reason

gate = Gate(5)  # error
gate = Gate("refunds.db", wait="soon")  # error


def request_key(case: str) -> str:
    return case


def number_key(case: str) -> int:
    return 5


async def later_key(case: str) -> str:
    return case


gate.effect("no.key")  # error
gate.effect(5, key=request_key)  # error
gate.effect("a", key=number_key)  # error
gate.effect("a", key=later_key)  # error
gate.effect("a", key=request_key, dedupes=24)  # error
gate.effect("a", key=request_key, send_timeout=90)  # error
gate.effect("a", key=request_key, enforces="head")  # error
gate.effect("a", key=request_key, expects={})  # error
gate.effect("a", key=request_key, requires_approval="yes")  # error
gate.effect("a", key=request_key, approval_expires=3600)  # error
Gate("a.db", limits=["agent"])  # error
Gate("a.db", allowed=lambda asked: True)  # error
Gate("a.db", requires_approval=True)  # error
gate.approve("x")  # error
gate.reject("x", by="kim")  # error


@gate.effect("plain", key=request_key)
def plain(case: str) -> str:
    return case


@gate.effect("later", key=request_key)
async def later(case: str) -> str:
    return case


result: str = plain(case="1")  # error
outcome: Outcome = plain(case="1")
outcome.status = "COMMITTED"  # error
outcome.reason == Reason.STALE_PREMISE  # noqa: B015
pending: Outcome = gate.pending()  # error
gate.resolve("x", landed="yes", by="kim", why="seen")  # error
gate.resolve("x", landed=True, by="kim")  # error
gate.recover(wait="1 s")  # error

Grant()  # error
Grant("g", max_amount=19.99)  # error
Grant("g", expires_at=timedelta(hours=1))  # error
Budget("cap", amount=19.99, limit=3000)  # error
Budget("cap", amount=5)  # error
Evidence("x", by_us="maybe")  # error


async def use() -> None:
    found: str = await later(case="1")  # error
    print(found)
