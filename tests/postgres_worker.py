"""A worker with a gate for tests with several hosts. ``python -m postgres_worker URL LEDGER CASE``, or ``recover``.

The service is a file with one line for each refund. It knows no keys, but can be looked up. ``INTERLOCK_TEST_HOLD``
names files by which a test holds a worker in its send; a name that ends in ``before`` or ``after`` says where.
"""

from __future__ import annotations

import json
import os
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

from interlock_tools import Budget, Gate, SendRevoked

HOLD_S = 120


def say(what: str, words: str = "") -> None:
    """Leave a file that says how far this worker is, where a test wants to know."""
    if os.environ.get("INTERLOCK_TEST_HOLD"):
        Path(f"{os.environ['INTERLOCK_TEST_HOLD']}.{what}").write_text(words)


def hold(where: str) -> None:
    """Wait here, ``before`` the send or ``after`` it, if the test wants it, until it says to go on."""
    wanted = os.environ.get("INTERLOCK_TEST_HOLD", "")
    if not wanted.endswith(where):
        return
    say("held")
    deadline = time.monotonic() + HOLD_S
    while not Path(f"{wanted}.go").exists():
        if time.monotonic() > deadline:
            raise TimeoutError(wanted)
        time.sleep(0.01)


def main() -> None:
    url, ledger, case = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    gate = Gate(url)

    def find(case: str, *, idempotency_key: str) -> str | None:
        lines = ledger.read_text().split() if ledger.exists() else []
        return idempotency_key if idempotency_key in lines else None

    @gate.effect(
        "kit.refund",
        key=lambda case: case,
        premises=lambda case: {"chargebacks": 0},
        budget=lambda case: Budget(case.partition(" ")[2], amount=20, limit=30),
        lookup=find,
        lookup_lag=timedelta(0),
        send_timeout=timedelta(seconds=1),
    )
    def refund(case: str, *, idempotency_key: str, on_send: Any) -> str:
        hold("before")
        try:
            on_send()
        except SendRevoked as error:
            say("revoked", str(error))
            raise
        with ledger.open("a") as file:
            file.write(f"{idempotency_key}\n")
        hold("after")
        return idempotency_key

    if case == "recover":
        report = gate.recover(wait=30)
        answer = {"outcomes": [str(outcome) for outcome in report], "open": len(gate.open_effects())}
    else:
        answer = {"outcome": str(refund(case=case))}
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
