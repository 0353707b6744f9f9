"""Carries cells out, one after another: starts the workers, kills nothing itself, and writes down what happened.

``python -m scenarios.crash.lane SEED`` reads cell names, one a line, and prints one JSON line for each. A lane is one
thread, so that it may fork: a worker is a child process of its own that has the packages loaded already, or a new
interpreter with ``--exec``.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tenacity  # noqa: F401 (loaded here, so that no worker has to)

import interlock_tools.journal.sqlite  # noqa: F401 (likewise)
from interlock_tools.testing.crash import arm_from_environment
from scenarios.crash.cells import Cell
from scenarios.crash.contracts import SEND_TIMEOUT_S, Contract
from scenarios.crash.worker import Worker
from scenarios.sandbox import ControlClient, ControlError, SandboxProcess

WAIT_S = 8.0
"""How long a worker waits for what it may wait for."""

PROCESS_S = 40.0
"""Bound on the life of a worker."""

IMPATIENT_S = 0.2
STEPS = [["recover", 0.0], ["recover", WAIT_S], ["call", WAIT_S], ["history"]]


@dataclass
class Life:
    """One worker's life. ``fired``: what its crash point wrote; ``signal``: what it died of, 0 if by itself."""

    armed: str
    pid: int = 0
    signal: int = 0
    code: int = 0
    fired: str = ""
    told: list[dict[str, Any]] = field(default_factory=list)
    errors: str = ""

    @property
    def died(self) -> bool:
        return self.signal == signal.SIGKILL

    def answers(self) -> list[dict[str, Any]]:
        """The outcomes that it told, in order."""
        found: list[dict[str, Any]] = []
        for line in self.told:
            if line["step"] in ("call", "propose", "redecide") and "outcome" in line["told"]:
                found.append(line["told"])
            elif line["step"] == "recover":
                found.extend(line["told"])
        return found

    def history(self) -> dict[str, Any]:
        """The journal as it saw it last, or an empty one."""
        found = [line["told"] for line in self.told if line["step"] == "history"]
        return found[-1] if found else {"effects": [], "used": 0}


@dataclass
class Story:
    """What happened in one cell. ``counts``: requests that had arrived after each life."""

    lives: list[Life] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    account: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


class Stage:
    """One cell's surroundings: an account at the service, a journal, and workers on both."""

    def __init__(
        self,
        sandbox: SandboxProcess,
        cell: Cell,
        directory: Path,
        new_interpreter: bool = False,
        really: Contract | None = None,
    ) -> None:
        self.control: ControlClient = sandbox.control
        self.url = sandbox.url
        self.cell = cell
        self.directory = directory
        self.account = cell.account
        self.path = f"/a/{self.account}/do"
        self._exec = new_interpreter
        self._lives = 0
        terms = really if really is not None else cell.terms
        self.control.reset()
        self.control.action(
            "open",
            account=self.account,
            dedupes_s=terms.dedupes_s,
            enforces=terms.enforces,
            lag_s=terms.lag_s,
            timeout_s=SEND_TIMEOUT_S,
        )

    def change(self, **changes: Any) -> None:
        self.control.action("change", account=self.account, **changes)

    def fate(self, request: int, fate: str, lateness: float = 0.5) -> None:
        """Say what becomes of request number ``request``."""
        nth: dict[str, Any] = {"nth": request}
        if fate in ("late", "slow", "executing", "slow_executing"):
            seconds = lateness * SEND_TIMEOUT_S
            self.control.hold("POST", self.path, seconds, executing="executing" in fate, **nth)
        elif fate in ("never", "cut"):
            self.control.fault("cut_before", "POST", self.path, **nth)
        elif fate in ("stored_500", "applied_500"):
            self.control.fault("apply_then_status", "POST", self.path, stored=fate == "stored_500", **nth)
        elif fate == "applied_cut":
            self.control.fault("apply_then_cut", "POST", self.path, **nth)
        elif fate in ("fail", "declined", "busy"):
            assert request == 1
            self.change(next=[{"declined": "decline"}.get(fate, fate)])

    def start(self, steps: list[list[Any]], armed: str = "none", read_s: tuple[float, ...] = ()) -> Life:
        """Start a worker."""
        self._lives += 1
        out = self.directory / f"told-{self._lives}"
        fired = self.directory / f"fired-{self._lives}"
        setup = {
            "url": self.url,
            "account": self.account,
            "contract": self.cell.contract,
            "journal": str(self.directory / "journal.db"),
            "out": str(out),
            "steps": steps,
            "read_s": list(read_s),
        }
        environment = {"INTERLOCK_CRASH": "" if armed == "none" else armed, "INTERLOCK_CRASH_FILE": str(fired)}
        life = Life(armed)
        life.pid = os.fork()
        if life.pid == 0:
            _become_worker(setup, environment, self.directory / f"errors-{self._lives}", self._exec)
        life.told = []
        self._files(life, self._lives)
        return life

    def _files(self, life: Life, number: int) -> None:
        life.errors = str(self.directory / f"errors-{number}")
        life.fired = str(self.directory / f"fired-{number}")

    def end(self, life: Life) -> Life:
        """Wait for a worker's end and read what it left. Raises TimeoutError after ``PROCESS_S``."""
        fd = os.pidfd_open(life.pid)
        try:
            if not select.select([fd], [], [], PROCESS_S)[0]:
                os.kill(life.pid, signal.SIGKILL)
                os.waitpid(life.pid, 0)
                raise TimeoutError(f"worker {life.armed} did not end within {PROCESS_S} s")
        finally:
            os.close(fd)
        _, status = os.waitpid(life.pid, 0)
        life.signal = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        life.code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else 0
        out = Path(life.fired.replace("fired-", "told-"))
        life.told = [json.loads(line) for line in _text(out).splitlines()]
        life.fired = _text(Path(life.fired)).strip()
        life.errors = _text(Path(life.errors))[-2000:]
        return life

    def run(self, steps: list[list[Any]], armed: str = "none", read_s: tuple[float, ...] = ()) -> Life:
        """Start a worker and wait for its end."""
        return self.end(self.start(steps, armed, read_s))

    def arrived(self, count: int = 0) -> int:
        """How many requests for effects have arrived, having waited (bounded) for ``count``."""
        if count > 0:
            with contextlib.suppress(ControlError):
                self.control.received(count, "POST", self.path, timeout_s=5.0)
        return self.control.count("POST", self.path)

    def drain(self) -> None:
        """Wait until nothing is on its way any more."""
        deadline = time.monotonic() + 10
        while self.control.held() and time.monotonic() < deadline:
            time.sleep(0.02)

    def ledger(self) -> dict[str, Any]:
        return dict(self.control.action("show", account=self.account))


