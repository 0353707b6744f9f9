"""Rules of a gate: limits for a case, an agent, a day, a tool; an authority over all; approvals."""

from __future__ import annotations

import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import Asked, BadArguments, Budget, DefinitionError, Gate, Grant, Limit
from interlock_tools.receipts import Answer, Policy, verify


class Limits(GateCase):
    def limited(self, *limits: Limit, **options: Any) -> tuple[Gate, Any]:
        gate = self.open(limits=limits)
        return gate, self.refund(gate=gate, **options)

    def test_each_case_has_its_own(self) -> None:
        _, refund = self.limited(Limit("case:{case}", 3000), key=lambda case, amount: f"{case}/{amount}")
        self.assertOutcome(refund("1", 2000), "COMMITTED")
        outcome = refund("1", 1001)
        self.assertOutcome(outcome, "REFUSED:over_budget")
        self.assertIn("case:1: 2000 of 3000 is taken", outcome.message)
        self.assertOutcome(refund("2", 3000), "COMMITTED")

    def test_each_day_and_each_month(self) -> None:
        gate, refund = self.limited(Limit("agent:support", 3000, per="day"), Limit("all", 5000, per="month"))
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("2"), "REFUSED:over_budget")
        today = datetime.fromtimestamp(self.clock.now().wall_ms / 1000, timezone.utc)
        self.assertEqual(gate.budget(f"agent:support:{today:%Y-%m-%d}").used, 2000)
        self.assertEqual(gate.budget(f"all:{today:%Y-%m}").used, 2000)
        self.clock.advance(timedelta(days=31).total_seconds())
        self.assertOutcome(refund("3"), "COMMITTED")

    def test_how_many_of_a_tool_whatever_they_cost(self) -> None:
        gate, refund = self.limited(Limit("tool:{effect}", 2, counts=True, effects=["test.*", "x"]))
        other = self.refund("other.refund", gate=gate)
        self.assertEqual([str(refund(case)) for case in "123"], ["COMMITTED", "COMMITTED", "REFUSED:over_budget"])
        self.assertEqual([str(other(case)) for case in "123"], ["COMMITTED"] * 3)
        self.assertEqual(gate.budget("tool:test.refund").used, 2)

    def test_effects_without_an_amount_or_the_argument_are_not_counted(self) -> None:
        gate = self.open(limits=[Limit("agent", 1), Limit("to:{to}", 1, counts=True)])

        @gate.effect("test.merge", key=lambda number: number)
        def merge(number: str, *, idempotency_key: str) -> str:
            return "sha"

        self.assertEqual([str(merge(number)) for number in "12"], ["COMMITTED", "COMMITTED"])

    def test_a_limit_that_counts_nothing_of_an_effect_is_said(self) -> None:
        with self.assertLogs("interlock_tools", "WARNING") as logged:
            self.limited(Limit("c:{csae}", 1), Limit("mail", 1, effects="resend.*"), Limit("agent", 1))
        self.assertEqual(
            [one.split(":", 2)[2] for one in logged.output],
            [
                "limit c:{csae} does not count test.refund, which has no argument csae",
            ],
        )
        gate = self.open(limits=[Limit("agent", 1)])
        with self.assertLogs("interlock_tools", "WARNING") as logged:
            gate.effect("test.merge", key=lambda number: number)(lambda number: "sha")
        self.assertIn("limit agent does not count test.merge, which has no amount", logged.output[0])

    def test_an_effect_s_own_budget_counts_too_and_the_smaller_limit_of_one_name(self) -> None:
        gate, refund = self.limited(
            Limit("shared", 3000), Limit("agent", 9000), budget=lambda amount: Budget("shared", amount, 5000)
        )
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual((gate.budget("shared").used, gate.budget("agent").used), (2000, 2000))
        self.assertOutcome(refund("2"), "REFUSED:over_budget")

    def test_what_is_wrong(self) -> None:
        for make in (
            lambda: Limit("", 1),
            lambda: Limit("x", -1),
            lambda: Limit("x", True),
            lambda: Limit("x", 1, per="week"),
            lambda: self.open(limits=[("x", 1)]),
            lambda: self.open(allowed="yes"),
            lambda: self.open(requires_approval=True),
        ):
            with self.assertRaises(DefinitionError):
                make()


class Authority(GateCase):
    def test_a_switch_for_the_whole_agent(self) -> None:
        on = True
        gate = self.open(allowed=lambda asked: Grant("agent-is-on", by="ops") if on else None)
        refund = self.refund(gate=gate)
        self.assertOutcome(refund("1"), "COMMITTED")
        on = False
        self.assertOutcome(refund("2"), "REFUSED:not_allowed")
        self.assertEqual(len(self.service.requests), 1)

    def test_both_must_cover_and_both_are_in_the_record(self) -> None:
        def general(asked: Asked) -> Grant:
            self.assertEqual((asked.effect, asked.request_key, asked.amount), ("test.refund", "1", 2000))
            self.assertEqual(asked.arguments["amount"], 2000)
            return Grant("general", max_amount=limit)

        limit = 2000
        gate = self.open(allowed=general)
        refund = self.refund(gate=gate, allowed=lambda: Grant("own", by="ann"))
        outcome = refund("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(
            self.body(outcome, "authorized")["grant"],
            {"id": "own", "by": "ann", "under": {"id": "general", "max_amount": 2000}},
        )
        line = verify(gate.receipt(outcome.effect_id), Policy()).line("allowed_when_sent")
        self.assertIs(line.answer, Answer.YES, line)
        limit = 1999
        again = self.refund("test.refund", gate=self.open(allowed=lambda asked: Grant("general", max_amount=1999)))
        self.assertOutcome(again("2"), "REFUSED:not_allowed")

    def test_an_authority_that_cannot_be_read_sends_nothing(self) -> None:
        gate = self.open(allowed=lambda asked: 1 / 0)
        self.assertOutcome(self.refund(gate=gate)("1"), "IN_FLIGHT:unreadable")
        self.assertOutcome(self.refund("b", gate=self.open(allowed=lambda asked: True))("1"), "IN_FLIGHT:unreadable")
        self.assertEqual(self.service.requests, [])


class Approvals(GateCase):
    def test_what_the_gate_says_needs_one(self) -> None:
        gate = self.open(requires_approval=lambda asked: (asked.amount or 0) > 5000)
        refund = self.refund(gate=gate)
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("2", 5001), "IN_FLIGHT:awaiting_approval")
        for wrong in (lambda asked: None, lambda asked: 1 / 0):
            with self.assertRaises(BadArguments):
                self.refund(gate=self.open(requires_approval=wrong))("3")


if __name__ == "__main__":
    unittest.main()
