"""The agent as a process of its own: armed to die or to stop at a crash point, heard, and confirmed dead."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scenarios.suite.model import Work

ROOT = Path(__file__).resolve().parents[2]
LONGEST_LIFE_S = 120.0


class HarnessError(Exception):
    """The cell was not played as it should have been; it has no result."""


@dataclass
class Life:
    """What is known of one process. Times are those of ``time.monotonic``."""

    pid: int
    started: float
    ended: float = 0.0
    code: int | None = None
    died_at: str | None = None
    told: list[dict[str, Any]] = field(default_factory=list)

    def event(self, name: str) -> dict[str, Any] | None:
        """The first event of this name."""
        return next((event for event in self.told if event["event"] == name), None)


class AgentProcess:
    """Started when it is made. ``die_at`` is a crash point; ``how`` is ``kill`` or ``stop``."""

    def __init__(
        self, work: Work, environment: Mapping[str, str], die_at: str | None = None, how: str = "kill"
    ) -> None:
        self.work = work
        self._armed = f"{die_at}:1:stop" if die_at and how == "stop" else die_at
        self._witness = work.path / f"died-{work.worker}-{work.life}"
        armed = {"INTERLOCK_CRASH": self._armed, "INTERLOCK_CRASH_FILE": str(self._witness)} if self._armed else {}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
        inherited.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled once, in every arm
        self._errors = work.path / f"stderr-{work.worker}-{work.life}.txt"
        with self._errors.open("ab") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "scenarios.suite.worker", json.dumps(work.to_json())],
                cwd=ROOT,
                env={**inherited, **environment, **armed},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
            )
        self.life = Life(self._process.pid, time.monotonic())
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as told:
            for line in told:
                self.life.told.append(json.loads(line))

    def wait(self, timeout_s: float = LONGEST_LIFE_S) -> Life:
        """Wait for its end. Raises ``HarnessError`` if that was not the one it was armed for."""
        try:
            self.life.code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise HarnessError(f"the agent was still running after {timeout_s:.0f} s: {self._said()}") from None
        self.life.ended = time.monotonic()
        self._listener.join(10)
        if self._armed and not self._armed.endswith(":stop"):
            if self.life.code != -signal.SIGKILL:
                raise HarnessError(f"the agent ended with {self.life.code}, not at {self._armed}: {self._said()}")
            if not self._witness.exists() or self._witness.read_text(encoding="utf-8").strip() != self._armed:
                raise HarnessError(f"the agent died of SIGKILL, but not at {self._armed}")
            self.life.died_at = self._armed
        elif self.life.code != 0:
            raise HarnessError(f"the agent ended with {self.life.code}: {self._said()}")
        return self.life

    def wait_either(self, timeout_s: float = LONGEST_LIFE_S) -> Life:
        """Wait for its end, by SIGKILL or well. Raises ``HarnessError`` for any other."""
        try:
            self.life.code = self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.end()
            raise HarnessError(f"the agent was still running after {timeout_s:.0f} s: {self._said()}") from None
        self.life.ended = time.monotonic()
        self._listener.join(10)
        if self.life.code not in (0, -signal.SIGKILL):
            raise HarnessError(f"the agent ended with {self.life.code}: {self._said()}")
        return self.life

    def wait_stopped(self, timeout_s: float = LONGEST_LIFE_S) -> None:
        """Wait until it has stopped itself. Raises ``HarnessError``."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise HarnessError(f"the agent ended with {self._process.returncode}, not stopped: {self._said()}")
            state = Path(f"/proc/{self.life.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
            if state == "T":
                return
            time.sleep(0.005)
        raise HarnessError(f"the agent did not stop at {self._armed}")

    def is_running(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def has_ended(self, timeout_s: float) -> bool:
        """Wait a while for its end; whether it came."""
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def go_on(self) -> None:
        """Let a stopped process go on."""
        os.kill(self.life.pid, signal.SIGCONT)

    def end(self) -> None:
        """End it, whatever it does."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _said(self) -> str:
        lines = self._errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1][:300] if lines else "it said nothing"
