"""Judges a cell: by the service's ledger, by what the processes died of, and by every answer that was given."""

from __future__ import annotations

from typing import Any

from scenarios.crash import oracle
from scenarios.crash.cells import Cell, parse
from scenarios.crash.lane import Life, Story, carry_out
from scenarios.crash.worker import AMOUNT
from scenarios.sandbox import SandboxProcess

SLOW_TRIES = 3
"""How often a cell is tried again whose requests were thrown away because the machine was too slow for them."""


def try_cell(sandbox: SandboxProcess, name: str, seed: int, new_interpreter: bool = False) -> dict[str, Any]:
    """Carry a cell out and judge it. Returns ``cell``, ``problems``, ``seconds``, ``deaths``, ``again``."""
    cell = parse(name)
    right = oracle.expected(cell)
    least = min((result.before for result in right if result.before != oracle.MANY), default=0)
    again = 0
    while True:
        story = carry_out(sandbox, cell, seed, least, new_interpreter)
        if not _too_slow(cell, story) or again == SLOW_TRIES:
            break
        again += 1
    problems = judge(cell, story, right)
    return {
        "cell": name,
        "problems": problems,
        "seconds": story.seconds,
        "deaths": sum(life.died for life in story.lives),
        "again": again,
        "trace": trace(story) if problems else "",
    }


def _too_slow(cell: Cell, story: Story) -> bool:
    """Whether a request was thrown away as too old that was not meant to be late."""
    delayed = ("late", "slow", "executing", "slow_executing")
    expired = [line for line in story.account["log"] if line["status"] == 504]
    numbers = sorted(line["number"] for line in story.account["log"])
    return any(cell.fate(numbers.index(line["number"]) + 1) not in delayed for line in expired)


def judge(cell: Cell, story: Story, right: set[oracle.Result]) -> list[str]:
    """What is wrong with the story; empty if all is right."""
    problems = [*_deaths(story), *answers_are_true(story.lives, story.account)]
    last = story.lives[-1].answers()
    if not last:
        return [*problems, "the last process told nothing"]
    final = last[-1]
    first, second = story.lives[0], story.lives[1]
    found = oracle.Result(
        final["status"],
        final.get("reason", ""),
        final.get("via", ""),
        len(story.account["effects"]),
        story.counts[-1],
        story.counts[0],
        first.died,
        second.died,
    )
    if not any(_same(found, result) for result in right):
        problems.append(f"expected one of {sorted(right)}, found {found}")
    if len(story.counts) > 1 and story.counts[-1] != story.counts[-2]:
        problems.append("asking again about a settled effect sent a request")
    problems.extend(_records(story, final))
    return problems


def _same(found: oracle.Result, right: oracle.Result) -> bool:
    requests = found.requests if right.requests == oracle.MANY else right.requests
    before = found.before if right.before == oracle.MANY else right.before
    return found == right._replace(requests=requests, before=before)


def _deaths(story: Story) -> list[str]:
    """Every process either died of SIGKILL at its armed point or ended by itself with success."""
    problems = []
    for number, life in enumerate(story.lives, 1):
        if life.died and life.fired != life.armed:
            problems.append(f"process {number} died elsewhere than at {life.armed} ({life.fired!r})")
        if not life.died and (life.signal or life.code):
            problems.append(f"process {number} ended with signal {life.signal}, code {life.code}: {life.errors}")
        if not life.died and life.fired:
            problems.append(f"process {number} outlived its crash point {life.fired}")
    return problems


def answers_are_true(lives: list[Life], account: dict[str, Any], others_live: bool = False) -> list[str]:
    """At most one effect, and no answer, at any time, that the ledger contradicts.

    ``others_live``: somebody else may be sending.
    """
    problems = []
    effects = account["effects"]
    if len(effects) > 1:
        problems.append(f"{len(effects)} effects")
    refused = False
    for life in lives:
        for answer in life.answers():
            word = answer["outcome"]
            if refused and word.startswith("COMMITTED"):
                problems.append("it was told REFUSED and later COMMITTED")
            if answer["status"] == "COMMITTED" and [held["id"] for held in effects] != [answer["result"].get("id")]:
                problems.append(f"told {answer['result']}, the service holds {effects}")
            if answer["status"] == "REFUSED" and answer["reason"] != "unreachable":
                refused = True
            if answer.get("reason") == "sending" and not others_live:
                problems.append("told that a dead process is sending")
    if refused and effects:
        problems.append(f"told REFUSED, the service holds {effects}")
    return problems


def _records(story: Story, final: dict[str, Any]) -> list[str]:
    """The journal tells the same story as the service: every request dispatched, its payload, its budget."""
    problems = []
    history = story.lives[-1].history()
    entries = [entry for effect in history["effects"] for entry in effect["entries"]]
    dispatched = sum(entry["kind"] == "dispatched" for entry in entries)
    if dispatched < story.counts[-1]:
        problems.append(f"{story.counts[-1]} requests, {dispatched} recorded before they were sent")
    for held in story.account["effects"]:
        if held["body"] != {"case": "case-1", "amount": AMOUNT} or held["key"] != final["effect_id"]:
            problems.append(f"the service holds something else: {held}")
    taken = AMOUNT if final["status"] != "REFUSED" and dispatched else 0
    if history["used"] != taken:
        problems.append(f"the budget holds {history['used']}, not {taken}")
    return problems


def trace(story: Story) -> str:
    """What happened, for people."""
    lines = []
    for number, life in enumerate(story.lives, 1):
        ended = f"died of signal {life.signal} at {life.fired}" if life.signal else f"ended with {life.code}"
        lines.append(f"process {number} (armed {life.armed}) {ended}; {story.counts[number - 1]} requests so far")
        lines.extend(f"    told {answer['outcome']} via {answer.get('via')}" for answer in life.answers())
        if life.errors:
            lines.append("    " + life.errors.strip().replace("\n", "\n    "))
    for effect in story.lives[-1].history()["effects"]:
        lines.append(f"effect {effect['effect_id']}: {effect['phase']}")
        lines.extend(f"    {entry['kind']} {_short(entry['body'])}" for entry in effect["entries"])
    lines.append(f"service: {story.account}")
    return "\n".join(lines)


def _short(body: dict[str, Any]) -> str:
    return " ".join(f"{key}={value}" for key, value in body.items() if key not in ("facts", "grant", "mark", "payload"))
