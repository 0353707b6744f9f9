"""What pruning costs: 100,000 finished effects leave a journal while another process goes on calling.

::

    python scenarios/bench_prune.py --json results/bench-prune.json

Measures a SQLite journal, one that is signed, and a PostgreSQL journal. Afterwards a sample of the requests is made
again (each must be answered from its tombstone), and of the receipts verified from the archive alone.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
sys.path.insert(1, str(ROOT / "integrations"))

from interlock_tools import Gate, archive, parse_policy, verify  # noqa: E402
from interlock_tools.core.canonical import effect_id  # noqa: E402
from interlock_tools.journal.protocol import ARCHIVED  # noqa: E402
from interlock_tools.retention import prune  # noqa: E402
from interlock_tools.testing.postgres import NoServer, Server  # noqa: E402
from scenarios.bench import filesystem, fill, gated  # noqa: E402

SAMPLE = 20

CALLER = """
import sys, time, json
sys.path[:0] = {paths!r}
from pathlib import Path
from scenarios.bench import gated
gate, effect = gated({journal!r}, **({{"signing": Path({keys!r})}} if {keys!r} else {{}}))
effect("first")
print("ready", flush=True)
took, stop = [], Path({stop!r})
while not stop.exists():
    began = time.perf_counter()
    effect(f"{{stop.name}}-{{len(took)}}")
    took.append(time.perf_counter() - began)
    time.sleep(0.005)
gate.close()
print(json.dumps(took))
"""


class Caller:
    """Another process that makes new requests, one after the other, until it is told to stop."""

    def __init__(self, journal: str, keys: str, stop: Path) -> None:
        paths = [str(ROOT), str(ROOT / "integrations")]
        code = CALLER.format(paths=paths, journal=journal, keys=keys, stop=str(stop))
        self._stop = stop
        self._process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def end(self) -> dict[str, Any]:
        """Stop it, and say how long its calls took."""
        self._stop.touch()
        out, _ = self._process.communicate(timeout=120)
        took = sorted(json.loads(out))
        return {
            "calls": len(took),
            "median_ms": round(statistics.median(took) * 1000, 2),
            "p99_ms": round(took[int(len(took) * 0.99)] * 1000, 2),
            "longest_ms": round(took[-1] * 1000, 2),
        }


def measure(journal: str, count: int, folder: Path, signed: bool) -> dict[str, Any]:
    """Fill a journal, prune it while another process calls, and check a sample of what was promised."""
    folder.mkdir()
    keys = str(folder / "keys") if signed else ""
    gate, effect = gated(journal, **({"signing": folder / "keys"} if signed else {}))  # type: ignore[arg-type]
    fill(gate, count)
    last = gate.history(effect_id("bench.refund", f"finished-{count - 1}", 1))[-1]
    ended = datetime.fromtimestamp(last.at_ms / 1000 + 0.001, timezone.utc)
    alone = Caller(journal, keys, folder / "alone")
    time.sleep(3)
    found: dict[str, Any] = {"effects": count, "other_process_before": alone.end()}
    before = _bytes(journal, folder)
    meanwhile = Caller(journal, keys, folder / "meanwhile")
    began = time.perf_counter()
    report = prune(gate, ended, folder / "a")
    took_s = time.perf_counter() - began
    found["other_process_meanwhile"] = meanwhile.end()
    assert report.file is not None
    archived = report.archived.total()
    found |= {
        "archived": archived,
        "failed": len(report.failed),
        "prune_s": round(took_s, 1),
        "effects_per_s": round(archived / took_s),
        "archive_bytes_per_effect": round(report.file.stat().st_size / archived),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }
    if before is not None:
        made = found["other_process_meanwhile"]["calls"] + 1
        found["journal_bytes"] = {"before": before, "after": _bytes(journal, folder), "with_new_effects": made}
    began = time.perf_counter()
    again = prune(gate, timedelta(days=1), folder / "a", dry_run=True)
    found["dry_run_with_nothing_to_do_s"] = round(time.perf_counter() - began, 2)
    assert not again.archived
    found["sample"] = _sample(gate, effect, count, folder / "a", signed)
    gate.close()
    return found


def _sample(gate: Gate, effect: Any, count: int, folder: Path, signed: bool) -> dict[str, Any]:
    """Requests are made again, and receipts verified, spread over all that was archived."""
    policy = parse_policy(gate.records.policy() + "quorum none\n") if signed else None
    answered = verified = 0
    took = []
    for number in range(0, count, max(1, count // SAMPLE)):
        identity = effect_id("bench.refund", f"finished-{number}", 1)
        began = time.perf_counter()
        outcome = effect(f"finished-{number}")
        took.append(time.perf_counter() - began)
        row = gate.journal.effect(identity)
        answered += outcome.result == f"re_{number}" and row is not None and row.phase == ARCHIVED
        if policy is not None:
            report = verify(archive.receipt(folder, identity), policy)
            verified += report.exit_code == 0
    made = len(took)
    assert answered == made, f"{answered} of {made} were answered from their tombstones"
    assert verified == made or not signed, f"{verified} of {made} receipts meet the policy"
    call_ms = round(statistics.median(took) * 1000, 2)
    found: dict[str, Any] = {"made_again": made, "answered": answered, "call_ms": call_ms}
    return {**found, "receipts_verified": verified} if signed else found


def _bytes(journal: str, folder: Path) -> int | None:
    """The size of a compact copy of a SQLite journal; None for another journal."""
    if "://" in journal:
        return None
    import sqlite3

    copy = folder / "compact.db"
    connection = sqlite3.connect(f"file:{journal}?mode=ro", uri=True)
    connection.execute("VACUUM INTO ?", (str(copy),))
    connection.close()
    size = copy.stat().st_size
    copy.unlink()
    return size


def postgres(count: int, folder: Path) -> dict[str, Any]:
    """A PostgreSQL journal; or why it was not measured."""
    try:
        server = Server()
    except NoServer as error:
        return {"not_measured": str(error)}
    try:
        return measure(server.url(), count, folder, signed=False)
    finally:
        server.remove()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000, help="how many finished effects (100000)")
    parser.add_argument("--signed", type=int, default=20_000, help="how many in the signed journal (20000)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--folder", type=Path, default=ROOT, help="where to put the journals (a real disk)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder, prefix=".bench-") as name:
        folder = Path(name)
        os.environ["INTERLOCK_SESSIONS"] = str(folder / "sessions")
        figures: dict[str, Any] = {
            "command": "python scenarios/bench_prune.py --json results/bench-prune.json",
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "machine": {"cpus": os.cpu_count(), "python": platform.python_version()},
            "filesystem": filesystem(folder),
            "load_average_at_start": round(os.getloadavg()[0], 1),
            "sqlite": measure(str(folder / "plain.db"), options.count, folder / "plain", signed=False),
            "sqlite_signed": measure(str(folder / "signed.db"), options.signed, folder / "signed", signed=True),
            "postgres": postgres(options.count, folder / "postgres"),
        }
        figures["load_average_at_end"] = round(os.getloadavg()[0], 1)
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
