"""What every journal must pass about the signed log that it keeps beside its entries."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from ..core.entries import Kind
from ..journal.protocol import Conflict, Journal
from ..journal.records import Seal, Secret
from .journal_kit_base import KitBase
from .journal_story import TO_DISPATCHED


class Stamps:
    """Gives every entry a record that is told from its effect and number; what they mean does not matter here."""

    waits = False

    def __init__(self, secret: Secret | None = None) -> None:
        self.secret = secret
        self.told: list[str] = []

    def seal(self, journal: Any, plans: Sequence[Any]) -> None:
        """Give each plan its seals."""
        for plan in plans:
            plan.seals = [stamp(plan.effect_id, entry.seq) for entry in plan.entries]
            if plan.expected_seq == 0:
                plan.secret = self.secret

    def written(self, plans: Sequence[Any]) -> None:
        """Take note of what is durable."""
        self.told += [plan.effect_id for plan in plans]

    def clear(self, effect_id: str) -> str | None:
        """Nobody waits."""
        return None


def stamp(effect_id: str, seq: int) -> Seal:
    """Return the record of an entry."""
    found = hashlib.sha256(f"{effect_id}:{seq}".encode()).digest()
    return Seal(found, bytes(4) + found + found, '{"name":"kit"}' if seq == 1 else None)


class RecordsKit(KitBase):
    """Records, their places, and what is known of the log."""

    def stamping(self, secret: Secret | None = None) -> tuple[Journal, Stamps]:
        journal = self.journal()
        stamps = Stamps(secret)
        journal.sealing = stamps
        return journal, stamps

    def test_a_record_is_there_with_its_entry(self) -> None:
        journal, stamps = self.stamping()
        story = self.story(journal).append(*TO_DISPATCHED).append(Kind.COMMITTED)
        found = journal.records.of(story.effect_id)
        self.assertEqual([record.seq for record in found], [1, 2, 3, 4])
        self.assertEqual([record.seal for record in found], [stamp(story.effect_id, seq) for seq in (1, 2, 3, 4)])
        self.assertEqual(stamps.told, [story.effect_id] * 2)
        self.assertEqual(self.journal().records.of(story.effect_id)[0].seal, stamp(story.effect_id, 1))

    def test_an_append_that_loses_its_race_leaves_no_record(self) -> None:
        journal, stamps = self.stamping(Secret(b"s" * 32, "[]"))
        story, other = self.story(journal), self.story(journal)
        story.append(*TO_DISPATCHED)
        with self.assertRaises(Conflict):
            other.append(Kind.PROPOSED)
        self.assertEqual(len(journal.records.of(story.effect_id)), 3)
        self.assertEqual(journal.records.place(), 3)
        self.assertEqual(len(stamps.told), 1)

    def test_without_signing_there_are_none(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        self.assertEqual(journal.records.of(story.effect_id), [])
        self.assertEqual(journal.records.place(), 0)

    def test_an_effect_that_began_without_signing_goes_on_with_it(self) -> None:
        journal = self.journal()
        story = self.story(journal).append(*TO_DISPATCHED)
        journal.sealing = Stamps()
        story.append(Kind.COMMITTED)
        self.assertEqual([record.seq for record in journal.records.of(story.effect_id)], [4])

    def test_places_have_no_gaps_and_nodes_are_those_of_the_tree(self) -> None:
        from ..receipts.merkle import Tree, root_at

        first, _ = self.stamping()
        second, _ = self.stamping()

        def work(journal: Journal, name: str) -> None:
            for index in range(6):
                self.story(journal, f"{name}-{index}").append(*TO_DISPATCHED).append(Kind.COMMITTED)
                journal.records.place()

        errors = self.in_threads([lambda: work(first, "a"), lambda: work(second, "b"), lambda: work(first, "c")])
        self.assertEqual(errors, [None, None, None])
        self.assertEqual(first.records.place(), 72)
        places: dict[int, bytes] = {}
        for row in first.effects(0, 100):
            records = first.records.of(row.effect_id)
            leaves = [record.leaf for record in records if record.leaf is not None]
            self.assertEqual(leaves, sorted(leaves), "an effect's records stand in their order")
            places.update(zip(leaves, [record.seal.hash for record in records], strict=True))
        self.assertEqual(sorted(places), list(range(72)))
        tree = Tree()
        for leaf in range(72):
            tree, _ = tree.append(places[leaf])
        self.assertEqual(root_at(72, first.records.node), tree.root)
        self.assertEqual(root_at(72, second.records.node), tree.root)

    def test_a_change_of_a_key_stands_in_the_same_log(self) -> None:
        journal, _ = self.stamping()
        self.story(journal, "1").append(*TO_DISPATCHED)
        change = Seal(b"k" * 32, b"s" * 68, None, '{"a":"b"}')
        journal.records.add_key_change(change)
        story = self.story(journal, "2").append(*TO_DISPATCHED)
        self.assertEqual(journal.records.place(), 7)
        (found,) = journal.records.key_changes()
        self.assertEqual((found.leaf, found.seal), (3, change))
        self.assertEqual([record.leaf for record in journal.records.of(story.effect_id)], [4, 5, 6])
        self.assertEqual(journal.records.node(0, 3), change.hash)

    def test_checkpoints(self) -> None:
        records = self.journal().records
        self.assertIsNone(records.checkpoint_after(0))
        records.put_checkpoint(3, "three", False)
        records.put_checkpoint(5, "five", False)
        self.assertEqual(records.first_checkpoint(0), "five", "one that no witness signed gives way to a later one")
        self.assertIsNone(records.first_checkpoint(5), "it covers the places before its size")
        records.put_checkpoint(7, "seven", True)
        records.put_checkpoint(9, "nine", True)
        records.put_checkpoint(9, "not witnessed", False)
        records.put_checkpoint(11, "eleven", False)
        self.assertEqual(records.checkpoint_after(0), "seven")
        self.assertEqual(records.checkpoint_after(7), "nine")
        self.assertEqual(records.checkpoint_after(9), "eleven")
        records.keep_checkpoint()
        records.put_checkpoint(13, "thirteen", False)
        self.assertEqual(records.first_checkpoint(9), "eleven")

    def test_facts(self) -> None:
        records = self.journal().records
        self.assertIsNone(records.fact("origin"))
        records.put_checkpoint(3, "three", True)
        records.put_facts({"origin": "a", "missing": "b"})
        records.put_facts({"origin": "c", "missing": None}, new_log=True)
        again = self.journal().records
        self.assertEqual((again.fact("origin"), again.fact("missing")), ("c", None))
        self.assertIsNone(again.first_checkpoint(0), "a log of another name has no checkpoints yet")

    def test_private_values_are_erased(self) -> None:
        secret = Secret(b"s" * 32, '[["payload","case"]]')
        journal, _ = self.stamping(secret)
        story = self.story(journal, "1").append(*TO_DISPATCHED).append(Kind.COMMITTED)
        other = self.story(journal, "2").append(*TO_DISPATCHED)
        self.assertEqual(journal.records.secret(story.effect_id), secret)
        before = journal.entries(story.effect_id)
        journal.records.erase(story.effect_id, {2: '{"grant":null,"hidden":true}'})
        after = journal.entries(story.effect_id)
        self.assertEqual(after[1].body, {"grant": None, "hidden": True})
        self.assertEqual([after[0], *after[2:]], [before[0], *before[2:]])
        self.assertIsNone(journal.records.secret(story.effect_id))
        self.assertEqual(journal.records.secret(other.effect_id), secret)
        other.append(Kind.COMMITTED)