def _become_worker(setup: dict[str, Any], environment: dict[str, str], errors: Path, new_interpreter: bool) -> None:
    """In the child: run the worker and end. Never returns."""
    try:
        os.environ.update(environment)
        os.dup2(os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), 2)
        if new_interpreter:
            os.execv(sys.executable, [sys.executable, "-m", "scenarios.crash.worker", json.dumps(setup)])
        arm_from_environment()
        Worker(setup).run()
        os._exit(0)
    except BaseException:
        traceback.print_exc()
        os._exit(1)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def carry_out(
    sandbox: SandboxProcess,
    cell: Cell,
    seed: int,
    least: int,
    new_interpreter: bool = False,
    really: Contract | None = None,
) -> Story:
    """Let the cell happen.

    Args:
        sandbox: a generic service; it is reset.
        cell: which one.
        seed: for how late requests are.
        least: how many requests at least the first worker sends, to wait for them.
        new_interpreter: each worker is started from nothing.
        really: what the service does in truth, where that is not what the contract says.
    """
    story = Story()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interlock-cell-") as directory:
        stage = Stage(sandbox, cell, Path(directory), new_interpreter, really)
        for number, fate in enumerate(cell.fates, 1):
            stage.fate(number, fate, cell.lateness(number, seed))

        def live(steps: list[list[Any]], armed: str = "none", least: int = 0, hurry: bool = False) -> Life:
            life = stage.run(steps, armed, (IMPATIENT_S,) if hurry else ())
            story.lives.append(life)
            story.counts.append(stage.arrived(least))
            return life

        first = [["propose"]] if cell.first == "after_proposed" else [["call", WAIT_S]]
        live(first, cell.first, least, hurry=cell.fates[0].startswith("slow"))
        _world_moves(stage, {"moved_later": "hold", "moved_back": "moved"}.get(cell.facts, cell.facts))
        second = live(STEPS, cell.second)
        _world_moves(stage, {"moved_later": "moved", "moved_back": "back"}.get(cell.facts, "hold"))
        if second.died:
            live(STEPS)
        if cell.facts == "unreadable":
            stage.change(readable=True)
            live(STEPS)
        stage.drain()
        live([["call", 0.0], ["history"]])
        story.account = stage.ledger()
    story.seconds = time.monotonic() - began
    return story


def _world_moves(stage: Stage, what: str) -> None:
    if what == "moved":
        stage.change(owner="bob")
    elif what == "back":
        stage.change(owner="ann")
    elif what == "revoked":
        stage.change(approval=None)
    elif what == "unreadable":
        stage.change(readable=False)
    elif what == "bumped":
        stage.change(bump=1)


def main(arguments: list[str]) -> int:
    """Carry out the cells that come in on standard input."""
    from scenarios.crash.judge import try_cell
    from scenarios.crash.special import SPECIAL, try_special

    seed, new_interpreter = int(arguments[0]), "--exec" in arguments
    with SandboxProcess("generic") as sandbox:
        for line in sys.stdin:
            name = line.strip()
            try:
                if name.split("~")[0] in SPECIAL:
                    found = try_special(sandbox, name, seed, new_interpreter)
                else:
                    found = try_cell(sandbox, name, seed, new_interpreter)
            except Exception:
                found = {"cell": name, "problems": [f"the cell could not be carried out: {traceback.format_exc()}"]}
            if sandbox.printed():
                found["problems"].append(f"the sandbox reports a defect: {sandbox.printed()[-1000:]}")
            print(json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
