"""``python scenarios/bench_watch.py``: a day's refunds, looked at in one pass, and how many requests that takes.

The refunds are real ones of the Stripe sandbox, made through the gate; the pass
is ``gate.watch()``, and what it asks the service is counted by the sandbox.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[0] = str(ROOT)
sys.path.insert(1, str(ROOT / "integrations"))

import stripe  # noqa: E402

from interlock_integrations.stripe import declare_refund, gated_client  # noqa: E402
from interlock_tools import Gate  # noqa: E402
from scenarios.sandbox import SandboxProcess  # noqa: E402


def measure(count: int, folder: Path) -> dict[str, Any]:
    """Make ``count`` refunds, and look at all of them in one pass."""
    with SandboxProcess("stripe") as sandbox:
        client = gated_client(stripe.StripeClient("sk_test_bench", base_addresses={"api": sandbox.url}))
        gate = Gate(folder / "journal.db")
        refund = declare_refund(gate, client, other_refunds="allow", premises=lambda: {"refunded_by_others": 0})
        began = time.monotonic()
        for number in range(count):
            payment = str(sandbox.control.action("pay", amount=1000)["id"])
            made = refund(f"case-{number}", payment, 100, "requested_by_customer")
            assert made.committed, made.message
        took_s = time.monotonic() - began
        before = sandbox.control.count("GET")
        began = time.monotonic()
        report = gate.watch(limit=count)
        found = {
            "refunds": count,
            "made_in_s": round(took_s, 1),
            "looked_at": report.looked,
            "changed": len(report.changed),
            "unreadable": len(report.unreadable),
            "requests": sandbox.control.count("GET") - before,
            "pass_s": round(time.monotonic() - began, 1),
            "left": report.left,
        }
        gate.close()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="how many refunds (10000)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        figures = {
            "command": f"python scenarios/bench_watch.py --count {options.count} --json results/bench-watch.json",
            "measured_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            **measure(options.count, Path(folder)),
        }
    text = json.dumps(figures, indent=2)
    print(text)
    if options.json:
        options.json.write_text(text + "\n", encoding="utf-8")
    return 0 if figures["looked_at"] == options.count and not figures["unreadable"] else 1


if __name__ == "__main__":
    sys.exit(main())
