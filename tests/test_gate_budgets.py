"""I5: what effects take of a budget never exceeds its limit, and only an entry frees it."""

from __future__ import annotations

import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import BadArguments, Budget, DefiniteNo, NotSent
from interlock_tools.testing import CrashPoint


class Budgets(GateCase):
    def budgeted(self, **options: Any) -> Any:
        options.setdefault("budget", lambda amount: Budget("cap", amount=amount, limit=3000))
        return self.refund(**options)

    def used(self, name: str = "cap") -> int:
        return self.gate.budget(name).used

    def test_the_second_does_not_fit(self) -> None:
        refund = self.budgeted()
        self.assertOutcome(refund("1"), "COMMITTED")
        outcome = refund("2")
        self.assertOutcome(outcome, "REFUSED:over_budget")
        self.assertEqual(outcome.code, "cap")
        self.assertIn("2000 of 3000", outcome.message)
        self.assertEqual((len(self.service.requests), self.used()), (1, 2000))
        self.assertEqual(self.kinds(outcome), ["proposed", "refused"])
        self.assertOutcome(refund("3", 1000), "COMMITTED")
        self.assertEqual(self.used(), 3000)

    def test_the_smallest_limit_ever_recorded_counts(self) -> None:
        limits = iter((3000, 2500, 9000))
        refund = self.budgeted(budget=lambda amount: Budget("cap", amount=amount, limit=next(limits)))
        self.assertOutcome(refund("1", 1000), "COMMITTED")
        self.assertOutcome(refund("2", 1000), "COMMITTED")
        self.assertOutcome(refund("3", 1000), "REFUSED:over_budget")
        self.assertEqual(self.gate.budget("cap").limit, 2500)

    def test_several_are_reserved_together_or_not_at_all(self) -> None:
        refund = self.budgeted(
            budget=lambda case, amount: [Budget(f"case:{case}", amount, 5000), Budget("day", amount, 3000)]
        )
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("2"), "REFUSED:over_budget")
        self.assertEqual((self.used("case:1"), self.used("case:2"), self.used("day")), (2000, 0, 2000))

    def test_none_and_an_empty_list_reserve_nothing(self) -> None:
        for name, nothing in (("none", None), ("list", []), ("tuple", ())):
            with self.subTest(name):
                self.assertOutcome(self.refund(name, budget=lambda nothing=nothing: nothing)("1"), "COMMITTED")

    def test_shared_by_effects_of_different_kinds(self) -> None:
        self.assertOutcome(self.budgeted(name="a")("1"), "COMMITTED")
        self.assertOutcome(self.budgeted(name="b")("1"), "REFUSED:over_budget")

    def test_a_refusal_frees_it(self) -> None:
        refund = self.budgeted()
        self.service.script = [DefiniteNo("declined")]
        self.assertOutcome(refund("1"), "REFUSED:rejected")
        self.assertEqual(self.used(), 0)
        self.assertOutcome(refund("2"), "COMMITTED")

    def test_unreachable_frees_it_and_trying_again_takes_it(self) -> None:
        refund = self.budgeted()
        self.service.script = [NotSent("refused connection")]
        self.assertOutcome(refund("1"), "REFUSED:unreachable")
        self.assertEqual(self.used(), 0)
        self.assertOutcome(refund("2"), "COMMITTED")
        self.assertOutcome(refund("1"), "REFUSED:over_budget")
        self.assertEqual((len(self.service.created), self.used()), (1, 2000))

    def test_what_may_have_happened_keeps_it_and_only_a_person_frees_it(self) -> None:
        refund = self.budgeted()
        self.service.script = [TimeoutError()]
        outcome = refund("1")
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertEqual(self.used(), 2000)
        self.gate.recover()
        self.clock.advance(10**7)
        self.gate.recover()
        self.assertEqual(self.used(), 2000)
        self.gate.resolve(outcome.effect_id, landed=False, by="kim", why="not in the dashboard")
        self.assertEqual(self.used(), 0)

    def test_a_person_who_says_that_it_landed_keeps_it(self) -> None:
        refund = self.budgeted()
        self.service.script = [TimeoutError()]
        outcome = refund("1")
        self.gate.resolve(outcome.effect_id, landed=True, by="kim", why="re_1 in the dashboard")
        self.assertEqual(self.used(), 2000)

    def test_a_dead_sender_s_reservation_is_kept_and_its_resend_takes_nothing_more(self) -> None:
        refund = self.budgeted(dedupes=timedelta(hours=24))

        def call(gate: Any) -> None:
            self.budgeted(gate=gate, dedupes=timedelta(hours=24))("1")

        self.dies_at(CrashPoint.BEFORE_BYTES, call)
        self.assertEqual(self.used(), 2000)
        self.assertOutcome(refund("2"), "REFUSED:over_budget")
        self.assertEqual([str(outcome) for outcome in self.gate.recover()], ["COMMITTED"])
        self.assertEqual((len(self.service.created), self.used()), (1, 2000))

    def test_a_resend_within_a_call_takes_nothing_more(self) -> None:
        refund = self.budgeted(dedupes=True)
        self.service.script = [Lands(TimeoutError())]
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual((len(self.service.requests), self.used()), (2, 2000))

    def test_a_budget_declared_after_the_first_send_refuses_no_resend(self) -> None:
        self.service.script = [TimeoutError()]
        self.gate.retry_s = 0.0
        self.assertOutcome(self.refund(dedupes=True)("1"), "IN_FLIGHT:waiting")
        self.gate = self.open()
        self.assertOutcome(self.refund(dedupes=True, budget=lambda: Budget("cap", 5000, 3000))("1"), "COMMITTED")

    def test_a_redecided_request_takes_it_again(self) -> None:
        refund = self.budgeted()
        self.service.script = [DefiniteNo("declined")]
        refused = refund("1")
        refund.redecide(refused.effect_id, by="kim")
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(self.used(), 2000)

    def test_threads_never_overdraw(self) -> None:
        refund = self.budgeted(budget=lambda amount: Budget("cap", amount=amount, limit=10_000))
        barrier = threading.Barrier(12)
        outcomes: list[str] = []

        def call(number: int) -> None:
            barrier.wait()
            outcomes.append(str(refund(str(number))))

        threads = [threading.Thread(target=call, args=(number,)) for number in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(outcomes), ["COMMITTED"] * 5 + ["REFUSED:over_budget"] * 7)
        self.assertEqual((len(self.service.created), self.used()), (5, 10_000))

    def test_nonsense_is_refused_before_anything_is_written(self) -> None:
        def raises() -> Any:
            raise KeyError("case")

        async def later() -> Any:
            return None

        nonsense: dict[str, Any] = {
            "number": lambda: 5,
            "zero": lambda: 0,
            "false": lambda: False,
            "text": lambda: "cap",
            "dict": lambda: {"name": "cap"},
            "mixed": lambda: [Budget("cap", 1, 2), None],
            "raises": raises,
            "awaitable": lambda: _Awaitable(),
            "float": lambda: Budget("cap", 19.99, 3000),  # type: ignore[arg-type]
            "bool": lambda: Budget("cap", True, 3000),
            "negative": lambda: Budget("cap", -1, 3000),
            "limit": lambda: Budget("cap", 1, 30.0),  # type: ignore[arg-type]
            "no limit": lambda: Budget("cap", 1, None),  # type: ignore[arg-type]
            "no name": lambda: Budget("", 1, 3000),
            "surrogate": lambda: Budget("\ud800", 1, 3000),
            "huge": lambda: Budget("cap", 2**60, 2**61),
        }
        for name, budget in nonsense.items():
            with self.subTest(name), self.assertRaises(BadArguments) as raised:
                self.refund(name, budget=budget)("1")
            self.assertIn("budget", str(raised.exception))
        self.assertNothingRecorded()
        self.assertEqual(self.service.requests, [])


class _Awaitable:
    def __await__(self) -> Any:
        yield


if __name__ == "__main__":
    unittest.main()
