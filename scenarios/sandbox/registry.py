"""The services by name. Each lives in a module of its own that defines ``SERVICE``, its Service class."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scenarios.sandbox.base import Service
    from scenarios.sandbox.clock import Clock

SERVICES = {
    "stripe": "scenarios.sandbox.stripe",
    "github": "scenarios.sandbox.github",
    "gcs": "scenarios.sandbox.gcs",
    "calendar": "scenarios.sandbox.calendar",
    "resend": "scenarios.sandbox.resend",
    "echo": "scenarios.sandbox.echo",
    "generic": "scenarios.sandbox.generic",
}
FOR_TESTS = ("echo", "generic")


def available() -> list[str]:
    """Names of the services whose module is here; those that are for tests alone are left out."""
    return [name for name, module in SERVICES.items() if name not in FOR_TESTS and importlib.util.find_spec(module)]


def create(name: str, clock: Clock, options: Mapping[str, str]) -> Service:
    """A new service. Raises ValueError for an unknown name or option."""
    if name not in (*available(), *FOR_TESTS):
        raise ValueError(f"no sandbox named {name!r}; there are {', '.join(available())}")
    service: Service = importlib.import_module(SERVICES[name]).SERVICE(clock, options)
    return service
