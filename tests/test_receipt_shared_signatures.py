"""Records that were committed together share a signature: what a forger makes of that, beside the genuine receipt."""

from __future__ import annotations

import copy
import json
import sys
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import SealingCase

from interlock_tools.receipts import Answer, Word, verify
from interlock_tools.receipts.dsse import Envelope, seal
from interlock_tools.receipts.keys import KeySigner
from interlock_tools.receipts.record import record_hash
from interlock_tools.receipts.strict import canonical_json
from interlock_tools.sealing import Keys

Statement = dict[str, Any]
MALLORY = KeySigner("refunds.example/writer", b"z" * 32)


def statement(document: dict[str, Any], number: int) -> Statement:
    value: Statement = json.loads(Envelope.from_json(document["records"][number - 1]).payload)
    return value


def put(document: dict[str, Any], number: int, changed: Statement) -> bytes:
    """Replace a record's statement and keep its signatures; returns the new hash."""
    old = Envelope.from_json(document["records"][number - 1])
    new = Envelope(canonical_json(changed), signatures=old.signatures)
    document["records"][number - 1] = new.to_json()
    return record_hash(new.payload)


def rechain(document: dict[str, Any], start: int) -> None:
    """Let every record after ``start`` name the hash of the one before, and the head the last; signatures stay."""
    last = record_hash(Envelope.from_json(document["records"][start - 1]).payload)
    for number in range(start + 1, len(document["records"]) + 1):
        changed = statement(document, number)
        changed["predicate"]["prev"] = last.hex()
        last = put(document, number, changed)
    document.pop("proofs", None)


class SharedSignatures(SealingCase):
    def setUp(self) -> None:
        super().setUp()
        self.sign()
        outcome = self.refund()("1")
        self.gate.records.flush()
        self.twin = self.gate.receipt(outcome.effect_id)

    def assertForged(self, line: str, forge: Callable[[dict[str, Any]], None], answer: Answer = Answer.NO) -> None:
        genuine = verify(self.twin, self.policy())
        self.assertEqual((genuine.word, genuine.failed), (Word.LOGGED, ()), str(genuine))
        forged = copy.deepcopy(self.twin)
        forge(forged)
        report = verify(forged, self.policy())
        self.assertEqual(report.line(line).answer, answer, str(report))
        self.assertNotEqual(report.exit_code, 0)
        self.assertIn(report.word, (Word.INVALID, Word.CONSISTENT))

    def test_the_genuine_one_says_that_they_share(self) -> None:
        signatures = [len(record["signatures"]) for record in self.twin["records"]]
        self.assertEqual(signatures, [0, 0, 1, 1])
        report = verify(self.twin, self.policy())
        self.assertIn("share a signature", report.line("writer").says)

    def test_a_covered_record_is_edited(self) -> None:
        def forge(document: dict[str, Any]) -> None:
            changed = statement(document, 2)
            changed["predicate"]["body"]["grant"] = {"id": "appr_9", "by": "dana"}
            put(document, 2, changed)

        self.assertForged("chain", forge)

    def test_a_covered_record_is_edited_and_the_chain_made_again(self) -> None:
        def forge(document: dict[str, Any]) -> None:
            changed = statement(document, 2)
            changed["predicate"]["body"]["grant"] = {"id": "appr_9", "by": "dana"}
            put(document, 2, changed)
            rechain(document, 2)

        self.assertForged("writer", forge)

    def test_the_mark_of_being_covered_is_taken_off(self) -> None:
        def forge(document: dict[str, Any]) -> None:
            changed = statement(document, 1)
            del changed["predicate"]["covered_by"]
            put(document, 1, changed)
            rechain(document, 1)

        self.assertForged("writer", forge)

    def test_covered_by_itself_by_an_earlier_one_by_nothing_by_a_covered_one(self) -> None:
        for by, line in ((2, "format"), (1, "format"), (0, "format"), (-1, "format"), (9, "writer"), ("3", "format")):
            with self.subTest(by):

                def forge(document: dict[str, Any], by: Any = by) -> None:
                    changed = statement(document, 2)
                    changed["predicate"]["covered_by"] = by
                    put(document, 2, changed)
                    rechain(document, 2)

                self.assertForged(line, forge)

        def to_a_covered_one(document: dict[str, Any]) -> None:
            changed = statement(document, 1)
            changed["predicate"]["covered_by"] = 2
            put(document, 1, changed)
            rechain(document, 1)

        self.assertForged("writer", to_a_covered_one)

    def test_a_covered_record_has_a_signature_of_its_own(self) -> None:
        writer = Keys.in_directory(self.keys).writer
        for signer in (MALLORY, writer):
            with self.subTest(signer=signer is writer):

                def forge(document: dict[str, Any], signer: Any = signer) -> None:
                    payload = Envelope.from_json(document["records"][0]).payload
                    document["records"][0] = seal(payload, signer).to_json()

                self.assertForged("writer", forge)

    def test_the_signature_that_covers_them_is_gone_or_another_s(self) -> None:
        def strip(document: dict[str, Any]) -> None:
            document["records"][2]["signatures"] = []

        self.assertForged("writer", strip, Answer.NOT_CHECKED)

        def replace(document: dict[str, Any]) -> None:
            payload = Envelope.from_json(document["records"][2]).payload
            document["records"][2] = seal(payload, MALLORY).to_json()

        self.assertForged("writer", replace)


if __name__ == "__main__":
    unittest.main()
