"""Interlock beside the strongest hand-written tool, fault by fault, and how long each took to settle."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

STRONGEST = ("hand_lock", "hand_check", "hand_sql", "hand_check_noprobe", "no_check")
"""Hand-written arms, the strongest first."""

SLOWER = 1.2
"""Interlock aims to settle within so many times what the strongest hand-written arm takes."""

Pair = tuple[str, str, dict[str, Any], dict[str, Any]]
"""Scenario, fault, the strongest hand-written row, and interlock's."""


def pairs_of(key: str, table: list[dict[str, Any]]) -> list[Pair]:
    """A pair for each fault that both were played with."""
    found = []
    for fault in dict.fromkeys(row["fault"] for row in table):
        ours = next((row for row in table if (row["fault"], row["arm"]) == (fault, "interlock")), None)
        hand = _strongest(table, fault)
        if ours is not None and hand is not None and ours["played"] and hand["played"]:
            found.append((key, fault, hand, ours))
    return found


def _strongest(table: list[dict[str, Any]], fault: str) -> dict[str, Any] | None:
    """The hand-written arm that did best under a fault; of equals the one that is written most carefully."""
    rivals = [row for arm in STRONGEST for row in table if (row["fault"], row["arm"]) == (fault, arm) and row["played"]]
    return max(rivals, key=lambda row: (row["held"] - row["stranded"], -row["contradicts"]), default=None)


def ratio(hand: Mapping[str, Any], ours: Mapping[str, Any]) -> float:
    """How many times as long interlock took from the restart to the answer."""
    return float(ours["settle_s"]) / float(hand["settle_s"]) if hand["settle_s"] else 1.0


def settling_table(pairs: list[Pair]) -> tuple[list[str], list[list[str]]]:
    """Head and lines of a table, a line for each fault."""
    head = ["fault", "hand-written arm", "runs", "settle s", "without start", "interlock: runs", "settle s"]
    head += ["without start and waits", "ratio", "waits by rule"]
    return head, [
        [
            fault,
            hand["arm"],
            str(hand["played"]),
            f"{hand['settle_s']:.2f}",
            f"{hand['own_s']:.2f}",
            str(ours["played"]),
            f"{ours['settle_s']:.2f}",
            f"{ours['own_s']:.2f}",
            "–" if ours["waited_s"] else f"{ratio(hand, ours):.2f}",
            waits_in_words(ours),
        ]
        for _, fault, hand, ours in pairs
    ]


def waits_in_words(row: Mapping[str, Any]) -> str:
    """What a row's gate waited for because a rule of recovery asked for it, with seconds; a dash where nothing."""
    by_rule = [f"{why}: {seconds:.1f} s" for why, seconds in row["waits"].items() if why.startswith("rule ")]
    return "; ".join(by_rule) or "–"


def settling(pairs: list[Pair]) -> str:
    """A paragraph over all pairs in which no rule made interlock wait. Empty if there is none."""
    pairs = [pair for pair in pairs if not pair[3]["waited_s"]]
    if not pairs:
        return ""
    ratios = sorted(ratio(hand, ours) for _, _, hand, ours in pairs)
    within = sum(one <= SLOWER for one in ratios)
    runs: dict[int, int] = {}
    for _, _, hand, ours in pairs:
        behind = min(hand["played"], ours["played"])
        runs[behind] = runs.get(behind, 0) + 1
    counted = ", ".join(
        f"{number} run{'s' * (number > 1)} for {count} faults" for number, count in sorted(runs.items())
    )
    started = [row["start_s"] for _, _, hand, ours in pairs for row in (hand, ours) if row["start_s"]]
    theirs = statistics.median(hand["own_s"] for _, _, hand, _ in pairs)
    mine = statistics.median(ours["own_s"] for _, _, _, ours in pairs)
    more = statistics.median(ours["own_s"] - hand["own_s"] for _, _, hand, ours in pairs)
    return (
        f"Settling, from the restart to the answer, wherever no rule made it wait: interlock took "
        f"{statistics.median(ratios):.2f} times as long as the strongest hand-written tool (median over {len(pairs)} "
        f"faults, {ratios[0]:.2f} to {ratios[-1]:.2f}); within {SLOWER} times in {within} of {len(pairs)}. Behind "
        f"each ratio are medians of so many runs: {counted}. "
        + (
            f"Of that a process takes {statistics.median(started):.1f} s to start and load, in every arm. "
            if started
            else ""
        )
        + f"What comes after took {theirs:.2f} s by hand and {mine:.2f} s with interlock (medians); interlock adds "
        f"{more:.2f} s. Every arm's process loads the same modules, interlock's among them, because the instants at "
        "which a test kills are in there.\n"
    )


def waited(pairs: list[Pair]) -> str:
    """A list of the waits that a rule asked for, with what the hand-written arm did there. Empty if there was none."""
    lines = [
        f"- {key} {fault}: {waits_in_words(ours)}; {hand['arm']} held {hand['held']} of {hand['played']} there\n"
        for key, fault, hand, ours in pairs
        if ours["waited_s"]
    ]
    return "Waits that a rule asked for, as the gate logged them:\n\n" + "".join(lines) if lines else ""
