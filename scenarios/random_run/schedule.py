"""One schedule: what happens next, drawn from the seed."""

from __future__ import annotations

import contextlib
import random
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from interlock_tools import NotDecidable, Outcome
from interlock_tools.recovery import Report, recover
from scenarios.random_run.checks import Checks, Violation, require
from scenarios.random_run.machine import AMOUNT, Machine, Process, Run
from scenarios.random_run.world import Declared, Flight, Lie, World

CASES = ("case-1", "case-2")
PATIENCE_S = 1e6
EVENTS = 200
"""Most random events of a schedule."""

END_STEPS = 20_000
"""Bound on the steps in which all must have come to an end."""

MEMORY = Path("/dev/shm")


class Schedule:
    """One schedule. ``run`` raises ``Violation`` if an invariant breaks; ``trace`` tells what happened."""

    def __init__(self, seed: int, lie: Lie | None = None) -> None:
        self.source = random.Random(seed)
        self.seed = seed
        self.trace: list[str] = []
        self.world = World(Declared.drawn(self.source), lie or Lie(), self.source)
        self.left = {
            "kill": self.source.randint(0, 6),
            "reboot": self.source.choice((0, 0, 1)),
            "move": self.source.choice((0, 0, 1, 3)),
            "start": self.source.randint(6, 24),
            "unreadable": self.source.choice((0, 0, 4)),
            "redecide": self.source.choice((0, 3)),
            "cancel": self.source.choice((0, 2)),
        }
        self.cases = self.source.choice((CASES[:1], CASES))
        self.hurry = self.source.choice((0.2, 1.0))
        """How much time passes."""
        self.delivery = self.source.choice((0.1, 0.4, 1.5))
        """How soon requests reach the service."""
        self.kinds: set[str] = set()
        """Words of the answers that were given, for the statistics."""

    def run(self) -> None:
        """Let it happen."""
        random.seed(self.seed)  # pauses between tries are drawn from the module's own source
        where = MEMORY if MEMORY.is_dir() else None
        directory = Path(tempfile.mkdtemp(prefix="interlock-random-", dir=where))
        self.machine = Machine(self.world, directory / "journal.db")
        self.checks = Checks(self.world, self.machine)
        self.say(f"contract {self.world.declared}")
        try:
            self._start_process()
            for _ in range(self.source.randint(40, EVENTS)):
                self._event()
            self._end()
        finally:
            for process in self.machine.processes:
                process.die()
                with contextlib.suppress(Exception):
                    process.gate.close()  # gives back what the dead one has open in this process
            shutil.rmtree(directory)

    def say(self, words: str) -> None:
        self.trace.append(f"{self.world.now:>7} {words}")

    # -- events ----------------------------------------------------------------------------------------

    def _event(self) -> None:
        """One thing happens."""
        choices: list[tuple[float, Callable[[], None]]] = [(self.hurry, self._clock_moves)]
        for run in self._runnable():
            choices.append((10.0 / (1 + len(self.machine.runs())), lambda run=run: self._step(run)))
        for run in self.machine.runs():
            if run.stage == "waiting":
                choices.append((0.4, lambda run=run: self._step(run)))
        for flight in self.world.flights:
            soon = self.delivery if flight.answer is None else 0.1
            choices.append((soon, lambda flight=flight: self._arrive(flight)))
            choices.append((0.1, lambda flight=flight: self._lost(flight)))
        busy = any(run.sending for run in self.machine.runs())
        for name, weight, event in (
            ("start", 0.4 if self.machine.runs() else 5.0, self._start_run),
            ("kill", 1.5 if busy else 0.03, self._kill),
            ("reboot", 0.1, self._reboot),
            ("move", 0.3, self._facts_move),
            ("unreadable", 0.2, self._readable),
            ("redecide", 0.2, self._redecide),
            ("cancel", 0.2, self._cancel),
        ):
            if self.left[name]:
                choices.append((weight, event))
        weights, events = zip(*choices, strict=True)
        self.source.choices(events, weights)[0]()
        self.checks.landed_once()
        if not self.machine.living():
            self._start_process()

    def _runnable(self) -> list[Run]:
        now = self.world.now
        return [
            run
            for run in self.machine.runs()
            if (run.stage != "asleep" or run.wake <= now) and (run.stage != "waiting" or run.answer is not None)
        ]

    def _step(self, run: Run) -> None:
        run.alone = run.alone and len(self.machine.runs()) == 1
        self.say(f"{run} {self.machine.step(run, self.checks.before_bytes)}")
        if run.stage == "over":
            self._told(run)

    def _told(self, run: Run) -> None:
        outcomes = list(run.outcome) if isinstance(run.outcome, Report) else [run.outcome]
        for outcome in outcomes:
            if not isinstance(outcome, Outcome):
                raise Violation(f"{run} raised {outcome!r}")
            self.kinds.add(str(outcome))
            self.checks.told(run, outcome)

    def _clock_moves(self) -> None:
        declared = self.world.declared
        window = max(0, declared.dedupes_ms)
        near = self.source.choice((declared.timeout_ms, declared.lag_ms, window, max(0, window - declared.timeout_ms)))
        step = self.source.choice((1, 1, 5, 5, 30, 200, near + self.source.randint(-40, 40), near + 1))
        until = self.world.now + max(1, step)
        self._last_moments(until)
        self.world.now = until
        half = declared.skew_ms // 2
        self.machine.clock.wall_off_ms = self.source.randint(-half, half)
        self.world.drop_old()
        self.say("the clock moves on")

    def _last_moments(self, until: int) -> None:
        """Of the requests that can land no more after ``until``, some land at their last moment."""
        for flight in sorted(self.world.flights, key=lambda flight: flight.sent):
            last = flight.sent + int(self.world.declared.timeout_ms * self.world.lie.timeout)
            if last < until and flight.answer is None and self.source.random() < 0.6:
                self.world.now = max(self.world.now, last)
                self.world.drop_old()
                if flight in self.world.flights:
                    self._arrive(flight)
                    self.checks.landed_once()

    def _arrive(self, flight: Flight) -> None:
        """A request reaches the service, again perhaps; its answer may be lost, or say nothing."""
        if not self.world.may_land(flight):
            return
        if self.world.declared.dedupes_ms and not flight.executing and self.source.random() < 0.2:
            self.world.begin(flight)
            self.say(f"request {flight.call.number} is being worked on")
            return
        trouble = (
            ""
            if flight.answer is not None
            else self.source.choices(
                ("", "decline", "fail", "busy", "stored_error"),
                (12, 1, 1, 1, 1 if self.world.declared.dedupes_ms else 0),
            )[0]
        )
        again = flight.answer is not None
        answer = self.world.deliver(flight, trouble)
        self.say(f"request {flight.call.number} reaches the service{' again' if again else ''}: {answer.status}")
        sender = flight.sender
        if sender.flight is flight and sender.stage == "waiting" and self.source.random() < 0.8:
            sender.answer = answer
        # A request is delivered again only where a promise covers that: not after it was turned away.
        if answer.status != 200 or not self.world.may_repeat() or self.source.random() < 0.7:
            self.world.flights.remove(flight)

    def _lost(self, flight: Flight) -> None:
        self.say(f"request {flight.call.number} is lost")
        self.world.drop(flight)

    def _start_process(self) -> Process:
        process = self.machine.boot_process()
        self.say(f"{process} starts")
        if self.source.random() < 0.7:
            self._recovers(process)
        return process

    def _recovers(self, process: Process) -> Run:
        wait_s = self.source.choice((0.0, PATIENCE_S))
        gate = process.gate
        flow = recover(gate.journal, gate._definitions, wait_s=wait_s, retry_s=gate.retry_s)
        return process.start(f"recover-{len(process.runs)}", flow)

    def _start_run(self) -> None:
        self.left["start"] -= 1
        living = self.machine.living()
        if len(living) < 2 and self.source.random() < 0.5:
            self._start_process()
            return
        process = self.source.choice(living)
        if self.source.random() < 0.2:
            self._recovers(process)
        else:
            self._calls(process, self.source.choice(self.cases), self.source.choice((0.0, PATIENCE_S)))

    def _calls(self, process: Process, case: str, wait_s: float) -> Run:
        amount = AMOUNT if self.source.random() < 0.9 else AMOUNT - 1
        request = process.effect.definition.request((), {"case": case, "amount": amount, "version": 1})
        flow = process.effect._flow(request, wait_s)
        if self.source.random() < 0.15:
            return process.start(f"propose-{case}-{len(process.runs)}", flow.propose(request, None, None), flow)
        return process.start(f"call-{case}-{len(process.runs)}", flow.call(request), flow)

    def _kill(self) -> None:
        self.left["kill"] -= 1
        process = self.source.choice(self.machine.living())
        self.say(f"{process} dies; it was at {[(run, run.stage) for run in process.runs if run.stage != 'over']}")
        process.die()

    def _reboot(self) -> None:
        self.left["reboot"] -= 1
        self.say("the machine is restarted")
        for process in self.machine.living():
            process.die()
        self.machine.clock.reboot()

    def _facts_move(self) -> None:
        self.left["move"] -= 1
        account = self.world.account(self.source.choice(self.cases))
        what = self.source.choice(("owner", "approval", "version"))
        if what == "owner":
            account.owner = "bob" if account.owner == "ann" else "ann"
        elif what == "approval":
            account.approval = None if account.approval else "approval-2"
        elif self.world.declared.enforces:
            account.version += 1
        self.say(f"{account.name}: owner {account.owner}, approval {account.approval}, version {account.version}")

    def _readable(self) -> None:
        self.left["unreadable"] -= 1
        account = self.world.account(self.source.choice(self.cases))
        account.readable = not account.readable
        self.say(f"{account.name} {'can' if account.readable else 'cannot'} be read")

    def _redecide(self) -> None:
        """A person decides again about something that was refused; mostly there is nothing to decide."""
        process = self.source.choice(self.machine.living())
        rows = [
            row for row in process.gate.journal.effects(0, 50) if row.phase in ("refused", "dispatched", "ambiguous")
        ]
        if not rows:
            return
        self.left["redecide"] -= 1
        row = self.source.choice(rows)
        process.current = Run(f"{process}.redecide", process, iter(()))  # type: ignore[arg-type]
        try:
            arguments = {
                "case": row.request_key,
                "amount": AMOUNT,
                "version": self.world.account(row.request_key).version,
            }
            told = process.effect.redecide(row.effect_id, by="a person", arguments=arguments)
        except NotDecidable:
            self.say(f"{row.effect_id[:6]} cannot be decided again")
            return
        require(row.phase == "refused", f"{row.effect_id[:6]} was {row.phase}, and was decided again")
        self.say(f"{row.effect_id[:6]} is decided again: {told.effect_id[:6]}")

    def _cancel(self) -> None:
        runs = [run for run in self.machine.runs() if run.canceller is not None]
        if runs:
            self.left["cancel"] -= 1
            run = self.source.choice(runs)
            run.canceller.cancel()
            self.say(f"{run} is cancelled")

    # -- the end -----------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Everything answers from now on: all must come to an end, and the last answers must agree with the service."""
        self.say("from here on everything answers")
        for account in map(self.world.account, self.cases):
            account.readable = True
        self._settle()
        process = self._start_process()
        first = self._finish(self._recovers_patiently(process))
        self.checks.budgets()
        for outcome in first:
            require(outcome.status.value != "IN_FLIGHT" or "decided" in (outcome.detail or ""), f"I10: {outcome}")
        for case in self.cases:
            once = self._finish(self._asks(process, case))[0]
            self.world.now += 10
            twice = self._finish(self._asks(process, case))[0]
            require(str(once) == str(twice), f"asked twice, {case} is {once} and then {twice}")
            require(once.status.value != "IN_FLIGHT", f"I10: {case} ends as {once}")
        self._settle()
        self.world.now += 10 * self.world.declared.timeout_ms
        self.world.drop_old()
        self._compare(process)

    def _compare(self, process: Process) -> None:
        """The journal and the service agree; a person settles what nobody could know."""
        for row in process.gate.journal.effects(0, 100):
            effects = [h for a in self.world.accounts.values() for h in a.effects if h.key == row.effect_id]
            require(row.phase not in ("dispatched", "authorized"), f"I10: {row.effect_id[:6]} is {row.phase}")
            if row.phase == "committed":
                require(len(effects) == 1, f"I8: {row.effect_id[:6]} is committed, the service holds {effects}")
            if row.phase in ("refused", "replaced"):
                require(not effects, f"I8: {row.effect_id[:6]} is {row.phase}, the service holds {effects}")
            if row.phase == "ambiguous":
                process.gate.resolve(row.effect_id, landed=bool(effects), by="a person", why="looked at the service")
        self.checks.budgets()

    def _recovers_patiently(self, process: Process) -> Run:
        gate = process.gate
        flow = recover(gate.journal, gate._definitions, wait_s=PATIENCE_S, retry_s=gate.retry_s)
        return process.start("recover-last", flow)

    def _asks(self, process: Process, case: str) -> Run:
        request = process.effect.definition.request((), {"case": case, "amount": AMOUNT, "version": 1})
        flow = process.effect._flow(request, PATIENCE_S)
        return process.start(f"ask-{case}-{len(process.runs)}", flow.call(request), flow)

    def _finish(self, run: Run) -> list[Any]:
        self._settle(run)
        return list(run.outcome) if isinstance(run.outcome, Report) else [run.outcome]

    def _settle(self, until: Run | None = None) -> None:
        """Let everything that runs go on, answered at once, until nothing runs (or ``until`` is over)."""
        for _ in range(END_STEPS):
            if until is not None and until.stage == "over":
                return
            runnable = self._runnable()
            flights = [flight for flight in self.world.flights if flight.answer is None]
            if flights and self.source.random() < 0.5:
                flight = self.source.choice(flights)
                answer = self.world.deliver(flight)
                self.say(f"request {flight.call.number} reaches the service: {answer.status}")
                self.world.flights.remove(flight)
                if flight.sender.flight is flight and flight.sender.stage == "waiting":
                    flight.sender.answer = answer
                self.checks.landed_once()
            elif runnable:
                self._step(self.source.choice(runnable))
            elif self.machine.runs():
                self._wait()
            elif not flights:
                return
        raise Violation(f"I10: no end within {END_STEPS} steps")

    def _wait(self) -> None:
        """Nothing can go on now: answers that were lost are given up, and time passes."""
        for run in self.machine.runs():
            if run.stage == "waiting" and run.flight not in self.world.flights:
                self._step(run)
                return
        self.world.now += 20
        self.world.drop_old()
