"""A service whose terms are chosen by the test: keys that are remembered or not, enforced versions, stale lookups.

``model`` holds the rules and no I/O; ``service`` puts them behind HTTP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from scenarios.sandbox.generic.service import GenericService as SERVICE

__all__ = ["SERVICE"]


def __getattr__(name: str) -> Any:
    """The service itself is slow to import; whoever wants the model alone does not need it."""
    if name != "SERVICE":
        raise AttributeError(name)
    from scenarios.sandbox.generic.service import GenericService

    return GenericService
