"""One machine: its clock, its processes, and the flows that they run, one step at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

from interlock_tools import (
    Budget,
    DefiniteNo,
    Gate,
    Grant,
    InProgress,
    PreconditionFailed,
    RateLimited,
    StoredError,
)
from interlock_tools.commands import Call, Sleep, Work
from interlock_tools.core.entries import Instant
from interlock_tools.journal import database as journal_database
from interlock_tools.journal.claims import Claim
from interlock_tools.journal.sqlite import SqliteJournal
from scenarios.random_run.world import Flight, World
from scenarios.sandbox.generic.model import Answer

AMOUNT = 20
LIMIT = 30
"""Cents that all cases together may take: room for one."""

EPOCH_MS = 1_800_000_000_000


class VirtualClock:
    """The machine's clocks. Each boot starts CLOCK_BOOTTIME anew; the wall clock is off by up to half the skew."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.boots = 1
        self._booted = -5_000
        self.wall_off_ms = 0

    def now(self) -> Instant:
        now = self._world.now
        return Instant(f"boot-{self.boots}", now - self._booted, EPOCH_MS + now + self.wall_off_ms)

    def reboot(self) -> None:
        self.boots += 1
        self._booted = self._world.now - 1_000


class Run:
    """One flow in one process, at rest between two of its steps.

    Attributes:
        stage: ``ready`` to go on, ``asked`` (it wants ``command``), ``asleep`` until ``wake``; or, of a send,
            ``called`` (not yet handed over), ``handed`` (no byte has left), ``waiting`` (for the answer); ``over``.
        seen: the facts that it has read since it last slept, and whether the approval was there.
        unreadable: something that it asked for could not be read.
        alone: nobody else has run at any of its steps.
    """

    def __init__(self, name: str, process: Process, flow: Generator[Any, Any, Any], canceller: Any = None) -> None:
        self.name = name
        self.process = process
        self.flow = flow
        self.canceller = canceller
        self.stage = "ready"
        self.command: Any = None
        self.result: Any = None
        self.error: BaseException | None = None
        self.wake = 0
        self.outcome: Any = None
        self.seen: dict[str, Any] = {}
        self.unreadable = False
        self.alone = True
        self.flight: Flight | None = None
        self.answer: Answer | None = None

    def __repr__(self) -> str:
        return self.name

    @property
    def sending(self) -> bool:
        return self.stage in ("called", "handed", "waiting")

    @property
    def key(self) -> str:
        return str(self.command.arguments["idempotency_key"]) if self.sending else ""


class ClaimsWithTheProcess(SqliteJournal):
    """Knows what its simulated process has taken up for recovery, so that it goes with that process."""

    def __init__(self, path: Path, clock: VirtualClock) -> None:
        super().__init__(path, clock)
        self.claims: list[Claim] = []

    def take_up(self, position: int) -> Claim | None:
        made = super().take_up(position)
        if made is not None:
            self.claims.append(made)
        return made


class Process:
    """A simulated process: its own connections, session and lock, as if nobody else were in this one."""

    def __init__(self, machine: Machine, number: int) -> None:
        self.machine = machine
        self.number = number
        self.alive = True
        self.runs: list[Run] = []
        self.gate = Gate(self._journal(machine.path, machine.clock))
        self.effect = machine.declare(self.gate, self)
        self.current: Run | None = None

    def __repr__(self) -> str:
        return f"P{self.number}"

    @staticmethod
    def _journal(path: Path, clock: VirtualClock) -> ClaimsWithTheProcess:
        """Open the journal without sharing it with the other simulated processes."""
        others = dict(journal_database._open)
        journal_database._open.clear()
        try:
            return ClaimsWithTheProcess(path, clock)
        finally:
            journal_database._open.clear()
            journal_database._open.update(others)

    def start(self, name: str, flow: Generator[Any, Any, Any], canceller: Any = None) -> Run:
        run = Run(f"{self}.{name}", self, flow, canceller)
        self.runs.append(run)
        return run

    def die(self) -> None:
        """End as a SIGKILL ends it: the kernel drops its locks, and nothing of it runs any more."""
        self.alive = False
        for claim in self.gate.journal.claims:  # type: ignore[attr-defined]
            claim.close()
        database = self.gate.journal._database  # type: ignore[attr-defined]
        for session in database._sessions.values():
            session.disown()  # closes its descriptor, and that was the only one
            session.pid = -1  # whatever Python tidies up later can no longer touch what the dead left behind
        database._sessions.clear()
        for run in self.runs:
            if run.stage != "over":
                run.stage = "dead"
                with contextlib.suppress(Exception):
                    run.flow.close()


