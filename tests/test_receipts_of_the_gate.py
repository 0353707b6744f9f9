"""What the gate really records makes receipts that pass, and their claims are what the gate answered."""

from __future__ import annotations

import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import Budget, DefiniteNo, Grant, NotSent, Outcome, RateLimited, Status
from interlock_tools.receipts import Answer, Report, Word, parse_policy, verify
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, verifier_key
from interlock_tools.testing import CrashPoint
from interlock_tools.testing.receipts import Book

WRITER = KeySigner("writer.example/1", b"w" * 32)
LOG = KeySigner("log.example/refunds", b"l" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)
POLICY = parse_policy(
    f"writer {verifier_key(WRITER)}\nlog {verifier_key(LOG)}\n"
    f"witness a {verifier_key(WITNESS, COSIGNATURE)}\nquorum a\n"
)
PRIVATE = (("payload", "case"), ("facts", "refunded"), ("evidence", "id"))
HAPPENED = {
    Status.COMMITTED: Answer.YES,
    Status.REFUSED: Answer.NO,
    Status.AMBIGUOUS: Answer.UNKNOWN,
    Status.IN_FLIGHT: Answer.UNKNOWN,
}


class ReceiptsOfTheGate(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.facts.update(refunded=0)

    def certified(self, outcome: Outcome, *, private: bool = False) -> Report:
        """Make the receipt of what is in the journal, verify it, and compare its claim with the outcome."""
        book = Book(WRITER, LOG, PRIVATE if private else ())
        for entry in self.gate.history(outcome.effect_id):
            book.append(entry)
        book.checkpoint([WITNESS])
        report = verify(book.receipt(outcome.effect_id), POLICY)
        self.assertEqual((report.word, report.failed, report.exit_code), (Word.WITNESSED, (), 0), str(report))
        self.assertEqual(report.line("happened").answer, HAPPENED[outcome.status], str(report))
        return report

    def grant(self, case: str, amount: int = 2000) -> Grant:
        return Grant("appr_1", "dana", max_amount=5000, expires_at=datetime.now(timezone.utc) + timedelta(hours=1))

    def checked(self, **options: Any) -> Any:
        return self.refund(
            premises=lambda case, **_: dict(self.facts),
            allowed=self.grant,
            budget=lambda case, amount=2000, **_: Budget(f"case:{case}", amount, 5000),
            **options,
        )

    def test_committed_with_everything_declared(self) -> None:
        outcome = self.checked()("1")
        self.assertOutcome(outcome, "COMMITTED")
        report = self.certified(outcome)
        self.assertIn("appr_1 by dana", report.line("allowed_when_sent").says)
        self.assertEqual(report.line("premises_held_when_sent").answer, Answer.YES)
        self.certified(outcome, private=True)

    def test_committed_with_nothing_declared(self) -> None:
        report = self.certified(self.refund()("1"))
        self.assertEqual(report.line("allowed_when_sent").answer, Answer.NOT_APPLICABLE)
        self.assertEqual(report.line("premises_held_when_sent").answer, Answer.NOT_APPLICABLE)

    def test_refused(self) -> None:
        self.service.script = [DefiniteNo("declined", code="card_declined")]
        outcome = self.checked()("1")
        self.assertOutcome(outcome, "REFUSED:rejected")
        self.certified(outcome)
        self.certified(self.refund("test.other", expect={"refunded": 1}, premises=lambda **_: self.facts)("2"))
        self.certified(self.refund("test.third", allowed=lambda **_: None)("3"))

    def test_unreachable_and_then_sent(self) -> None:
        refund = self.checked()
        self.service.script = [NotSent("no route")] * 10
        outcome = refund("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.certified(outcome)
        self.service.script = []
        again = refund("1")
        self.assertOutcome(again, "COMMITTED")
        self.assertEqual(self.certified(again).line("rechecked_at_recovery").answer, Answer.YES)

    def test_rate_limited_and_then_sent(self) -> None:
        self.service.script = [RateLimited(retry_after=0.01)]
        self.certified(self.checked()("1"))

    def test_died_and_resent(self) -> None:
        self.dies_at(CrashPoint.AFTER_RESPONSE, lambda gate: self._declare(gate)("1"))
        self._declare(self.gate)
        outcome = next(iter(self.gate.recover()))
        self.assertOutcome(outcome, "COMMITTED")
        report = self.certified(outcome)
        self.assertEqual(report.line("rechecked_at_recovery").answer, Answer.YES)
        self.assertIn("the service's own contract", report.line("at_most_once").vouched_by)
        self.certified(outcome, private=True)

    def _declare(self, gate: Any) -> Any:
        return self.checked(gate=gate, dedupes=timedelta(hours=24))

    def test_died_before_sending_and_sent_by_recovery(self) -> None:
        self.dies_at(CrashPoint.AFTER_DISPATCHED, lambda gate: self._declare(gate)("1"))
        self._declare(self.gate)
        outcome = next(iter(self.gate.recover()))
        self.assertOutcome(outcome, "COMMITTED")
        self.assertIn("proven not to have landed", self.certified(outcome).line("at_most_once").says)

    def test_landed_unseen_and_looked_up(self) -> None:
        self.service.script = [Lands(TimeoutError())]
        outcome = self.looked_up()("1")
        self.assertOutcome(outcome, "COMMITTED")
        report = self.certified(outcome)
        self.assertIn("asking the service", report.line("evidence").says)

    def test_ambiguous_and_resolved(self) -> None:
        for landed in (True, False):
            self.service.script = [TimeoutError()]
            outcome = self.refund(f"test.{landed}")("1")
            self.assertEqual(outcome.status, Status.AMBIGUOUS)
            self.certified(outcome)
            resolved = self.gate.resolve(outcome.effect_id, landed=landed, by="sam", why="looked")
            report = self.certified(resolved)
            self.assertIn("sam", report.line("happened").vouched_by)

    def test_proposed_and_called_later(self) -> None:
        refund = self.checked()
        self.certified(refund.propose("1", by="dana"))
        report = self.certified(refund("1"))
        self.assertIn("a proposal by dana", report.line("decided_by").says)

    def test_decided_again(self) -> None:
        self.service.script = [DefiniteNo("declined")]
        refund = self.checked()
        first = refund("1")
        second = refund.redecide(first.effect_id, facts=dict(self.facts), by="dana")
        old = verify(self._receipt(first.effect_id), POLICY)
        self.assertIn("took its place", old.line("happened").says)
        self.assertEqual(old.exit_code, 0)
        self.assertIn("a new decision by dana", self.certified(second).line("decided_by").says)

    def _receipt(self, effect_id: str) -> bytes:
        book = Book(WRITER, LOG)
        for entry in self.gate.history(effect_id):
            book.append(entry)
        book.checkpoint([WITNESS])
        return book.receipt(effect_id)


if __name__ == "__main__":
    unittest.main()
