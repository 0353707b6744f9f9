"""What a decision rests on reaches the send and the lookup, and may decide what the service enforces."""

from __future__ import annotations

import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import Gate
from interlock_tools.testing.crash import CrashPoint


class DecidedFacts(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.version = 7
        self.seen: list[Any] = []

    def write(self, gate: Gate | None = None, **options: Any) -> Any:
        options.setdefault("enforces", lambda facts: ("version",) if facts["version"] else ())

        def find(idempotency_key: str, facts: dict[str, Any]) -> Any:
            self.seen.append(facts)
            return self.service.find(idempotency_key)

        @(gate or self.gate).effect(
            "test.write",
            key=lambda name: name,
            premises=lambda: {"version": self.version},
            lookup=find,
            send_timeout=timedelta(seconds=90),
            **options,
        )
        def write(name: str, *, idempotency_key: str, on_send: Any, facts: dict[str, Any]) -> Any:
            on_send()
            self.seen.append(facts)
            facts["version"] = "changed by the function"
            return self.service.create(idempotency_key, name=name)

        return write

    def test_the_send_and_the_lookup_are_given_them(self) -> None:
        self.service.script = [TimeoutError()]
        write = self.write(enforces=())
        self.assertOutcome(write("a"), "IN_FLIGHT:waiting")
        self.assertEqual([facts["version"] for facts in self.seen], ["changed by the function", 7])
        self.version = 8
        self.clock.advance(91)
        self.assertOutcome(write("a"), "REFUSED:stale_premise")
        self.assertEqual(self.seen[-1], {"version": 7})

    def test_what_is_enforced_may_depend_on_them(self) -> None:
        write = self.write()
        self.service.script = [TimeoutError()]
        self.assertOutcome(write("a"), "COMMITTED")
        self.assertEqual(len(self.service.requests), 2, "version 7 is enforced: sent again at once")
        self.version = 0
        self.service.script = [TimeoutError()]
        self.assertOutcome(write("b"), "IN_FLIGHT:waiting")
        self.assertEqual(len(self.service.requests), 3, "no version to enforce: looked up")

    def test_another_process_goes_by_the_decision(self) -> None:
        self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate: self.write(gate)("a"))
        self.write()
        self.assertOutcome(self.gate.recover().outcomes[0], "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)

    def test_a_function_that_fails_enforces_nothing(self) -> None:
        self.service.script = [TimeoutError()]
        self.assertOutcome(self.write(enforces=lambda facts: facts["missing"])("a"), "IN_FLIGHT:waiting")
