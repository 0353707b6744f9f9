"""``python -m scenarios.graph``: play the cells, and write what was found."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable
from datetime import datetime, timezone
from importlib.metadata import version
from pathlib import Path
from typing import Any

from interlock_tools.testing.postgres import Server
from scenarios.graph.cells import QUICK, Cell, chosen
from scenarios.graph.page import page
from scenarios.graph.play import Lane

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("langchain", "langgraph", "langgraph-checkpoint-sqlite", "langgraph-checkpoint-postgres", "stripe")
_lane: Lane | None = None


def _start(postgres: str) -> None:
    global _lane
    _lane = Lane(postgres)


def _play(cell: Cell) -> dict[str, Any]:
    assert _lane is not None
    return _lane.play(cell)


def set_up(postgres: str) -> None:
    """Make the checkpointer's tables."""
    from langgraph.checkpoint.postgres import PostgresSaver

    with PostgresSaver.from_conn_string(postgres) as saver:
        saver.setup()


def play(cells: list[Cell], jobs: int) -> Iterable[dict[str, Any]]:
    """Play cells and yield their records as they come."""
    server = Server() if any(cell.saver == "postgres" for cell in cells) else None
    try:
        postgres = server.url() if server is not None else ""
        if server is not None:
            set_up(postgres)
        if jobs == 1:
            lane = Lane(postgres)
            try:
                yield from map(lane.play, cells)
            finally:
                lane.close()
            return
        with multiprocessing.get_context("fork").Pool(jobs, _start, (postgres,)) as pool:
            yield from pool.imap_unordered(_play, cells)
    finally:
        if server is not None:
            server.remove()


def document(records: list[dict[str, Any]], command: str, seconds: float) -> dict[str, Any]:
    """What is written: every cell, and on what it was played."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return {
        "command": command,
        "at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "commit": commit.stdout.strip(),
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "cores": os.cpu_count(),
        "seconds": round(seconds),
        "cells": sorted(records, key=lambda one: one["cell"]),
    }


def main(arguments: list[str] | None = None) -> int:
    """Play the chosen cells. 0 if every cell was played and the gate had no problem."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.graph", description=__doc__)
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="cells whose /name/ contains this")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} cells of every arm")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time")
    parser.add_argument("--list", action="store_true", help="print the names of the chosen cells and end")
    parser.add_argument("--write", action="store_true", help="write results/langgraph.json and .md")
    given = parser.parse_args(arguments)
    cells = chosen(given.only, given.quick)
    if given.list or not cells:
        print("\n".join(cell.name for cell in cells))
        return 0 if cells else 2
    began = time.monotonic()
    records = []
    for number, record in enumerate(play(cells, given.jobs), start=1):
        records.append(record)
        wrong = record.get("error") or "; ".join(record.get("problems", []))
        if wrong:
            print(f"FAILED {record['cell']}: {wrong}", flush=True)
        elif number % 20 == 0:
            print(f"{number} of {len(cells)} after {time.monotonic() - began:.0f} s", flush=True)
    shown = " ".join(["python -m scenarios.graph", *(arguments if arguments is not None else sys.argv[1:])])
    found = document(records, shown, time.monotonic() - began)
    if given.write:
        results = ROOT / "results"
        (results / "langgraph.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        (results / "langgraph.md").write_text(page(found), encoding="utf-8")
    else:
        print(page(found))
    failed = [one for one in records if "error" in one or one.get("problems")]
    print(f"{len(records)} cells, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
