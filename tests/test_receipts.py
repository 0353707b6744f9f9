"""Genuine receipts: every way in which an effect can go, every word, and what the report says."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

from interlock_tools import receipts
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.receipts import (
    Answer,
    Carrier,
    Policy,
    ServiceFinding,
    VerificationError,
    Word,
    parse_policy,
    verify,
)
from interlock_tools.receipts.build import build_receipt, seal_entry
from interlock_tools.receipts.claims import NAMES, show
from interlock_tools.receipts.errors import FormatError
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, verifier_key
from interlock_tools.receipts.private import conceal, has_hidden, parse_paths
from interlock_tools.receipts.record import KeyChange
from interlock_tools.receipts.report import LADDER
from interlock_tools.receipts.verify import CHECKS
from interlock_tools.testing.receipts import PAYLOAD, START_MS, STORIES, Book, proposed

GOLDEN = Path(__file__).parent / "golden"
WRITER = KeySigner("writer.example/1", b"w" * 32)
LOG = KeySigner("log.example/refunds", b"l" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)
WRITER_LINE = f"writer {verifier_key(WRITER)}\n"
LOG_LINE = f"log {verifier_key(LOG)}\n"
WITNESS_LINE = f"witness a {verifier_key(WITNESS, COSIGNATURE)}\n"
FULL = parse_policy(WRITER_LINE + LOG_LINE + WITNESS_LINE + "quorum a\n")

HAPPENED = {
    "committed": Answer.YES,
    "settled": Answer.YES,
    "reversed": Answer.YES,
    "resent": Answer.YES,
    "sent_again": Answer.YES,
    "looked_up": Answer.YES,
    "lost": Answer.YES,
    "approved": Answer.YES,
    "rejected": Answer.NO,
    "refused": Answer.NO,
    "declined": Answer.NO,
    "replaced": Answer.NO,
    "ambiguous": Answer.UNKNOWN,
    "resolved": Answer.YES,
    "resolved_no": Answer.NO,
    "late": Answer.UNKNOWN,
    "late_resolved": Answer.YES,
    "in_flight": Answer.UNKNOWN,
    "decided": Answer.UNKNOWN,
}


def receipt_of(name: str, *, signed: bool = True, logged: bool = True, witnessed: bool = True) -> bytes:
    book = Book(WRITER if signed else None, LOG)
    effect = book.write(STORIES[name])
    if logged:
        book.checkpoint([WITNESS] if witnessed else [])
    return book.receipt(effect)


class EveryOutcome(unittest.TestCase):
    def test_genuine_receipts_pass(self) -> None:
        self.assertEqual(HAPPENED.keys(), STORIES.keys())
        for name, happened in HAPPENED.items():
            with self.subTest(name):
                report = verify(receipt_of(name), FULL)
                self.assertEqual((report.word, report.failed, report.exit_code), (Word.WITNESSED, (), 0), str(report))
                self.assertEqual(report.line("happened").answer, happened)
                self.assertEqual(tuple(line.name for line in report.claims), NAMES)
                self.assertEqual(tuple(line.name for line in report.checks), CHECKS)

    def test_every_kind_of_entry_is_in_some_story(self) -> None:
        told = {kind for story in STORIES.values() for kind, _ in story}
        self.assertEqual(told, set(Kind))

    def test_claims_of_a_recovery(self) -> None:
        report = verify(receipt_of("resent"), FULL)
        self.assertEqual(report.line("rechecked_at_recovery").answer, Answer.YES)
        self.assertIn("the service's own contract", report.line("at_most_once").vouched_by)
        looked_up = verify(receipt_of("looked_up"), FULL)
        self.assertEqual(looked_up.line("rechecked_at_recovery").answer, Answer.NOT_APPLICABLE)
        self.assertIn("asking the service", looked_up.line("evidence").says)

    def test_what_became_of_it_and_who_decided(self) -> None:
        self.assertIn("reversed", verify(receipt_of("reversed"), FULL).line("since").says)
        self.assertEqual(verify(receipt_of("committed"), FULL).line("since").answer, Answer.NOT_RECORDED)
        self.assertIn("approved by dana", verify(receipt_of("approved"), FULL).line("decided_by").says)
        self.assertIn("sam", verify(receipt_of("resolved"), FULL).line("happened").vouched_by)

    def test_a_dict_is_as_good_as_bytes(self) -> None:
        data = receipt_of("committed")
        self.assertEqual(verify(json.loads(data), FULL), verify(data, FULL))


class Words(unittest.TestCase):
    def test_the_ladder(self) -> None:
        for word, receipt in {
            Word.CONSISTENT: receipt_of("committed", signed=False),
            Word.SIGNED: receipt_of("committed", logged=False),
            Word.LOGGED: receipt_of("committed", witnessed=False),
            Word.WITNESSED: receipt_of("committed"),
        }.items():
            with self.subTest(word):
                report = verify(receipt, FULL)
                self.assertEqual(report.word, word)
                self.assertEqual(report.exit_code, 0 if word is Word.WITNESSED else 2)
                self.assertEqual("tamper-evident" in str(report), word is Word.WITNESSED)

    def test_unsigned_is_at_best_consistent(self) -> None:
        """Also where a witnessed log holds the records."""
        for logged in (False, True):
            report = verify(receipt_of("committed", signed=False, logged=logged), FULL)
            self.assertEqual(report.word, Word.CONSISTENT)
            self.assertNotIn("tamper-evident", str(report))
            self.assertIn("nobody", report.line("happened").vouched_by)

    def test_the_policy_decides_how_far_it_goes(self) -> None:
        receipt = receipt_of("committed")
        for text, word, code in (
            (WRITER_LINE, Word.SIGNED, 0),
            (WRITER_LINE + LOG_LINE + "quorum none\n", Word.LOGGED, 0),
            (WRITER_LINE + LOG_LINE + WITNESS_LINE + "quorum none\n", Word.LOGGED, 0),
            (LOG_LINE + WITNESS_LINE + "quorum a\n", Word.CONSISTENT, 2),
        ):
            report = verify(receipt, parse_policy(text))
            self.assertEqual((report.word, report.exit_code), (word, code))

    def test_records_that_no_checkpoint_covers_yet(self) -> None:
        book = Book(WRITER, LOG)
        effect = book.write(STORIES["settled"][:4])
        book.checkpoint([WITNESS])
        book.go_on(effect, STORIES["settled"][4:])
        report = verify(book.receipt(effect), FULL)
        self.assertEqual((report.word, report.exit_code), (Word.SIGNED, 2))
        self.assertIn("Records 5", report.line("log").says)

    def test_a_record_that_was_witnessed_before_it_was_sent(self) -> None:
        book = Book(WRITER, LOG)
        effect = book.write(STORIES["committed"][:3])
        book.checkpoint([WITNESS], START_MS // 1000 + 3)
        book.go_on(effect, STORIES["committed"][3:])
        book.checkpoint([WITNESS], START_MS // 1000 + 900)
        report = verify(book.receipt(effect), FULL)
        self.assertEqual(report.word, Word.WITNESSED)
        self.assertIn("2 checkpoints of one history", report.line("history").says)
        self.assertIn("14:13:23Z", report.line("allowed_when_sent").not_checked)

    def test_signing_that_began_half_way(self) -> None:
        book = Book(None, LOG)
        effect = book.write(STORIES["committed"][:3])
        book.writer = WRITER
        book.go_on(effect, STORIES["committed"][3:])
        book.checkpoint([WITNESS])
        report = verify(book.receipt(effect), FULL)
        self.assertEqual((report.word, report.exit_code), (Word.CONSISTENT, 2))

    def test_rotated_keys(self) -> None:
        book = Book(WRITER, LOG)
        effect = book.write(STORIES["committed"][:3])
        new_writer, new_log = KeySigner("writer.example/2", b"x" * 32), KeySigner(LOG.name, b"m" * 32)
        book.change_key(KeyChange("add", "writer", verifier_key(new_writer), START_MS), WRITER)
        book.change_key(KeyChange("retire", "writer", verifier_key(WRITER), START_MS), new_writer)
        book.change_key(KeyChange("add", "log", verifier_key(new_log), START_MS), new_writer)
        book.checkpoint([WITNESS], START_MS // 1000, new_log)
        book.writer, book.log = new_writer, new_log
        book.go_on(effect, STORIES["committed"][3:])
        book.checkpoint([WITNESS])
        report = verify(book.receipt(effect), FULL)
        self.assertEqual((report.word, report.exit_code), (Word.WITNESSED, 0), str(report))
        self.assertIn("writer.example/2", report.line("writer").says)


class AskingTheService(unittest.TestCase):
    def test_strong_and_weak_carriers(self) -> None:
        receipt = receipt_of("committed")
        yes = ServiceFinding(Answer.YES, "event evt_1 carries this effect's id as its idempotency key")
        for finding, word, code in (
            (yes, Word.CONFIRMED_BY_SERVICE, 0),
            (ServiceFinding(Answer.YES, "metadata agree", Carrier.WEAK), Word.WITNESSED, 0),
            (ServiceFinding(Answer.NO, "no such refund"), Word.CONTRADICTED, 3),
            (ServiceFinding(Answer.NO, "metadata differ", Carrier.WEAK), Word.WITNESSED, 4),
            (ServiceFinding(Answer.UNKNOWN, "it could not be reached"), Word.WITNESSED, 4),
        ):
            with self.subTest(finding):
                report = verify(receipt, FULL, finding)
                self.assertEqual((report.word, report.exit_code), (word, code))
                asked = finding.agrees is not Answer.UNKNOWN
                self.assertEqual(finding.carrier.value in report.line("service").vouched_by, asked)

    def test_the_service_does_not_lift_what_is_not_witnessed(self) -> None:
        finding = ServiceFinding(Answer.YES, "seen")
        self.assertEqual(verify(receipt_of("committed", signed=False), FULL, finding).word, Word.CONSISTENT)
        broken = json.loads(receipt_of("committed"))
        broken["records"].pop()
        self.assertEqual(verify(broken, FULL, finding).word, Word.INVALID)
        self.assertEqual(
            verify(receipt_of("committed", logged=False), FULL, ServiceFinding(Answer.NO, "no")).exit_code, 3
        )

    def test_what_to_ask_is_in_the_report(self) -> None:
        subject = verify(receipt_of("committed"), FULL).subject
        assert subject is not None
        self.assertEqual(subject.name, "stripe.refund")
        self.assertEqual(subject.payload, PAYLOAD)
        self.assertEqual(subject.service, {"name": "stripe", "account": "acct_1"})
        self.assertEqual(subject.evidence["id"], "re_1")
        self.assertEqual(subject.phase, "committed")


class PrivateValues(unittest.TestCase):
    PATHS = parse_paths(["payload.payment_intent", "facts.refunded_by_others", "evidence.id"])

    def setUp(self) -> None:
        self.book = Book(WRITER, LOG, self.PATHS)
        self.effect = self.book.write(STORIES["sent_again"])
        self.book.checkpoint([WITNESS])

    def test_hidden_values_are_not_in_the_receipt(self) -> None:
        receipt = self.book.receipt(self.effect)
        report = verify(receipt, FULL)
        self.assertEqual((report.word, report.exit_code), (Word.WITNESSED, 0), str(report))
        for envelope in json.loads(receipt)["records"]:
            payload = base64.b64decode(envelope["payload"])
            for secret in (b"pi_3Qx", b"re_1", STORIES["sent_again"][0][1]["payload_digest"].encode()):
                self.assertNotIn(secret, payload)
        self.assertEqual(report.line("digests").answer, Answer.NOT_CHECKED)
        self.assertEqual(report.line("premises_held_when_sent").answer, Answer.YES, "compared by digest")
        self.assertIn("private_sha256", report.line("evidence").says)

    def test_disclosed_values_are_checked(self) -> None:
        report = verify(self.book.receipt(self.effect, disclosing=self.PATHS), FULL)
        self.assertEqual((report.word, report.exit_code), (Word.WITNESSED, 0), str(report))
        self.assertEqual(report.line("disclosures").answer, Answer.YES)
        self.assertEqual(report.line("digests").answer, Answer.YES)
        self.assertIn("re_1", report.line("evidence").says)

    def test_a_part_may_be_disclosed(self) -> None:
        report = verify(self.book.receipt(self.effect, disclosing=parse_paths(["evidence.id"])), FULL)
        self.assertEqual(report.exit_code, 0)
        self.assertIn("re_1", report.line("evidence").says)
        self.assertEqual(report.line("digests").answer, Answer.NOT_CHECKED)

    def test_erasure_breaks_no_proof(self) -> None:
        before = self.book.receipt(self.effect)
        self.book.secret = b""
        self.book.entries[self.effect] = self.book.entries[self.effect][-1:]
        self.assertEqual(self.book.receipt(self.effect), before)

    def test_changed_private_premises_are_seen(self) -> None:
        book = Book(WRITER, LOG, self.PATHS)
        story = list(STORIES["sent_again"])
        kind, body = story[5]
        story[5] = (kind, {**body, "facts": {**body["facts"], "refunded_by_others": 500}})
        effect = book.write(story)
        book.checkpoint([WITNESS])
        self.assertEqual(verify(book.receipt(effect), FULL).failed, ("premises_held_when_sent",))

    def test_where_else_a_value_is_repeated(self) -> None:
        paths = parse_paths(["facts.email"])
        body = {"facts": {"email": "a@b.c"}, "changes": {"email": {"was": "x@y.z", "now": "a@b.c"}}}
        hidden = conceal(body, paths, b"s" * 16)
        self.assertTrue(has_hidden(hidden["changes"]))
        self.assertNotIn("a@b.c", json.dumps(hidden))

    def test_salts_differ_between_effects_and_paths(self) -> None:
        body = {"a": "v", "b": "v"}
        one = conceal(body, parse_paths(["a", "b"]), b"1" * 16)
        two = conceal(body, parse_paths(["a", "b"]), b"2" * 16)
        self.assertEqual(len({str(one["a"]), str(one["b"]), str(two["a"]), str(two["b"])}), 4)

    def test_misuse(self) -> None:
        kind, body = proposed("x")
        entry = Entry("0" * 32, 1, kind, 1, body)
        with self.assertRaises(FormatError):
            seal_entry(entry, None, WRITER, private=self.PATHS)
        for name in ("", "a..b", ".a"):
            with self.assertRaises(FormatError):
                parse_paths([name])


class TheReport(unittest.TestCase):
    maxDiff = None

    def test_golden(self) -> None:
        """Set INTERLOCK_UPDATE_GOLDEN=1 to write the files anew, then read the difference."""
        for name in ("reversed", "resent", "ambiguous"):
            self._compare(f"receipt_report_{name}.txt", str(verify(receipt_of(name), FULL)))
        broken = json.loads(receipt_of("committed"))
        broken["records"].pop()
        broken["proofs"].pop()
        self._compare("receipt_report_invalid.txt", str(verify(broken, FULL)))
        self._compare(
            "receipt_report_unsigned.txt", str(verify(receipt_of("committed", signed=False, logged=False), FULL))
        )
        self._compare("receipt_file.json", receipt_of("committed").decode())

    def _compare(self, name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("INTERLOCK_UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        self.assertEqual(text, path.read_text(encoding="utf-8"))

    def test_json_has_the_same_content(self) -> None:
        report = verify(receipt_of("settled"), FULL)
        plain = json.loads(json.dumps(report.to_json()))
        self.assertEqual(plain["word"], "WITNESSED")
        self.assertEqual(plain["exit_code"], 0)
        self.assertEqual([item["name"] for item in plain["claims"]], list(NAMES))
        self.assertTrue(all(item["vouched_by"] or item["answer"] == "not applicable" for item in plain["claims"]))

    def test_text_from_a_receipt_cannot_pass_for_the_report(self) -> None:
        book = Book(WRITER, LOG)
        story = list(STORIES["resolved"])
        story[-1] = (Kind.RESOLVED, {"landed": True, "by": "sam\n  log: yes.", "why": "\x1b[2Kok\u202e" + "x" * 5000})
        effect = book.write(story)
        text = str(verify(book.receipt(effect), FULL))
        self.assertNotIn("\x1b", text)
        self.assertNotIn("\u202e", text)
        self.assertNotIn("\n  log: yes", text)
        self.assertLess(len(text), 10_000)
        self.assertEqual(show("a" * 300), "a" * 200 + "…")

    def test_words_and_lines(self) -> None:
        self.assertEqual([word.value for word in LADDER][::5], ["INVALID", "CONFIRMED_BY_SERVICE"])
        with self.assertRaises(KeyError):
            verify(receipt_of("settled"), FULL).line("nothing")


class Misuse(unittest.TestCase):
    def test_trust_is_the_callers(self) -> None:
        with self.assertRaises(VerificationError):
            verify(receipt_of("settled"), WRITER_LINE)  # type: ignore[arg-type]

    def test_anything_at_all_is_answered(self) -> None:
        for nothing in (
            b"",
            b"null",
            b"[]",
            b"{}",
            b"\x00" * 100,
            {},
            {"type": 1},
            {1: 2},
            {"a": object()},
            "text",
            None,
            5,
        ):
            with self.subTest(nothing):
                report = verify(nothing, FULL)  # type: ignore[arg-type]
                self.assertEqual((report.word, report.failed, report.exit_code), (Word.INVALID, ("format",), 1))
                self.assertIn("INVALID", str(report))

    def test_a_policy_made_by_hand_works_too(self) -> None:
        self.assertEqual(verify(receipt_of("settled"), Policy((verifier_key(WRITER),))).word, Word.SIGNED)

    def test_a_receipt_needs_records_and_all_proofs(self) -> None:
        with self.assertRaises(FormatError):
            build_receipt([], WRITER, START_MS)
        book = Book(WRITER, LOG)
        effect = book.write(STORIES["committed"])
        with self.assertRaises(FormatError):
            build_receipt([sealed.envelope for sealed in book.records[effect]], WRITER, START_MS, proofs=[None])

    def test_public_names(self) -> None:
        self.assertEqual(sorted(receipts.__all__), receipts.__all__)
        self.assertTrue(all(hasattr(receipts, name) for name in receipts.__all__))


class Offline(unittest.TestCase):
    CODE = (
        "import sys, base64, encodings.idna\n"
        "from interlock_tools.receipts import parse_policy, verify\n"
        "policy = parse_policy(base64.b64decode(sys.argv[1]))\n"
        "receipt = base64.b64decode(sys.argv[2])\n"
    )

    def _run(self, code: str, *prefix: str) -> None:
        arguments = [base64.b64encode(data).decode() for data in (str(FULL).encode(), receipt_of("settled"))]
        done = subprocess.run(
            [*prefix, sys.executable, "-c", self.CODE + code, *arguments],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        )
        self.assertEqual((done.stdout, done.stderr, done.returncode), ("WITNESSED", "", 0))

    def test_nothing_opens_a_file_a_socket_or_a_clock(self) -> None:
        """Run a whole verification with every audited way out closed."""
        self._run(
            "verify(receipt, policy)\n"
            "def closed(event, arguments):\n"
            "    if event.split('.')[0] in ('open', 'socket', 'subprocess', 'os', 'sqlite3', 'urllib'):\n"
            "        raise SystemExit(f'audited: {event}')\n"
            "sys.addaudithook(closed)\n"
            "import time; time.time = time.monotonic = None\n"
            "sys.stdout.write(verify(receipt, policy).word.value)\n"
        )

    def test_in_an_empty_network_namespace(self) -> None:
        prefix = ("unshare", "--map-root-user", "--net")
        try:
            able = subprocess.run([*prefix, "true"], capture_output=True, check=False, timeout=30).returncode == 0
        except OSError:
            able = False
        if not able:
            self.skipTest("this machine does not let us make a network namespace")
        self._run("sys.stdout.write(verify(receipt, policy).word.value)\n", *prefix)


if __name__ == "__main__":
    unittest.main()
