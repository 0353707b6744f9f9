"""How sure a rate is that was seen in so many runs."""

from __future__ import annotations

import math

Z = 1.959963984540054
"""95 % of a normal distribution lie within so many standard deviations."""


def interval(successes: int, runs: int) -> tuple[float, float]:
    """Wilson's score interval at 95 %, from 0 to 1. (0, 1) without a run."""
    if runs == 0:
        return 0.0, 1.0
    rate = successes / runs
    centre = rate + Z * Z / (2 * runs)
    spread = Z * math.sqrt(rate * (1 - rate) / runs + Z * Z / (4 * runs * runs))
    scale = 1 + Z * Z / runs
    return max(0.0, (centre - spread) / scale), min(1.0, (centre + spread) / scale)
