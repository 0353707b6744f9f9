"""``python scenarios/run.py (--all | --quick | --only KEY …)``: plays the scenarios and writes what was measured.

Every cell is a real run: real processes, real SIGKILLs, the official SDKs over
HTTP. What is kept is what the service itself held in the end. Results go to
``results/scenarios``, one file for each scenario; a run of some cells replaces
those and leaves the others. Ctrl-C keeps the cells that are done, and
``--resume`` plays the rest.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "integrations")]
os.environ["PYTHONPATH"] = os.pathsep.join(sys.path[:2])  # for the agents, which are processes of their own

from scenarios.suite import lanes, live  # noqa: E402
from scenarios.suite.catalogue import KEYS, scenario  # noqa: E402
from scenarios.suite.play import Cell  # noqa: E402
from scenarios.suite.progress import Progress  # noqa: E402
from scenarios.suite.results import Store, report  # noqa: E402

QUICK_ARMS = {"no_check", "hand_check", "hand_lock", "interlock"}
QUICK = {
    "stripe_dispute": {"crash_before_send_chargeback_during_outage", "crash_after_send_chargeback_during_outage"},
    "shared_cap": {"after_commit", "two_hosts/before_send"},
    "billing_credit": {"before_send/billing_credit"},
    "github_merge": {"before_send", "after_commit"},
    "github_comment": {"in_flight"},
    "calendar": {"before_send/slot_busy"},
    "email_tier3": {"past_key_window"},
    "gcp_resource": {"crash_after_commit_redeploy"},
    "connect_payout": {"crash_before_send_order_reversed"},
}
"""What ``--quick`` plays, once each: a row for each thing that the suite shows."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--all", action="store_true", help="all scenarios, arms and faults")
    what.add_argument("--quick", action="store_true", help="a selection that takes a few minutes; writes nothing")
    what.add_argument("--only", nargs="+", choices=KEYS, metavar="KEY", help=f"some of {', '.join(KEYS)}")
    what.add_argument("--report", action="store_true", help="play nothing; write the pages from what is there")
    parser.add_argument("--arm", nargs="+", help="only these arms")
    parser.add_argument("--fault", nargs="+", help="only these faults")
    parser.add_argument("--reps", type=int, help="how often each cell is played")
    parser.add_argument("--least", type=int, default=1, help="play cells at least so often, for medians (1)")
    parser.add_argument("--jobs", type=int, default=2, help="cells at a time (2)")
    parser.add_argument("--seed", type=int, default=1, help="added to the number of each repetition (1)")
    parser.add_argument("--resume", action="store_true", help="leave out the cells that have a result")
    parser.add_argument("--live", action="store_true", help="at the services themselves, with keys of the environment")
    parser.add_argument("--results", type=Path, default=ROOT / "results", help="where results go")
    return parser.parse_args()


def chosen(options: argparse.Namespace, store: Store) -> list[Cell]:
    """The cells that the command line asks for. Raises ``SystemExit`` for names that are not there."""
    arms, faults = set(options.arm or ()) or None, set(options.fault or ()) or None
    if options.quick:
        cells = []
        for key, some in QUICK.items():
            cells += lanes.cells_of([key], arms or QUICK_ARMS, faults or some, options.reps or 1)
        return cells
    keys = KEYS if options.all else options.only
    known_arms = {name for key in keys for name in scenario(key).arms}
    known_faults = {name for key in keys for name in scenario(key).faults}
    for asked, known, what in ((arms, known_arms, "arm"), (faults, known_faults, "fault")):
        unknown = sorted((asked or set()) - known)
        if unknown:
            raise SystemExit(f"no {what} {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    cells = lanes.cells_of(keys, arms, faults, options.reps, options.least)
    return [cell for cell in cells if not (options.resume and store.has(cell))]


def main() -> int:
    options = arguments()
    store = Store(options.results, options.seed, keep=not options.quick)
    if options.report:
        report(store)
        return 0
    if options.live:
        keys = KEYS if options.all or options.quick else options.only
        return live.main(keys, set(options.arm or ()) or None, set(options.fault or ()) or None)
    cells = chosen(options, store)
    stop = threading.Event()
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    began = time.monotonic()
    with Progress(len(cells), options.jobs) as progress:

        def heard(cell: Cell, result: dict[str, Any] | None, error: str | None) -> None:
            store.add(cell, result, error)
            progress.add(cell, result, error)

        lanes.run(cells, options.jobs, options.seed, heard, stop)
    if not options.quick:
        report(store)
    print(progress.summary(time.monotonic() - began))
    if stop.is_set():
        print("Stopped; the cells that are done are kept. Play the rest with the same command and --resume.")
    return 1 if progress.errors or progress.broken or stop.is_set() else 0


if __name__ == "__main__":
    sys.exit(main())
