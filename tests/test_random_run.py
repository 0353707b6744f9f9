"""Some hundreds of seeded random schedules; thousands by ``python -m scenarios.random_run --schedules 3000``."""

from __future__ import annotations

import logging
import unittest

from scenarios.random_run.__main__ import LIES
from scenarios.random_run.schedule import Schedule

SCHEDULES = 150
"""More by command; each takes some hundredths of a second."""

CAUGHT_WITHIN = 200
"""Schedules within which a broken promise of the service must show."""

FROM = {"late": 900, "lag": 200}
"""Where to begin looking, for lies that show in one schedule of some hundreds only."""


class RandomRun(unittest.TestCase):
    def setUp(self) -> None:
        logger = logging.getLogger("interlock_tools")
        level = logger.level
        logger.setLevel(logging.CRITICAL)
        self.addCleanup(logger.setLevel, level)

    def test_every_invariant_holds_in_every_schedule(self) -> None:
        told: set[str] = set()
        for seed in range(1, SCHEDULES + 1):
            schedule = Schedule(seed)
            try:
                schedule.run()
            except Exception as error:
                trace = "\n".join(schedule.trace)
                self.fail(f"{trace}\n{error!r}\nrepeat: python -m scenarios.random_run --seed {seed} --schedules 1")
            told |= schedule.kinds
        usual = {"COMMITTED", "AMBIGUOUS:no_evidence", "IN_FLIGHT:sending", "IN_FLIGHT:waiting", "IN_FLIGHT:unreadable"}
        refused = {"REFUSED:stale_premise", "REFUSED:not_allowed", "REFUSED:over_budget", "REFUSED:unreachable"}
        self.assertLessEqual(usual | refused, told, "the schedules have become too tame")

    def test_a_seed_says_everything(self) -> None:
        first, second = Schedule(7), Schedule(7)
        first.run()
        second.run()
        self.assertEqual(first.trace, second.trace)

    def test_a_service_that_breaks_its_promise_is_caught(self) -> None:
        for name, lie in LIES.items():
            with self.subTest(name):
                self.assertTrue(
                    any(self.fails(seed, lie) for seed in range(FROM.get(name, 1), FROM.get(name, 1) + CAUGHT_WITHIN)),
                    name,
                )

    @staticmethod
    def fails(seed: int, lie: object) -> bool:
        try:
            Schedule(seed, lie).run()  # type: ignore[arg-type]
        except AssertionError:
            return True
        return False


if __name__ == "__main__":
    unittest.main()
