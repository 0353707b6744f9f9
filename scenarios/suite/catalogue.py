"""All scenarios by key. Loading one loads only what its agent needs."""

from __future__ import annotations

from importlib import import_module

from scenarios.suite.model import Scenario

KEYS = (
    "stripe_dispute",
    "shared_cap",
    "billing_credit",
    "github_merge",
    "github_comment",
    "calendar",
    "email_tier3",
    "gcp_resource",
    "connect_payout",
)


def scenario(key: str) -> Scenario:
    """The scenario of this key. Raises ``KeyError``."""
    if key not in KEYS:
        raise KeyError(f"no scenario {key}; there are {', '.join(KEYS)}")
    made: Scenario = import_module(f"scenarios.cases.{key}").SCENARIO
    return made
