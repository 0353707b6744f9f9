"""After records were lost: the services are gone through, what is found is written, and only then is anything sent."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import LossCase

from interlock_tools import BadArguments, Budget, DefiniteNo, JournalUnusable, RecordsMissing
from interlock_tools.receipts import Answer, Word, parse_policy, verify
from interlock_tools.receipts.keys import KeySigner, verifier_key
from interlock_tools.sealing import Keys


class Reconcile(LossCase):
    def sign(self, **options: Any) -> Any:
        self.keys_there()
        options.setdefault("signing", self.keys)
        return super().sign(**options)

    def lost(self, *cases: str, kept: tuple[str, ...] = (), **options: Any) -> Any:
        """Do ``cases`` after a copy of the journal was made, restore the copy, and open it."""
        self.witnessing = self.begin()
        refund = self.looked_up(**options)
        for case in kept:
            refund.propose(case)
        self.copy_and_restore(lambda effect: [effect(case) for case in cases], **options)
        return self.reopened(**options)

    def copy_and_restore(self, between: Any, **options: Any) -> None:
        import shutil

        self.gate.close()
        copy = self.folder / "backup"
        shutil.copyfile(self.path, copy)
        self.open_witnessed(self.witnessing)
        between(self.looked_up(**options))
        self.gate.close()
        self.restore(copy)

    def reopened(self, **options: Any) -> Any:
        self.open_witnessed(self.witnessing)
        return self.looked_up(**options)

    def later(self) -> None:
        self.clock.advance(91)

    def test_what_the_service_has_is_written_and_never_sent_again(self) -> None:
        refund = self.lost("lost-1", "lost-2", kept=("open",))
        self.assertEqual(len(self.service.requests), 2)
        self.later()
        requests = [("test.refund", {"case": case}) for case in ("lost-1", "lost-2", "never")]
        report = self.gate.reconcile(requests, by="dana")
        self.assertTrue(report.done, report.to_json())
        self.assertEqual((len(report.found), len(report.not_found)), (2, 2))
        for case in ("lost-1", "lost-2"):
            outcome = refund(case)
            self.assertOutcome(outcome, "COMMITTED")
            self.assertEqual(outcome.via, "lookup")
        self.assertEqual(len(self.service.requests), 2, "nothing of it was sent again")
        self.assertOutcome(refund("open"), "COMMITTED")
        self.assertOutcome(refund("never"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 4)

    def test_nothing_is_sent_before_it_is_done(self) -> None:
        refund = self.lost("lost")
        report = self.gate.reconcile([("test.refund", {"case": "never"})], by="dana")
        self.assertFalse(report.done, "a lost send of it may still land")
        self.assertGreater(report.wait_s, 80)
        with self.assertRaises(RecordsMissing):
            refund("never")
        self.later()
        self.assertTrue(self.gate.reconcile([("test.refund", {"case": "never"})], by="dana").done)
        self.assertOutcome(refund("never"), "COMMITTED")

    def test_a_service_that_does_not_answer_keeps_it_closed(self) -> None:
        def find(idempotency_key: str) -> Any:
            raise ConnectionError("away")

        self.witnessing = self.begin()
        self.copy_and_restore(lambda refund: refund("lost"))
        self.open_witnessed(self.witnessing)
        refund = self.refund(lookup=find)
        self.later()
        report = self.gate.reconcile([("test.refund", {"case": "lost"})], by="dana")
        self.assertFalse(report.done)
        self.assertIn("ConnectionError", str(report.unreadable))
        with self.assertRaises(RecordsMissing):
            refund("lost")

    def test_an_effect_that_cannot_be_looked_up_is_a_person_s(self) -> None:
        self.witnessing = self.begin()
        self.refund().propose("open")
        self.gate.close()
        self.copy_and_restore(lambda refund: refund("lost"))
        self.open_witnessed(self.witnessing)
        refund = self.refund()
        self.later()
        report = self.gate.reconcile([("test.refund", {"case": "asked"})], by="dana")
        self.assertTrue(report.done)
        self.assertEqual(len(report.undecided), 2)
        sent = len(self.service.requests)
        for case in ("open", "asked"):
            self.assertOutcome(refund(case), "AMBIGUOUS:unverifiable")
        self.assertEqual(len(self.service.requests), sent)
        self.assertEqual(len(self.gate.pending()), 2)

    def test_a_lost_decision_after_a_refusal_is_found(self) -> None:
        self.witnessing = self.begin()
        self.service.script = [DefiniteNo("declined")]
        refused = self.looked_up()("1")
        self.assertOutcome(refused, "REFUSED:rejected")

        def decide_again(refund: Any) -> None:
            refund.redecide(refused.effect_id, by="kim", facts={})
            self.assertOutcome(refund("1"), "COMMITTED")

        self.copy_and_restore(decide_again)
        refund = self.reopened()
        self.later()
        self.assertTrue(self.gate.reconcile(by="dana").done)
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 1)

    def test_budgets_count_what_is_found(self) -> None:
        options: dict[str, Any] = {"budget": lambda case, amount: Budget("day", amount=amount, limit=5000)}
        refund = self.lost("lost-1", "lost-2", **options)
        self.later()
        requests = [("test.refund", {"case": case}) for case in ("lost-1", "lost-2")]
        self.assertTrue(self.gate.reconcile(requests, by="dana").done)
        self.assertEqual(self.gate.budget("day").used, 4000)
        self.assertOutcome(refund("new"), "REFUSED:over_budget")

    def test_receipts_go_on_in_a_log_of_another_name(self) -> None:
        refund = self.lost("lost")
        old = Keys.in_directory(self.keys).logs[0].name
        self.later()
        report = self.gate.reconcile([("test.refund", {"case": "lost"})], by="dana")
        keys = Keys.in_directory(self.keys)
        self.assertEqual([signer.name for signer in keys.logs], [old, f"{old}.2"])
        self.assertEqual(report.log, f"{old}.2")
        new = verifier_key(keys.logs[1])
        self.witnessing.book.add_log(str(new))
        outcome = refund("new")
        self.assertEqual(self.gate.records.flush(), {})
        self.assertWord(Word.WITNESSED, outcome, self.policy(self.witnessing))
        found = self.assertWord(Word.WITNESSED, report.found[0], self.policy(self.witnessing))
        self.assertEqual(found.line("at_most_once").answer, Answer.NOT_RECORDED)
        self.assertEqual(found.line("happened").answer, Answer.YES)
        text = str(self.policy(self.witnessing)).replace(f"log {new}\n", "")
        told = verify(self.gate.receipt(outcome.effect_id), parse_policy(text))
        self.assertEqual(told.exit_code, 1, "who trusted the old log alone does not trust the new one")
        self.gate.close()
        self.open_witnessed(self.witnessing)
        self.assertOutcome(self.looked_up()("after a restart"), "COMMITTED")

    def test_another_process_learns_of_it_from_the_journal(self) -> None:
        self.lost("lost")
        first = self.gate
        other = self.open(signing=self.keys, witness=None)
        refund = self.looked_up(gate=other)
        with self.assertRaises(RecordsMissing):
            refund("new")
        self.later()
        self.assertTrue(first.reconcile([("test.refund", {"case": "lost"})], by="dana").done)
        with self.assertRaisesRegex(JournalUnusable, "start this process again"):
            other.records.flush()
        with self.assertRaises(RecordsMissing):
            refund("new")

    def test_with_a_key_that_is_kept_elsewhere(self) -> None:
        refund = self.lost("lost")
        self.later()
        self.gate.reconcile(by="dana", log=KeySigner("refunds.example/log-after-loss", b"n" * 32))
        self.assertOutcome(refund("new"), "COMMITTED")

    def test_there_must_be_something_to_reconcile(self) -> None:
        self.begin()
        self.looked_up()
        with self.assertRaisesRegex(BadArguments, "no record is missing"):
            self.gate.reconcile(by="dana")
        with self.assertRaisesRegex(BadArguments, "signing is off"):
            self.open(signing=None).reconcile(by="dana")


if __name__ == "__main__":
    unittest.main()
