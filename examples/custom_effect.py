"""An action of your own behind the gate, without an agent: what to declare, and what each answer means.

::

    pip install -e .
    python examples/custom_effect.py            # books the table
    python examples/custom_effect.py            # the same request again: it is booked already
    python examples/custom_effect.py --kill     # on a new folder: dies after the request has left
    python examples/custom_effect.py            # finds out at once what became of it
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from interlock_tools import Budget, DefiniteNo, Gate

FOLDER = Path(os.environ.get("EXAMPLE_FOLDER", "."))
SEATS = 6


class Restaurant:
    """A service that takes bookings and cannot take them back: a file stands for it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def bookings(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text().splitlines()] if self.path.exists() else []

    def book(self, table: str, seats: int, reference: str) -> dict[str, Any]:
        if seats > SEATS:
            raise DefiniteNo(f"table {table} has {SEATS} seats", code="too_many")  # nothing was done, and why
        booking = {"id": f"b_{len(self.bookings()) + 1}", "table": table, "seats": seats, "reference": reference}
        with self.path.open("a") as file:
            file.write(json.dumps(booking) + "\n")
        return booking


def main() -> int:
    """Book one table for one request."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seats", type=int, default=4)
    parser.add_argument("--kill", action="store_true", help="die right after the request has left")
    options = parser.parse_args()

    restaurant = Restaurant(FOLDER / "restaurant.txt")
    gate = Gate(FOLDER / "bookings.db")

    @gate.effect(
        "restaurant.book",  # stable: after a restart it is found by this name
        key=lambda party: party,  # the approved request; a second call of it does nothing more
        premises=lambda table, idempotency_key: {  # read now, and again before every send
            "taken": [
                b["id"] for b in restaurant.bookings() if b["table"] == table and b["reference"] != idempotency_key
            ]
        },
        expect={"taken": []},  # and this is what they must be
        budget=lambda seats: Budget("evening", amount=seats, limit=40),  # shared by all bookings of the evening
        lookup=lambda idempotency_key: next(  # how to find what a dead process did
            (b for b in restaurant.bookings() if b["reference"] == idempotency_key), None
        ),
    )
    def book(party: str, table: str, seats: int, *, idempotency_key: str) -> dict[str, Any]:
        booking = restaurant.book(table, seats, idempotency_key)
        if options.kill:
            os.kill(os.getpid(), signal.SIGKILL)
        return booking

    for outcome in gate.recover():
        print("recovered:", outcome.message)
    outcome = book(party="smith-1900", table="12", seats=options.seats)
    print(outcome, "-", outcome.message)
    return 0 if outcome.committed else 1


if __name__ == "__main__":
    sys.exit(main())
