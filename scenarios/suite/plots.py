"""The plots, by Matplotlib, from the results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scenarios.suite.results import rows

COLOURS = {"interlock": "#1b6e3c", "hand": "#8a6d1d", "no": "#9c2f2f", "peer": "#3b5b92"}


def draw(found: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    """Draw held by arm, settling by arm with the outage taken out, and what each arm could not know."""
    import matplotlib

    matplotlib.use("Agg")
    sums = _by_arm(found)
    if not sums:
        return
    target = folder / "scenarios"
    target.mkdir(parents=True, exist_ok=True)
    arms = sorted(sums, key=lambda arm: -sums[arm]["held"] / max(1, sums[arm]["played"]))
    share = {arm: 100 * sums[arm]["held"] / sums[arm]["played"] for arm in arms}
    _bars(target / "held.png", share, "cells in which the invariant held, %")
    settle = {arm: sums[arm]["settle"] / sums[arm]["rows"] for arm in arms}
    _bars(target / "settle.png", settle, "seconds from the restart to the answer, mean of medians")
    unknown = {arm: 100 * sums[arm]["unknown"] / sums[arm]["played"] for arm in arms}
    _bars(target / "unknown.png", unknown, "cells in which it said that it cannot know, %")


def _by_arm(found: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    sums: dict[str, dict[str, float]] = {}
    for result in found.values():
        for row in rows(dict(result)):
            if not row["played"]:
                continue
            into = sums.setdefault(row["arm"], {"held": 0, "played": 0, "settle": 0, "rows": 0, "unknown": 0})
            into["held"] += row["held"]
            into["played"] += row["played"]
            into["settle"] += row["settle_s"]
            into["rows"] += 1
            into["unknown"] += row["cannot_know"]
    return sums


def _bars(path: Path, values: Mapping[str, float], title: str) -> None:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 0.45 * len(values) + 1))
    names = list(values)[::-1]
    colours = [next((colour for start, colour in COLOURS.items() if name.startswith(start)), "#555") for name in names]
    axes.barh(names, [values[name] for name in names], color=colours)
    for number, name in enumerate(names):
        axes.text(values[name], number, f" {values[name]:.1f}", va="center", fontsize=8)
    axes.set_title(title, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(path, dpi=110, metadata={"Software": None})
    pyplot.close(figure)
