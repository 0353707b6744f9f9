"""The part of the journal kit about effects of which somebody wants to know what becomes of them."""

from __future__ import annotations

from ..core.entries import Kind
from .journal_kit_base import KitBase
from .journal_story import TO_DISPATCHED


class WatchedKit(KitBase):
    """The list of what is looked at. It is derived from the entries, and decides nothing."""

    def test_a_commit_that_says_when_is_due_then(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        self.assertEqual(journal.next_look(), (None, 0))
        story.carry_out(story.write(Kind.COMMITTED, look_at_ms=500))
        self.assertEqual(journal.next_look(), (500, 1))
        self.assertEqual(journal.claim_due("a", 499, 900), [])
        (row,) = journal.claim_due("b", 500, 900)
        self.assertEqual((row.effect_id, row.phase), (story.effect_id, "committed"))

    def test_what_is_in_hand_is_due_again_later(self) -> None:
        journal, other = self.journal(), self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        story.carry_out(story.write(Kind.COMMITTED, look_at_ms=500))
        self.assertEqual(len(journal.claim_due("a", 600, 900)), 1)
        self.assertEqual(other.claim_due("b", 899, 2000), [])
        self.assertEqual(len(other.claim_due("c", 900, 2000)), 1)

    def test_a_settlement_says_when_next_or_never(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        story.carry_out(story.write(Kind.COMMITTED, look_at_ms=500))
        story.carry_out(story.write(Kind.SETTLED, state="pending", look_at_ms=700))
        self.assertEqual(journal.next_look(), (700, 1))
        story.carry_out(story.write(Kind.SETTLED, state="settled"))
        self.assertEqual(journal.next_look(), (None, 0))

    def test_it_can_be_said_without_an_entry(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED, Kind.COMMITTED)
        self.assertEqual(journal.next_look(), (None, 0))
        journal.look_at(story.effect_id, 800)
        journal.look_at("f" * 32, 800)
        self.assertEqual(
            (journal.next_look(), [row.effect_id for row in journal.watched()]), ((800, 1), [story.effect_id])
        )
        journal.look_at(story.effect_id, None)
        self.assertEqual((journal.next_look(), journal.watched()), ((None, 0), []))

    def test_the_longest_due_come_first_and_no_two_workers_get_the_same(self) -> None:
        journals = [self.journal() for _ in range(4)]
        for number in range(20):
            story = self.story(journals[0], f"case {number}").append(*TO_DISPATCHED)
            story.carry_out(story.write(Kind.COMMITTED, look_at_ms=100 - number))
        (first,) = journals[0].claim_due("first", 1000, 5000, 1)
        self.assertEqual(first.request_key, "case 19")
        claims = self.in_threads(
            [
                lambda journal=journal, name=name: journal.claim_due(f"w{name}", 1000, 5000, 7)  # type: ignore[misc]
                for name, journal in enumerate(journals)
            ]
        )
        taken = [row.effect_id for rows in claims for row in rows]
        self.assertEqual((len(taken), len(set(taken))), (19, 19))
