"""What tests of the integrations' tools share: a sandbox, a gate on a journal of its own, workers that are killed."""

from __future__ import annotations

import atexit
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import MEMORY, SetClock

from interlock_tools import Gate
from interlock_tools.core.entries import Kind
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.langchain import GatedTool
from interlock_tools.testing.crash import arm_from_environment
from scenarios.sandbox import SandboxProcess

_running: dict[str, SandboxProcess] = {}
WORKER = Path(__file__).resolve().parent / "tool_worker.py"


def sandbox_of(service: str) -> SandboxProcess:
    """The sandbox of a service that all tests of this process share. It ends with the process."""
    if service not in _running:
        _running[service] = SandboxProcess(service).start()
        atexit.register(_running[service].stop)
    return _running[service]


class ToolCase(unittest.TestCase):
    """One sandbox for all classes, reset for each test; a new journal for each test, with a clock to be moved."""

    service: ClassVar[str]
    sends: ClassVar[tuple[str, str]]
    """Method and path (a regular expression) of the requests that are sends."""
    sandbox: ClassVar[SandboxProcess]

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = sandbox_of(cls.service)

    def setUp(self) -> None:
        self.control = self.sandbox.control
        self.control.reset()
        folder = tempfile.TemporaryDirectory(prefix="tool-", dir=MEMORY if os.access(MEMORY, os.W_OK) else None)
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.clock = SetClock()
        self.gate = self.open_gate()

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def open_gate(self, name: str = "journal.db", **options: Any) -> Gate:
        options.setdefault("retry", 2.0)
        gate = Gate(SqliteJournal(self.folder / name, self.clock), **options)
        self.addCleanup(gate.close)
        return gate

    def later(self, seconds: float) -> None:
        """Time passes, for the service and for this machine."""
        self.control.advance(seconds)
        self.clock.advance(seconds)

    def call(self, tool: GatedTool, config: Any = None, **arguments: Any) -> ToolMessage:
        message = tool.invoke({"name": tool.name, "args": arguments, "id": "call_1", "type": "tool_call"}, config)
        self.assertIsInstance(message, ToolMessage)
        return message

    def assert_outcome(self, message: ToolMessage, outcome: str, via: str | None = None) -> None:
        self.assertEqual((message.artifact["outcome"], message.artifact.get("via")), (outcome, via), message.text)

    def count(self) -> int:
        """Requests on the wire that were sends."""
        return self.control.count(*self.sends)

    def dispatched(self, gate: Gate, effect_id: str) -> int:
        """Sends in a journal."""
        return sum(entry.kind is Kind.DISPATCHED for entry in gate.history(effect_id))

    def everything_written(self) -> bytes:
        return b"".join(path.read_bytes() for path in self.folder.rglob("*") if path.is_file())

    def fork_and_die(self, point: str, act: Callable[[Gate], Any]) -> None:
        """Run ``act`` in a forked child that kills itself at a crash point: quicker than a process from the start."""
        pid = os.fork()
        if pid == 0:
            try:
                os.environ["INTERLOCK_CRASH"] = point
                arm_from_environment()
                act(Gate(SqliteJournal(self.folder / "journal.db", self.clock)))
            finally:
                os._exit(99)
        _, status = os.waitpid(pid, 0)
        self.assertEqual(status, int(signal.SIGKILL), f"the child ended with {status}, not at {point}")

    # -- workers --------------------------------------------------------------------------------------------

    def die(self, *jobs: dict[str, Any]) -> None:
        """Run jobs (see ``job``), each in a process of its own; fail unless each is killed at its crash point."""
        command = [sys.executable, str(WORKER), self.service, self.sandbox.url]
        done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(json.loads(done.stdout), [int(signal.SIGKILL)] * len(jobs), done.stderr)

    def job(self, die_at: str, *calls: dict[str, Any], journal: str = "journal.db", **options: Any) -> dict[str, Any]:
        """One process: where it dies, and what it does until then."""
        return {"die_at": die_at, "journal": str(self.folder / journal), "options": options, "calls": calls}


def calls(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"do": "call", "arguments": arguments}


def proposes(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"do": "propose", "arguments": arguments}


RECOVERS = {"do": "recover"}
