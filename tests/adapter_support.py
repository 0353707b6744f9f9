"""What the tests of the adapters share. A framework that is missing skips its tests by name; a full run fails."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import unittest
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from gate_support import GateCase

from interlock_tools.langchain import GatedTool, effect_tool
from interlock_tools.testing import CrashPoint

WORKER = Path(__file__).resolve().parent / "adapter_worker.py"

FULL = os.environ.get("INTERLOCK_ALL_ADAPTERS") == "1"
"""A full run: a framework that is missing is a failure."""


def needs(module: str, extra: str) -> Callable[[Any], Any]:
    """Skip a class of tests where a framework is not installed, saying which; fail in a full run."""
    try:
        found = find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if found:
        return lambda case: case
    words = f"{module} is not installed: pip install -e '.[{extra}]'"
    if not FULL:
        return unittest.skip(words)

    def failing(case: Any) -> Any:
        def test_it_is_installed(self: unittest.TestCase) -> None:
            self.fail(words)

        return type(case.__name__, (unittest.TestCase,), {"test_it_is_installed": test_it_is_installed})

    return failing


class AdapterCase(GateCase):
    """A gated tool with a service in this process."""

    def tool(self, **options: Any) -> GatedTool:
        service = self.service

        @self.gate.effect("test.refund", key=lambda request, **_: request, **options)
        def create_refund(request: str, payment: str, amount: int, note: str = "", *, idempotency_key: str) -> Any:
            """Refund an amount of a payment.

            Args:
                request: the approved request.
                payment: the payment's id.
                amount: cents.
                note: for the customer.
            """
            return service.create(idempotency_key, payment=payment, amount=amount, note=note)

        return effect_tool(create_refund)

    def assert_survives_a_kill(self, framework: str) -> None:
        """Kill a process right after the service has acted, and start it anew: it finds what was done."""

        def run(**more: str) -> subprocess.CompletedProcess[str]:
            command = [sys.executable, str(WORKER), framework, str(self.folder)]
            environment = {**os.environ, **more}
            return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)

        killed = run(INTERLOCK_CRASH=CrashPoint.AFTER_RESPONSE.value)
        self.assertEqual(killed.returncode, -signal.SIGKILL, killed.stderr)
        again = run()
        self.assertIn("Done: test.refund for request case-1 took effect", again.stdout, again.stderr)
        self.assertEqual(len((self.folder / "ledger").read_text().split()), 1)

    def sends(self) -> int:
        return len(self.service.requests)
