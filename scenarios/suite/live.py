"""What ``--live`` plays: the scenarios at the services themselves, in test mode, with keys from the environment.

The Stripe scenarios are played, as far as Stripe itself can be brought to it.
A row that cannot be played says why: which key is missing, what Stripe said, or
what only a sandbox can do. Nothing is written to ``results`` of the sandboxes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import stripe

from interlock_tools import DefinitionError
from scenarios.suite.catalogue import scenario
from scenarios.suite.live_stripe import LiveStripe
from scenarios.suite.play import Cell, play

AT_SANDBOX = "it is played at its sandbox only; what the person in it does has no public API that is driven here yet"


def blocked(key: str) -> str | None:
    """Why a scenario cannot be played at the service itself; None if it can."""
    found = scenario(key)
    missing = [name for name in found.live_needs if not os.environ.get(name)]
    if missing:
        return f"set {' and '.join(missing)}"
    return None if found.services == ("stripe",) and not found.race else AT_SANDBOX


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
            if spec.rule is not None or (faults and fault not in faults):
                continue
            for arm in found.arms if arms is None else [name for name in found.arms if name in arms]:
                if found.arms[arm].faults is not None and fault not in (found.arms[arm].faults or ()):
                    continue
                result = _row(Cell(key, arm, fault))
                played += result is not None
                broken += result is not None and arm.startswith("interlock") and not result["held"]
    return 1 if broken or not played else 0


def _row(cell: Cell) -> dict[str, Any] | None:
    name = f"{cell.scenario}/{cell.arm}/{cell.fault}"
    try:
        result = play(scenario(cell.scenario), cell, LiveStripe(), seed=1)
    except (stripe.StripeError, DefinitionError) as error:
        words = getattr(error, "user_message", None) or str(error)
        print(f"{name:80} BLOCKED: {words}", flush=True)
        return None
    except Exception as error:
        print(f"{name:80} error: {type(error).__name__}: {error}", flush=True)
        return None
    said = f"{'held' if result['held'] else 'NOT HELD'}, {result['holds']}, answer {result['answer']}"
    print(f"{name:80} {said}, settled in {result['settle_s']} s", flush=True)
    return result
