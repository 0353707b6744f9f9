"""What became of an effect after the commit: looked at, recorded, told, and never decisive."""

from __future__ import annotations

import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import SetClock

from interlock_tools import Budget, Gate, Settlement
from interlock_tools.core.entries import Kind
from interlock_tools.core.states import fold
from interlock_tools.hooks import Notice, command_hook
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.watching import unknown_status

HOUR = timedelta(hours=1)


class WatchCase(unittest.TestCase):
    def setUp(self) -> None:
        import tempfile

        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.clock = SetClock()
        self.gate = self.open()
        self.becomes: dict[str, Any] = {}
        self.looks: list[str] = []
        self.effect = self.declare(self.gate)

    def open(self) -> Gate:
        gate = Gate(self.journal())
        self.addCleanup(gate.close)
        return gate

    def journal(self) -> Any:
        return SqliteJournal(self.folder / "j.db", self.clock)

    def declare(self, gate: Gate, **options: Any) -> Any:
        def watch(case: str, evidence: dict[str, Any]) -> Settlement:
            self.looks.append(case)
            assert evidence == {"id": f"re_{case}"}
            found = self.becomes.get(case, Settlement("settled", "succeeded"))
            if isinstance(found, Exception):
                raise found
            assert isinstance(found, Settlement)
            return found

        @gate.effect(
            "refund",
            key=lambda case: case,
            budget=lambda case, amount: Budget("all", amount=amount, limit=3000),
            **{"watch": watch, **options},
        )
        def refund(case: str, amount: int, *, idempotency_key: str) -> dict[str, Any]:
            return {"id": f"re_{case}"}

        return refund

    def kinds(self, effect_id: str) -> list[str]:
        return [entry.kind.value for entry in self.gate.history(effect_id)]


