"""Cells that are more than a death and a restart. They are named ``kind~contract~point``.

* ``stopped``: a sender that is stopped is alive: it is reported with who it is, never taken over, and goes on
* ``stopped_killed``: a sender that is stopped and then killed is dead
* ``stopped_long``: a sender that is stopped until its key may be forgotten does not send any more
* ``twice``: two processes are restarted at once
* ``conflict``: the restarted agent asks for something else under the same request
* ``redecided``: a refused request is decided again, with another amount, and that is killed, too
* ``redecided_early``: what may still have happened cannot be decided again
* ``no_answer``: the service answers nothing at all for a while
"""

from __future__ import annotations

import os
import random
import signal
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scenarios.crash import oracle
from scenarios.crash.cells import Cell
from scenarios.crash.contracts import CONTRACTS, SHORT_S
from scenarios.crash.judge import answers_are_true, trace
from scenarios.crash.lane import IMPATIENT_S, STEPS, WAIT_S, Life, Stage, Story
from scenarios.sandbox import SandboxProcess

OTHER = 1500
"""Cents of another decision."""

SENDING = ("after_dispatched", "before_mark", "before_bytes", "in_flight", "after_response")
Kind = Callable[[Stage, str], tuple[list[str], Story]]


def _story(stage: Stage, lives: list[Life]) -> Story:
    stage.drain()
    return Story(lives, [stage.arrived()] * len(lives), stage.ledger())


def _right(cell: Cell, story: Story, final: dict[str, Any], requests: int) -> list[str]:
    """Compare the last answer, effects and requests with the oracle's for this cell."""
    found = (final["status"], final.get("reason", ""), len(story.account["effects"]), requests)
    right = {(r.status, r.reason, r.effects, requests if r.requests < 0 else r.requests) for r in oracle.expected(cell)}
    return [] if found in right else [f"expected one of {sorted(right)}, found {found}"]


def _last(life: Life) -> dict[str, Any]:
    answers = life.answers()
    return answers[-1] if answers else {"status": "none", "outcome": "none"}


def _stop(stage: Stage, point: str) -> tuple[Life, list[str]]:
    """Start a worker that stops itself at ``point``, and wait until it has."""
    sender = stage.start([["call", WAIT_S]], f"{point}:1:stop")
    _, status = os.waitpid(sender.pid, os.WUNTRACED)
    stopped = os.WIFSTOPPED(status)
    return sender, [] if stopped else [f"the sender ended with {status} in place of stopping"]


def _wait_for_end(stage: Stage, sender: Life) -> Life:
    ended = stage.end(sender)
    ended.fired = ""  # it outlived the stop, as it should
    return ended


def stopped(stage: Stage, point: str) -> tuple[list[str], Story]:
    """A stopped sender is alive."""
    sender, problems = _stop(stage, point)
    if problems:
        return problems, Story()
    try:
        before = stage.arrived(1 if point in ("in_flight", "after_response") else 0)
        other = stage.run([["recover", 0.0], ["recover", 0.3], ["call", 0.0]])
        for answer in other.answers():
            holder = answer.get("holder") or {}
            if answer["outcome"] != "IN_FLIGHT:sending" or holder.get("pid") != sender.pid:
                problems.append(f"told {answer['outcome']}, held by {holder}, while process {sender.pid} is stopped")
        if len(other.answers()) != 3:
            problems.append(f"three answers were due, {len(other.answers())} came: {other.errors}")
        if stage.arrived() != before:
            problems.append("a request was sent while the sender was stopped")
    finally:
        os.kill(sender.pid, signal.SIGCONT)
    _wait_for_end(stage, sender)
    last = stage.run([["recover", 0.0], ["call", 0.0], ["history"]])
    story = _story(stage, [sender, last])
    for life in (sender, last):
        if _last(life)["outcome"] != "COMMITTED":
            problems.append(f"told {_last(life)['outcome']} after the sender went on: {life.errors}")
    if story.counts[-1] != 1:
        problems.append(f"{story.counts[-1]} requests")
    return [*problems, *answers_are_true(story.lives, story.account)], story


