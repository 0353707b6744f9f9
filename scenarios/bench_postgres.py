"""The gate with a PostgreSQL journal, beside a bare loop of two commits and the gate with SQLite, in the same run.

The server is one of its own on loopback, or the one that ``INTERLOCK_TEST_POSTGRES`` names. Run by
``python scenarios/bench.py postgres``.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import secrets
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import psycopg

from interlock_tools.core.canonical import encode
from interlock_tools.testing.postgres import Server
from scenarios.bench import BATCH, ROOT, act, filesystem, fill, gated, timed

THREADS = 64
POOLS = (1, 4, 16)
SLOWER_COMMITS_MS = (1, 2)


class Bare:
    """Two durable commits around the call, written by hand: each is one statement, and so one round trip."""

    def __init__(self, url: str, first: list[str], second: str) -> None:
        self.db = psycopg.connect(url, autocommit=True)
        self.db.execute("CREATE TABLE IF NOT EXISTS log (id bigserial PRIMARY KEY, request text, body text)")
        rows = ", ".join(["(%s, %s)"] * len(first))
        self.insert = f"INSERT INTO log (request, body) VALUES {rows}"
        self.first = first
        self.second = second

    def effect(self, request: str) -> None:
        values = [value for body in self.first for value in (request, body)]
        self.db.execute(self.insert, values)
        act(2000)
        self.db.execute("INSERT INTO log (request, body) VALUES (%s, %s)", (request, self.second))


def url_of(server: Server | None, **parameters: Any) -> str:
    if server is not None:
        return server.url(**parameters)
    named = os.environ["INTERLOCK_TEST_POSTGRES"]
    query = "&".join(f"{name}={value}" for name, value in parameters.items())
    return f"{named}{'&' if '?' in named else '?'}{query}" if query else named


@contextmanager
def slower_commits(milliseconds: int) -> Iterator[None]:
    """Let the server wait before it syncs each commit, as a slower disk or a synchronous standby would.

    ``commit_delay`` waits once for all commits that stand in line, so that they share one sync as they do on a disk.
    Every connection that is opened meanwhile has it; only a superuser may set it.
    """
    before = os.environ.get("PGOPTIONS")
    os.environ["PGOPTIONS"] = f"-c commit_delay={milliseconds * 1000} -c commit_siblings=0"
    try:
        yield
    finally:
        del os.environ["PGOPTIONS"]
        if before is not None:
            os.environ["PGOPTIONS"] = before


def may_slow_commits(server: Server | None) -> bool:
    """Whether this role may do so."""
    with psycopg.connect(url_of(server)) as connection:
        return bool(connection.execute("SELECT current_setting('is_superuser')").fetchall()[0][0] == "on")


def schema() -> str:
    return f"bench_{secrets.token_hex(6)}"


def sample(server: Server | None) -> list[str]:
    """The rows that one effect leaves, for the bare loop to write the same."""
    gate, effect = gated(url_of(server, interlock_schema=schema()))  # type: ignore[arg-type]
    rows = [encode(entry.body) for entry in gate.history(effect("sample").effect_id)]
    gate.close()
    return rows


def sequential(server: Server | None, sqlite: Path, batches: int, rows: list[str]) -> dict[str, Any]:
    """One effect after the other."""
    gate, effect = gated(url_of(server, interlock_schema=schema()))  # type: ignore[arg-type]
    sqlite_gate, sqlite_effect = gated(sqlite)
    bare = Bare(url_of(server), rows[:-1], rows[-1])
    contenders: dict[str, Callable[[str], Any]] = {"bare": bare.effect, "gate": effect, "sqlite_gate": sqlite_effect}
    took: dict[str, list[float]] = {name: [] for name in contenders}
    for function in contenders.values():
        timed(function, "warm", BATCH)
    for number in range(batches):
        for name, function in contenders.items():
            took[name].append(timed(function, f"s{number}", BATCH))
    ratios = [g / b for g, b in zip(took["gate"], took["bare"], strict=True)]
    gate.close()
    sqlite_gate.close()
    bare.db.close()
    return {
        **{f"{name}_ms_per_effect": round(statistics.median(found) * 1000, 3) for name, found in took.items()},
        "gate_adds_ms": round(
            statistics.median(g - b for g, b in zip(took["gate"], took["bare"], strict=True)) * 1000, 3
        ),
        "gate_to_bare": round(statistics.median(ratios), 3),
        "gate_to_bare_quartiles": [round(part, 3) for part in statistics.quantiles(ratios, n=4)[::2]],
        "gate_to_sqlite_gate": round(statistics.median(took["gate"]) / statistics.median(took["sqlite_gate"]), 3),
        "batches": batches,
        "effects_per_batch": BATCH,
    }


def throughput(act_once: Callable[[str], Any], each: int) -> float:
    """Effects a second of many threads at once."""
    start = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        start.wait()
        for index in range(each):
            act_once(f"{number}-{index}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return THREADS * each / (time.perf_counter() - began)


def concurrent(server: Server | None, each: int, runs: int, rows: list[str]) -> dict[str, Any]:
    """Many threads at once, with pools of several sizes, beside bare loops that share as many connections."""
    result: dict[str, Any] = {"threads": THREADS, "effects_per_thread": each, "runs": runs}
    for size in POOLS:
        gate, effect = gated(url_of(server, interlock_schema=schema(), interlock_pool=size))  # type: ignore[arg-type]
        free: queue.LifoQueue[Bare] = queue.LifoQueue()
        for _ in range(size):
            free.put(Bare(url_of(server), rows[:-1], rows[-1]))

        def bare(request: str, free: queue.LifoQueue[Bare] = free) -> None:
            connection = free.get()
            try:
                connection.effect(request)
            finally:
                free.put(connection)

        effect("warm")
        found: dict[str, list[float]] = {"gate": [], "bare": []}
        for run in range(runs):
            found["gate"].append(throughput(lambda name, act=effect, run=run: act(f"{run}-{name}"), each))  # type: ignore[misc]
            found["bare"].append(throughput(bare, each))
        gate.close()
        while not free.empty():
            free.get().db.close()
        ratios = [b / g for g, b in zip(found["gate"], found["bare"], strict=True)]
        result[f"pool_{size}"] = {
            **{f"{name}_effects_per_s": round(statistics.median(some)) for name, some in found.items()},
            "bare_to_gate": round(statistics.median(ratios), 2),
            "from_to": [round(min(ratios), 2), round(max(ratios), 2)],
        }
    return result


def slowed(server: Server | None, folder: Path, batches: int, rows: list[str]) -> dict[str, Any]:
    """The same where each commit takes longer, as on most networks and disks of real databases."""
    if not may_slow_commits(server):
        return {"skipped": "this role may not set commit_delay"}
    result: dict[str, Any] = {}
    for milliseconds in SLOWER_COMMITS_MS:
        with slower_commits(milliseconds):
            result[f"{milliseconds}_ms"] = {
                "sequential": sequential(server, folder / f"gate_{milliseconds}.db", batches, rows),
                "concurrent": concurrent(server, 20, 5, rows),
            }
    return result


RECOVER = "began = time.perf_counter(); report = gate.recover(); print(time.perf_counter() - began, *map(str, report))"


def child(url: str, code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code with the gate in a process of its own."""
    paths = [str(ROOT), str(ROOT / "integrations")]
    lines = ("import sys, time", f"sys.path[:0] = {paths!r}", "from scenarios.bench import gated")
    return subprocess.run(
        [sys.executable, "-c", "\n".join([*lines, f"gate, effect = gated({url!r})", code])],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def recovery(server: Server | None, finished: list[int], runs: int) -> dict[str, Any]:
    """One open effect among many finished ones, each time by a new process after a SIGKILL."""
    result = {}
    for count in finished:
        url = url_of(server, interlock_schema=schema())
        gate, _ = gated(url)  # type: ignore[arg-type]
        fill(gate, count)
        took = []
        for run in range(runs):
            died = child(url, f"effect('open {run}')", INTERLOCK_CRASH="before_bytes")
            assert died.returncode == -9, died.stderr
            recovered = child(url, RECOVER)
            took_s, *outcomes = recovered.stdout.split()
            took.append(float(took_s))
            assert outcomes == ["COMMITTED"], recovered.stderr
        gate.close()
        result[str(count)] = {"recover_ms": round(statistics.median(took) * 1000, 2)}
    return result


def main(options: argparse.Namespace) -> int:
    """Measure and print the figures."""
    with tempfile.TemporaryDirectory(dir=options.folder or ROOT, prefix=".bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        os.environ["INTERLOCK_SESSIONS"] = str(folder / "sessions")
        server = None if os.environ.get("INTERLOCK_TEST_POSTGRES") else Server(where=folder)
        try:
            rows = sample(server)
            with psycopg.connect(url_of(server)) as connection:
                version = connection.execute("SHOW server_version").fetchall()[0][0]
            figures = {
                "command": " ".join(["python", "scenarios/bench.py", *sys.argv[1:]]),
                "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "postgresql": version},
                "filesystem": filesystem(folder) if server is not None else "that of the server",
                "sequential": sequential(server, folder / "gate.db", options.batches, rows),
                "concurrent": concurrent(server, 20, 5, rows),
                "slower_commits": slowed(server, folder, options.batches, rows),
                "recovery_by_finished_effects": recovery(server, options.finished, options.runs),
            }
        finally:
            if server is not None:
                server.remove()
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0
