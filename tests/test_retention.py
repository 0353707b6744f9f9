"""Finished effects leave the journal for an archive, and everything that was promised about them still holds."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import unittest
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import LossCase, SealingCase

from interlock_tools import (
    Archived,
    BadArguments,
    Budget,
    DefiniteNo,
    Gate,
    JournalUnusable,
    NotDecidable,
    NotRecorded,
    NotSent,
    retention,
)
from interlock_tools import archive as archives
from interlock_tools.archive import ArchiveUnusable
from interlock_tools.core.entries import Entry, Kind
from interlock_tools.journal.protocol import ARCHIVED, Tombstone, Write
from interlock_tools.receipts import Word, verify
from interlock_tools.retention import Pruned, prune
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story

DAY_S = 24 * 3600


class RetentionCase(SealingCase):
    """A gate that signs, and one way to prune it."""

    def setUp(self) -> None:
        super().setUp()
        self.archive = self.folder / "archive"

    def prune(self, days: float = 30, **options: Any) -> Pruned:
        return prune(self.gate, timedelta(days=days), self.archive, **options)

    def phases(self) -> list[str]:
        return [row.phase for row in self.gate.journal.effects(limit=1000)]

    def finished_files(self) -> list[str]:
        return sorted(path.name for path in self.archive.glob("*.jsonl")) if self.archive.exists() else []

    def assertArchived(self, effect_id: str) -> None:
        """The archive alone gives a receipt that meets an auditor's policy."""
        report = verify(archives.receipt(self.archive, effect_id), self.policy())
        self.assertEqual((report.word, report.failed, report.exit_code), (Word.LOGGED, (), 0), str(report))