def stopped_killed(stage: Stage, point: str) -> tuple[list[str], Story]:
    """A stopped sender that is killed is dead."""
    sender, problems = _stop(stage, point)
    if problems:
        return problems, Story()
    os.kill(sender.pid, signal.SIGKILL)
    stage.end(sender)
    last = stage.run(STEPS)
    story = _story(stage, [sender, last])
    cell = Cell(stage.cell.contract, point, ("now", "now"), "hold")
    problems = _right(cell, story, _last(last), story.counts[-1])
    return [*problems, *answers_are_true(story.lives, story.account)], story


def stopped_long(stage: Stage, point: str) -> tuple[list[str], Story]:
    """A sender that relies on a key and was stopped until the service may have forgotten it does not send."""
    sender, problems = _stop(stage, point)
    if problems:
        return problems, Story()
    time.sleep(SHORT_S)
    os.kill(sender.pid, signal.SIGCONT)
    _wait_for_end(stage, sender)
    story = _story(stage, [sender])
    if _last(sender)["outcome"] != "REFUSED:unreachable" or story.counts[-1]:
        problems.append(f"told {_last(sender)['outcome']}, {story.counts[-1]} requests: {sender.errors}")
    return problems, story


def twice(stage: Stage, point: str) -> tuple[list[str], Story]:
    """Two processes are restarted at once: one of them settles it, and both say so."""
    first = stage.run([["call", WAIT_S]], point)
    stage.arrived(1 if point in ("in_flight", "after_response") else 0)
    both = [stage.start(STEPS), stage.start(STEPS)]
    for life in both:
        stage.end(life)
    last = stage.run([["call", 0.0], ["history"]])
    story = _story(stage, [first, *both, last])
    cell = Cell(stage.cell.contract, point, ("now", "now"), "hold")
    problems = _right(cell, story, _last(last), story.counts[-1])
    for life in both:
        if _last(life)["status"] != _last(last)["status"] or life.code:
            problems.append(
                f"one was told {_last(life)['outcome']}, in the end {_last(last)['outcome']}: {life.errors}"
            )
    return [*problems, *answers_are_true(story.lives, story.account, others_live=True)], story


def conflict(stage: Stage, point: str) -> tuple[list[str], Story]:
    """Another payload under the same request is refused and leads with what became of the recorded one."""
    first = stage.run([["call", WAIT_S]], point)
    stage.arrived(1 if point in ("in_flight", "after_response") else 0)
    last = stage.run([["amount", OTHER], ["call", WAIT_S], ["history"]])
    story = _story(stage, [first, last])
    answer = _last(last)
    existing = answer.get("existing") or answer
    cell = Cell(stage.cell.contract, point, ("now", "now"), "hold")
    problems = _right(cell, story, existing, story.counts[-1])
    if answer["outcome"] != "REFUSED:conflicting_payload" or not answer["message"].startswith(existing["message"]):
        problems.append(f"told {answer['outcome']}: {answer.get('message')}")
    if any(held["body"]["amount"] == OTHER for held in story.account["effects"]):
        problems.append("the other payload was sent")
    return problems, story


def redecided(stage: Stage, point: str) -> tuple[list[str], Story]:
    """A refused request is decided again; the new decision's sender is killed, too, and at most one lands."""
    first = stage.run([["call", WAIT_S]], "before_mark")
    stage.change(owner="bob")
    refused = stage.run([["recover", WAIT_S], ["call", 0.0], ["history"]])
    old = _last(refused)
    if old["outcome"] != "REFUSED:stale_premise":
        return [f"told {old['outcome']}: {refused.errors}"], _story(stage, [first, refused])
    second = stage.run([["redecide", old["effect_id"], OTHER], ["call", WAIT_S]], point)
    stage.arrived(1 if point in ("in_flight", "after_response") else 0)
    last = stage.run([["recover", WAIT_S], ["amount", OTHER], ["call", WAIT_S], ["history"]])
    story = _story(stage, [first, refused, second, last])
    cell = Cell(stage.cell.contract, point, ("now", "now"), "hold")
    problems = [] if second.died else [f"the second sender did not die at {point}: {second.errors}"]
    final = _last(last)
    problems += _right(cell, story, final, story.counts[-1])
    if final["effect_id"] == old["effect_id"]:
        problems.append("the new decision has the old one's effect id")
    for held in story.account["effects"]:
        if held["key"] != final["effect_id"] or held["body"]["amount"] != OTHER:
            problems.append(f"the service holds {held}")
    return problems, story


