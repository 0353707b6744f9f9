"""Runs the agent as a process of its own, armed to die or not, and hears what it tells."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LONGEST_LIFE_S = 400.0


class StoryError(Exception):
    """The story did not go as it was written; the message says how."""


@dataclass
class Life:
    """One life of the agent. Times are those of ``time.monotonic``, which all processes of a machine share."""

    started: float
    ended: float = 0.0
    code: int = 0
    told: list[dict[str, Any]] = field(default_factory=list)

    @property
    def answer(self) -> dict[str, Any] | None:
        return next((event for event in self.told if event["event"] == "answered"), None)


def live(
    command: list[str], environment: Mapping[str, str], folder: Path, die_at: str | None, hear: Callable[[Any], None]
) -> Life:
    """Run one life and return when it has ended.

    Args:
        command: the agent's command line, after the interpreter.
        environment: what it finds in its environment, on top of this process's own.
        folder: for what it leaves behind.
        die_at: the crash point at which it kills itself with SIGKILL; None to live.
        hear: called with every event that it tells.

    Raises:
        StoryError: it did not end as it should have: by SIGKILL at that very point, or well.
    """
    witness = folder / f"died-{time.monotonic_ns()}"
    armed = {"INTERLOCK_CRASH": die_at, "INTERLOCK_CRASH_FILE": str(witness)} if die_at else {}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    errors = folder / "stderr.txt"
    life = Life(time.monotonic())
    with errors.open("ab") as stderr:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**inherited, **environment, **armed},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
        too_long = threading.Timer(LONGEST_LIFE_S, process.kill)
        too_long.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                event = json.loads(line)
                life.told.append(event)
                hear(event)
            life.code = process.wait()
        finally:
            too_long.cancel()
            if process.poll() is None:
                process.kill()
                process.wait()
    life.ended = time.monotonic()
    words = errors.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    last = words[-1] if words else "it said nothing"
    if die_at is None and life.code != 0:
        raise StoryError(f"the agent ended with {life.code}: {last}")
    if die_at is not None:
        if life.code != -signal.SIGKILL:
            raise StoryError(f"the agent should have died of SIGKILL at {die_at} and ended with {life.code}: {last}")
        if not witness.exists() or witness.read_text(encoding="utf-8").strip() != die_at:
            raise StoryError(f"the agent died of SIGKILL, but not at {die_at}")
    return life
