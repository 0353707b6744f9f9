"""The part of the journal kit about budgets."""

from __future__ import annotations

from typing import Any

from ..core.entries import Kind
from ..errors import JournalError
from ..journal.protocol import Conflict, Journal, OverBudget
from .journal_kit_base import KitBase
from .journal_story import TO_DISPATCHED

BUDGET = {"budget": "case:1", "amount": 2000, "limit": 3000}


class BudgetsKit(KitBase):
    """Reservations: made with the dispatch, never beyond the limit, freed only by an entry."""

    def used(self, journal: Journal, name: str = "case:1") -> tuple[int, int | None]:
        use = journal.budget(name)
        return use.used, use.limit

    def test_a_dispatch_reserves_and_does_not_exceed(self) -> None:
        journal = self.journal()
        self.story(journal).append(*TO_DISPATCHED, budgets=[BUDGET])
        self.assertEqual(self.used(journal), (2000, 3000))
        second = self.story(journal, "case 2")
        with self.assertRaises(OverBudget) as caught:
            second.append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 1001}])
        error = caught.exception
        self.assertEqual((error.budget, error.amount, error.used, error.limit), ("case:1", 1001, 2000, 3000))
        self.assertEqual(journal.entries(second.effect_id), [])
        second.append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 1000}])
        self.assertEqual(self.used(journal), (3000, 3000))

    def test_the_first_reservation_does_not_exceed_either(self) -> None:
        journal = self.journal()
        with self.assertRaises(OverBudget):
            self.story(journal).append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 3001}])
        self.assertEqual(self.used(journal), (0, None))

    def test_the_smallest_limit_ever_recorded_counts(self) -> None:
        journal = self.journal()
        self.story(journal, "a").append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 100, "limit": 5000}])
        self.story(journal, "b").append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 100, "limit": 1000}])
        self.assertEqual(self.used(journal), (200, 1000))
        with self.assertRaises(OverBudget) as caught:
            self.story(journal, "c").append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 801, "limit": 9000}])
        self.assertEqual(caught.exception.limit, 1000)
        with self.assertRaises(OverBudget) as caught:
            self.story(journal, "d").append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 1, "limit": 200}])
        self.assertEqual(caught.exception.limit, 200)
        self.assertEqual(self.used(journal), (200, 1000))

    def test_two_budgets_of_one_name_add_up(self) -> None:
        journal = self.journal()
        twice = [{**BUDGET, "amount": 1600}, {**BUDGET, "amount": 1600}]
        with self.assertRaises(OverBudget):
            self.story(journal).append(*TO_DISPATCHED, budgets=twice)
        self.assertEqual(self.used(journal), (0, None))
        story = self.story(journal).append(*TO_DISPATCHED, budgets=[{**BUDGET, "amount": 1500}] * 2)
        self.assertEqual(self.used(journal), (3000, 3000))
        story.append(Kind.NOT_LANDED, Kind.REFUSED)
        self.assertEqual(self.used(journal), (0, 3000))

    def test_of_several_budgets_all_fit_or_none_is_taken(self) -> None:
        journal = self.journal()
        other = {"budget": "day", "amount": 2000, "limit": 1999}
        with self.assertRaises(OverBudget):
            self.story(journal).append(*TO_DISPATCHED, budgets=[BUDGET, other])
        self.assertEqual((self.used(journal), self.used(journal, "day")), ((0, None), (0, None)))

    def test_what_frees_a_budget_and_what_does_not(self) -> None:
        journal = self.journal()
        cases: list[tuple[str, list[tuple[Kind, dict[str, Any]]], int]] = [
            ("unknown", [(Kind.UNKNOWN, {})], 7),
            ("committed", [(Kind.COMMITTED, {})], 7),
            ("ambiguous", [(Kind.UNKNOWN, {}), (Kind.AMBIGUOUS, {})], 7),
            ("landed", [(Kind.AMBIGUOUS, {}), (Kind.RESOLVED, {"landed": True})], 7),
            ("not landed", [(Kind.AMBIGUOUS, {}), (Kind.RESOLVED, {"landed": False})], 0),
            ("refused", [(Kind.NOT_LANDED, {}), (Kind.REFUSED, {})], 0),
            ("released", [(Kind.COMMITTED, {}), (Kind.RELEASED, {})], 0),
            ("released twice", [(Kind.COMMITTED, {}), (Kind.RELEASED, {}), (Kind.RELEASED, {})], 0),
            ("settled", [(Kind.COMMITTED, {}), (Kind.SETTLED, {})], 7),
        ]
        for name, entries, left in cases:
            with self.subTest(name):
                story = self.story(journal, name)
                story.append(*TO_DISPATCHED, budgets=[{"budget": name, "amount": 7, "limit": 10}])
                for kind, changes in entries:
                    story.append(kind, **changes)
                self.assertEqual(self.used(journal, name), (left, 10))

    def test_a_refused_effect_that_is_sent_again_reserves_again(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED, budgets=[BUDGET]).append(Kind.NOT_LANDED, Kind.REFUSED)
        self.story(journal, "case 2").append(*TO_DISPATCHED, budgets=[BUDGET])
        with self.assertRaises(OverBudget):
            story.append(Kind.DISPATCHED, budgets=[BUDGET])
        story.append(Kind.DISPATCHED, budgets=[{**BUDGET, "amount": 1000}])
        self.assertEqual(self.used(journal), (3000, 3000))

    def test_a_resend_that_names_its_budgets_again_is_refused(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED, budgets=[BUDGET]).append(Kind.UNKNOWN)
        with self.assertRaises((JournalError, ValueError)):
            story.append(Kind.DISPATCHED, budgets=[BUDGET])
        story.append(Kind.DISPATCHED)
        self.assertEqual(self.used(journal), (2000, 3000))

    def test_a_conflict_comes_before_a_budget(self) -> None:
        """An effect that another process has dispatched with the whole budget is a conflict, not over budget."""
        journal, other = self.journal(), self.journal()
        self.story(journal).append(*TO_DISPATCHED, budgets=[BUDGET])
        with self.assertRaises(Conflict):
            self.story(other).append(*TO_DISPATCHED, budgets=[BUDGET])

    def test_i5_threads_never_exceed_a_budget_together(self) -> None:
        journal, other = self.journal(), self.journal()

        def reserve(number: int) -> None:
            story = self.story(journal if number % 2 else other, f"case {number}")
            story.append(*TO_DISPATCHED, budgets=[{"budget": "day", "amount": 10, "limit": 100}])

        results = self.in_threads([lambda n=n: reserve(n) for n in range(32)])  # type: ignore[misc]
        self.assertEqual(results.count(None), 10)
        self.assertEqual(sum(isinstance(result, OverBudget) for result in results), 22)
        self.assertEqual(self.used(journal, "day"), (100, 100))
        self.assertEqual(len(journal.effects()), 10)
