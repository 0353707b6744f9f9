"""Results on disk: a JSON file for each scenario with every cell, and the pages that are made from them."""

from __future__ import annotations

import functools
import json
import platform
import statistics
import subprocess
import threading
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from scenarios.suite.catalogue import KEYS, scenario
from scenarios.suite.play import Cell
from scenarios.suite.process import ROOT
from scenarios.suite.wilson import interval

FORMAT = 2
"""Shape of a cell. Cells of another shape are left out, and are to be played again."""

PACKAGES = (
    "langchain",
    "langchain-core",
    "langgraph",
    "langgraph-checkpoint",
    "langgraph-checkpoint-sqlite",
    "dbos",
    "psycopg",
    "stripe",
    "PyGithub",
    "google-cloud-storage",
    "google-api-python-client",
    "resend",
)


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what was measured with."""
    found = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    return found


def commit() -> str:
    """The commit that was measured, with ``+`` where files differ from it."""
    try:
        head = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], cwd=ROOT, capture_output=True, text=True)
        changed = subprocess.run(
            ["git", "status", "--porcelain", "--", "interlock_tools", "integrations", "scenarios"],
            cwd=ROOT,
            capture_output=True,
            text=True,
        )
    except OSError:
        return "unknown"
    return head.stdout.strip() + ("+" if changed.stdout.strip() else "")


class Store:
    """The results of all scenarios. Each cell is written as soon as it is done, so that nothing is lost."""

    def __init__(self, folder: Path, seed: int, keep: bool = True) -> None:
        self.folder = folder
        self.cells = folder / "scenarios"
        self._seed = seed
        self._keep = keep
        self._mutex = threading.Lock()
        self._loaded: dict[str, dict[str, Any]] = {}

    def of(self, key: str) -> dict[str, Any]:
        """What is there of a scenario."""
        if key not in self._loaded:
            path = self.cells / f"{key}.json"
            known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"scenario": key, "cells": {}}
            current = {name: cell for name, cell in known["cells"].items() if cell.get("format") == FORMAT}
            self._loaded[key] = {**known, "cells": current}
        return self._loaded[key]

    def has(self, cell: Cell) -> bool:
        """Whether a cell has a result."""
        return "held" in self.of(cell.scenario)["cells"].get(cell.name, {})

    def add(self, cell: Cell, result: dict[str, Any] | None, error: str | None) -> None:
        """Keep a result, or why there is none."""
        if not self._keep:
            return
        with self._mutex:
            found = self.of(cell.scenario)
            found["cells"][cell.name] = _kept(result) if result else {"error": error, "format": FORMAT}
            found["measured_at"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
            found["command"] = f"python scenarios/run.py --only {cell.scenario}"
            found["versions"] = versions()
            found["seed"] = self._seed
            self.cells.mkdir(parents=True, exist_ok=True)
            path = self.cells / f"{cell.scenario}.json"
            draft = path.with_suffix(".draft")
            draft.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
            draft.replace(path)


def _kept(result: dict[str, Any]) -> dict[str, Any]:
    """A result with what it was measured with, and without what is in it twice: the receipt has its own steps."""
    record = dict(result["record"])
    if record.get("receipt"):
        record.pop("steps")
    return {**result, "record": record, "format": FORMAT, "versions_of": commit(), "packages": versions()}


def report(store: Store) -> None:
    """Write the page of each scenario that has results, the overview, and the plots."""
    from scenarios.suite import pages, plots

    found = {key: store.of(key) for key in KEYS if store.of(key)["cells"]}
    for key, result in found.items():
        (store.cells / f"{key}.md").write_text(pages.of_scenario(scenario(key), result), encoding="utf-8")
    (store.folder / "README.md").write_text(pages.overview(found, store.folder), encoding="utf-8")
    plots.draw(found, store.folder)


def rows(result: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each fault and arm, over its repetitions."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for name, cell in result["cells"].items():
        _, arm, *fault, _ = name.split("/")
        groups.setdefault(("/".join(fault), arm), []).append(cell)
    return [_row(fault, arm, cells) for (fault, arm), cells in groups.items()]


def _row(fault: str, arm: str, cells: list[dict[str, Any]]) -> dict[str, Any]:
    played = [cell for cell in cells if "held" in cell]
    held = sum(cell["held"] for cell in played)
    low, high = interval(held, len(played))
    return {
        "fault": fault,
        "arm": arm,
        "played": len(played),
        "errors": len(cells) - len(played),
        "held": held,
        "low": low,
        "high": high,
        "holds": _common(cell["holds"] for cell in played),
        "answer": _common(cell["answer"] for cell in played),
        "contradicts": sum(cell["answer"] == "contradicts" for cell in played),
        "cannot_know": sum(cell["answer"] == "cannot know" for cell in played),
        "final": _common(cell["final_state"] for cell in played),
        "proof": sum(cell["proof"]["ok"] for cell in played),
        "tamper": sum(set(cell["tamper"].values()) == {"caught"} for cell in played),
        "tampered": [cell["tamper"] for cell in played],
        "settle_s": _median(cell["settle_s"] for cell in played),
        "start_s": _median(cell["start_s"] for cell in played),
        "waited_s": _median(cell["waited_by_rule_s"] for cell in played),
        "waits": _waits([cell["waits"] for cell in played]),
        "own_s": _median(cell["settle_s"] - cell["start_s"] - cell["waited_by_rule_s"] for cell in played),
        "attempts": _median(cell["attempts"] for cell in played),
        "ours": any(cell["ours"] for cell in played),
        "stranded": sum(bool(cell["notes"].get("stranded")) for cell in played),
        "notes": played[0]["notes"] if played else {},
        "raced": [{**cell["raced"], "held": cell["held"]} for cell in played if cell["raced"]],
    }


def _median(values: Iterable[float]) -> float | None:
    found = list(values)
    return statistics.median(found) if found else None


def _waits(each: list[dict[str, float]]) -> dict[str, float]:
    """Seconds waited by reason, medians over the runs; a run without such a wait counts as none."""
    reasons = sorted({why for waits in each for why in waits})
    return {why: round(statistics.median(waits.get(why, 0.0) for waits in each), 3) for why in reasons}


def _common(values: Iterable[str]) -> str:
    """What was seen, the most frequent first."""
    counts: dict[str, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    ordered = sorted(counts, key=lambda value: -counts[value])
    return " / ".join(f"{value} ({counts[value]}×)" if len(ordered) > 1 else value for value in ordered)
