"""Plays one cell: a world, an agent that dies, a world that moves, an agent that starts anew, and a verdict."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scenarios.sandbox import SandboxProcess
from scenarios.suite import judging
from scenarios.suite.live_base import LiveService
from scenarios.suite.model import AFTER_SEND, Arm, Fault, Scenario, Work, World
from scenarios.suite.process import AgentProcess, HarnessError, Life
from scenarios.suite.tampering import tampered

SETTLED_S = 60.0
"""How long a cell waits for requests that are still on their way."""


STOPPED_S = 6.0
"""How long a stopped process stays so where the other one does not end before: it may be waiting for it."""


@dataclass(frozen=True)
class Cell:
    """One run of one arm under one fault."""

    scenario: str
    arm: str
    fault: str
    repetition: int = 1

    @property
    def name(self) -> str:
        return f"{self.scenario}/{self.arm}/{self.fault}/{self.repetition}"

    @property
    def command(self) -> str:
        """The command that plays this cell again."""
        return (
            f"python scenarios/run.py --only {self.scenario} --arm {self.arm} --fault {self.fault} "
            f"--reps {self.repetition}"
        )


class Timeline:
    """What happened when, in seconds since the cell began."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.events: list[dict[str, Any]] = []

    def add(self, what: str, at: float | None = None, **fields: Any) -> float:
        moment = time.monotonic() if at is None else at
        self.events.append({"at_s": round(moment - self.began, 4), "what": what, **fields})
        return moment


