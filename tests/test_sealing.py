"""Records that are signed in the journal's own transaction, and the receipts that they make."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import sqlite3
import sys
import threading
import time
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import Lands
from sealing_support import SealingCase, until

from interlock_tools import DefiniteNo, Gate, NotRecorded
from interlock_tools.core.entries import Kind
from interlock_tools.errors import (
    DefinitionError,
    JournalError,
    JournalUnusable,
    NotDecidable,
    RecordsMissing,
    SigningFailed,
)
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.keyfiles import KeyUnusable, format_private_key
from interlock_tools.receipts import Answer, Word, parse_policy, verify
from interlock_tools.receipts.file import open_receipt
from interlock_tools.receipts.keys import CallSigner, KeySigner, verifier_key
from interlock_tools.receipts.merkle import root_at
from interlock_tools.sealing import Keys, Signing
from interlock_tools.testing import CrashPoint


class Signed(SealingCase):
    def test_every_kind_of_end_is_signed_and_logged(self) -> None:
        self.sign()
        self.facts.update(refunded=0)
        refund = self.refund(premises=lambda case, **_: dict(self.facts))
        ends = {"committed": refund("1")}
        self.service.script = [DefiniteNo("declined")]
        ends["refused"] = refund("2")
        self.service.script = [Lands(TimeoutError())]
        ends["ambiguous"] = refund("3")
        again = refund.redecide(ends["refused"].effect_id, by="dana", facts=dict(self.facts))
        ends["decided again"] = again
        for name, outcome in ends.items():
            with self.subTest(name, outcome=str(outcome)):
                self.assertWord(Word.SIGNED, outcome)
        self.gate.records.flush()
        for name, outcome in ends.items():
            with self.subTest(name, outcome=str(outcome)):
                report = self.assertWord(Word.LOGGED, outcome)
                self.assertEqual(report.exit_code, 0)

    def test_without_signing_a_receipt_is_consistent_and_no_more(self) -> None:
        outcome = self.refund()("1")
        keys = Keys.in_directory(self.keys)
        report = verify(self.gate.receipt(outcome.effect_id), parse_policy(keys.policy() + "quorum none\n"))
        self.assertEqual((report.word, report.exit_code), (Word.CONSISTENT, 2))
        self.assertNotIn("tamper-evident", str(report))
        self.assertEqual(self.gate.journal.records.place(), 0)

    def test_an_effect_that_began_before_signing_was_on_says_so(self) -> None:
        outcome = self.refund().propose("1")
        self.gate.close()
        self.sign()
        refund = self.refund()
        self.assertOutcome(refund("1"), "COMMITTED")
        report = self.assertWord(Word.CONSISTENT, outcome)
        self.assertIn("Record 1 is not signed", report.line("writer").says)
        self.assertWord(Word.SIGNED, refund("2"))

    def test_records_are_there_with_their_entries_or_not_at_all(self) -> None:
        """A process killed at any point leaves a record for every entry."""
        for point in (CrashPoint.AFTER_DISPATCHED, CrashPoint.BEFORE_BYTES, CrashPoint.AFTER_COMMITTED):
            with self.subTest(point.value):
                pid = os.fork()
                if pid == 0:
                    try:
                        from interlock_tools.testing import arm

                        gate = self.sign()
                        arm(point, 1)
                        self.refund(gate=gate)(point.value)
                    finally:
                        os._exit(3)
                _, status = os.waitpid(pid, 0)
                self.assertEqual(os.WTERMSIG(status), signal.SIGKILL)
        gate = self.sign()
        for row in gate.journal.effects():
            records = gate.journal.records.of(row.effect_id)
            self.assertEqual([record.seq for record in records], list(range(1, row.last_seq + 1)))
            self.assertWord(Word.SIGNED, row.effect_id)
        self.refund(gate=gate)
        gate.recover()
        gate.records.flush()
        for row in gate.journal.effects():
            self.assertWord(Word.LOGGED, row.effect_id)

    def test_threads_and_gates_make_one_log(self) -> None:
        first = self.sign()
        refunds = [self.refund(gate=first), self.refund(gate=self.sign())]

        def work(number: int) -> None:
            for index in range(5):
                refunds[number % 2](f"{number}-{index}")

        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.gate.records.flush()
        rows = self.gate.journal.effects(limit=1000)
        self.assertEqual(len(rows), 40)
        self.assertEqual(self.gate.journal.records.place(), 160)
        for row in rows:
            self.assertWord(Word.LOGGED, row.effect_id)

    def test_processes_make_one_log(self) -> None:
        self.gate.close()
        pids = []
        for number in range(3):
            pid = os.fork()
            if pid == 0:
                code = 3
                try:
                    refund = self.refund(gate=self.sign())
                    for index in range(10):
                        refund(f"{number}-{index}")
                    code = 0
                finally:
                    os._exit(code)
            pids.append(pid)
        self.assertEqual([os.waitpid(pid, 0)[1] for pid in pids], [0, 0, 0])
        gate = self.sign()
        gate.records.flush()
        rows = gate.journal.effects(limit=1000)
        self.assertEqual((len(rows), gate.journal.records.place()), (30, 120))
        for row in rows:
            self.assertWord(Word.LOGGED, row.effect_id)

    def test_a_forked_child_goes_on_with_the_gate_of_its_parent(self) -> None:
        self.flush_s = 0.01
        gate = self.sign()
        refund = self.refund()
        refund("before")
        pid = os.fork()
        if pid == 0:
            code = 3
            try:
                outcome = refund("child")
                if until(lambda: self.verified(outcome).word is Word.LOGGED, 10):
                    code = 0
            finally:
                os._exit(code)
        outcome = refund("parent")
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        gate.records.flush()
        for row in gate.journal.effects():
            self.assertWord(Word.LOGGED, row.effect_id)
        self.assertEqual(gate.journal.records.place(), 12)
        self.assertOutcome(outcome, "COMMITTED")

    def test_a_checkpoint_follows_by_itself(self) -> None:
        self.flush_s = 0.05
        self.sign()
        outcome = self.refund()("1")
        self.assertTrue(until(lambda: self.verified(outcome).word is Word.LOGGED))

    def test_closing_signs_a_last_checkpoint(self) -> None:
        self.sign()
        outcome = self.refund()("1")
        self.gate.close()
        self.sign()
        self.assertWord(Word.LOGGED, outcome)

    def test_the_tree_is_that_of_the_records(self) -> None:
        gate = self.sign()
        refund = self.refund()
        for index in range(7):
            refund(str(index))
        from interlock_tools.receipts.merkle import Tree

        tree = Tree()
        for row in gate.journal.effects():
            for record in gate.journal.records.of(row.effect_id):
                tree, _ = tree.append(record.seal.hash)
        self.assertEqual(tree.root, root_at(gate.journal.records.place(), gate.journal.records.node))


class Kills(SealingCase):
    """Processes that sign into one journal are killed at random. INTERLOCK_KILL_SEED replays a run."""

    def test_every_entry_has_its_record_and_the_log_is_one(self) -> None:
        seed = int(os.environ.get("INTERLOCK_KILL_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
        chance = random.Random(seed)
        self.keys_there()
        self.sign().close()
        for number in range(6):
            done, say = os.pipe()
            children = []
            for worker in "ab":
                pid = os.fork()
                if pid == 0:
                    try:
                        refund = self.refund(gate=self.sign())
                        for index in range(10_000):
                            refund(f"{worker}-{number}-{index}")
                            os.write(say, b".")
                    finally:
                        os._exit(3)
                children.append(pid)
            os.close(say)
            for _ in range(chance.randrange(3, 20)):
                self.assertEqual(os.read(done, 1), b".", f"seed {seed}: the workers have ended")
            time.sleep(chance.uniform(0, 0.005))  # when the kill comes is what is tried here
            for pid in children:
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
            os.close(done)
        gate = self.sign()
        self.refund(gate=gate)
        gate.recover()
        gate.records.flush()
        rows = gate.journal.effects(limit=100_000)
        self.assertGreaterEqual(len(rows), 18, f"seed {seed}")
        entries = sum(row.last_seq for row in rows)
        self.assertEqual(gate.journal.records.place(), entries, f"seed {seed}")
        leaves: list[int | None] = []
        for row in rows:
            leaves += [record.leaf for record in gate.journal.records.of(row.effect_id)]
        self.assertEqual(sorted(leaf for leaf in leaves if leaf is not None), list(range(entries)), f"seed {seed}")
        for row in [*rows[:50], *rows[-50:]]:
            self.assertWord(Word.LOGGED, row.effect_id)


class Damage(SealingCase):
    def test_a_changed_entry_is_found_when_a_receipt_is_asked_for(self) -> None:
        self.sign()
        outcome = self.refund()("1")
        self.gate.close()
        with sqlite3.connect(self.path) as raw:
            raw.execute("DROP TRIGGER entries_keep")
            raw.execute("UPDATE entries SET body = replace(body, 're_1', 're_2') WHERE kind = 'committed'")
        raw.close()
        gate = self.sign()
        with self.assertRaisesRegex(SigningFailed, "entry 4 .* is not what its record was signed over"):
            gate.receipt(outcome.effect_id)

    def damaged(self, *statements: str) -> None:
        """Two effects and a checkpoint; then somebody writes to the file."""
        self.sign()
        refund = self.looked_up()
        for case in ("1", "2"):
            self.assertOutcome(refund(case), "COMMITTED")
        self.gate.close()
        raw = sqlite3.connect(self.path)
        for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        raw.commit()
        raw.close()

    def test_records_that_the_journal_itself_had_signed_are_missed(self) -> None:
        """No witness is needed for that; without it, another log would have been signed under the same name."""
        self.damaged("DELETE FROM entries WHERE id >> 20 = (SELECT max(id) >> 20 FROM entries)")
        gate = self.sign(signing=self.keys)
        refund = self.looked_up()
        with self.assertRaisesRegex(RecordsMissing, "holds 4 records, and had signed 8"):
            refund("2")
        self.assertEqual(len(self.service.requests), 2)
        gate.records.flush()
        self.clock.advance(91)
        self.assertTrue(gate.reconcile([("test.refund", {"case": "2"})], by="dana").done)
        self.assertOutcome(refund("2"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 2)

    def test_other_records_in_the_place_of_those_that_were_signed_are_noticed(self) -> None:
        self.damaged("UPDATE entries SET nodes = zeroblob(length(nodes)) WHERE leaf = 7")
        self.sign()
        with self.assertRaisesRegex(RecordsMissing, "first 8 records are not those that it had signed"):
            self.looked_up()("3")

    def test_a_hole_in_the_log_is_said(self) -> None:
        self.damaged("UPDATE entries SET nodes = x'' WHERE leaf = 7")
        with self.assertRaisesRegex(JournalError, "a record of the signed log is not there any more"):
            self.sign()

    def test_an_entry_that_is_none_is_said(self) -> None:
        self.damaged("UPDATE entries SET body = '{' WHERE leaf = 3", "UPDATE entries SET kind = 'bogus' WHERE leaf = 7")
        self.sign()
        refund = self.looked_up()
        for case in ("1", "2"):
            with self.assertRaisesRegex(JournalError, "its entry 4 is none"):
                refund(case)
        self.assertEqual(len(self.service.requests), 2)

    def test_the_database_refuses_to_change_records(self) -> None:
        self.sign()
        self.refund()("1")
        self.gate.close()
        raw = sqlite3.connect(self.path)
        self.addCleanup(raw.close)
        for statement in ("UPDATE entries SET signature = x''", "UPDATE entries SET leaf = 9", "DELETE FROM entries"):
            with self.assertRaises(sqlite3.IntegrityError):
                raw.execute(statement)

    def test_a_signed_journal_is_not_written_without_its_keys(self) -> None:
        self.sign()
        self.refund()("1")
        self.gate.close()
        gate = Gate(SqliteJournal(self.path, self.clock))
        self.addCleanup(gate.close)
        with self.assertRaisesRegex(JournalUnusable, "opened without its keys"):
            self.refund(gate=gate)("2")
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual(len(gate.journal.effects()), 1)

    def test_other_log_keys_are_refused(self) -> None:
        self.sign()
        self.refund()("1")
        self.gate.close()
        other = Keys.in_directory(self.folder / "others")
        with self.assertRaisesRegex(JournalUnusable, "no log key of that name"):
            self.sign(signing=Signing(other.writer, other.logs[0]))


class KeySources(SealingCase):
    def test_keys_are_made_once_and_are_private(self) -> None:
        self.sign(signing=self.keys)
        made = {file.name: file.stat().st_mode & 0o777 for file in self.keys.iterdir()}
        self.assertEqual(made, {"writer.key": 0o600, "log.key": 0o600})
        before = self.gate.records.policy()
        self.gate.close()
        self.sign(signing=str(self.keys))
        self.assertEqual(self.gate.records.policy(), before)

    def test_a_key_that_others_can_read_is_refused(self) -> None:
        Keys.in_directory(self.keys)
        (self.keys / "writer.key").chmod(0o644)
        with self.assertRaisesRegex(KeyUnusable, "chmod 600"):
            self.open(signing=self.keys)

    def test_keys_from_the_environment_and_from_a_function(self) -> None:
        kms = KeySigner("kms.example/writer", b"k" * 32)
        asked: list[bytes] = []

        def sign(message: bytes) -> bytes:
            asked.append(message)
            return kms.sign(message)

        os.environ["TEST_LOG_KEY"] = format_private_key("refunds.example/log", b"l" * 32)
        self.addCleanup(os.environ.pop, "TEST_LOG_KEY")
        self.sign(signing=Signing(CallSigner(kms.name, kms.public_key, sign), "env:TEST_LOG_KEY", flush_s=3600))
        outcome = self.refund()("1")
        self.assertEqual(len(asked), 2, "one signature for each commit")
        self.gate.records.flush()
        policy = parse_policy(self.gate.records.policy() + "quorum none\n")
        self.assertIn(str(verifier_key(kms)), str(policy))
        self.assertWord(Word.LOGGED, outcome, policy)

    def test_nothing_is_sent_when_a_key_cannot_sign(self) -> None:
        kms = KeySigner("kms.example/writer", b"k" * 32)
        down = False

        def sign(message: bytes) -> bytes:
            if down:
                raise ConnectionError("the KMS is away")
            return kms.sign(message)

        self.sign(signing=Signing(CallSigner(kms.name, kms.public_key, sign)))
        refund = self.refund()
        refund("1")
        down = True
        with self.assertRaisesRegex(SigningFailed, "ConnectionError"):
            refund("2")
        self.assertEqual(len(self.service.requests), 1)
        down = False
        self.assertOutcome(refund("2"), "COMMITTED")

    def test_a_key_that_fails_after_the_send_leaves_the_effect_open_and_recovery_finds_it(self) -> None:
        kms = KeySigner("kms.example/writer", b"k" * 32)
        down = False

        def sign(message: bytes) -> bytes:
            if down:
                raise ConnectionError("the KMS is away")
            return kms.sign(message)

        def landed(request: dict[str, Any]) -> dict[str, Any]:
            nonlocal down
            down = True
            return self.service._land(request["key"], {"case": request["case"]})

        self.sign(signing=Signing(CallSigner(kms.name, kms.public_key, sign)))
        refund = self.looked_up()
        self.service.script = [landed]
        with self.assertRaises(NotRecorded):
            refund("1")
        down = False
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 1)
        self.assertEqual(len(self.service.requests), 1)


class Private(SealingCase):
    def test_private_values_are_hidden_and_can_be_disclosed(self) -> None:
        self.sign()
        outcome = self.refund(private=("payload.case",))("secret-case")
        self.gate.records.flush()
        receipt = self.gate.receipt(outcome.effect_id)
        hidden = verify(receipt, self.policy())
        self.assertEqual(hidden.word, Word.LOGGED)
        self.assertEqual(hidden.line("disclosures").answer, Answer.NOT_CHECKED)
        told = verify(self.gate.receipt(outcome.effect_id, disclosing=["payload.case"]), self.policy())
        self.assertEqual((told.word, told.line("disclosures").answer), (Word.LOGGED, Answer.YES))
        with self.assertRaisesRegex(NotDecidable, "declared private .* payload.case"):
            self.gate.receipt(outcome.effect_id, disclosing=["payload.amount"])

    def test_a_gate_says_what_is_private_in_effects_that_others_declare(self) -> None:
        """As toolkits do. What the effect says itself counts too, and other effects are left alone."""
        self.sign(private={"test.*": ["payload.case", "evidence.id"], "other.*": ["payload.amount"]})
        outcome = self.refund(private=("payload.case",))("secret-case")
        bodies = [record.entry.body for record in open_receipt(self.gate.receipt(outcome.effect_id)).records]
        self.assertEqual(
            [list(bodies[0]["payload"]["case"]), bodies[0]["payload"]["amount"]], [["private_sha256"], 2000]
        )
        self.assertEqual(list(bodies[-1]["evidence"]["id"]), ["private_sha256"])
        for wrong in ({"test.*": "payload.case"}, {"test.*": ["payload..case"]}, ["payload.case"], {"test.*": 5}):
            with self.assertRaisesRegex(DefinitionError, "private"):
                self.open(private=wrong)

    def test_a_later_process_hides_them_as_well(self) -> None:
        self.sign()
        outcome = self.refund(private=("payload.case", "evidence.id")).propose("1")
        self.gate.close()
        self.sign()
        self.assertOutcome(self.refund()("1"), "COMMITTED")
        self.gate.records.flush()
        report = self.assertWord(Word.LOGGED, outcome)
        self.assertIn("private", report.line("evidence").says + str(report.line("disclosures").says))

    def test_erased_values_are_gone_and_receipts_stay_good(self) -> None:
        self.sign()
        refund = self.refund(private=("payload.case", "evidence.case"))
        outcome = refund("jane@example.org")
        self.gate.records.flush()
        before = self.gate.receipt(outcome.effect_id)
        told = self.gate.receipt(outcome.effect_id, disclosing=["payload.case"])
        self.gate.records.erase(outcome.effect_id)
        for receipt in (before, self.gate.receipt(outcome.effect_id)):
            report = verify(receipt, self.policy())
            self.assertEqual((report.word, report.failed), (Word.LOGGED, ()), str(report))
        self.assertEqual(verify(told, self.policy()).line("disclosures").answer, Answer.YES, "what was told was told")
        bodies = str([entry.body for entry in self.gate.history(outcome.effect_id)])
        self.assertNotIn("jane@example.org", bodies.replace(outcome.request_key, ""))
        for again in ("erased before", "erased before"):
            with self.assertRaisesRegex(NotDecidable, again):
                self.gate.records.erase(outcome.effect_id)
        with self.assertRaises(NotDecidable):
            self.gate.receipt(outcome.effect_id, disclosing=["payload.case"])
        sent = len(self.service.requests)
        self.assertOutcome(refund("jane@example.org"), "REFUSED:conflicting_payload")
        self.assertEqual(len(self.service.requests), sent)
        self.assertOutcome(self.refund("other")("2"), "COMMITTED")

    def test_only_a_closed_effect_is_erased(self) -> None:
        self.sign()
        outcome = self.refund(private=("payload.case",)).propose("1")
        with self.assertRaisesRegex(NotDecidable, "is open"):
            self.gate.records.erase(outcome.effect_id)


class Files(SealingCase):
    def read(self, effect_id: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads((self.folder / "receipts" / f"{effect_id}.receipt.json").read_text())
        return content

    def test_recovery_and_settlement_write_receipts(self) -> None:
        gate = self.sign(receipts_dir=self.folder / "receipts")
        refund = self.refund()
        open_ = refund.propose("1")
        done = refund("2")
        self.assertFalse(list((self.folder / "receipts").iterdir()))
        gate.recover()
        self.assertEqual(verify(self.read(open_.effect_id), self.policy()).word, Word.LOGGED)
        self.append_elsewhere(done.effect_id, (Kind.SETTLED, {"state": "settled", "detail": None}))
        gate.records.flush()
        report = verify(self.read(done.effect_id), self.policy())
        self.assertEqual(report.word, Word.LOGGED)
        self.assertIn("settled", report.line("since").says)

    def test_under_asyncio(self) -> None:
        gate = self.sign(receipts_dir=self.folder / "receipts")
        outcome = self.refund().propose("1")
        asyncio.run(gate.arecover())
        self.assertEqual(verify(self.read(outcome.effect_id), self.policy()).word, Word.LOGGED)

    def test_without_signing_they_are_written_too(self) -> None:
        gate = self.open(receipts_dir=self.folder / "receipts")
        self.gate = gate
        outcome = self.refund().propose("1")
        gate.recover()
        self.assertEqual(verify(self.read(outcome.effect_id), self.policy()).word, Word.CONSISTENT)


if __name__ == "__main__":
    unittest.main()
