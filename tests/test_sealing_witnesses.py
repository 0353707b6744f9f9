"""The gate and its witnesses: before every send, after it, and what they remember that the journal does not."""

from __future__ import annotations

import os
import shutil
import sys
import threading
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import LossCase, SealingCase, until

from interlock_tools import DefinitionError, Outcome
from interlock_tools.errors import RecordsMissing
from interlock_tools.receipts import Word


class After(SealingCase):
    def test_a_receipt_says_that_it_is_not_witnessed_yet_and_then_is(self) -> None:
        self.keys_there()
        witness = self.witness()
        self.sign(witnesses=self.policy(witness))
        outcome = self.refund()("1")
        report = self.verified(outcome, self.policy(witness))
        self.assertEqual((report.word, report.exit_code), (Word.SIGNED, 2))
        self.assertNotIn("tamper-evident", str(report))
        self.assertEqual(self.gate.records.flush(), {})
        report = self.assertWord(Word.WITNESSED, outcome, self.policy(witness))
        self.assertIn("tamper-evident", str(report))

    def test_a_witness_that_is_down_blocks_nothing_and_is_asked_again(self) -> None:
        self.keys_there()
        self.flush_s = 0.05
        witness = self.witness()
        witness.up = False
        self.sign(witnesses=self.policy(witness))
        outcome = self.refund()("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertTrue(until(lambda: self.verified(outcome).word is Word.LOGGED))
        witness.up = True
        self.assertTrue(until(lambda: self.verified(outcome, self.policy(witness)).word is Word.WITNESSED))

    def test_one_of_two_is_not_enough_where_both_are_asked_for(self) -> None:
        self.keys_there()
        first, second = self.witness("a"), self.witness("b")
        second.up = False
        policy = self.policy(first, second)
        self.sign(witnesses=policy)
        outcome = self.refund()("1")
        self.assertEqual(list(self.gate.records.flush()), ["b"])
        self.assertWord(Word.LOGGED, outcome, policy)
        second.up = True
        self.refund("other")("2")
        self.assertEqual(self.gate.records.flush(), {})
        self.assertWord(Word.WITNESSED, outcome, policy)

    def test_the_first_checkpoint_that_was_witnessed_stays(self) -> None:
        """It tells when others saw a record; later ones would tell less."""
        self.keys_there()
        witness = self.witness()
        policy = self.policy(witness)
        self.sign(witnesses=policy)
        first = self.refund()("1")
        self.gate.records.flush()
        before = self.proofs(first)
        self.refund("other")("2")
        self.gate.records.flush()
        self.assertEqual(self.proofs(first), before)
        self.assertWord(Word.WITNESSED, first, policy)

    def proofs(self, outcome: Outcome) -> list[Any]:
        proofs: list[Any] = self.gate.receipt(outcome.effect_id)["proofs"]
        return proofs

    def test_processes_that_flush_at_the_same_time_do_not_look_like_a_loss(self) -> None:
        self.keys_there()
        witness = self.witness()
        policy = self.policy(witness)
        first, second = self.sign(witnesses=policy), self.sign(witnesses=policy)
        effects = [self.refund(gate=first), self.refund(gate=second)]
        failures: list[Any] = []

        def work(number: int) -> None:
            for index in range(10):
                effects[number](f"{number}-{index}")
                errors = (first, second)[number].records.flush()
                failures.extend(errors.items())

        threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for gate in (first, second):
            front = gate.records.require_front()
            assert front.log is not None
            self.assertIsNone(front.log.missing, failures)
        for row in self.gate.journal.effects(limit=100):
            self.assertWord(Word.WITNESSED, row.effect_id, policy)

    def test_options_that_do_not_fit(self) -> None:
        self.keys_there()
        witness = self.witness()
        policy = self.policy(witness)
        bare = self.policy()
        wrong: list[dict[str, Any]] = [
            {"witness": "before"},
            {"witness": "sometimes"},
            {"witness": "before", "witnesses": self.policy(witness, quorum="none")},
            {"witnesses": bare},
            {"signing": None, "witnesses": policy},
        ]
        for options in wrong:
            with self.subTest(options=options), self.assertRaises(DefinitionError):
                self.sign(**options)


class Before(SealingCase):
    """The witness has seen the dispatched record before a byte is sent."""

    def begin(self, **options: Any) -> Any:
        self.keys_there()
        witness = self.witness()
        self.seen_at_send: list[int] = []
        self.sign(witnesses=self.policy(witness), witness="before", **options)
        return witness

    def test_the_record_is_witnessed_before_the_send(self) -> None:
        witness = self.begin()
        policy = self.policy(witness)
        words: list[Word] = []

        def send(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            words.append(self.verified(idempotency_key, policy).word)
            on_send()
            return self.service.create(idempotency_key, case=case)

        outcome = self.gate.effect("test.checked", key=lambda case: case)(send)("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(words, [Word.WITNESSED])

    def test_without_the_witness_nothing_is_sent_and_later_it_is(self) -> None:
        witness = self.begin()
        refund = self.refund()
        witness.up = False
        outcome = refund("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.assertIn("nothing is sent before witnesses have seen its record", str(outcome.to_json()))
        self.assertEqual(self.service.requests, [])
        witness.up = True
        again = refund("1")
        self.assertOutcome(again, "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)
        self.gate.records.flush()
        self.assertWord(Word.WITNESSED, again, self.policy(witness))

    def test_premises_are_read_again_after_the_wait(self) -> None:
        """(I3) What changed while it waited is seen before a byte is sent."""
        self.begin()
        self.facts.update(refunded=0)
        reads: list[int] = []

        def facts(case: str, **_: Any) -> dict[str, Any]:
            reads.append(1)
            return {"refunded": 0 if len(reads) == 1 else 500}

        outcome = self.refund(premises=facts)("1")
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(self.service.requests, [])
        self.assertEqual(self.body(outcome, "not_landed")["proof"], "withheld")
        self.gate.records.flush()
        self.assertWord(Word.LOGGED, outcome)

    def test_premises_that_move_and_come_back_are_sent_once(self) -> None:
        self.begin()
        answers = [0, 500, 0, 0, 0]

        def facts(case: str, **_: Any) -> dict[str, Any]:
            return {"refunded": answers.pop(0) if len(answers) > 1 else answers[0]}

        outcome = self.refund(premises=facts)("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)


class Amnesia(LossCase):
    def test_a_restored_copy_sends_nothing(self) -> None:
        for mode in ("after", "before"):
            with self.subTest(mode):
                self.setUp()
                witness = self.begin()
                self.lose(witness)
                sent = len(self.service.requests)
                self.open_witnessed(witness, witness=mode)
                refund = self.looked_up()
                for case in ("lost", "new"):
                    with self.assertRaisesRegex(RecordsMissing, "has seen 8 records .* holds 4: 4 are missing"):
                        refund(case)
                self.assertEqual(len(self.service.requests), sent)
                self.assertEqual(len(self.gate.journal.effects()), 1, "nothing was written")

    def test_it_stays_so_in_every_later_process_also_when_the_witness_is_away(self) -> None:
        witness = self.begin()
        self.lose(witness)
        self.open_witnessed(witness)
        self.gate.close()
        witness.up = False
        self.open_witnessed(witness)
        with self.assertRaises(RecordsMissing):
            self.looked_up()("new")
        self.gate.close()
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                gate = self.open_witnessed(witness)
                try:
                    self.looked_up(gate=gate)("new")
                except RecordsMissing:
                    code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def test_what_is_open_is_blocked_and_says_why(self) -> None:
        witness = self.begin()
        refund = self.looked_up()
        refund.propose("open")
        self.service.script = [TimeoutError()]
        refund("sent")
        self.gate.close()
        copy = self.folder / "backup"
        shutil.copyfile(self.path, copy)
        self.open_witnessed(witness)
        self.looked_up()("lost")
        self.gate.close()
        self.restore(copy)
        sent = len(self.service.requests)
        self.open_witnessed(witness)
        self.looked_up()
        self.clock.advance(100)
        report = self.gate.recover()
        self.assertEqual(len(self.service.requests), sent)
        blocked = [outcome for outcome in report.blocked if "missing" in (outcome.detail or "")]
        self.assertTrue(blocked, [outcome.to_json() for outcome in report])

    def test_a_lost_disk_is_noticed_as_well(self) -> None:
        witness = self.begin()
        self.looked_up()("1")
        self.gate.close()
        for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        self.open_witnessed(witness)
        with self.assertRaisesRegex(RecordsMissing, "holds 0"):
            self.looked_up()("1")
        self.assertEqual(len(self.service.requests), 1)

    def test_another_history_is_noticed(self) -> None:
        """A copy that went on without the witness, and is longer than what the witness has seen."""
        witness = self.begin()
        self.lose(witness)
        self.sign(witness=None)
        refund = self.looked_up()
        for case in range(3):
            refund(f"elsewhere-{case}")
        self.gate.close()
        self.open_witnessed(witness)
        with self.assertRaisesRegex(RecordsMissing, "has seen a history that this log does not extend"):
            self.looked_up()("new")

    def test_a_witness_that_comes_back_stops_a_gate_that_is_running(self) -> None:
        witness = self.begin()
        self.lose(witness)
        witness.up = False
        self.open_witnessed(witness)
        refund = self.looked_up()
        self.assertOutcome(refund("new"), "COMMITTED")
        witness.up = True
        self.gate.records.flush()
        with self.assertRaises(RecordsMissing):
            refund("newer")


if __name__ == "__main__":
    unittest.main()