def play(scenario: Scenario, cell: Cell, sandbox: SandboxProcess | LiveService, seed: int) -> dict[str, Any]:
    """Play a cell and return all that was measured, ready for JSON. Raises ``HarnessError``."""
    folder = Path(tempfile.mkdtemp(prefix="scenario-"))
    try:
        return _Run(scenario, cell, sandbox, seed, folder).result()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class _Run:
    def __init__(
        self, scenario: Scenario, cell: Cell, sandbox: SandboxProcess | LiveService, seed: int, folder: Path
    ) -> None:
        self.scenario = scenario
        self.cell = cell
        self.arm: Arm = scenario.arms[cell.arm]
        self.fault: Fault = scenario.faults[cell.fault]
        self.timeline = Timeline()
        self.lives: list[Life] = []
        self.processes: list[AgentProcess] = []
        self.others_requests = 0
        for control in sandbox.controls.values():
            control.reset()
        self.world = World(sandbox, folder, seed)
        if isinstance(sandbox, LiveService):
            sandbox.control.about(Work(scenario.key, cell.arm, cell.fault, "", str(folder), {}))
        self.work = scenario.setup(self.world, cell.fault)
        self.work = replace(self.work, arm=cell.arm)
        if isinstance(sandbox, LiveService):
            sandbox.control.about(self.work)
        journal = {"INTERLOCK_JOURNAL": str(folder / "journal.db")}
        self.environment = {**sandbox.environment, **journal, **self.world.environment}

    def result(self) -> dict[str, Any]:
        try:
            answers, death, restart = self._raced() if self.scenario.race else self._played()
        finally:
            for process in self.processes:
                process.end()
        self._settled()
        ledger = self.world.control.ledger()
        verdict = self.scenario.judge(ledger, self.work, self.fault)
        self.timeline.add("judged", held=verdict.held)
        answered = [(said, self.scenario.effects_of(ledger, said["work"], verdict)) for said in answers]
        dead = [pair for pair in answered if pair[0]["work"].worker == self.work.worker]  # all, but for races
        mine = dead[0][1]
        own = [said for said, _ in dead]
        record = judging.record_of(self.arm, self.work, own, self.environment["INTERLOCK_JOURNAL"])
        restarted = [said for said in own if said["work"].life > 1] or own
        last = max(restarted, key=lambda said: float(said["at"]))
        settle = float(last["at"]) - restart
        # Of several restarted ones one may wait for another, which waits because a rule asks for it.
        waiting = max(restarted, key=lambda said: judging.waited_by_rule_s(said["pauses"]))
        start = max(0.0, last["moments"]["loaded"] - restart)
        return {
            "cell": self.cell.name,
            "command": self.cell.command,
            "seed": self.world.seed,
            "ours": self.fault.ours,
            "held": verdict.held,
            "holds": verdict.holds,
            "effects": list(verdict.effects),
            "answer": judging.answer(answered),
            "answers": [f"{said['work'].worker}: {judging.answer([(said, held)])}" for said, held in answered],
            "final_state": judging.final_state(answered),
            "proof": judging.proof(record, self.scenario, mine),
            "tamper": tampered(record),
            "settle_s": round(settle, 3),
            "start_s": round(start, 3),
            "open_s": round(last["moments"]["ready"] - last["moments"]["acts"], 3),
            "waits": judging.waits(waiting["pauses"]),
            "waited_by_rule_s": min(round(settle, 3), judging.waited_by_rule_s(waiting["pauses"])),
            "outage_s": round(restart - death, 3),
            "raced": self._race(ledger, death),
            "notes": self.scenario.notes(ledger, self.work, self.fault),
            "attempts": self.world.control.count(*self.scenario.sends) - self.others_requests,
            "words": [answer["words"] for answer in answers],
            "exit_codes": [life.code for life in self.lives],
            "died_at": [life.died_at for life in self.lives if life.died_at],
            "timeline": self.timeline.events,
            "ledger": ledger,
            "record": record,
        }

    def _start(self, work: Work, die_at: str | None = None, how: str = "kill", **further: str) -> AgentProcess:
        environment = {**self.environment, "SCENARIO_AHEAD_S": str(self.world.ahead_s), **further}
        environment["INTERLOCK_SESSIONS"] = str(work.path / "sessions")
        process = AgentProcess(work, environment, die_at, how)
        self.processes.append(process)
        self.lives.append(process.life)
        self.timeline.add("agent started", life=work.life, worker=work.worker)
        return process

    def _played(self) -> tuple[list[Mapping[str, Any]], float, float]:
        """Play; return the answers, and when the first process died and the next was started."""
        fault, sends = self.fault, self.scenario.sends
        if fault.rule is not None:
            rule = {"body": self.scenario.sends_say, **fault.rule}
            self.world.control.fault(rule.pop("action"), *sends, **rule)
        again = replace(self.work, life=2)
        if fault.redecided:
            again = replace(again, arguments=self.scenario.other_arguments(self.work))
        works = [replace(again, life=2 + number) for number in range(fault.workers)]
        go, act = self.world.folder / "go", self.world.folder / "act"
        first = self._start(
            self.work, fault.die_at, fault.how, **{"SCENARIO_BARRIER": str(go)} if fault.at_once else {}
        )
        spares = [self._start(work, SCENARIO_STAND_BY=str(act)) for work in works] if fault.at_once else []
        self._wait_for("loaded", spares)
        go.touch()
        if fault.die_at is None:
            began = first.wait().event("ready")
            assert began is not None
            return [self._answer(first)], float(began["at"]), float(began["at"])
        if fault.how == "stop":
            first.wait_stopped()
            death = self.timeline.add("stopped")
        else:
            death = self.timeline.add("killed", first.wait().ended, point=fault.die_at)
        if fault.landed:
            self.world.control.received(1, *sends, stage="applied")
        before = self.world.control.count(*sends)
        self.scenario.outage(self.world, self.work, fault.outage)
        self.others_requests = self.world.control.count(*sends) - before
        act.touch()
        restart = self.timeline.add("restarted", outage=fault.outage)
        nexts = spares or [self._start(work) for work in works]
        if fault.how == "stop":
            nexts[0].has_ended(STOPPED_S)
            self.timeline.add("goes on")
            first.go_on()
            nexts.append(first)
        for process in nexts:
            process.wait()
        return [self._answer(process) for process in nexts], death, restart

    def _raced(self) -> tuple[list[Mapping[str, Any]], float, float]:
        """Several agents behind one barrier; the first to reach the crash point is killed and restarted at once.

        At once: beside each agent stands a process that has loaded its program, as
        a supervisor keeps one, and goes on when its agent has died.
        """
        token = self.world.folder / "first"
        go = self.world.folder / "go"
        race = {"SCENARIO_FIRST_DIES": str(self.fault.die_at), "SCENARIO_TOKEN": str(token)}
        self.environment = {**self.environment, **race, "SCENARIO_BARRIER": str(go)}
        works = {work.worker: work for work in self.scenario.agents(self.world, replace(self.work, arm=self.cell.arm))}
        agents = {name: self._start(work) for name, work in works.items()}
        calls = {name: self.world.folder / f"act-{name}" for name in works}
        spares = {
            name: self._start(replace(work, life=2), SCENARIO_STAND_BY=str(calls[name])) for name, work in works.items()
        }
        self._wait_for("ready", agents.values())
        self._wait_for("loaded", spares.values())
        slow = 0
        if self.fault.latency_s and not isinstance(self.world.sandbox, LiveService):
            slow = self.world.control.latency(self.fault.latency_s, *self.scenario.sends, times=len(works))
        self.timeline.add("go")
        go.touch()
        name = ""
        while not name:
            running = any(agent.is_running() for agent in agents.values())
            name = token.read_text(encoding="utf-8").partition(":")[0] if token.exists() else ""
            if not running and not name:
                raise HarnessError("no agent reached the crash point")
            time.sleep(0.002)
        dead = agents[name].wait_either()
        if dead.code == 0:
            raise HarnessError("the agent that was to die ended well")
        dead.died_at = self.fault.die_at
        death = self.timeline.add("killed", dead.ended, worker=name, point=self.fault.die_at)
        self.work = works[name]  # the record and the settling that are judged are those of the one that died
        if slow and self.fault.die_at == AFTER_SEND:
            self.world.control.clear_faults(slow)  # it has been carried out, and a repeat is answered at once
        calls[name].touch()
        self.timeline.add("restarted", worker=name)
        for other, spare in spares.items():
            if other != name:
                spare.end()
                self.lives.remove(spare.life)
        ended = [spares[name], *[agent for other, agent in agents.items() if other != name]]
        for agent in ended:
            agent.wait_either()
        acts = spares[name].life.event("acts")
        assert acts is not None
        self.timeline.add("acts", float(acts["at"]), worker=name)
        return [self._answer(agent) for agent in ended], death, death

    def _wait_for(self, event: str, agents: Iterable[AgentProcess]) -> None:
        """Wait until all of them have told of the event. Raises ``HarnessError`` if one ends or does not get there."""
        deadline = time.monotonic() + SETTLED_S
        for agent in agents:
            while agent.life.event(event) is None:
                if not agent.is_running():
                    agent.wait()  # says why it ended
                if time.monotonic() > deadline:
                    raise HarnessError(f"an agent did not get to {event}")
                time.sleep(0.002)

    def _race(self, ledger: Mapping[str, Any], death: float) -> dict[str, Any]:
        """When the restarted agent acted, and when the others' effects came, in seconds after the death."""
        if not self.scenario.race:
            return {}
        acted = next(event["at_s"] for event in self.timeline.events if event["what"] == "acts")
        died_at = death + time.time() - time.monotonic()
        others = self.scenario.raced(ledger, self.work, died_at)
        return {"acted_s": round(acted + self.timeline.began - death, 3), **others}

    def _answer(self, process: AgentProcess) -> Mapping[str, Any]:
        answer = process.life.event("answered")
        if answer is None:
            raise HarnessError("the agent ended well and said nothing")
        self.timeline.add("answered", float(answer["at"]), worker=process.work.worker, words=answer["words"])
        moments = {event["event"]: float(event["at"]) for event in process.life.told if event["event"] != "pause"}
        pauses = [event for event in process.life.told if event["event"] == "pause"]
        return {**answer, "work": process.work, "moments": moments, "pauses": pauses}

    def _settled(self) -> None:
        """Wait until nothing is on its way to the service any more."""
        deadline = time.monotonic() + SETTLED_S
        while self.world.control.held():
            if time.monotonic() > deadline:
                raise HarnessError("a request is held for ever")
            time.sleep(0.05)
