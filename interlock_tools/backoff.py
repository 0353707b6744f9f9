"""Pauses between tries, by tenacity."""

from __future__ import annotations


def pause_s(attempt: int, first_s: float = 0.1, most_s: float = 5.0) -> float:
    """Return how long to pause after try number ``attempt`` (from 1), in seconds: exponential, with jitter."""
    import tenacity

    wait = tenacity.wait_exponential(multiplier=first_s, max=most_s) + tenacity.wait_random(0, first_s)
    state = tenacity.RetryCallState(tenacity.Retrying(), None, (), {})
    state.attempt_number = max(1, attempt)
    return float(wait(state))
