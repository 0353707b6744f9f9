"""The integration kit against a sandbox: its faults, its counts and its clock."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from interlock_tools.testing.integration_kit import Fault, IntegrationKit
from scenarios.sandbox import SandboxProcess


class SandboxKit(IntegrationKit):
    """One sandbox for a class, reset for each test."""

    service: ClassVar[str]
    options: ClassVar[dict[str, str]] = {}
    sends: ClassVar[tuple[str, str]]
    """Method and path (a regular expression) of the requests that are sends."""
    rate_limit: ClassVar[dict[str, Any]] = {"status": 429}
    """How the service says that a request came too soon."""
    sandbox: ClassVar[SandboxProcess]

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess(cls.service, options=cls.options).start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        super().setUp()
        self.control = self.sandbox.control
        self.control.reset()

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def inject(self, fault: Fault) -> None:
        rules: dict[Fault, dict[str, Any]] = {
            Fault.CUT_BEFORE: {"action": "cut_before"},
            Fault.CUT_AFTER: {"action": "apply_then_cut"},
            Fault.ERROR_AFTER: {"action": "apply_then_status", "status": 502},
            Fault.HOLD: {"action": "hold"},
            Fault.REPEATED: {"action": "hold", "seconds": 0, "applications": 2},
            Fault.RATE_LIMITED: {"action": "answer", **self.rate_limit},
        }
        rule = dict(rules[fault])
        self.control.fault(rule.pop("action"), *self.sends, **rule)

    def requests(self) -> int:
        return self.control.count(*self.sends)

    def quiet(self, count: int) -> None:
        self.control.received(count, *self.sends, stage="held")

    def release(self) -> None:
        self.control.release()

    def later(self, seconds: float) -> None:
        self.control.advance(seconds)
