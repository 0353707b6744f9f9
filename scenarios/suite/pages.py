"""The pages that people read. Every number on them comes from the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.suite import races
from scenarios.suite.model import Scenario
from scenarios.suite.pairs import Pair, pairs_of, settling, settling_table, waited
from scenarios.suite.results import rows
from scenarios.suite.tampering import CHANGES


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
            _seconds(row["start_s"]),
            _seconds(row["waited_s"]),
            f"{row['attempts']:g}" if row["attempts"] is not None else "–",
        ]
        for row in found
    ]
    body += [
        [fault + (" *" if scenario.faults[fault].ours else ""), name, "n/a", why, *["–"] * 8]
        for name, arm in scenario.arms.items()
        for fault, why in arm.left_out.items()
    ]
    head = ["fault", "arm", "held", "the service holds", "answer", "final state", "proof", "tamper caught"]
    head += ["settle s", "start s", "by rule s", "sends"]
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
            "`*`: a fault beyond the reference study. *Settle* is from the restart to the final answer, median of the "
            "runs; *start* is the part in which the process starts and loads its program, *by rule* the part that "
            "interlock paused because a rule of recovery asked for it, as the gate logs it.\n"
        ),
        _beside(scenario, found),
        _race(found),
        _tampering(scenario, found),
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


def _beside(scenario: Scenario, found: list[dict[str, Any]]) -> str | None:
    """Settling of interlock and of the strongest hand-written arm, with the number of runs behind each median."""
    pairs = pairs_of(scenario.key, found)
    return "## Settling, beside the strongest hand-written arm\n\n" + _table(*settling_table(pairs)) if pairs else None


def _race(found: list[dict[str, Any]]) -> str | None:
    """What decided each run of a race."""
    body = races.table(found)
    return f"## Who came first\n\n{races.words(found)}\n{_table(races.HEAD, body)}" if body else None


def _tampering(scenario: Scenario, found: list[dict[str, Any]]) -> str:
    """By arm and kind of change, over all faults: in how many runs the changed copy was caught."""
    body = []
    for arm in scenario.arms:
        copies = [kinds for row in found if row["arm"] == arm for kinds in row["tampered"]]
        caught = [f"{sum(kinds[name] == 'caught' for kinds in copies)}/{len(copies)}" for name in CHANGES]
        body += [[arm, *caught]] if copies else []
    return (
        "## Changed copies of the record that were caught\n\n"
        "By somebody who has the published keys and not the writer's; who changes it signs with keys of his own.\n\n"
        + _table(["arm", *CHANGES], body)
    )


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
    pairs = [pair for key, result in found.items() for pair in pairs_of(key, rows(dict(result)))]
    parts = [
        "# Results\n",
        (
            "Written by the programs that measured them. `python scenarios/run.py --all` plays everything again, "
            "`--report` makes these pages from what is there; [bench-gate.json](bench-gate.json) is the gate's own "
            "speed.\n"
        ),
        "## Why not write the check myself?\n",
        (
            "The strongest hand-written tool beside interlock as shipped, over all faults. *Held*: the service has in "
            "the end what it should. The page of each scenario has every arm, fault and column; its JSON every cell.\n"
        ),
        _table(["scenario", "so", "faults", "hand-written held", "interlock held"], _answers(pairs)),
        settling(pairs),
        waited(pairs),
    ]
    plots = [f"![{name}](scenarios/{name}.png)\n" for name in ("held", "settle", "unknown")]
    parts += [plot for plot in plots if (folder / "scenarios").is_dir()]
    return "\n".join(part for part in parts if part)


def _answers(pairs: list[Pair]) -> list[list[str]]:
    """One line for each scenario and answer; those where a check is not enough come first."""
    groups: dict[tuple[str, str], list[Pair]] = {}
    for pair in pairs:
        groups.setdefault((pair[0], _verdict(pair[2], pair[3])), []).append(pair)
    ordered = sorted(groups.items(), key=lambda item: item[0][1].startswith(("then do", "enough")))
    return [
        [
            f"[{key}](scenarios/{key}.md)",
            verdict,
            ", ".join(fault for _, fault, _, _ in some),
            (
                f"{'/'.join(dict.fromkeys(hand['arm'] for _, _, hand, _ in some))}: "
                f"{sum(hand['held'] for _, _, hand, _ in some)} of {sum(hand['played'] for _, _, hand, _ in some)}"
            ),
            f"{sum(ours['held'] for _, _, _, ours in some)} of {sum(ours['played'] for _, _, _, ours in some)}"
            + (", says that it cannot know" if any(ours["cannot_know"] for _, _, _, ours in some) else ""),
        ]
        for (key, verdict), some in ordered
    ]


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
