"""What a scenario is made of: arms, faults, a world to set up and to judge."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from langchain_core.tools import BaseTool

from scenarios.sandbox.client import ControlClient

SEND_TIMEOUT_S = 5.0
"""How late a request may land in these worlds; the sandboxes hold one for at most ``HOLD_S``."""

HOLD_S = 3.0
"""How long a service sits on a request in the ``in_flight`` cells."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a cell.

    Attributes:
        die_at: crash point at which the first process ends; None: it does not die.
        how: ``kill`` (SIGKILL) or ``stop`` (SIGSTOP; goes on after the second process has answered).
        landed: the request is carried out before anything else happens.
        outage: name of what happens to the world while nobody runs, for the scenario's ``outage``.
        rule: a rule for the sandbox, for the first send.
        workers: how many processes are started after the death.
        redecided: the restarted model asks for something else, see the scenario's ``other_arguments``.
        at_once: the next process has loaded its program beforehand, so that it looks while the service still works.
        latency_s: how long the service takes over the first send of each agent in a race; repeats are answered at once.
        wanted: how many effects the service must hold in the end.
        ours: a cell that goes beyond the reference scenarios.
    """

    die_at: str | None
    outage: str = "none"
    landed: bool = False
    how: str = "kill"
    rule: Mapping[str, Any] | None = None
    workers: int = 1
    redecided: bool = False
    at_once: bool = False
    latency_s: float = 0.0
    wanted: int = 1
    ours: bool = False


BEFORE_SEND = "before_mark"
"""The connection stands and not one byte has left: the same instant in every arm."""

AFTER_SEND = "after_response"
"""The service has answered and nothing of that is written down: the same instant in every arm."""

IN_FLIGHT = "in_flight"


def common_faults(wanted: int = 1) -> dict[str, Fault]:
    """The cells that make sense at every service and are not in the reference."""
    return {
        "in_flight": Fault(
            IN_FLIGHT,
            rule={"action": "hold", "seconds": HOLD_S, "executing": False},
            at_once=True,
            wanted=wanted,
            ours=True,
        ),
        "stopped": Fault(BEFORE_SEND, how="stop", at_once=True, wanted=wanted, ours=True),
        "two_restarts": Fault(
            IN_FLIGHT,
            rule={"action": "hold", "seconds": HOLD_S, "executing": False},
            workers=2,
            at_once=True,
            wanted=wanted,
            ours=True,
        ),
        "redecided": Fault(AFTER_SEND, landed=True, redecided=True, wanted=wanted, ours=True),
        "no_answer_500": Fault(None, rule={"action": "apply_then_status", "status": 500}, wanted=wanted, ours=True),
        "no_answer_cut": Fault(None, rule={"action": "apply_then_cut"}, wanted=wanted, ours=True),
    }


@dataclass(frozen=True)
class Arm:
    """One way to make the same tool.

    Attributes:
        make: makes the tool in the agent's process.
        kind: ``hand``, ``interlock`` or ``peer``.
        why: why it is written as it is; for hand-written arms, why that is idiomatic.
        faults: the faults that it is played with; None: all but those of ``left_out``.
        left_out: why it is not played with some faults, by name; the page says so.
        checkpointed: the agent has a LangGraph checkpointer, and a restarted one resumes its thread.
        loads: modules that it imports on first use, which an agent loads at its start, with the rest of its program.
    """

    make: Callable[[Work], BaseTool]
    kind: str
    why: str
    faults: tuple[str, ...] | None = None
    checkpointed: bool = False
    loads: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    def plays(self, fault: str) -> bool:
        """Whether it is played with this fault."""
        return fault not in self.left_out and (self.faults is None or fault in self.faults)


@dataclass
class Work:
    """What the agent's process is told. ``arguments`` are the tool call's; ``facts`` what else the case consists of."""

    scenario: str
    arm: str
    fault: str
    case: str
    folder: str
    arguments: dict[str, Any]
    facts: dict[str, Any] = field(default_factory=dict)
    worker: str = "1"
    life: int = 1

    @property
    def path(self) -> Path:
        return Path(self.folder)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Verdict:
    """What the service held in the end.

    Attributes:
        held: the scenario's invariant held.
        holds: the same in a few words, for people.
        effects: ids of the agent's effects at the service, as an answer or a record would name them.
        failed: an effect is there and has failed or been reversed since: an answer that it landed has to say so.
        at_risk: the effect stands, and something has happened since that its final state should tell of.
    """

    held: bool
    holds: str
    effects: tuple[str, ...]
    failed: bool = False
    at_risk: bool = False
    also: tuple[str, ...] = ()
    """Further names of the same effects, such as the idempotency key that the service keeps with them."""


class Scenario:
    """Subclass it once for each scenario. The parent process uses all of it, the agent's process ``arms`` alone."""

    key: ClassVar[str]
    title: ClassVar[str]
    invariant: ClassVar[str]
    services: ClassVar[tuple[str, ...]]
    options: ClassVar[Mapping[str, str]] = {}
    sends: ClassVar[tuple[str, str]]
    """Method and path (a regular expression) of the requests that are sends."""
    sends_say: ClassVar[str | None] = None
    """What the body of a send contains, where other requests go to the same place."""
    arms: ClassVar[Mapping[str, Arm]]
    faults: ClassVar[Mapping[str, Fault]]
    premises: ClassVar[tuple[str, ...]] = ()
    """Names of facts whose values a record has to give, so that it proves which checks ran."""
    authority: ClassVar[tuple[str, ...]] = ()
    """What names the approver and the approval in a record."""
    reference: ClassVar[Mapping[str, str]] = {}
    """What an earlier study measured against the live services: arm -> held, as text."""
    repetitions: ClassVar[int] = 1
    race: ClassVar[bool] = False
    """Several agents start together, and the first to reach the crash point dies; see ``agents``."""
    sandbox_only: ClassVar[tuple[str, ...]] = ()
    """Faults that nobody can bring about at the service itself."""
    live_needs: ClassVar[tuple[str, ...]] = ()
    """Environment variables without which the live service cannot be asked."""

    def repetitions_of(self, fault: str) -> int:
        """How often a cell of this fault is played, unless the command line says otherwise."""
        return self.repetitions

    def setup(self, world: World, fault: str) -> Work:
        """Make the world of one cell; return what the agent is told."""
        raise NotImplementedError

    def agents(self, world: World, work: Work) -> list[Work]:
        """What each of several agents is told, where they race."""
        return [work]

    def outage(self, world: World, work: Work, name: str) -> None:
        """Let the world move while nobody runs."""
        if name != "none":
            raise NotImplementedError(name)

    def other_arguments(self, work: Work) -> dict[str, Any]:
        """What the model asks for after a restart in the ``redecided`` cells."""
        return work.arguments

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        """Judge by the service's own ledger. Pure."""
        raise NotImplementedError

    def effects_of(self, ledger: Mapping[str, Any], work: Work, verdict: Verdict) -> Verdict:
        """The same verdict with the effects of one agent alone, where several race."""
        return verdict

    def raced(self, ledger: Mapping[str, Any], work: Work, died_at: float) -> dict[str, Any]:
        """Where several race: when the others' effects came, in seconds after the death of this agent. Pure."""
        return {}

    def notes(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> dict[str, Any]:
        """Whatever else is worth knowing about a cell. Pure."""
        return {}


@dataclass
class World:
    """The services of one cell, and the folder of the application on this host."""

    sandbox: Any
    """A ``SandboxProcess``, or what stands in its place at the service itself."""
    folder: Path
    seed: int
    environment: dict[str, str] = field(default_factory=dict)
    """What the agents find in their environment."""
    ahead_s: float = 0.0
    """How far the agent's machine has moved on in time, as the sandbox has."""

    def pass_time(self, seconds: float) -> None:
        """Time passes for the services and for the agent's machine."""
        for control in self.sandbox.controls.values():
            control.advance(seconds)
        self.ahead_s += seconds

    @property
    def control(self) -> ControlClient:
        found: ControlClient = self.sandbox.control
        return found

    def approve(self, case: str, **fields: Any) -> None:
        """Put an approval into the application's (very small) system of approvals."""
        import json

        (self.folder / "approvals.json").write_text(json.dumps({case: fields}), encoding="utf-8")
