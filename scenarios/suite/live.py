"""What ``--live`` needs, by scenario: it plays nothing without keys, and says which are missing."""

from __future__ import annotations

import os
from collections.abc import Iterable

from scenarios.suite.catalogue import scenario


def blocked(key: str) -> str | None:
    """Why a scenario cannot be played at the service itself; None if it can."""
    missing = [name for name in scenario(key).live_needs if not os.environ.get(name)]
    if missing:
        return f"set {' and '.join(missing)}"
    stripe_key = os.environ.get("STRIPE_API_KEY", "")
    if "STRIPE_API_KEY" in scenario(key).live_needs and not stripe_key.startswith(("sk_test_", "rk_test_")):
        return "STRIPE_API_KEY is not a key of test mode; a live-mode key is refused"
    return None


def main(keys: Iterable[str]) -> int:
    """Say what is blocked, a row for each scenario; 1 if anything is."""
    rows = {key: blocked(key) for key in keys}
    for key, why in rows.items():
        print(f"{key:16} {'BLOCKED: ' + why if why else 'ready'}")
    return 1 if any(rows.values()) else 0
