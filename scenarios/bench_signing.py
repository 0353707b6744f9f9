"""What signing costs. ``python scenarios/bench.py signing`` measures a gate that signs beside one that does not.

Both are the gate of the other benchmark; batches alternate between them.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from interlock_tools import Gate, parse_policy, verify
from scenarios.bench import BATCH, ROOT, filesystem, gated, threaded, timed


def signed(folder: Path) -> tuple[Gate, Callable[[str], Any]]:
    """The benchmark's gate with signing on: records, tree, and a checkpoint every second."""
    return gated(folder / "signed.db", signing=folder / "keys")


def syncs(folder: Path) -> dict[str, Any]:
    """Durable syncs per effect, counted by strace; or why they were not."""
    if shutil.which("strace") is None:
        return {"not_measured": "strace is not installed"}
    script = (
        "import sys; sys.path[:0] = {paths!r}\n"
        "from pathlib import Path\n"
        "from scenarios.bench import gated\n"
        "from scenarios.bench_signing import signed\n"
        "which, count, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])\n"
        "gate, effect = signed(path) if which == 'signed' else gated(path / 'plain.db')\n"
        "[effect(f'{{count}}-{{i}}') for i in range(count)]\n"
        "gate.close()\n"
    ).format(paths=[str(ROOT), str(ROOT / "integrations")])
    result: dict[str, Any] = {}
    for which in ("plain", "signed"):
        counts = []
        for count in (10, 30):
            path = folder / f"{which}-{count}"
            path.mkdir()
            trace = folder / f"{which}-{count}.trace"
            command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
            subprocess.run(
                [*command, sys.executable, "-c", script, which, str(count), str(path)], check=True, timeout=120
            )
            counts.append(trace.read_text().count("sync("))
        result[f"{which}_per_effect"] = round((counts[1] - counts[0]) / 20, 2)
    result["besides"] = "one for each checkpoint: one a second, up to ten where records come fast"
    return result


Gates = dict[str, tuple[Gate, Callable[[str], Any]]]


def sqlite(folder: Path, batches: int) -> dict[str, Any]:
    """The two gates on SQLite files."""
    gates = {"plain": gated(folder / "plain.db"), "signed": signed(folder)}
    result = throughput(gates, batches)
    for name, (gate, _) in gates.items():
        size = sum(path.stat().st_size for path in folder.glob(f"{name}.db*") if path.is_file())
        result[name]["bytes_on_disk_per_effect"] = round(size / len(gate.journal.effects(0, 10**9)))
    result["receipt"] = receipts(gates["signed"][0])
    return result


def postgres(folder: Path, batches: int) -> dict[str, Any]:
    """The two gates on PostgreSQL, each in a schema of its own; or why they were not measured."""
    from interlock_tools.testing.postgres import NoServer, Server
    from scenarios.bench_postgres import schema, url_of

    try:
        server = None if os.environ.get("INTERLOCK_TEST_POSTGRES") else Server()
    except NoServer as error:
        return {"not_measured": str(error)}
    try:
        plain: Any = url_of(server, interlock_schema=schema())
        keyed: Any = url_of(server, interlock_schema=schema())
        gates = {"plain": gated(plain), "signed": gated(keyed, signing=folder / "keys-postgres")}
        result = throughput(gates, batches)
        result["receipt"] = receipts(gates["signed"][0])
        for gate, _ in gates.values():
            gate.close()
        return result
    finally:
        if server is not None:
            server.remove()


def throughput(gates: Gates, batches: int) -> dict[str, Any]:
    """The two gates in turn, with one thread and with many."""
    for _, effect in gates.values():
        timed(effect, "warm", BATCH)
    took: dict[str, list[float]] = {name: [] for name in gates}
    cpu: dict[str, list[float]] = {name: [] for name in gates}
    many: dict[str, list[float]] = {name: [] for name in gates}
    for number in range(batches):
        for name, (_, effect) in gates.items():
            before = time.process_time()
            took[name].append(timed(effect, f"s{number}", BATCH))
            cpu[name].append((time.process_time() - before) / BATCH)
    for number in range(max(3, batches // 4)):
        for name, (_, effect) in gates.items():
            many[name].append(threaded(effect, f"t{number}", 10))
    result: dict[str, Any] = {}
    for name in gates:
        result[name] = {
            "ms_per_effect": round(statistics.median(took[name]) * 1000, 3),
            "cpu_ms_per_effect": round(statistics.median(cpu[name]) * 1000, 3),
            "ms_per_effect_32_threads": round(statistics.median(many[name]) * 1000, 3),
        }
    for figures, name in ((took, "signed_to_plain"), (many, "signed_to_plain_32_threads")):
        ratios = [s / p for s, p in zip(figures["signed"], figures["plain"], strict=True)]
        result[name] = round(statistics.median(ratios), 3)
    return {**result, "batches": batches, "effects_per_batch": BATCH}


def receipts(gate: Gate) -> dict[str, Any]:
    """Time to make and to verify one receipt, in a log of this size."""
    gate.records.flush()
    policy = parse_policy(gate.records.policy() + "quorum none\n")
    rows = gate.journal.effects(0, 200)
    issued, verified = [], []
    for row in rows:
        began = time.perf_counter()
        receipt = gate.records.receipt(row.effect_id)
        between = time.perf_counter()
        report = verify(receipt, policy)
        verified.append(time.perf_counter() - between)
        issued.append(between - began)
        assert report.exit_code == 0, str(report)
    return {
        "records_in_the_log": gate.journal.records.place(),
        "issue_ms": round(statistics.median(issued) * 1000, 2),
        "verify_ms": round(statistics.median(verified) * 1000, 2),
        "bytes": len(receipt),
    }


def main(options: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(dir=options.folder or ROOT, prefix=".bench-") as name:
        folder = Path(name)
        kind = filesystem(folder)
        figures: dict[str, Any] = {
            "command": "python scenarios/bench.py signing --json results/bench-signing.json",
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
            "filesystem": kind,
            "load_average_at_start": round(os.getloadavg()[0], 1),
        }
        if kind in ("tmpfs", "ramfs"):
            figures["not_measured"] = f"{kind} has no durable commits; use --folder on a real disk"
        else:
            figures["syncs"] = syncs(folder)
            figures["sqlite"] = sqlite(folder, options.batches)
            figures["postgres"] = postgres(folder, max(3, options.batches // 4))
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0