class Retention(RetentionCase):
    def test_the_same_request_is_answered_as_before_and_never_sent_again(self) -> None:
        self.sign()
        refund = self.refund(premises=lambda: dict(self.facts), expect=lambda: {"ok": True})
        self.facts = {"ok": True}
        done = refund("done")
        self.service.script = [DefiniteNo("declined", code="card")]
        rejected = refund("rejected")
        self.facts = {"ok": False}
        not_met = refund("not met")
        self.clock.advance(31 * DAY_S)
        report = self.prune()
        self.assertEqual((dict(report.archived), report.failed, dict(report.kept)), ({"test.refund": 3}, {}, {}))
        self.assertEqual(self.phases(), [ARCHIVED] * 3)
        self.facts = {"ok": True}
        sent = len(self.service.requests)
        for case, before in (("done", done), ("rejected", rejected), ("not met", not_met)):
            with self.subTest(case=case):
                after = refund(case)
                self.assertEqual((after, after.message), (before, before.message))
                self.assertEqual(refund.propose(case), before)
                self.assertEqual(self.gate.outcome(before.effect_id), before)
                other = refund(case, amount=1)
                self.assertOutcome(other, "REFUSED:conflicting_payload")
                self.assertEqual(other.existing, before)
                self.assertArchived(before.effect_id)
                with self.assertRaisesRegex(Archived, f"interlock receipt {before.effect_id} --archive"):
                    self.gate.history(before.effect_id)
                with self.assertRaises(NotDecidable):
                    self.gate.resolve(before.effect_id, landed=True, by="kim", why="seen")
        with self.assertRaises(NotDecidable):
            refund.redecide(rejected.effect_id, by="kim", facts={})
        self.assertEqual(len(self.service.requests), sent)
        self.assertEqual(len(self.gate.recover().outcomes), 0)

    def test_what_is_not_over_stays_and_a_dry_run_says_the_same(self) -> None:
        self.sign()
        refund = self.refund()
        watched = self.refund("test.watched", watch=lambda evidence: None)
        self.service.script = [TimeoutError("read timed out")]
        stay = [refund("ambiguous"), refund.propose("proposed"), watched("watched"), refund.propose("young")]
        self.service.script = [NotSent("no route")]
        stay.append(refund("unreachable"))
        gone = refund("old")
        self.clock.advance(31 * DAY_S)
        self.assertOutcome(refund("young"), "COMMITTED")
        stay.append(refund("newer"))
        before = [self.gate.history(outcome.effect_id) for outcome in stay]
        kept = {"open": 2, "watched": 1, "unreachable": 1, "young": 1}
        dry = self.prune(dry_run=True)
        self.assertEqual((dry.file, dict(dry.archived), dict(dry.kept)), (None, {"test.refund": 1}, kept))
        self.assertFalse(self.archive.exists())
        done = self.prune()
        self.assertEqual((dict(done.archived), dict(done.kept)), ({"test.refund": 1}, kept))
        self.assertEqual([self.gate.history(outcome.effect_id) for outcome in stay], before)
        self.assertArchived(gone.effect_id)
        again = self.prune()
        self.assertEqual((again.file, len(self.finished_files())), (None, 1), "there is nothing left to do")
        self.gate.resolve(stay[0].effect_id, landed=False, by="kim", why="not there")
        self.assertOutcome(refund("unreachable"), "COMMITTED")

    def replaced(self) -> tuple[Any, list[str]]:
        refund = self.refund()
        self.service.script = [DefiniteNo("declined")]
        first = refund("1")
        second = refund.redecide(first.effect_id, by="kim", facts={})
        self.assertOutcome(refund("1"), "COMMITTED")
        self.clock.advance(31 * DAY_S)
        return refund, [first.effect_id, second.effect_id]

    def test_a_request_goes_together_with_all_its_decisions(self) -> None:
        self.sign()
        refund, ids = self.replaced()
        before = refund("1")
        self.prune()
        self.assertEqual(self.phases(), [ARCHIVED, ARCHIVED])
        self.assertEqual((refund("1"), before.effect_id), (before, ids[1]))
        self.assertOutcome(refund("1", amount=7), "REFUSED:conflicting_payload")
        for effect_id in ids:
            self.assertArchived(effect_id)

    def test_a_decision_that_changes_meanwhile_goes_the_next_time(self) -> None:
        self.sign()
        refund, ids = self.replaced()
        late = Entry(ids[0], len(self.gate.history(ids[0])) + 1, Kind.LATE, 5, {"send": 1, "result": {"ending": "no"}})
        journal = self.gate.journal
        archive = journal.archive

        def slow(tombstones: Any) -> None:
            journal.append([Write(ids[0], late.seq - 1, (late,))])
            archive(tombstones)

        journal.archive = slow  # type: ignore[method-assign]
        self.prune()
        journal.archive = archive  # type: ignore[method-assign]
        self.assertEqual(self.phases(), ["replaced", ARCHIVED])
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertOutcome(refund("1", amount=7), "REFUSED:conflicting_payload")
        self.prune()
        self.assertEqual(self.phases(), [ARCHIVED, ARCHIVED])
        self.assertOutcome(refund("1"), "COMMITTED")
        for effect_id in ids:
            self.assertArchived(effect_id)

    def test_what_remains_still_has_its_proofs_and_so_has_what_comes(self) -> None:
        self.keys_there()
        witness = self.witness()
        self.sign(witnesses=self.policy(witness))
        refund = self.refund()
        old = [refund(str(number)) for number in range(5)]
        self.gate.records.flush()
        self.clock.advance(31 * DAY_S)
        kept = refund("kept")
        self.gate.records.flush()
        self.prune()
        self.assertEqual(self.phases(), [ARCHIVED] * 5 + ["committed"])
        later = refund("later")
        self.assertEqual(self.gate.records.flush(), {}, "the witness is shown that the log is the same, and longer")
        policy = self.policy(witness)
        for outcome in (kept, later):
            self.assertWord(Word.WITNESSED, outcome, policy)
        for outcome in old:
            report = verify(archives.receipt(self.archive, outcome.effect_id), policy)
            self.assertEqual((report.word, report.failed), (Word.WITNESSED, ()), str(report))
        self.gate.close()
        self.sign(witnesses=policy)
        self.assertWord(Word.WITNESSED, kept, policy)

    def test_budgets_count_on_unless_the_user_says_otherwise(self) -> None:
        self.sign()
        refund = self.refund(budget=lambda case, amount: Budget("year", amount=amount, limit=5000))
        refund("1")
        self.clock.advance(31 * DAY_S)
        self.prune()
        self.assertEqual(self.gate.budget("year").used, 2000)
        refund("2")
        self.assertOutcome(refund("3"), "REFUSED:over_budget")
        self.clock.advance(31 * DAY_S)
        report = self.prune(free_budgets=True)
        self.assertEqual(report.archived.total(), 2)
        self.assertEqual(self.gate.budget("year").used, 2000, "what was archived before stays taken")
        receipts = archives.receipt(self.archive, refund("2").effect_id)
        self.assertEqual(verify(receipts, self.policy()).failed, ())
        self.assertOutcome(refund("4"), "COMMITTED")

    def test_keys_are_known_as_long_as_the_user_says(self) -> None:
        self.sign()
        refund = self.refund()
        first = refund("1")
        self.clock.advance(40 * DAY_S)
        refund("2")
        self.clock.advance(40 * DAY_S)
        self.assertEqual(self.prune(keep_keys=timedelta(days=365)).forgotten, 0)
        self.assertEqual(refund("1"), first)
        dry = self.prune(keep_keys=timedelta(days=60), dry_run=True)
        self.assertEqual((dry.forgotten, self.prune(keep_keys=timedelta(days=60)).forgotten), (1, 1))
        self.assertEqual(len(self.service.requests), 2)
        self.assertOutcome(refund("2"), "COMMITTED")
        self.assertOutcome(refund("1", amount=7), "COMMITTED")
        self.assertEqual(len(self.service.requests), 3, "it is not known any more, so it is a new request")
        self.gate.records.flush()
        self.assertWord(Word.LOGGED, refund("1", amount=7))