class Watching(WatchCase):
    def test_a_look_is_recorded_once_and_a_final_state_is_not_looked_at_again(self) -> None:
        outcome = self.effect("1", 1000)
        report = self.gate.watch()
        self.assertEqual((report.looked, [str(one) for one in report.changed]), (1, ["COMMITTED"]))
        self.assertEqual(self.kinds(outcome.effect_id)[-1], "settled")
        self.assertEqual(self.gate.watch().looked, 0)
        self.assertEqual(self.effect("1", 1000).settlement["state"], "settled")

    def test_what_is_pending_is_looked_at_later_and_written_down_only_when_it_changes(self) -> None:
        self.becomes["1"] = Settlement("pending", "in transit", look_again=HOUR)
        outcome = self.effect("1", 1000)
        self.gate.watch()
        self.assertEqual(self.gate.watch().looked, 0)
        self.clock.advance(3601)
        self.assertEqual((self.gate.watch().looked, self.kinds(outcome.effect_id).count("settled")), (1, 1))
        self.becomes["1"] = Settlement("settled", "succeeded")
        self.clock.advance(3601)
        self.gate.watch()
        self.assertEqual(self.kinds(outcome.effect_id).count("settled"), 2)
        self.assertIsNone(self.gate.watch().next_look_s)

    def test_a_failure_frees_its_budget_once_and_nothing_is_sent_again(self) -> None:
        outcome = self.effect("1", 2000)
        self.becomes["1"] = Settlement("failed", "charge_for_pending_refund_disputed", look_again=HOUR)
        told: list[Notice] = []
        self.gate.watch(hooks=[told.append])
        self.assertEqual((self.gate.journal.budget("all").used, [one.event for one in told]), (0, ["failed"]))
        self.clock.advance(3601)
        self.gate.watch(hooks=[told.append])
        kinds = self.kinds(outcome.effect_id)
        self.assertEqual((kinds.count("released"), kinds.count("dispatched"), len(told)), (1, 1, 1))
        self.assertEqual(self.gate.journal.budget("all").used, 0)
        again = self.effect("1", 2000)
        self.assertIn("Since then: failed (charge_for_pending_refund_disputed)", again.message)
        self.assertEqual((str(again), self.kinds(outcome.effect_id).count("dispatched")), ("COMMITTED", 1))

    def test_what_is_at_risk_says_over_how_much(self) -> None:
        self.effect("1", 2000)
        self.becomes["1"] = Settlement("at_risk", "du_1 needs_response", 12_000, "usd", HOUR)
        told: list[Notice] = []
        (changed,) = self.gate.watch(hooks=[told.append]).changed
        assert changed.settlement is not None
        self.assertEqual((changed.settlement["exposure"], changed.settlement["currency"]), (12_000, "usd"))
        self.assertIn("12000 usd", changed.message)
        self.assertEqual(self.gate.journal.budget("all").used, 2000)

    def test_a_status_that_is_not_known_is_held_and_told(self) -> None:
        self.becomes["1"] = unknown_status("frozen")
        self.effect("1", 1000)
        told: list[Notice] = []
        (changed,) = self.gate.watch(hooks=[told.append]).changed
        self.assertEqual((changed.settlement or {})["detail"], "unknown status: frozen")
        self.assertEqual([one.event for one in told], ["unknown_status"])
        self.clock.advance(3601)
        self.assertEqual((self.gate.watch(hooks=[told.append]).looked, len(told)), (1, 1))

    def test_a_service_that_does_not_answer_is_asked_again(self) -> None:
        self.becomes["1"] = ConnectionError("down")
        outcome = self.effect("1", 1000)
        report = self.gate.watch()
        self.assertIn("down", report.unreadable[outcome.effect_id])
        self.assertNotIn("settled", self.kinds(outcome.effect_id))
        self.becomes.clear()
        self.clock.advance(60)
        self.assertEqual(len(self.gate.watch().changed), 1)

    def test_a_hook_that_fails_is_told_again_and_harms_nothing(self) -> None:
        self.effect("1", 1000)
        self.becomes["1"] = Settlement("reversed", "by hand", look_again=HOUR)

        def broken(notice: Notice) -> None:
            raise RuntimeError("no")

        report = self.gate.watch(hooks=[broken])
        self.assertEqual((len(report.untold), len(report.changed)), (1, 1))
        self.clock.advance(60)
        told: list[Notice] = []
        self.gate.watch(hooks=[told.append])
        self.assertEqual([one.event for one in told], ["reversed"])
        self.clock.advance(7200)
        self.gate.watch(hooks=[told.append])
        self.assertEqual(len(told), 1)

    def test_a_command_is_told(self) -> None:
        self.effect("1", 1000)
        self.becomes["1"] = Settlement("failed", "declined")
        path = self.folder / "told.json"
        self.gate.watch(hooks=[command_hook([sys.executable, "-c", f"open({str(path)!r},'w').write(input())"])])
        self.assertIn('"event": "failed"', path.read_text())

    def test_a_pass_is_bounded_and_says_what_is_left(self) -> None:
        for number in range(3):
            self.effect(str(number), 1)
        report = self.gate.watch(limit=2)
        self.assertEqual((report.looked, report.left), (2, True))
        self.assertEqual((self.gate.watch().looked, self.gate.watch().left), (1, False))

    def test_workers_share_what_is_due(self) -> None:
        for number in range(40):
            self.effect(str(number), 1)
        gates = [self.gate, *(self.open() for _ in range(3))]
        for gate in gates[1:]:
            self.declare(gate)
        threads = [threading.Thread(target=gate.watch) for gate in gates]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(sorted(self.looks), sorted(str(number) for number in range(40)))

    def test_a_worker_that_dies_lets_go_after_a_while(self) -> None:
        self.effect("1", 1)
        now_ms = self.gate.journal.now().wall_ms
        self.assertEqual(len(self.gate.journal.claim_due("dead", now_ms, now_ms + 300_000)), 1)
        self.assertEqual(self.gate.watch().looked, 0)
        self.clock.advance(301)
        self.assertEqual(self.gate.watch().looked, 1)

    def test_what_nobody_declares_here_is_left_for_those_who_do(self) -> None:
        outcome = self.effect("1", 1)
        other = self.open()
        self.assertIn("not declared", other.watch().unreadable[outcome.effect_id])

    def test_one_effect_can_be_looked_at_at_any_time(self) -> None:
        outcome = self.effect("1", 1)
        self.gate.watch()
        self.becomes["1"] = Settlement("at_risk", "du_1", 5, "usd", HOUR)
        self.assertEqual((self.gate.look(outcome.effect_id).settlement or {})["state"], "at_risk")

    def test_many_are_asked_about_at_once(self) -> None:
        calls: list[int] = []

        def many(effects: list[Any]) -> dict[str, Settlement]:
            calls.append(len(effects))
            return {one.effect_id: Settlement("settled", one.evidence["id"]) for one in effects}

        gate = self.open()
        effect = self.declare(gate, watch_many=many)
        for number in range(550):
            effect(str(number), 1)
        self.assertEqual((gate.watch().looked, calls, self.looks), (550, [500, 50], []))

    def test_an_async_watch(self) -> None:
        async def watch(case: str, evidence: Any) -> Settlement:
            return Settlement("settled", "async")

        gate = self.open()
        self.declare(gate, watch=watch)("1", 1)
        self.assertEqual(len(gate.watch().changed), 1)

    def test_ambiguous_is_told(self) -> None:
        gate = self.open()

        @gate.effect("blind", key=lambda case: case, send_timeout=timedelta(seconds=1))
        def blind(case: str, *, idempotency_key: str) -> dict[str, Any]:
            raise ConnectionError("cut")

        outcome = blind("1")
        self.clock.advance(60)
        outcome = blind("1")
        self.assertEqual(outcome.status.value, "AMBIGUOUS", outcome.message)
        told: list[Notice] = []
        gate.watch(hooks=[told.append])
        gate.watch(hooks=[told.append])
        self.assertEqual([one.event for one in told], ["ambiguous"])


class Evidence(WatchCase):
    def test_i9_removing_every_settlement_changes_no_decision(self) -> None:
        for number, state in enumerate(("pending", "settled", "failed", "reversed", "at_risk")):
            case = str(number)
            self.becomes[case] = Settlement(state, "x", look_again=HOUR)  # type: ignore[arg-type]
            outcome = self.effect(case, 1)
            self.gate.watch()
            entries = self.gate.history(outcome.effect_id)
            without = [entry for entry in entries if entry.kind is not Kind.SETTLED]
            kept = fold(entries)
            bare = fold(
                [
                    entry._replace(seq=seq) if hasattr(entry, "_replace") else _numbered(entry, seq)
                    for seq, entry in enumerate(without, 1)
                ]
            )
            self.assertEqual(
                kept._replace(seq=0, settled=None), bare._replace(seq=0, settled=None), f"{state} decides something"
            )

    def test_a_settlement_is_checked(self) -> None:
        for bad in (
            {"state": "fine"},
            {"state": "at_risk", "exposure": 1.5},
            {"state": "pending", "look_again": timedelta(0)},
        ):
            with self.subTest(bad), self.assertRaises(ValueError):
                Settlement(**bad)  # type: ignore[arg-type]


def _numbered(entry: Any, seq: int) -> Any:
    from dataclasses import replace

    return replace(entry, seq=seq)


if __name__ == "__main__":
    unittest.main()
