"""A small synchronous client of the control plane. Standard library only, so that any test or agent can use it."""

from __future__ import annotations

import http.client
import json
import time
from typing import Any
from urllib.parse import urlencode, urlsplit


class ControlError(Exception):
    """A control call was refused or did not come true in time. ``status`` is the HTTP status, 0 without an answer."""

    def __init__(self, words: str, status: int = 0) -> None:
        super().__init__(words)
        self.status = status


class ControlClient:
    """Drives one sandbox. Each call is one HTTP request on a connection of its own; safe to share between threads.

    Every method raises ControlError if the sandbox refuses or does not answer.
    """

    def __init__(self, url: str, timeout_s: float = 10.0) -> None:
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s

    # The clock: seconds since the epoch, UTC.

    def now(self) -> float:
        """The sandbox's time."""
        return float(self.clock()["now"])

    def clock(self) -> dict[str, Any]:
        """now, offset_s, frozen, and when scheduled things are due."""
        return dict(self._call("GET", "clock"))

    def advance(self, seconds: float) -> dict[str, Any]:
        """Move the clock on; whatever falls due on the way has happened when this returns."""
        return dict(self._call("POST", "clock", {"advance_s": seconds}))

    def set_clock(self, moment: float) -> dict[str, Any]:
        return dict(self._call("POST", "clock", {"set": moment}))

    def freeze(self, frozen: bool = True) -> dict[str, Any]:
        """Stop the clock, so that only ``advance`` and ``set_clock`` move it; False lets it run on."""
        return dict(self._call("POST", "clock", {"frozen": frozen}))

    # Faults.

    def fault(self, action: str, method: str | None = None, path: str = ".*", **fields: Any) -> int:
        """Add a rule (see ``faults.Rule`` for actions and fields); returns its id."""
        rule = {"action": action, "method": method, "path": path, **fields}
        return int(self._call("POST", "rules", rule)["id"])

    def latency(self, seconds: float, method: str | None = None, path: str = ".*", times: int | None = None) -> int:
        """Delay matching requests by real ``seconds``; for ever unless ``times`` is given."""
        return self.fault("latency", method, path, seconds=seconds, times=times)

    def hold(self, method: str | None = None, path: str = ".*", seconds: float | None = None, **fields: Any) -> int:
        """Hold the next matching request: applied ``seconds`` later, or on ``release`` where that is None."""
        return self.fault("hold", method, path, seconds=seconds, **fields)

    def rules(self) -> list[dict[str, Any]]:
        return list(self._call("GET", "rules"))

    def clear_faults(self, rule_id: int | None = None) -> int:
        """Remove one rule or all; requests that are held stay held."""
        query = f"?id={rule_id}" if rule_id is not None else ""
        return int(self._call("DELETE", "rules" + query)["removed"])

    def held(self) -> list[dict[str, Any]]:
        """Requests that are being held now."""
        return list(self._call("GET", "held"))

    def release(self, n: int | None = None, apply: bool = True) -> list[int]:
        """Let go of one held request or of all. They have been applied, or dropped for good, when this returns."""
        return list(self._call("POST", "held", {"n": n, "apply": apply}, self._timeout_s + 30)["released"])

    # What came in, and what it did.

    def requests(
        self, method: str | None = None, path: str | None = None, stage: str | None = None
    ) -> list[dict[str, Any]]:
        """The request log. ``path`` is a regular expression for the whole path."""
        given = {"method": method, "path": path, "stage": stage}
        return list(self._call("GET", "requests?" + urlencode({k: v for k, v in given.items() if v})))

    def count(self, method: str | None = None, path: str | None = None) -> int:
        """How many matching requests were received whole."""
        return len(self.requests(method, path, "received"))

    def counts(self) -> dict[str, int]:
        """Requests received, by ``"METHOD path"``."""
        return dict(self._call("GET", "counts"))

    def received(
        self,
        count: int = 1,
        method: str | None = None,
        path: str | None = None,
        *,
        stage: str = "received",
        timeout_s: float = 30.0,
    ) -> list[dict[str, Any]]:
        """Wait until ``count`` matching requests (since the last reset) got to ``stage``; returns all that did.

        Raises ControlError with status 408 after ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = deadline - time.monotonic()
            slice_s = max(0.0, min(left_s, 20.0))
            wanted = {"count": count, "method": method, "path": path, "stage": stage, "timeout_s": slice_s}
            try:
                return list(self._call("POST", "wait", wanted, slice_s + self._timeout_s))
            except ControlError as error:
                if error.status != 408 or time.monotonic() < deadline:
                    if error.status == 408:
                        continue
                    raise
                seen = [f"{r['method']} {r['path']} ({r['stage']})" for r in self.requests()[-10:]]
                raise ControlError(
                    f"no {count} request(s) {method or 'ANY'} {path or '.*'} at stage {stage} within {timeout_s} s; "
                    f"the last ones: {seen}",
                    408,
                ) from None

    def ledger(self) -> dict[str, Any]:
        """Every effect that the service holds: the truth to judge by."""
        return dict(self._call("GET", "ledger"))

    def action(self, name: str, **values: Any) -> Any:
        """One of the service's own control calls."""
        return self._call("POST", f"actions/{name}", values)

    def actions(self) -> dict[str, str]:
        """The service's own control calls and what they do."""
        return dict(self._call("GET", "actions"))

    def health(self) -> dict[str, Any]:
        return dict(self._call("GET", "health"))

    def reset(self) -> None:
        """Everything as at the start: state, rules, log, clock."""
        self._call("POST", "reset", {})

    def _call(self, method: str, path: str, body: Any = None, timeout_s: float | None = None) -> Any:
        where = urlsplit(self.url)
        connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=timeout_s or self._timeout_s)
        try:
            connection.request(
                method,
                f"{where.path}/_control/{path}",
                None if body is None else json.dumps(body),
                {"Content-Type": "application/json", "Connection": "close"},
            )
            response = connection.getresponse()
            text = response.read().decode("utf-8")
        except OSError as error:
            raise ControlError(f"the sandbox at {self.url} does not answer: {error}") from error
        finally:
            connection.close()
        if response.status != 200:
            raise ControlError(f"{method} {path}: {response.status} {text}", response.status)
        return json.loads(text)