class Files(RetentionCase):
    """What is in the archive, and when nothing is pruned."""

    def test_an_answer_that_comes_after_the_archive_is_not_swallowed(self) -> None:
        """Somebody else settles and archives an effect while its send is on its way, without asking for its sender."""

        def late(request: Any) -> str:
            journal = self.gate.journal
            (row,) = journal.effects()
            self.append_elsewhere(row.effect_id, (Kind.COMMITTED, {"evidence": "re", "by_us": "yes", "via": "lookup"}))
            journal.archive([Tombstone(row.position, 4, 0, None, '{"archive":"elsewhere","payload_digest":""}')])
            return "re"

        self.service.script = [late]
        with self.assertRaisesRegex(NotRecorded, "was moved to the archive elsewhere"):
            self.refund()("1")

    def test_a_clock_that_was_wrong_once_keeps_nothing_else(self) -> None:
        refund = self.refund()
        self.clock.advance(3650 * DAY_S)
        refund("of the future")
        self.clock.advance(-3650 * DAY_S)
        refund("old")
        self.clock.advance(31 * DAY_S)
        self.prune()
        self.assertEqual(self.phases(), ["committed", ARCHIVED])

    def test_what_cannot_be_archived_stays_and_the_others_go(self) -> None:
        self.sign()
        refund = self.refund()
        changed, good = refund("changed"), refund("good")
        raw = sqlite3.connect(self.path)
        raw.execute("INSERT INTO log_facts VALUES ('erasing', 'yes')")
        raw.execute("UPDATE entries SET body = replace(body, '2000', '9') WHERE effect_id = ?", (changed.effect_id,))
        raw.execute("DELETE FROM log_facts WHERE name = 'erasing'")
        raw.commit()
        raw.close()
        self.clock.advance(31 * DAY_S)
        report = self.prune()
        self.assertIn("not what its record was signed over", report.failed[changed.effect_id])
        self.assertEqual((report.archived.total(), self.phases()), (1, ["committed", ARCHIVED]))
        self.assertArchived(good.effect_id)

    def test_what_somebody_is_still_sending_stays(self) -> None:
        self.sign()
        story = Story(self.gate.journal).append(*TO_DISPATCHED).append(Kind.UNKNOWN)
        story.dispatch()
        story.append(Kind.COMMITTED, send=1)
        self.clock.advance(31 * DAY_S)
        self.assertEqual(dict(self.prune().kept), {"sending": 1})
        assert story.slot is not None
        story.slot.give_up()
        self.assertEqual(self.prune().archived.total(), 1)

    def test_private_values_are_in_the_archive_and_not_in_the_journal(self) -> None:
        self.sign()
        outcome = self.refund(private=("payload.case",), key=lambda case: "1")("secret-case")
        self.clock.advance(31 * DAY_S)
        self.prune()
        hidden = archives.receipt(self.archive, outcome.effect_id)
        self.assertNotIn(b"secret-case", hidden)
        shown = archives.receipt(self.archive, outcome.effect_id, ["payload.case"])
        self.assertIn(b"secret-case", shown)
        for content in (hidden, shown):
            self.assertEqual(verify(content, self.policy()).exit_code, 0)
        with self.assertRaisesRegex(NotDecidable, "payload.case"):
            archives.receipt(self.archive, outcome.effect_id, ["payload.amount"])
        self.assertIsNone(self.gate.journal.records.secret(outcome.effect_id))

    def test_an_archive_that_does_not_hold_what_was_written_takes_nothing_away(self) -> None:
        self.sign()
        refund = self.refund()
        refund("1")
        self.clock.advance(31 * DAY_S)
        fsync = os.fsync

        def lying(fd: int) -> None:
            """A disk that forgets the middle of a file."""
            if Path(f"/proc/self/fd/{fd}").readlink().suffix == ".partial":
                os.pwrite(fd, b"\0" * 10, 50)
            fsync(fd)

        os.fsync = lying
        try:
            with self.assertRaisesRegex(ArchiveUnusable, "nothing was removed"):
                self.prune()
        finally:
            os.fsync = fsync
        self.assertEqual((self.phases(), self.finished_files()), (["committed"], []))
        (self.folder / "file").write_text("")
        with self.assertRaisesRegex(ArchiveUnusable, "nothing was removed"):
            prune(self.gate, timedelta(days=30), self.folder / "file")
        self.prune()
        self.assertEqual(self.phases(), [ARCHIVED])

    def test_an_instant_that_makes_no_sense_is_refused(self) -> None:
        for when in (timedelta(days=-1), datetime(2020, 1, 1), datetime.now(timezone.utc) + timedelta(days=1), "90d"):
            with self.subTest(when=when), self.assertRaises(BadArguments):
                prune(self.gate, when, self.archive)  # type: ignore[arg-type]
        self.assertFalse(self.archive.exists())

    def test_a_signed_journal_is_pruned_with_its_keys_only(self) -> None:
        self.sign()
        self.refund()("1")
        self.clock.advance(31 * DAY_S)
        self.gate.close()
        with self.assertRaisesRegex(JournalUnusable, "signed"):
            prune(self.open(), timedelta(days=30), self.archive)

    def test_without_signing_receipts_are_kept_as_they_are(self) -> None:
        outcome = self.refund()("1")
        self.clock.advance(31 * DAY_S)
        before = verify(self.gate.receipt(outcome.effect_id), self.policy())
        self.prune()
        self.assertEqual(verify(archives.receipt(self.archive, outcome.effect_id), self.policy()).word, before.word)
        self.assertEqual(self.refund("other")("1").status, outcome.status)


