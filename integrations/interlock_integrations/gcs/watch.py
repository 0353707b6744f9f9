"""What became of a generation that was written: it is live, somebody has written over it, or it was deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from google.cloud import storage

from interlock_tools.settlement import Settlement

from .reading import read

PAUSE = timedelta(hours=6)


def object_settlement(live: int | None, own: int) -> Settlement:
    """What a written generation comes to. Pure.

    Args:
        live: the object's live generation; None if there is none.
        own: the generation that was written.
    """
    if live is None:
        return Settlement("reversed", "the object was deleted")
    if live != own:
        return Settlement("reversed", f"generation {live} took its place")
    return Settlement("settled", f"generation {own} is live", look_again=PAUSE)


def watch_object(client: storage.Client) -> Callable[..., Settlement]:
    """Look at one object: one request."""

    def watch(bucket: str, name: str, evidence: dict[str, Any]) -> Settlement:
        live = read(client, bucket, name)
        return object_settlement(None if live is None else int(live.generation or 0), int(evidence["generation"]))

    return watch
