"""A service itself in the place of its sandbox: what it is asked, as far as its public API can do it.

What only a sandbox can do (hold a request, cut a connection, count requests,
move a clock) is not played there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from types import TracebackType
from typing import Any

from scenarios.suite.model import Work
from scenarios.suite.process import HarnessError

LONGEST_WAIT_S = 120.0


class LiveControl:
    """Stands where a ``ControlClient`` does. A subclass has a method ``do_NAME`` for each action, and ``ledger``."""

    def __init__(self) -> None:
        self.work: Work | None = None

    @property
    def arguments(self) -> dict[str, Any]:
        return self.work.arguments if self.work is not None else {}

    def about(self, work: Work) -> None:
        """Which case the ledger is about."""
        self.work = work

    def reset(self) -> None:
        """Every cell makes what it needs."""

    def now(self) -> float:
        return time.time()

    def advance(self, seconds: float) -> dict[str, Any]:
        """Time passes by itself; an hour is not waited for."""
        if seconds > 300:
            raise HarnessError("BLOCKED: nobody can move the service's clock")
        time.sleep(seconds)
        return {}

    def fault(self, action: str, *where: Any, **fields: Any) -> int:
        raise HarnessError(f"BLOCKED: nobody can make the service itself do this: {action}")

    def held(self) -> list[Any]:
        return []

    def count(self, method: str | None = None, path: str | None = None) -> int:
        """Nobody can count requests at the service itself."""
        return 0

    def received(self, count: int, *where: Any, **fields: Any) -> list[Any]:
        """Wait until the case's effect is there."""
        self.until("the effect", self.has_landed)
        return []

    def has_landed(self) -> bool:
        """Whether the case's effect is there."""
        raise NotImplementedError

    def ledger(self) -> dict[str, Any]:
        """What the service holds of the case, as its sandbox would say it."""
        raise NotImplementedError

    def action(self, name: str, **values: Any) -> Any:
        """Something that a person or a bank does. Raises ``HarnessError`` where the public API cannot."""
        found = getattr(self, f"do_{name}", None)
        if found is None:
            raise HarnessError(f"BLOCKED: nobody can make the service itself do this: {name}")
        return found(**values)

    def until(self, what: str, condition: Callable[[], Any]) -> Any:
        """Wait for something that comes about by itself. Raises ``HarnessError`` if it does not."""
        deadline = time.monotonic() + LONGEST_WAIT_S
        while not (found := condition()):
            if time.monotonic() > deadline:
                raise HarnessError(f"{what} did not come about within {LONGEST_WAIT_S:.0f} s")
            time.sleep(0.5)
        return found


class LiveService:
    """Stands where a ``SandboxProcess`` does."""

    def __init__(self, url: str, environment: dict[str, str], control: LiveControl) -> None:
        self.url = url
        self.environment = environment
        self.control = control
        self.controls = {"live": control}

    def start(self) -> LiveService:
        """Nothing is started."""
        return self

    def stop(self) -> None:
        """Nothing was started."""

    def printed(self) -> str:
        """Nothing is printed."""
        return ""

    def __enter__(self) -> LiveService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