def killed_here() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class KillCase(RetentionCase):
    """Steps of a prune at which it is killed, by a real SIGKILL."""

    def killed(self, arm: Callable[[Gate], None]) -> None:
        """Prune in a forked child that kills itself where ``arm`` says."""
        pid = os.fork()
        if pid == 0:
            try:
                gate = self.open(signing=self.keys)
                retention.AT_ONCE = 2
                arm(gate)
                prune(gate, timedelta(days=30), self.archive)
            finally:
                os._exit(99)
        _, status = os.waitpid(pid, 0)
        self.assertTrue(os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, f"it ended with {status}")

    def steps(self) -> dict[str, Callable[[Gate], None]]:
        def at(owner: Any, name: str, occurrence: int, after: bool) -> None:
            """Die right before or after the how-manieth call of a function."""
            function = getattr(owner, name)
            left = [occurrence]

            def dying(*args: Any, **kwargs: Any) -> Any:
                left[0] -= 1
                if left[0] == 0 and not after:
                    killed_here()
                result = function(*args, **kwargs)
                if left[0] == 0:
                    killed_here()
                return result

            setattr(owner, name, dying)

        def flushed(gate: Gate) -> None:
            """What was written so far is in the file when it dies, and the last line is cut off."""
            add = archives.Writer.add

            def cut(writer: Any, line: Any) -> None:
                add(writer, line)
                if line["request_key"] == "4":
                    writer._file.flush()
                    writer._file.truncate(writer._file.tell() - 100)
                    killed_here()

            archives.Writer.add = cut  # type: ignore[method-assign]

        return {
            "nothing read": lambda gate: at(gate.journal, "watched", 1, after=False),
            "half written": flushed,
            "before fsync": lambda gate: at(os, "fsync", 1, after=False),
            "after fsync": lambda gate: at(os, "fsync", 1, after=True),
            "before it has its name": lambda gate: at(Path, "rename", 1, after=False),
            "after it has its name": lambda gate: at(Path, "rename", 1, after=True),
            "before the first removal": lambda gate: at(gate.journal, "archive", 1, after=False),
            "after the first removal": lambda gate: at(gate.journal, "archive", 1, after=True),
            "before the last removal": lambda gate: at(gate.journal, "archive", 3, after=False),
            "after the last removal": lambda gate: at(gate.journal, "archive", 3, after=True),
            **self.more_steps(),
        }

    def more_steps(self) -> dict[str, Callable[[Gate], None]]:
        def arm(gate: Gate) -> None:
            """Die in the second transaction that archives, between two of its statements."""
            transactions: list[int] = []

            def look(statement: str) -> None:
                if statement == "BEGIN IMMEDIATE":
                    transactions.append(0)
                elif "SET kind = 'archived'" in statement:
                    transactions[-1] += 1  # counted anew for each step of a trigger
                    if transactions[-1] > 20 and sum(map(bool, transactions)) == 2:
                        killed_here()

            gate.journal._database.connections.cursor().connection.set_trace_callback(look)  # type: ignore[attr-defined]

        return {"amid the second removal": arm}


