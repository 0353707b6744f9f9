"""The columns that all arms share. Everything here reads what was recorded and what the service held, and no more."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from scenarios.suite.model import Arm, Scenario, Verdict, Work


def claim_of(artifact: Mapping[str, Any]) -> str:
    """What an answer claims: ``landed``, ``not_landed`` or ``unknown``."""
    if "claim" in artifact:
        return str(artifact["claim"])
    existing = artifact.get("existing")
    if isinstance(existing, Mapping):  # "something else under this request": what it says of the request's own effect
        return claim_of(existing)
    status = {"COMMITTED": "landed", "REFUSED": "not_landed"}
    return status.get(str(artifact.get("status")), "unknown")


Answered = tuple[Mapping[str, Any], Verdict]
"""An answer, and what the service holds of the agent that gave it."""

SINCE = ("failed", "cancelled", "deleted", "reversed", "at_risk", "charged back")
"""Words of an answer that tells what became of an effect after it had landed."""


def answer(answered: Sequence[Answered]) -> str:
    """``matches``, ``contradicts``, or ``cannot know``, said so. The worst of several answers counts.

    "Landed" is not the whole truth about an effect that has failed or been
    reversed since: an answer that does not say so contradicts what the service holds.
    """
    each = [_answer(*one) for one in answered]
    if "contradicts" in each:
        return "contradicts"
    return "matches" if "matches" in each else "cannot know"


def _answer(said: Mapping[str, Any], verdict: Verdict) -> str:
    claim = claim_of(said["artifact"])
    truth = "landed" if verdict.effects else "not_landed"
    if claim == "unknown":
        return "cannot know"
    untold = claim == "landed" and verdict.failed and not _tells(said)
    return "matches" if claim == truth and not untold else "contradicts"


def _tells(said: Mapping[str, Any]) -> bool:
    words = str(said["words"]) + json.dumps(said["artifact"].get("settlement"))
    return any(word in words for word in SINCE)


def final_state(answered: Sequence[Answered]) -> str:
    """Whether the answers say what became of the effect since: ``told``, ``not told``, or ``-`` where nothing has."""
    since = [said for said, verdict in answered if verdict.failed or verdict.at_risk]
    if not since:
        return "-"
    return "told" if any(_tells(said) for said in since) else "not told"


def record_of(arm: Arm, work: Work, answers: Sequence[Mapping[str, Any]], journal: str) -> dict[str, Any]:
    """The record that an arm leaves: a hand-written one's log, a gated one's receipt, a workflow's steps."""
    if arm.kind == "interlock":
        return _receipt(work, answers, journal)
    if arm.kind == "peer":
        steps = next((list(answer["artifact"].get("steps", [])) for answer in answers), [])
        return {"kind": "steps" if steps else "none", "steps": steps}
    lines: list[dict[str, Any]] = []
    for path in sorted(work.path.glob("log-*.jsonl")):
        lines += [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {"kind": "log" if lines else "none", "steps": sorted(lines, key=lambda line: float(line["at"]))}


def _receipt(work: Work, answers: Sequence[Mapping[str, Any]], journal: str) -> dict[str, Any]:
    """The receipt as the application would mail it, its records read, and the public keys that were published."""
    from interlock_tools import Gate
    from interlock_tools.sealing import Keys

    names = [(answer["artifact"].get("existing") or answer["artifact"]).get("effect_id") for answer in answers]
    effect_id = next((name for name in names if name), None)
    if effect_id is None:
        return {"kind": "none", "steps": []}
    signing = work.path / "keys"
    gate = Gate(journal, signing=signing if signing.exists() else None)
    try:
        if not signing.exists():
            entries = gate.history(effect_id)
            return {"kind": "entries", "steps": [{**e.body, "kind": e.kind.value, "at_ms": e.at_ms} for e in entries]}
        receipt = gate.receipt(effect_id)
    finally:
        gate.close()
    policy = Keys.in_directory(signing).policy() + "quorum none\n"
    return {"kind": "receipt", "steps": _steps(receipt), "receipt": receipt, "policy": policy}


def _steps(receipt: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What a reader of the receipt sees: its records in order."""
    steps = []
    for record in receipt["records"]:
        predicate = json.loads(base64.b64decode(record["payload"]))["predicate"]
        steps.append({**predicate["body"], "kind": predicate["kind"], "at_ms": predicate["at_ms"]})
    return steps


def waits(pauses: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """What the gate paused for, in seconds by reason, as it told at each pause."""
    sums: dict[str, float] = {}
    for pause in pauses:
        sums[pause["why"]] = sums.get(pause["why"], 0.0) + float(pause["seconds"])
    return {why: round(seconds, 3) for why, seconds in sorted(sums.items())}


def waited_by_rule_s(pauses: Iterable[Mapping[str, Any]]) -> float:
    """How long it paused because a rule of recovery asked for it, in seconds; pauses before a retry are not counted."""
    return round(sum(seconds for why, seconds in waits(pauses).items() if why.startswith("rule ")), 3)


def proof(record: Mapping[str, Any], scenario: Scenario, verdict: Verdict) -> dict[str, Any]:
    """Whether the record, read alone, names who did what under which authority, which checks ran, and what came of it.

    It is read as JSON by the same code for every arm: who approved it and under
    which approval; each fact of the scenario with a value, after the decision
    as well as in it where something was sent or refused later; and the
    service's id of the effect if, and only if, there is one.
    """
    steps = record["steps"]
    text = json.dumps(steps, default=str)
    missing = [f"authority {name}" for name in scenario.authority if f'"{name}"' not in text]
    for name in scenario.premises:
        if not any(_has_value(step, name) for step in steps):
            missing.append(f"check {name}")
    named = [name for name in (*verdict.effects, *verdict.also) if name in text]
    if verdict.effects and not named:
        missing.append("the effect's id")
    if not verdict.effects and not _says_no(steps):
        missing.append("that nothing was done")
    return {"ok": not missing and bool(steps), "missing": missing}


def _has_value(step: Any, name: str) -> bool:
    if isinstance(step, Mapping):
        return name in step or any(_has_value(value, name) for value in step.values())
    return isinstance(step, list) and any(_has_value(value, name) for value in step)


def _says_no(steps: Sequence[Mapping[str, Any]]) -> bool:
    last = steps[-1] if steps else {}
    return last.get("claim") == "not_landed" or last.get("kind") == "refused"
