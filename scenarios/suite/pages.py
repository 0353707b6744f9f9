"""The pages that people read. Every number on them comes from the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.suite.model import Scenario
from scenarios.suite.results import rows

STRONGEST = ("hand_lock", "hand_check", "hand_sql", "hand_check_noprobe", "no_check")
"""Hand-written arms, the strongest first, for the comparison of settling."""

SLOWER = 1.2
"""Interlock aims to settle within so many times what the strongest hand-written arm takes."""


def _table(head: list[str], body: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *body]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


def _held(row: Mapping[str, Any]) -> str:
    text = f"{row['held']}/{row['played']}"
    if row["played"] >= 10:
        text += f" ({row['low'] * 100:.0f}–{row['high'] * 100:.0f} %)"
    if row["errors"]:
        text += f", {row['errors']} not played"
    return text


def _seconds(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"


def of_scenario(scenario: Scenario, result: Mapping[str, Any]) -> str:
    """The page of one scenario."""
    found = rows(dict(result))
    order = {name: number for number, name in enumerate(scenario.faults)}
    arms = {name: number for number, name in enumerate(scenario.arms)}
    found.sort(key=lambda row: (order.get(row["fault"], 99), arms.get(row["arm"], 99)))
    body = [
        [
            row["fault"] + (" *" if row["ours"] else ""),
            row["arm"],
            _held(row),
            row["holds"],
            row["answer"],
            row["final"],
            f"{row['proof']}/{row['played']}",
            f"{row['tamper']}/{row['played']}",
            _seconds(row["settle_s"]),
            _seconds(row["waited_s"]),
            f"{row['attempts']:g}" if row["attempts"] is not None else "–",
        ]
        for row in found
    ]
    head = ["fault", "arm", "held", "the service holds", "answer", "final state", "proof", "tamper caught"]
    head += ["settle s", "of which by rule", "sends"]
    parts = [
        f"# {scenario.title}\n",
        f"{_doc(scenario)}\n",
        f"**Invariant.** {scenario.invariant}\n",
        (
            f"Measured {result['measured_at']} by `{result['command']}`; every cell, with timeline, ledger and record, "
            f"is in [{scenario.key}.json]({scenario.key}.json).\n"
        ),
        _table(head, body),
        (
            "`*`: a fault beyond the reference study. *Settle* is from the restart to the final answer, median; "
            "*by rule* is the part that interlock waited because a rule asked for it.\n"
        ),
        _reference(scenario, found),
        _notes(found),
        "## The arms\n",
        *[f"- **{name}**: {' '.join(arm.why.split())}" for name, arm in scenario.arms.items()],
        "",
    ]
    return "\n".join(part for part in parts if part is not None)


def _doc(scenario: Scenario) -> str:
    import sys

    return " ".join((sys.modules[type(scenario).__module__].__doc__ or "").split())


def _reference(scenario: Scenario, found: list[dict[str, Any]]) -> str | None:
    """Held here and in the reference study, over the same faults."""
    if not scenario.reference:
        return None
    body = []
    for arm, theirs in scenario.reference.items():
        mine = [row for row in found if row["arm"] == arm and not row["ours"]]
        body.append([arm, f"{sum(r['held'] for r in mine)}/{sum(r['played'] for r in mine)}", theirs])
    return "## Beside the reference study (held, its faults only)\n\n" + _table(["arm", "here", "reference"], body)


def _notes(found: list[dict[str, Any]]) -> str | None:
    """Further columns that a scenario has."""
    names = sorted({name for row in found for name in row["notes"]})
    if not names:
        return None
    body = [
        [row["fault"], row["arm"], *[_note(row, name) for name in names]]
        for row in found
        if row["arm"].startswith(("interlock", "hand"))
    ]
    return "## Further\n\n" + _table(["fault", "arm", *[name.replace("_", " ") for name in names]], body)


def _note(row: Mapping[str, Any], name: str) -> str:
    return f"{row['stranded']}/{row['played']}" if name == "stranded" else str(row["notes"].get(name, "–"))


def overview(found: Mapping[str, Mapping[str, Any]], folder: Path) -> str:
    """The front page: why not write the check oneself?"""
    body, waits, ratios = [], [], []
    for key, result in found.items():
        table = rows(dict(result))
        strongest = next((arm for arm in STRONGEST if any(row["arm"] == arm for row in table)), None)
        for fault in dict.fromkeys(row["fault"] for row in table):
            ours = next((row for row in table if (row["fault"], row["arm"]) == (fault, "interlock")), None)
            hand = _strongest(table, fault)
            if ours is None or hand is None or not ours["played"] or not hand["played"]:
                continue
            ratio = (ours["settle_s"] - ours["waited_s"]) / hand["settle_s"] if hand["settle_s"] else None
            if ratio is not None:
                ratios.append(ratio)
            if ours["waited_s"]:
                waits.append(f"{key} {fault}: {ours['waited_s']:.1f} s, {hand['arm']} then {_held(hand)} held")
            body.append([f"[{key}](scenarios/{key}.md)", fault, _judged(hand), _judged(ours), _verdict(hand, ours)])
        del strongest
    parts = [
        "# Results\n",
        (
            "Written by the programs that measured them. `python scenarios/run.py --all` plays everything again, "
            "`--report` makes these pages from what is there; [bench-gate.json](bench-gate.json) is the gate's own "
            "speed.\n"
        ),
        "## Why not write the check myself?\n",
        (
            "For each fault, the strongest hand-written tool beside interlock as shipped. *Held*: the service has in "
            "the end what it should. *Answer*: what the agent said agrees with the service.\n"
        ),
        _table(["scenario", "fault", "hand-written", "interlock", "so"], body),
        _settling(ratios),
        "Waits that a rule asked for, taken out above:\n\n" + "".join(f"- {wait}\n" for wait in waits) if waits else "",
    ]
    plots = [f"![{name}](scenarios/{name}.png)\n" for name in ("held", "settle", "unknown")]
    parts += [plot for plot in plots if (folder / "scenarios").is_dir()]
    return "\n".join(part for part in parts if part)


def _strongest(table: list[dict[str, Any]], fault: str) -> dict[str, Any] | None:
    for arm in STRONGEST:
        for row in table:
            if (row["fault"], row["arm"]) == (fault, arm):
                return row
    return None


def _judged(row: Mapping[str, Any]) -> str:
    return f"{row['arm']}: held {_held(row)}, {row['answer']}"


def _verdict(hand: Mapping[str, Any], ours: Mapping[str, Any]) -> str:
    if hand["held"] < hand["played"]:
        return "the check does not hold"
    if hand["contradicts"]:
        return "the check says what is not so"
    if hand["stranded"]:
        return "the check loses money of the cap"
    if "not told" in hand["final"] and "not told" not in ours["final"]:
        return "the check does not say what became of it since"
    if ours["cannot_know"] and not hand["cannot_know"]:
        return "write the check: it knows more here"
    return "then do: a check of your own is enough here" if hand["proof"] else "enough, but leaves no proof"


def _settling(ratios: list[float]) -> str:
    if not ratios:
        return ""
    ordered = sorted(ratios)
    within = sum(ratio <= SLOWER for ratio in ordered)
    return (
        f"Settling, waits that a rule asks for taken out: interlock took {ordered[len(ordered) // 2]:.2f} times as "
        f"long as the strongest hand-written tool (median over {len(ordered)} faults, {ordered[0]:.2f} to "
        f"{ordered[-1]:.2f}); within {SLOWER} times in {within} of {len(ordered)}.\n"
    )
