"""Benchmarks. ``python scenarios/bench.py gate`` measures the gate beside a bare loop in the same run.

``python scenarios/bench.py postgres`` does so with a PostgreSQL journal, and
``python scenarios/bench.py signing`` compares a gate that signs with one that does not.

Every figure is a median over batches that alternate between the contenders, so
that a busy machine slows all of them alike; what is compared is the ratio.
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
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "integrations")]

from interlock_tools import Budget, Gate  # noqa: E402
from interlock_tools.core.canonical import digest, effect_id, encode  # noqa: E402
from interlock_tools.core.entries import Entry, Kind  # noqa: E402
from interlock_tools.journal.protocol import Write  # noqa: E402

BATCH = 50
"""Effects in one batch."""
THREADS = 32


def act(amount: int) -> str:
    """The call that both contenders make; it costs nothing."""
    return f"re_{amount}"


class Bare:
    """Two durable commits around the call, written by hand: WAL, synchronous=FULL, prepared statements."""

    def __init__(self, path: Path, first: list[str], second: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.db.execute("PRAGMA journal_mode=WAL")
        self.db.execute("PRAGMA synchronous=FULL")
        self.db.execute("CREATE TABLE IF NOT EXISTS log (id INTEGER PRIMARY KEY, request TEXT, body TEXT)")
        self.first = first
        self.second = second

    def effect(self, request: str) -> None:
        db = self.db
        db.execute("BEGIN IMMEDIATE")
        for body in self.first:
            db.execute("INSERT INTO log (request, body) VALUES (?, ?)", (request, body))
        db.execute("COMMIT")
        act(2000)
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO log (request, body) VALUES (?, ?)", (request, self.second))
        db.execute("COMMIT")


def gated(path: Path, **options: Any) -> tuple[Gate, Callable[[str], Any]]:
    """A gate with premises and a budget, and its effect."""
    gate = Gate(path, **options)

    @gate.effect(
        "bench.refund",
        key=lambda case, **_: case,
        premises=lambda case: {"refunded_by_others": 0, "chargebacks": []},
        expect={"chargebacks": []},
        budget=lambda case, amount: Budget(f"case:{case}", amount=amount, limit=3000),
        dedupes=timedelta(hours=24),
        send_timeout=timedelta(seconds=90),
    )
    def refund(case: str, amount: int, *, idempotency_key: str, on_send: Any) -> str:
        on_send()
        return act(amount)

    return gate, lambda case: refund(case=case, amount=2000)


def timed(function: Callable[[str], Any], prefix: str, count: int) -> float:
    """Seconds per effect over one batch."""
    began = time.perf_counter()
    for index in range(count):
        function(f"{prefix}-{index}")
    return (time.perf_counter() - began) / count


def threaded(function: Callable[[str], Any], prefix: str, count: int) -> float:
    """Seconds per effect over one batch shared by the threads."""
    start = threading.Barrier(THREADS + 1)

    def work(number: int) -> None:
        start.wait()
        for index in range(count):
            function(f"{prefix}-{number}-{index}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    start.wait()
    began = time.perf_counter()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - began) / (count * THREADS)


def throughput(folder: Path, batches: int) -> dict[str, Any]:
    """Gate against the bare loop, sequentially and with threads."""
    gate, effect = gated(folder / "gate.db")
    outcome = effect("sample")
    rows = [encode(entry.body) for entry in gate.history(outcome.effect_id)]
    bare = Bare(folder / "bare.db", rows[:-1], rows[-1])
    timed(effect, "warm", BATCH)
    timed(bare.effect, "warm", BATCH)
    sequential, cpu = _alternate(bare, effect, batches)
    parallel = [threaded(effect, f"t{number}", 10) for number in range(max(3, batches // 4))]
    size = sum(path.stat().st_size for path in folder.glob("gate.db*") if path.is_file())
    done = sum(1 for _ in _all_effects(gate))
    bare_ms = statistics.median(sequential["bare"]) * 1000
    gate_ms = statistics.median(sequential["gate"]) * 1000
    threads_ms = statistics.median(parallel) * 1000
    ratios = [g / b for g, b in zip(sequential["gate"], sequential["bare"], strict=True)]
    return {
        "bare_ms_per_effect": round(bare_ms, 3),
        "gate_ms_per_effect": round(gate_ms, 3),
        "gate_to_bare": round(statistics.median(ratios), 3),
        "bare_cpu_ms_per_effect": round(statistics.median(cpu["bare"]) * 1000, 3),
        "gate_cpu_ms_per_effect": round(statistics.median(cpu["gate"]) * 1000, 3),
        "gate_ms_per_effect_32_threads": round(threads_ms, 3),
        "threads_to_sequential_rate": round(gate_ms / threads_ms, 2),
        "bytes_on_disk_per_effect": round(size / done),
        "effects": done,
        "batches": batches,
        "effects_per_batch": BATCH,
    }


def _alternate(
    bare: Bare, effect: Callable[[str], Any], batches: int
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Seconds per effect by batch, and seconds of processor time, of the two contenders in turn."""
    took: dict[str, list[float]] = {"bare": [], "gate": []}
    cpu: dict[str, list[float]] = {"bare": [], "gate": []}
    for number in range(batches):
        for name, function in (("bare", bare.effect), ("gate", effect)):
            before = time.process_time()
            took[name].append(timed(function, f"s{number}", BATCH))
            cpu[name].append((time.process_time() - before) / BATCH)
    return took, cpu


