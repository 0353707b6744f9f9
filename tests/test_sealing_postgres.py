"""Signing, witnesses and rotation with a PostgreSQL journal: the tests of the SQLite journal, and more."""

from __future__ import annotations

import sys
import threading
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import sealing_support
import test_sealing
import test_sealing_rotation
import test_sealing_witnesses
from postgres_support import PostgresCase

from interlock_tools import Gate, RecordsMissing
from interlock_tools.errors import JournalUnusable
from interlock_tools.receipts import Word
from interlock_tools.receipts.merkle import root_at


class OnPostgres(PostgresCase):
    """Puts the journals of another test into a schema of their own."""

    clock: Any

    def setUp(self) -> None:
        PostgresCase.setUp(self)
        super(PostgresCase, self).setUp()  # that of the other test

    def open(self, **options: Any) -> Gate:  # type: ignore[override]
        from interlock_tools.journal.postgres import PostgresJournal

        options.setdefault("retry", 0.3)
        gate = Gate(PostgresJournal(self.url(), self.clock), **options)
        self.addCleanup(gate.close)
        return gate


class Signed(OnPostgres, test_sealing.Signed):
    def test_a_record_keeps_the_place_that_it_is_given(self) -> None:
        gate = self.sign()
        refund = self.refund()
        first = refund("1")
        self.assertEqual([record.leaf for record in gate.journal.records.of(first.effect_id)], [None] * 4)
        gate.records.flush()
        self.assertEqual([record.leaf for record in gate.journal.records.of(first.effect_id)], [0, 1, 2, 3])
        for case in "234567":
            refund(case)
        gate.records.flush()
        self.assertEqual([record.leaf for record in gate.journal.records.of(first.effect_id)], [0, 1, 2, 3])
        self.assertEqual(gate.journal.records.place(), 28)

    def test_many_that_place_at_the_same_time_make_one_log(self) -> None:
        gate = self.sign()
        refund = self.refund()

        def work(number: int) -> None:
            for index in range(6):
                refund(f"{number}-{index}")
                gate.journal.records.place()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(gate.journal.records.place(), 96)
        leaves: set[int | None] = set()
        for row in gate.journal.effects(limit=100):
            placed = [record.leaf for record in gate.journal.records.of(row.effect_id)]
            self.assertEqual(placed, sorted(placed, key=lambda leaf: leaf if leaf is not None else -1))
            leaves.update(placed)
        self.assertEqual(leaves, set(range(96)))
        gate.records.flush()
        for row in gate.journal.effects(limit=100):
            self.assertWord(Word.LOGGED, row.effect_id)

    def test_the_tree_is_that_of_the_records(self) -> None:
        gate = self.sign()
        refund = self.refund()
        for index in range(7):
            refund(str(index))
        gate.records.flush()
        from interlock_tools.receipts.merkle import Tree

        tree = Tree()
        for row in gate.journal.effects():
            for record in gate.journal.records.of(row.effect_id):
                tree, _ = tree.append(record.seal.hash)
        self.assertEqual(tree.root, root_at(gate.journal.records.place(), gate.journal.records.node))


class Kills(OnPostgres, test_sealing.Kills):
    pass


class Private(OnPostgres, test_sealing.Private):
    pass


class Files(OnPostgres, test_sealing.Files):
    pass


class After(OnPostgres, test_sealing_witnesses.After):
    pass


class Before(OnPostgres, test_sealing_witnesses.Before):
    pass


class Rotation(OnPostgres, test_sealing_rotation.Rotation):
    pass


class Damage(OnPostgres, sealing_support.SealingCase):
    def raw(self) -> Any:
        import psycopg

        connection = psycopg.connect(self.url().partition("?")[0], autocommit=True)
        self.addCleanup(connection.close)
        return connection

    def test_the_database_refuses_to_change_records(self) -> None:
        import psycopg

        self.sign()
        self.refund()("1")
        self.gate.records.flush()
        raw = self.raw()
        for statement in (
            "UPDATE {}.records SET signature = ''",
            "UPDATE {}.records SET leaf = 9",
            "DELETE FROM {}.records",
        ):
            with self.assertRaises(psycopg.errors.RaiseException):
                raw.execute(statement.format(self.schema))

    def test_a_signed_journal_is_not_written_without_its_keys(self) -> None:
        self.sign()
        self.refund()("1")
        self.gate.close()
        gate = self.open()
        with self.assertRaisesRegex(JournalUnusable, "opened without its keys"):
            self.refund(gate=gate)("2")
        self.assertEqual(len(self.service.requests), 1)

    def test_a_lost_database_is_noticed(self) -> None:
        self.keys_there()
        witness = self.witness()
        self.sign(witnesses=self.policy(witness))
        self.refund()("1")
        self.gate.close()
        self.raw().execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.sign(signing=self.keys, witnesses=self.policy(witness))
        refund = self.looked_up()
        with self.assertRaisesRegex(RecordsMissing, "holds 0"):
            refund("1")
        self.clock.advance(91)
        requests = [("test.refund", {"case": case}) for case in ("1", "never")]
        report = self.gate.reconcile(requests, by="dana")
        self.assertTrue(report.done, report.to_json())
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)
        self.assertOutcome(refund("never"), "COMMITTED")
        self.gate.records.flush()
        self.assertWord(Word.LOGGED, report.found[0])


if __name__ == "__main__":
    unittest.main()