class Machine:
    """The processes of one machine, and the one journal that they share."""

    def __init__(self, world: World, path: Path) -> None:
        self.world = world
        self.path = path
        self.clock = VirtualClock(world)
        self.processes: list[Process] = []
        self.numbers = 0

    def living(self) -> list[Process]:
        return [process for process in self.processes if process.alive]

    def runs(self) -> list[Run]:
        return [run for process in self.living() for run in process.runs if run.stage not in ("over", "dead")]

    def boot_process(self) -> Process:
        self.numbers += 1
        process = Process(self, self.numbers)
        self.processes.append(process)
        return process

    def declare(self, gate: Gate, process: Process) -> Any:
        """The effect under this schedule's contract."""
        world, declared = self.world, self.world.declared

        def current() -> Run:
            assert process.current is not None
            return process.current

        def readable(case: str) -> Any:
            account = world.account(case)
            if not account.readable:
                current().unreadable = True
                raise RuntimeError("status 503")
            return account

        def facts(case: str, idempotency_key: str) -> dict[str, Any]:
            found = readable(case).facts(None if declared.own_seen else idempotency_key)
            told = found if declared.enforces else {"owner": found["owner"]}
            current().seen["facts"] = dict(told)
            return told

        def approval(case: str) -> Grant | None:
            account = readable(case)
            current().seen["approval"] = account.approval
            return Grant(account.approval) if account.approval else None

        def find(case: str, idempotency_key: str) -> Any:
            lag_s = world.account(case).terms.lag_s * world.source.choice((0.0, 0.5, 1.0))
            held = readable(case).find(idempotency_key, world.seconds, lag_s)
            return {"id": held.id} if held is not None else None

        def send(case: str, amount: int, version: int, *, idempotency_key: str, on_send: Any) -> Any:
            raise AssertionError("sends are carried out by the schedule")

        def send_without_hook(case: str, amount: int, version: int, *, idempotency_key: str) -> Any:
            raise AssertionError("sends are carried out by the schedule")

        window = declared.dedupes_ms
        return gate.effect(
            "random.do",
            key=lambda case: case,
            premises=facts,
            expect=(lambda version: {"version": version}) if declared.enforces else None,
            allowed=approval,
            budget=lambda amount: Budget("all", amount, LIMIT),
            dedupes=True if window == -1 else timedelta(milliseconds=window) if window else None,
            enforces=("version",) if declared.enforces else (),
            never_true_again=("version",) if declared.final else (),
            lookup=find if declared.lookup else None,
            lookup_lag=timedelta(milliseconds=declared.lag_ms),
            send_timeout=timedelta(milliseconds=declared.timeout_ms),
            clock_skew=timedelta(milliseconds=declared.skew_ms),
            marks=declared.marks,
        )(send if declared.on_send else send_without_hook)

    # -- steps -------------------------------------------------------------------------------------------

    def step(self, run: Run, before_bytes: Callable[[Run], None]) -> str:
        """Let a run take one step. Returns what it did, in words. ``before_bytes`` is called right before a request."""
        run.process.current = run
        if run.stage in ("ready", "asleep"):
            return self._advance(run)
        if run.stage == "asked":
            return self._carry_out(run)
        if run.stage == "called":
            return self._hook(run)
        if run.stage == "handed":
            before_bytes(run)
            return self._bytes(run)
        return self._answered(run)

    def _advance(self, run: Run) -> str:
        error, result = run.error, run.result
        run.error = run.result = None
        try:
            command = run.flow.throw(error) if error is not None else run.flow.send(result)
        except StopIteration as stop:
            run.stage, run.outcome = "over", stop.value
            return f"ends: {stop.value}"
        except Exception as raised:
            run.stage, run.outcome = "over", raised
            return f"raises {raised!r}"
        run.command = command
        if isinstance(command, Sleep):
            run.stage, run.wake = "asleep", self.world.now + max(1, int(command.seconds * 1000 + 0.999))
            run.seen = {}
            return f"sleeps until {run.wake}"
        run.stage = "asked"
        return f"wants {_words(command)}"

    def _carry_out(self, run: Run) -> str:
        """Do what it asked for, in one instant; a send only begins here."""
        command = run.command
        if isinstance(command, Call) and command.function is run.process.effect.definition.function:
            run.stage = "called" if "on_send" in command.arguments else "handed"
            return "calls the send function"
        run.stage = "ready"
        try:
            if isinstance(command, Work):
                run.result = command.function(*command.arguments)
            else:
                run.result = command.function(**command.arguments)
        except Exception as raised:
            run.error = raised
            return f"{_words(command)} raises {raised!r}"
        return f"{_words(command)} done"

    def _hook(self, run: Run) -> str:
        try:
            run.command.arguments["on_send"]()
        except Exception as raised:
            run.stage, run.error = "ready", raised
            return f"on_send raises {raised!r}"
        run.stage = "handed"
        return "on_send"

    def _bytes(self, run: Run) -> str:
        arguments = run.command.arguments
        body = {"case": arguments["case"], "amount": arguments["amount"]}
        version = arguments["version"] if self.world.declared.enforces else None
        run.flight = self.world.hand_over(body["case"], arguments["idempotency_key"], body, version, run)
        run.stage, run.answer = "waiting", None
        if "on_send" in arguments and self.world.source.random() < 0.7:
            arguments["on_send"].written()
        return f"sends request {run.flight.call.number} under {run.key[:6]}"

    def _answered(self, run: Run) -> str:
        """The answer reaches it, or it gives up."""
        answer, run.answer, run.flight = run.answer, None, None
        run.stage = "ready"
        if answer is None:
            run.error = TimeoutError("no answer")
            return "gets no answer"
        try:
            run.result = _judge(answer)
        except Exception as raised:
            run.error = raised
        return f"gets {answer.status}{' again' if answer.replayed else ''}"


def _judge(answer: Answer) -> Any:
    """What the answer proves."""
    word = str(answer.body.get("error"))
    if answer.status == 200:
        return dict(answer.body)
    if answer.status == 402:
        raise DefiniteNo(word, stored=answer.replayed)
    if answer.status == 409:
        raise InProgress(word)
    if answer.status == 412:
        raise PreconditionFailed(word)
    if answer.status == 429:
        raise RateLimited(word)
    if answer.status == 500 and answer.replayed:
        raise StoredError(word)
    raise RuntimeError(f"status {answer.status}: {word}")


def _words(command: Any) -> str:
    if isinstance(command, Work):
        function = command.function.__name__
        if function != "append":
            return f"journal.{function}"
        kinds = [entry.kind.value for write in command.arguments[0] for entry in write.entries]
        return f"journal.append({', '.join(kinds)})"
    return f"{command.function.__name__}()"
