"""Keys change: receipts from before and after are good under the policy from before."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import SealingCase

from interlock_tools import BadArguments
from interlock_tools.keyfiles import KeyUnusable
from interlock_tools.receipts import Answer, Word
from interlock_tools.receipts.keys import KeySigner, verifier_key
from interlock_tools.sealing import Keys, Signing


class Rotation(SealingCase):
    def setUp(self) -> None:
        super().setUp()
        self.keys_there()
        self.sign(signing=self.keys)
        self.before = self.policy()
        self.old = self.refund()("old")
        self.gate.records.flush()

    def test_another_writer(self) -> None:
        file = self.gate.records.rotate_writer()
        self.assertEqual(Path(str(file)).name, "writer-2.key")
        self.assertEqual(Path(str(file)).stat().st_mode & 0o777, 0o600)
        new = self.refund("second")("new")
        self.gate.records.flush()
        for outcome in (self.old, new):
            self.assertWord(Word.LOGGED, outcome, self.before)
        self.assertIn("refunds.example/writer.2", self.verified(new, self.before).line("writer").says)
        self.gate.close()
        self.sign(signing=self.keys)
        again = self.refund()("after a restart")
        self.gate.records.flush()
        self.assertIn("refunds.example/writer.2", self.assertWord(Word.LOGGED, again, self.before).line("writer").says)

    def test_a_retired_writer_s_records_are_good_before_and_not_after(self) -> None:
        first = Keys.in_directory(self.keys)
        old_key = str(verifier_key(first.writer))
        with self.assertRaisesRegex(BadArguments, "signs now"):
            self.gate.records.retire_writer(old_key)
        self.gate.records.rotate_writer()
        self.gate.records.retire_writer(old_key)
        self.gate.records.flush()
        self.assertWord(Word.LOGGED, self.old, self.before)
        self.gate.close()
        self.sign(signing=Signing(first.writer, first.logs[0], flush_s=3600))
        forged = self.refund()("with the old key")
        self.gate.records.flush()
        report = self.verified(forged, self.before)
        self.assertEqual((report.word, report.line("writer").answer), (Word.INVALID, Answer.NO))

    def test_the_log_moves(self) -> None:
        file = self.gate.records.move_log()
        self.assertEqual(Path(str(file)).name, "log-2.key")
        new = self.refund("second")("new")
        self.gate.records.flush()
        self.gate.close()
        (self.keys / "log.key").unlink()  # the old key is gone: its signature is not needed any more
        (self.keys / "log-2.key").rename(self.keys / "log.key")
        self.sign(signing=self.keys)
        newest = self.refund()("newest")
        self.gate.records.flush()
        for outcome in (self.old, new, newest):
            self.assertWord(Word.LOGGED, outcome, self.before)

    def test_a_witness_follows_the_log(self) -> None:
        self.gate.close()
        witness = self.witness()
        policy = self.policy(witness)
        self.sign(signing=self.keys, witnesses=policy)
        self.gate.records.move_log()
        outcome = self.refund()("new")
        self.assertEqual(self.gate.records.flush(), {})
        self.assertWord(Word.WITNESSED, outcome, policy)

    def test_keys_that_are_kept_elsewhere(self) -> None:
        self.gate.close()
        keys = Keys.in_directory(self.keys)
        self.sign(signing=Signing(keys.writer, keys.logs[0], flush_s=3600))
        with self.assertRaisesRegex(KeyUnusable, "hand the new key over"):
            self.gate.records.rotate_writer()
        self.gate.records.rotate_writer(KeySigner("kms.example/writer", b"k" * 32))
        with self.assertRaisesRegex(BadArguments, "is called that"):
            self.gate.records.move_log(KeySigner("kms.example/log", b"q" * 32))
        self.gate.records.move_log(KeySigner(keys.logs[0].name, b"q" * 32))
        outcome = self.refund()("new")
        self.gate.records.flush()
        self.assertWord(Word.LOGGED, outcome, self.before)


if __name__ == "__main__":
    unittest.main()
