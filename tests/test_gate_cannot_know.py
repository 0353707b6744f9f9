"""A lookup that is answered, and whose answer settles nothing: a person decides, and a later answer is taken."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import CannotKnow
from interlock_tools.testing.crash import CrashPoint


class CannotKnowing(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.knows = False
        options: dict[str, Any] = {"lookup": self.find, "send_timeout": timedelta(seconds=90)}
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.refund(gate=gate, **options)("1"))
        self.effect = self.refund(**options)

    def find(self, idempotency_key: str) -> Any:
        if not self.knows:
            raise CannotKnow("the key was forgotten after a day")
        return self.service.find(idempotency_key)

    def test_it_waits_until_nothing_can_land_and_then_says_so(self) -> None:
        self.assertOutcome(self.gate.recover().outcomes[0], "IN_FLIGHT:waiting")
        self.clock.advance(91)
        outcome = self.gate.recover().outcomes[0]
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertIn("the key was forgotten after a day", outcome.message)
        self.assertEqual(self.service.created, [])
        self.assertOutcome(self.effect("1"), "AMBIGUOUS:no_evidence")
        self.assertOutcome(
            self.gate.resolve(outcome.effect_id, landed=False, by="eve", why="looked"), "REFUSED:rejected"
        )

    def test_a_later_lookup_finds_it(self) -> None:
        self.clock.advance(91)
        outcome = self.gate.recover().outcomes[0]
        self.clock.advance(91)
        outcome = self.gate.recover().outcomes[0]
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.service.create(outcome.effect_id, case="1")
        self.knows = True
        self.assertOutcome(self.gate.recover().outcomes[0], "COMMITTED")
