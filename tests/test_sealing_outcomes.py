"""Every way in which an effect can end, as the gate itself signs it: the receipts pass, and claim what was answered."""

from __future__ import annotations

import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import test_receipts_of_the_gate as cases

from interlock_tools import Gate, Outcome, parse_policy, verify
from interlock_tools.receipts import Report, Word
from interlock_tools.receipts.file import open_receipt
from interlock_tools.sealing import Keys


class SignedByTheGate(cases.ReceiptsOfTheGate):
    """The tests of records that were signed afterwards, with a gate that signs as it writes."""

    def open(self, **options: Any) -> Gate:
        return super().open(**{"signing": self.folder / "keys", **options})

    def certified(self, outcome: Outcome, *, private: bool = False) -> Report:
        self.gate.records.flush()
        receipt = self.gate.receipt(outcome.effect_id)
        records = open_receipt(receipt).records
        self.assertEqual([record.entry for record in records], self.gate.history(outcome.effect_id))
        policy = parse_policy(Keys.in_directory(self.folder / "keys").policy() + "quorum none\n")
        report = verify(receipt, policy)
        self.assertEqual((report.word, report.failed, report.exit_code), (Word.LOGGED, (), 0), str(report))
        self.assertEqual(report.line("happened").answer, cases.HAPPENED[outcome.status], str(report))
        return report


if __name__ == "__main__":
    unittest.main()
