"""Plays one act: an agent that dies, a world that goes on, an agent that starts anew."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .acts import OUTAGES, POINTS, Act
from .judge import entries_of, verdict
from .process import Life, StoryError, live
from .world import Live, is_the_agents

Hear = Callable[[str], None]


@dataclass
class Result:
    """What became of one act."""

    act: Act
    wrong: list[str] = field(default_factory=list)
    holds: str = ""
    said: str = ""
    outcome: str = ""
    via: str = ""
    seconds: float | None = None
    entries: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "right": not self.wrong}


@dataclass
class Stage:
    """What all acts of a run have in common."""

    world: Live
    agent: Path
    folder: Path
    journal: str | None
    case: str
    """The approved request. A new one for each run: what a journal has seen done is not done again."""


def play(act: Act, stage: Stage, say: Hear) -> Result:
    """Play one act. What goes wrong is in the result; nothing is raised for it."""
    try:
        return _play(act, stage, say)
    except (StoryError, TimeoutError) as error:
        say(f"[red]{error}[/red]")
        return Result(act, [str(error)])


def _play(act: Act, stage: Stage, say: Hear) -> Result:
    world = stage.world
    folder = stage.folder / act.point
    folder.mkdir()
    journal = stage.journal or str(folder / "journal.db")
    approvals = folder / "approvals.json"
    approvals.write_text(json.dumps({stage.case: {"id": "APR-7", "by": "Dana", "max_amount": 2000}}), encoding="utf-8")
    payment = world.pay(act.outage)
    environment = {
        **world.environment,
        "INTERLOCK_JOURNAL": journal,
        "REFUND_APPROVALS": str(approvals),
        "REFUND_SEND_TIMEOUT_S": str(world.send_timeout_s),
    }
    if act.point == "after_proposed":
        environment["REFUND_PROPOSE_FIRST"] = "yes"
    program = stage.agent if act.gated else Path(__file__).with_name("without_gate.py")
    command = [str(program), *(["--as-agent"] if act.gated else []), stage.case, payment]

    say("agent started")
    for number, point in enumerate(act.deaths):
        dead = live(command, environment, folder, point, _narrator(say))
        say(f"[bold red]SIGKILL[/bold red] {point}: {POINTS[point]}")
        if number == 0:
            _meanwhile(act, world, payment, approvals, say)
        say("restarted")
    last = live(command, environment, folder, None, _narrator(say))
    return _result(act, world, payment, journal, dead, last, say)


def _meanwhile(act: Act, world: Live, payment: str, approvals: Path, say: Hear) -> None:
    """What happens while the agent is dead."""
    if act.landed:
        world.until_refunded(payment)
    if act.outage == "hand_refund":
        world.refund_by_hand(payment)
    elif act.outage == "approval_revoked":
        approvals.write_text(json.dumps({}), encoding="utf-8")
    elif act.outage == "chargeback":
        world.charge_back(payment)
    if act.outage != "none":
        say(f"[yellow]meanwhile {OUTAGES[act.outage]}[/yellow]")


def _narrator(say: Hear) -> Callable[[Any], None]:
    def hear(event: dict[str, Any]) -> None:
        how = f" by {event['via']}" if event.get("via") else ""
        if event["event"] == "recovered":
            say(f"recovered: [bold]{event['outcome']}[/bold]{how}")
        elif event["event"] == "answered":
            outcome = f"[bold]{event['outcome']}[/bold]{how}" if event["outcome"] else event["words"]
            say(f"answers: {outcome}")

    return hear


def _result(act: Act, world: Live, payment: str, journal: str, dead: Life, last: Life, say: Hear) -> Result:
    answer = last.answer
    if answer is None:
        raise StoryError("the agent ended well and said nothing")
    result = Result(act, said=answer["words"], outcome=answer["outcome"], via=answer.get("via", ""))
    settled = next((e for e in last.told if e["event"] == "answered" or e.get("status") != "IN_FLIGHT"), answer)
    result.seconds = settled["at"] - dead.ended
    is_open = False
    if answer["effect_id"]:
        result.entries, is_open = entries_of(journal, answer["effect_id"])
    result.holds = _holdings(world, payment)
    result.wrong = verdict(act, world, payment, answer, result.entries)
    if is_open:
        result.wrong.append("the journal still has it open")
    say("[bold red]" + "; ".join(result.wrong) + "[/bold red]" if result.wrong else "[green]right[/green]")
    return result


def _holdings(world: Live, payment: str) -> str:
    """What Stripe holds about a payment, in a few words."""
    parts = []
    for whose, refunds in (
        ("", [refund for refund in world.refunds(payment) if is_the_agents(refund)]),
        (" by hand", [refund for refund in world.refunds(payment) if not is_the_agents(refund)]),
    ):
        for refund in refunds:
            status = "" if refund["status"] == "succeeded" else f" ({refund['status']})"
            parts.append(f"-${refund['amount'] / 100:.2f}{whose}{status}")
    parts += ["chargeback" for dispute in world.disputes(payment) if not dispute["status"].startswith("warning")]
    return ", ".join(parts) or "nothing refunded"