class Killed(KillCase):
    """Nothing is lost, nothing is sent again, and the next prune ends the same."""

    CASES = "123456"

    def test_killed_at_every_step(self) -> None:
        self.keys_there()
        gone = set()
        for step, arm in self.steps().items():
            with self.subTest(step=step):
                self.gate = self.open(signing=self.keys)
                name = f"test.{step}"
                refund = self.refund(name)
                outcomes = [refund(case) for case in self.CASES]
                sent = len(self.service.requests)
                self.clock.advance(31 * DAY_S)
                self.gate.close()
                self.killed(arm)
                self.gate = self.open(signing=self.keys)
                refund = self.refund(name)
                for case, outcome in zip(self.CASES, outcomes, strict=True):
                    self.assertEqual(refund(case), outcome)
                    row = self.gate.journal.effect(outcome.effect_id)
                    assert row is not None
                    if row.phase == ARCHIVED:
                        gone.add(step)
                        self.assertArchived(outcome.effect_id)
                    else:
                        self.assertWord(Word.LOGGED, outcome)
                self.prune()
                self.assertEqual(set(self.phases()), {ARCHIVED})
                for case, outcome in zip(self.CASES, outcomes, strict=True):
                    self.assertEqual(refund(case), outcome)
                    self.assertArchived(outcome.effect_id)
                self.assertEqual(len(self.service.requests), sent)
                self.gate.close()
        expected = {"after the first removal", "before the last removal", "after the last removal"}
        self.assertEqual(gone, expected | self.more_steps().keys())


