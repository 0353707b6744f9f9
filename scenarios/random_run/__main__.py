"""``python -m scenarios.random_run --schedules N --seed S``: N random schedules, from seed S on."""

from __future__ import annotations

import argparse
import collections
import logging
import sys
import time
import traceback

from scenarios.random_run.schedule import Schedule
from scenarios.random_run.world import Lie

LIES = {
    "late": Lie(timeout=3.0),
    "lag": Lie(lag=20.0),
    "forgets": Lie(dedupes=0.0),
    "lax": Lie(enforces=False),
}


def main(arguments: list[str] | None = None) -> int:
    """0 if every schedule is right, 1 if not."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.random_run", description=__doc__)
    parser.add_argument("--schedules", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1, help="of the first schedule; the next ones count up")
    parser.add_argument("--lie", choices=sorted(LIES), help="the service breaks a promise: schedules must fail")
    parser.add_argument("--trace", action="store_true", help="print every event, also where all is right")
    parser.add_argument("--keep-going", action="store_true", help="go on after a schedule that is wrong")
    given = parser.parse_args(arguments)
    logging.getLogger("interlock_tools").setLevel(logging.CRITICAL)
    began = time.monotonic()
    answers: collections.Counter[str] = collections.Counter()
    wrong = done = events = 0
    for seed in range(given.seed, given.seed + given.schedules):
        schedule = Schedule(seed, LIES.get(given.lie))
        problem = ""
        try:
            schedule.run()
        except AssertionError as violation:
            problem = f"{violation}"
        except Exception:
            problem = traceback.format_exc()
        done += 1
        events += len(schedule.trace)
        answers.update(schedule.kinds)
        if given.trace or problem:
            print("\n".join(schedule.trace))
        if problem:
            wrong += 1
            lie = f" --lie {given.lie}" if given.lie else ""
            print(f"seed {seed}: {problem}\n  repeat: python -m scenarios.random_run --seed {seed} --schedules 1{lie}")
            if not given.keep_going:
                break
    seconds = time.monotonic() - began
    told = ", ".join(f"{word} in {count}" for word, count in sorted(answers.items()))
    print(f"{done} schedules, {events} events, {wrong} wrong, {seconds:.0f} s; answers: {told}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
