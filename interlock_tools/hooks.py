"""Who is told when an effect fails, is reversed, comes at risk, or turns ambiguous: a function, a command, or a URL.

A hook is called before what it is told is marked as told, so that a process
that dies in between tells it again. A hook that fails is called again at the
next look, and harms nothing else.
"""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from .outcome import Outcome

TOLD = ("failed", "reversed", "at_risk")
"""States of a settlement that somebody has to hear of."""

HOOK_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Notice:
    """What a hook is told.

    Attributes:
        event: ``failed``, ``reversed``, ``at_risk``, ``unknown_status`` or ``ambiguous``.
        outcome: the effect's outcome as it stands, with its settlement.
    """

    event: str
    outcome: Outcome

    def to_json(self) -> dict[str, Any]:
        return {"event": self.event, "outcome": self.outcome.to_json()}


Hook = Callable[[Notice], Any]


def command_hook(command: Sequence[str], timeout_s: float = HOOK_TIMEOUT_S) -> Hook:
    """Run a command for each notice, with the notice as JSON on its standard input. Raises if it ends with an error."""
    arguments = [command] if isinstance(command, str) else list(command)

    def run(notice: Notice) -> None:
        text = json.dumps(notice.to_json(), ensure_ascii=False)
        subprocess.run(arguments, input=text, text=True, check=True, timeout=timeout_s, stdout=subprocess.DEVNULL)

    return run


def url_hook(url: str, timeout_s: float = HOOK_TIMEOUT_S) -> Hook:
    """POST each notice as JSON to a URL. Raises for any answer but a 2xx."""
    if not url.startswith(("http://", "https://")):
        raise ValueError("a hook's URL begins with http:// or https://")

    def post(notice: Notice) -> None:
        body = json.dumps(notice.to_json(), ensure_ascii=False).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            answer.read()

    return post