SLOWER = """
import json, sys
from pathlib import Path
sys.path[:0] = {paths!r}
from scenarios.bench import compare
print(json.dumps(compare(Path(sys.argv[1]), int(sys.argv[2]))))
"""


def compare(folder: Path, batches: int) -> dict[str, Any]:
    """Gate against the bare loop, sequentially."""
    _, effect = gated(folder / "gate.db")
    bare = Bare(folder / "bare.db", ["x" * 300] * 3, "x" * 80)
    timed(effect, "warm", BATCH)
    timed(bare.effect, "warm", BATCH)
    took, _ = _alternate(bare, effect, batches)
    ratios = [g / b for g, b in zip(took["gate"], took["bare"], strict=True)]
    return {
        "bare_ms_per_effect": round(statistics.median(took["bare"]) * 1000, 3),
        "gate_ms_per_effect": round(statistics.median(took["gate"]) * 1000, 3),
        "gate_to_bare": round(statistics.median(ratios), 3),
    }


def slower_disk(folder: Path, batches: int, delay_us: int = 500) -> dict[str, Any]:
    """The same comparison with each sync made slower by strace, for both alike.

    What the gate adds is processor time, so the ratio depends on the disk: this
    gives it for one whose syncs take half a millisecond longer than here.
    """
    if shutil.which("strace") is None:
        return {"not_measured": "strace is not installed"}
    slower = folder / "slower"
    slower.mkdir()
    command = ["strace", "-f", "-qq", "--seccomp-bpf", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]
    command += ["-e", f"inject=fsync,fdatasync:delay_exit={delay_us}"]
    script = SLOWER.format(paths=[str(ROOT), str(ROOT / "integrations")])
    command += [sys.executable, "-c", script, str(slower), str(batches)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300)
    return {"added_to_each_sync_ms": delay_us / 1000, **json.loads(done.stdout)}


def _all_effects(gate: Gate) -> Any:
    after = 0
    while rows := gate.journal.effects(after, 1000):
        yield from rows
        after = rows[-1].position


def fill(gate: Gate, count: int) -> None:
    """Append ``count`` finished effects, many in one commit."""
    now = gate.journal.now()
    for begin in range(0, count, 500):
        writes = []
        for index in range(begin, min(begin + 500, count)):
            key = f"finished-{index}"
            identity = effect_id("bench.refund", key, 1)
            payload = {"amount": 2000, "case": key}
            bodies: list[tuple[Kind, dict[str, Any]]] = [
                (
                    Kind.PROPOSED,
                    {
                        "effect": "bench.refund",
                        "key": key,
                        "decision": 1,
                        "payload": payload,
                        "payload_digest": digest(encode(payload)),
                        "facts": {"refunded_by_others": 0, "chargebacks": []},
                        "decided_by": "call",
                    },
                ),
                (Kind.AUTHORIZED, {"grant": None}),
                (Kind.DISPATCHED, {"send": 1, "session": "none", "mark": None, "clock": now.to_json()}),
                (Kind.COMMITTED, {"evidence": f"re_{index}", "by_us": "yes", "via": "send", "send": 1}),
            ]
            entries = tuple(Entry(identity, n, kind, now.wall_ms, body) for n, (kind, body) in enumerate(bodies, 1))
            writes.append(Write(identity, 0, entries))
        gate.journal.append(writes)


CHILD = """
import sys, time
started = time.clock_gettime(time.CLOCK_BOOTTIME)
sys.path[:0] = {paths!r}
from scenarios.bench import gated
gate, effect = gated({journal!r})
ready = time.clock_gettime(time.CLOCK_BOOTTIME)
if {first!r}:
    effect("open")
report = gate.recover()
settled = time.clock_gettime(time.CLOCK_BOOTTIME)
print(ready, settled, settled - ready, *[str(outcome) for outcome in report])
"""