def redecided_early(stage: Stage, point: str) -> tuple[list[str], Story]:
    """What may have happened, and what has happened, cannot be decided again."""
    first = stage.run([["call", WAIT_S]], point)
    stage.arrived(1)
    stage.change(owner="bob")
    looked = stage.run([["recover", 0.0], ["call", 0.0]])
    effect = _last(looked).get("effect_id", "")
    last = stage.run([["redecide", effect, OTHER], ["call", 0.0], ["history"]])
    story = _story(stage, [first, looked, last])
    told = last.told[0]["told"]
    problems = [] if told.get("error") == "NotDecidable" else [f"deciding again was answered {told}: {last.errors}"]
    if story.counts[-1] != 1:
        problems.append(f"{story.counts[-1]} requests")
    return [*problems, *answers_are_true(story.lives, story.account)], story


def no_answer(stage: Stage, point: str) -> tuple[list[str], Story]:
    """Nothing is answered any more once the request is out; it never lands. Later the service is back."""
    base = f"/a/{stage.account}"
    for read in ("facts", "approval"):
        stage.control.fault("answer", "GET", f"{base}/{read}", status=503, nth=2, times=None)
    stage.control.fault("cut_before", "GET", f"{base}/find", times=None)
    stage.fate(1, "slow", 5.0)
    first = stage.run([["call", 0.3], ["recover", 0.0]], point, (IMPATIENT_S,))
    problems = []
    for answer in first.answers():
        if answer["outcome"] != "IN_FLIGHT:unreadable":
            problems.append(f"told {answer['outcome']} while nothing is answered")
    other = stage.run([["recover", 0.2], ["call", 0.2]])
    if [answer["outcome"] for answer in other.answers()] != ["IN_FLIGHT:unreadable"] * 2:
        problems.append(f"a second process told {[a['outcome'] for a in other.answers()]}: {other.errors}")
    if stage.arrived() != 1:
        problems.append(f"{stage.arrived()} requests while nothing could be read")
    stage.control.clear_faults()
    last = stage.run(STEPS)
    story = _story(stage, [first, other, last])
    cell = Cell(stage.cell.contract, "in_flight", ("never", "now"), "hold")
    problems += _right(cell, story, _last(last), story.counts[-1])
    return [*problems, *answers_are_true(story.lives, story.account)], story


SPECIAL: dict[str, tuple[Kind, tuple[str, ...]]] = {
    "stopped": (stopped, SENDING),
    "stopped_killed": (stopped_killed, SENDING),
    "stopped_long": (stopped_long, ("after_dispatched",)),
    "twice": (twice, SENDING),
    "conflict": (conflict, SENDING),
    "redecided": (redecided, SENDING),
    "redecided_early": (redecided_early, ("in_flight", "after_response")),
    "no_answer": (no_answer, ("none", "recovery_checked")),
}
"""Every kind, and the points that it is tried at."""


def special_names(full: bool, seed: int) -> list[str]:
    """All of them, or every contract and every point of each kind once (which with which: drawn from the seed)."""
    names = []
    source = random.Random(seed)
    for kind, (_, points) in SPECIAL.items():
        contracts = [name for name in CONTRACTS if _is_for(kind, name)]
        source.shuffle(contracts)
        for number, contract in enumerate(contracts):
            chosen = points if full or kind == "stopped_long" else (points[number % len(points)],)
            names.extend(f"{kind}~{contract}~{point}" for point in chosen)
    return names


def _is_for(kind: str, contract: str) -> bool:
    """Whether a kind is tried with a contract. Whether a stop outlasts a short window depends on the machine."""
    short = contract.startswith("dedupes_short")
    return short if kind == "stopped_long" else not (kind == "stopped" and short)


def try_special(sandbox: SandboxProcess, name: str, seed: int, new_interpreter: bool = False) -> dict[str, Any]:
    """Carry out and judge one special cell. Returns what ``judge.try_cell`` does."""
    kind, contract, point = name.split("~")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="interlock-cell-") as directory:
        stage = Stage(sandbox, Cell(contract, point, ("now",), "hold"), Path(directory), new_interpreter)
        problems, story = SPECIAL[kind][0](stage, point)
    return {
        "cell": name,
        "problems": problems,
        "seconds": time.monotonic() - began,
        "deaths": sum(life.died for life in story.lives),
        "again": 0,
        "trace": trace(story) if problems and story.lives else "",
    }
