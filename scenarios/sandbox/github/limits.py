"""Rate limits. Source: GitHub's REST API reference, "Rate limits for the REST API" and its best practices.

Primary: so many requests an hour; past it 403 (or 429) with ``x-ratelimit-remaining: 0`` and when it starts afresh in
``x-ratelimit-reset`` (seconds since the epoch). Secondary: 403 (or 429) with ``retry-after`` in seconds.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from scenarios.sandbox.github.errors import GitHubError
from scenarios.sandbox.github.world import World

HOUR_S = 3600.0
SECONDARY = (
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. If you reach out to "
    "GitHub Support for help, please include the request ID."
)


class Limits:
    """One caller's budget; the sandbox has one for all."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.limit = int(world.timing.rate_limit)
        self.used = 0
        self.reset_at = world.now() + HOUR_S
        self.status = 403
        self._created: deque[float] = deque()
        self._closed_until = 0.0
        self._secondary_status = 403
        self._says_when = True

    def headers(self) -> dict[str, str]:
        return {
            "X-RateLimit-Limit": str(self.limit),
            "X-RateLimit-Remaining": str(max(0, self.limit - self.used)),
            "X-RateLimit-Used": str(self.used),
            "X-RateLimit-Reset": str(int(self.reset_at)),
            "X-RateLimit-Resource": "core",
        }

    def shown(self) -> dict[str, Any]:
        left = max(0, self.limit - self.used)
        return {"limit": self.limit, "used": self.used, "remaining": left, "reset": int(self.reset_at)}

    def take(self, caller_id: int) -> None:
        """Count a request. Raises the primary limit's error."""
        if self._world.now() >= self.reset_at:
            self.used = 0
            self.reset_at = self._world.now() + HOUR_S
        if self.used >= self.limit:
            message = f"API rate limit exceeded for user ID {caller_id}."
            raise GitHubError(self.status, message, page="/overview/rate-limits-for-the-rest-api")
        self.used += 1

    def write(self, creates_content: bool) -> None:
        """Count a write. Raises the secondary limit's error."""
        now = self._world.now()
        while self._created and self._created[0] <= now - 60:
            self._created.popleft()
        if creates_content and len(self._created) >= self._world.timing.content_per_minute:
            self._closed_until = max(self._closed_until, self._created[0] + 60)
        if now < self._closed_until:
            headers = {"Retry-After": str(max(1, round(self._closed_until - now)))} if self._says_when else {}
            page = "/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"
            raise GitHubError(self._secondary_status, SECONDARY, page=page, headers=headers)
        if creates_content:
            self._created.append(now)

    def set_primary(self, remaining: int, reset_in_s: float, status: int) -> None:
        self.used = self.limit - remaining
        self.reset_at = self._world.now() + reset_in_s
        self.status = status

    def set_secondary(self, seconds: float, status: int, says_when: bool) -> None:
        self._closed_until = self._world.now() + seconds
        self._secondary_status = status
        self._says_when = says_when
