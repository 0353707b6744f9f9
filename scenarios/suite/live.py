"""What ``--live`` plays: the scenarios at the services themselves, with keys of a test account from the environment.

They are driven by the public APIs alone. A row that cannot be played says why:
which key is missing, what the service said, or what only a sandbox can do.
Nothing is written to ``results``, which are those of the sandboxes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import Any

from interlock_tools import DefinitionError
from scenarios.suite.catalogue import scenario
from scenarios.suite.live_base import LiveService
from scenarios.suite.play import Cell, play


def _maker(service: str) -> Callable[[], LiveService]:
    from scenarios.suite import live_others
    from scenarios.suite.live_stripe import live_stripe

    makers = {"stripe": live_stripe, "github": live_others.live_github, "gcs": live_others.live_gcs}
    more = {"calendar": live_others.live_calendar, "resend": live_others.live_resend}
    return {**makers, **more}[service]


def blocked(key: str) -> str | None:
    """Why a scenario cannot be played at the service itself; None if it can."""
    missing = [name for name in scenario(key).live_needs if not os.environ.get(name)]
    return f"set {' and '.join(missing)}" if missing else None


def main(keys: Iterable[str], arms: set[str] | None, faults: set[str] | None) -> int:
    """Play what can be played, a row each; 1 if anything of interlock's did not hold, or nothing could be played."""
    played, broken = 0, 0
    for key in keys:
        why = blocked(key)
        if why:
            print(f"{key:44} BLOCKED: {why}")
            continue
        found = scenario(key)
        for fault, spec in found.faults.items():
            if faults and fault not in faults:
                continue
            if spec.rule is not None or fault in found.sandbox_only:
                print(f"{key}/*/{fault}".ljust(80), "BLOCKED: only a sandbox can do this", flush=True)
                continue
            for arm in found.arms if arms is None else [name for name in found.arms if name in arms]:
                if not found.arms[arm].plays(fault):
                    continue
                result = _row(Cell(key, arm, fault))
                played += result is not None
                broken += result is not None and arm.startswith("interlock") and not result["held"]
    return 1 if broken or not played else 0


def _row(cell: Cell) -> dict[str, Any] | None:
    name = f"{cell.scenario}/{cell.arm}/{cell.fault}"
    try:
        found = scenario(cell.scenario)
        result = play(found, cell, _maker(found.services[0])(), seed=1)
    except Exception as error:
        words = " ".join(str(getattr(error, "user_message", None) or error).split())
        ours = isinstance(error, DefinitionError) or words.startswith("BLOCKED: ")
        what = words.removeprefix("BLOCKED: ") if ours else f"{type(error).__name__}: {words}"
        print(f"{name:80} BLOCKED: {what[:300]}", flush=True)
        return None
    said = f"{'held' if result['held'] else 'NOT HELD'}, {result['holds']}, answer {result['answer']}"
    print(f"{name:80} {said}, settled in {result['settle_s']} s", flush=True)
    return result