class KilledWhileWriting(KillCase):
    def test_a_file_without_its_name_is_not_part_of_the_archive(self) -> None:
        self.sign()
        outcome = self.refund()("4")
        self.gate.close()
        self.clock.advance(31 * DAY_S)
        self.killed(self.steps()["half written"])
        self.assertEqual([path.suffix for path in self.archive.iterdir()], [".partial"])
        with self.assertRaisesRegex(NotDecidable, "in no archive file"):
            archives.receipt(self.archive, outcome.effect_id)


class Amnesia(LossCase):
    """A backup that is restored has forgotten what came after it, pruned or not; a witness has not."""

    def sign(self, **options: Any) -> Any:
        self.keys_there()
        options.setdefault("signing", self.keys)
        return super().sign(**options)

    def save(self, copy: Path) -> None:
        """Back the journal up while it is in use, as the documentation says."""
        raw = sqlite3.connect(self.path)
        raw.execute("VACUUM INTO ?", (str(copy),))
        raw.close()

    def restored(self, between: Callable[[Any], Any]) -> Any:
        """Make a copy, do something, restore the copy, open it, and find that records are missing."""
        copy = self.folder / "backup"
        self.save(copy)
        self.gate.close()
        self.open_witnessed(self.witnessing)
        between(self.looked_up())
        self.gate.close()
        self.restore(copy)
        self.open_witnessed(self.witnessing)
        self.clock.advance(91)
        self.assertIsNotNone(self.gate.records.require_front().log.missing)  # type: ignore[union-attr]
        return self.looked_up()

    def begun(self) -> list[Any]:
        self.witnessing = self.begin()
        self.archive = self.folder / "archive"
        refund = self.looked_up()
        outcomes = [refund("old"), refund("older")]
        self.clock.advance(31 * DAY_S)
        return outcomes

    def prune(self) -> Pruned:
        return prune(self.gate, timedelta(days=30), self.archive)

    def test_a_backup_from_after_the_prune(self) -> None:
        outcomes = self.begun()
        self.prune()
        refund = self.restored(lambda effect: effect("lost"))
        sent = len(self.service.requests)
        with self.assertRaises(Exception) as raised:
            self.prune()
        self.assertEqual(type(raised.exception).__name__, "RecordsMissing")
        requests = [("test.refund", {"case": case}) for case in ("lost", "old", "older")]
        report = self.gate.reconcile(requests, by="dana")
        self.assertTrue(report.done, report.to_json())
        self.assertEqual((len(report.found), report.unreadable), (1, {}), "what is archived needs no lookup")
        self.assertEqual([refund("old"), refund("older")], outcomes)
        self.assertOutcome(refund("lost"), "COMMITTED")
        self.assertEqual(len(self.service.requests), sent)

    def test_a_backup_from_before_the_prune(self) -> None:
        outcomes = self.begun()
        self.restored(lambda effect: (effect("lost"), self.prune()))
        sent = len(self.service.requests)
        report = self.gate.reconcile([("test.refund", {"case": "lost"})], by="dana")
        self.assertTrue(report.done, report.to_json())
        self.assertEqual(len(self.prune().archived), 1)
        for outcome in outcomes:
            self.assertEqual(self.gate.outcome(outcome.effect_id), outcome)
            row = self.gate.journal.effect(outcome.effect_id)
            self.assertEqual(row and row.phase, ARCHIVED)
        self.assertEqual(len(self.service.requests), sent)
        names = [line["effect_id"] for file in self.archive.glob("*.jsonl") for line in archives.lines(file)]
        self.assertEqual(sorted(set(names)), sorted(outcome.effect_id for outcome in outcomes))


if __name__ == "__main__":
    unittest.main()