def _environment(folder: Path) -> dict[str, str]:
    """Ours, with compiled modules kept between the runs, as they are where a package was installed."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def _child(journal: Path, first: bool) -> tuple[float, list[str]]:
    code = CHILD.format(paths=[str(ROOT), str(ROOT / "integrations")], journal=str(journal), first=first)
    environment = _environment(journal.parent)
    if first:
        environment["INTERLOCK_CRASH"] = "before_bytes"
    began = time.clock_gettime(time.CLOCK_BOOTTIME)
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    if first:
        assert done.returncode == -9, done.stderr
        return began, []
    assert done.returncode == 0, done.stderr
    return began, done.stdout.split()


def recovery(folder: Path, finished: list[int], runs: int) -> dict[str, Any]:
    """One open effect among many finished ones, each time by a new process after a SIGKILL."""
    result: dict[str, Any] = {}
    for count in finished:
        journal = folder / f"recovery-{count}.db"
        gate, _ = gated(journal)
        fill(gate, count)
        gate.close()
        took, ready, settled = [], [], []
        for run in range(runs):
            copy = folder / f"recovery-{count}-{run}.db"
            shutil.copyfile(journal, copy)
            _child(copy, first=True)
            began, words = _child(copy, first=False)
            assert words[3:] == ["COMMITTED"], words
            ready.append(float(words[0]) - began)
            settled.append(float(words[1]) - began)
            took.append(float(words[2]))
        result[str(count)] = {
            "recover_ms": round(statistics.median(took) * 1000, 2),
            "ready_s_after_process_start": round(statistics.median(ready), 3),
            "settled_s_after_process_start": round(statistics.median(settled), 3),
        }
    return result


def import_time(folder: Path, runs: int) -> dict[str, Any]:
    """Import of the package beside a bare interpreter, with compiled modules."""
    samples: dict[str, list[float]] = {"pass": [], "import interlock_tools": []}
    environment = {**_environment(folder), "PYTHONPATH": str(ROOT)}
    for run in range(runs + 1):
        for code, found in samples.items():
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)
            if run:  # the first one compiles
                found.append(time.perf_counter() - began)
    bare, ours = (statistics.median(found) for found in samples.values())
    return {"interpreter_ms": round(bare * 1000, 1), "import_ms": round((ours - bare) * 1000, 1)}


def syncs(folder: Path) -> dict[str, Any]:
    """Durable syncs per effect, counted by strace; or why they were not."""
    if shutil.which("strace") is None:
        return {"not_measured": "strace is not installed"}
    script = (
        "import sys; sys.path[:0] = {paths!r}\n"
        "from pathlib import Path\n"
        "from scenarios.bench import gated, Bare\n"
        "which, count, path = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])\n"
        "effect = gated(path)[1] if which == 'gate' else Bare(path, ['x' * 300] * 3, 'x' * 80).effect\n"
        "[effect(f'{{count}}-{{i}}') for i in range(count)]\n"
    ).format(paths=[str(ROOT), str(ROOT / "integrations")])
    result = {}
    for which in ("bare", "gate"):
        counts = []
        for count in (10, 30):
            trace = folder / f"{which}-{count}.trace"
            command = ["strace", "-f", "-qq", "-e", "trace=fsync,fdatasync", "-o", str(trace)]
            path = folder / f"{which}-{count}.db"
            subprocess.run(
                [*command, sys.executable, "-c", script, which, str(count), str(path)], check=True, timeout=120
            )
            counts.append(trace.read_text().count("sync("))
        result[f"{which}_per_effect"] = round((counts[1] - counts[0]) / 20, 2)
    return result


def filesystem(folder: Path) -> str:
    """Type of the filesystem that a folder is on."""
    best, kind = "", "unknown"
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields = line.split()
        mount = fields[4]
        inside = str(folder.resolve()).startswith(mount.rstrip("/") + "/")
        if inside and len(mount) >= len(best):
            best, kind = mount, fields[fields.index("-") + 1]
    return kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["gate", "postgres", "signing"], help="what to measure")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--folder", type=Path, default=None, help="where to put the journals (a real disk)")
    parser.add_argument("--batches", type=int, default=40)
    parser.add_argument("--finished", type=int, nargs="*", default=[0, 10_000, 100_000])
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    if options.what == "postgres":
        from scenarios import bench_postgres

        return bench_postgres.main(options)
    if options.what == "signing":
        from scenarios import bench_signing

        return bench_signing.main(options)
    with tempfile.TemporaryDirectory(dir=options.folder or ROOT, prefix=".bench-") as name:
        folder = Path(name)
        kind = filesystem(folder)
        figures: dict[str, Any] = {
            "command": "python scenarios/bench.py gate --json results/bench-gate.json",
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version(), "sqlite": sqlite3.sqlite_version},
            "filesystem": kind,
            "load_average_at_start": round(os.getloadavg()[0], 1),
        }
        if kind in ("tmpfs", "ramfs"):
            figures["not_measured"] = f"{kind} has no durable commits; use --folder on a real disk"
        else:
            figures["syncs"] = syncs(folder)
            figures["throughput"] = throughput(folder, options.batches)
            figures["throughput_on_a_slower_disk"] = slower_disk(folder, options.batches)
            figures["recovery_by_finished_effects"] = recovery(folder, options.finished, options.runs)
            figures["import"] = import_time(folder, options.runs)
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
