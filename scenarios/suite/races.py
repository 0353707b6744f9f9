"""What decides a race: whether the other agent's effect was there when the restarted one acted. From the results."""

from __future__ import annotations

import statistics
from typing import Any

HEAD = ["fault", "arm", "runs", "restarted one acts after s", "other effect after s", "there before"]
HEAD += ["held where it was", "held elsewhere"]


def table(found: list[dict[str, Any]]) -> list[list[str]]:
    """A line for each row of a race; seconds are medians, counted from the death."""
    return [_line(row) for row in found if row["raced"]]


def _line(row: dict[str, Any]) -> list[str]:
    runs = row["raced"]
    acted = statistics.median(run["acted_s"] for run in runs)
    landed = [run["other_landed_s"] for run in runs if run["other_landed_s"] is not None]
    before = [run for run in runs if _there(run)]
    after = [run for run in runs if not _there(run)]
    return [
        row["fault"],
        row["arm"],
        str(len(runs)),
        f"{acted:.3f}",
        f"{statistics.median(landed):.3f}" if landed else "never",
        f"{len(before)}/{len(runs)}",
        _held(before),
        _held(after),
    ]


def _there(run: dict[str, Any]) -> bool:
    landed = run["other_landed_s"]
    return landed is not None and bool(landed <= run["acted_s"])


def _held(runs: list[dict[str, Any]]) -> str:
    return f"{sum(run['held'] for run in runs)}/{len(runs)}" if runs else "–"


def words(found: list[dict[str, Any]]) -> str:
    """When an arm that only looks can see the other's effect, in numbers of this run. Empty if none was played."""
    lines = [_sentence(row) for row in found if row["arm"] == "hand_check" and row["raced"]]
    if not lines:
        return ""
    return (
        "An arm that looks and then sends holds what it can see at that moment. Whether it sees the other's effect is "
        "a matter of how long the service takes over a send and how soon the next process acts:\n\n" + "".join(lines)
    )


def _sentence(row: dict[str, Any]) -> str:
    runs = row["raced"]
    acted = statistics.median(run["acted_s"] for run in runs)
    landed = [run["other_landed_s"] for run in runs if run["other_landed_s"] is not None]
    came = "came never"
    if landed:
        middle = statistics.median(landed)
        came = f"came {abs(middle):.2f} s {'after' if middle >= 0 else 'before'} the death"
    return (
        f"- {row['fault']}: the restarted bot acted {acted:.3f} s after the death, the other's refund {came} (medians "
        f"of {len(runs)}); hand_check held {_held(runs)}.\n"
    )
