"""How objects and their generations are read, and how an effect's own generation is found among them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from google.api_core.exceptions import Forbidden, NotFound
from google.cloud import storage
from google.cloud.storage import Blob

from interlock_tools import BadArguments, CannotKnow

from .client import ONCE

EFFECT_ID = "interlock_effect_id"
"""Name of the custom metadata entry that holds the effect's id on every generation that a gated tool writes."""

BUCKET = r"^[a-z0-9][a-z0-9._-]{1,220}[a-z0-9]$"
MAX_NAME_BYTES = 1024
MAX_GENERATION = 2**63 - 1

MAX_GENERATIONS = 10_000
"""Bound on one listing. Past it nothing can be said, and the reading fails."""

FIELDS = ("content_type", "cache_control", "content_encoding", "content_disposition", "content_language")
"""Fixed-key metadata that a restored object takes over."""


class Unreadable(RuntimeError):
    """The service's answer does not say what was asked."""


def subject(request: str, bucket: str, name: str) -> str:
    """Return the request key: the reference and the object. Raises ``BadArguments`` for what is no name of one."""
    if not re.match(BUCKET, bucket) or bucket.endswith("\n"):
        raise BadArguments("bucket is the name of a bucket, without gs:// and without a path")
    size = len(name.encode("utf-8", "replace"))
    if not 1 <= size <= MAX_NAME_BYTES or name in (".", "..") or any(ord(letter) < 32 for letter in name):
        raise BadArguments(f"name is the name of an object: 1 to {MAX_NAME_BYTES} bytes, on one line, not . or ..")
    return f"{request}:{bucket}/{name}"


def read(client: storage.Client, bucket: str, name: str, generation: int | None = None) -> Blob | None:
    """Read an object's live generation, or the one that is named; None if there is none.

    Raises:
        GoogleAPICallError: it cannot be read.
        Unreadable: the answer names no generation.
    """
    found = client.bucket(bucket).blob(name, generation=generation)
    try:
        found.reload(**ONCE)
    except NotFound:
        return None
    if not found.generation:
        raise Unreadable("the service's answer is no object")
    return found


def number_of(blob: Blob) -> int:
    """Return a generation's number; 0 where there is none."""
    return int(blob.generation or 0)


def generations(client: storage.Client, bucket: str, name: str) -> list[Blob]:
    """Return every generation of an object that the service still has, every page.

    Raises:
        GoogleAPICallError: they cannot be read.
        Unreadable: there are more than ``MAX_GENERATIONS``.
    """
    listing = client.list_blobs(
        bucket,
        prefix=name,
        start_offset=name,
        end_offset=name + " ",  # longer names that begin with this one
        versions=True,
        **ONCE,
    )
    found = []
    for count, blob in enumerate(listing):
        if count >= MAX_GENERATIONS:
            raise Unreadable(f"more than {MAX_GENERATIONS} generations; what is not among them may still be there")
        if blob.name == name:
            found.append(blob)
    return found


def find_own(
    client: storage.Client,
    bucket: str,
    name: str,
    idempotency_key: str,
    decided: int,
    deletions: Literal["possible", "never"],
) -> dict[str, Any] | None:
    """Return the generation that an effect wrote, or None where it is certain that there was none.

    Args:
        client: the client.
        bucket: the bucket's name.
        name: the object's name.
        idempotency_key: the effect's id.
        decided: the generation that the effect was to replace; 0 where there was none.
        deletions: ``never`` where nobody deletes objects of this name.

    Raises:
        CannotKnow: the service keeps too little to tell.
        GoogleAPICallError, Unreadable: it cannot be read.
    """
    kept = generations(client, bucket, name)
    own = [blob for blob in kept if (blob.metadata or {}).get(EFFECT_ID) == idempotency_key]
    if own:
        return evidence(own[0])
    live = next((blob for blob in kept if blob.time_deleted is None), None)
    if live is not None and live.generation == decided:
        return None  # ours would have replaced it for ever
    if decided:
        if any(blob.generation == decided for blob in kept):
            return None  # the bucket kept what was replaced, so it would have kept ours
        raise CannotKnow(
            f"generation {decided} is gone and the bucket kept no older ones, so a write that was itself replaced or "
            "deleted would have left no trace"
        )
    if _keeps_versions(client, bucket) or (live is None and deletions == "never"):
        return None
    raise CannotKnow(
        "the bucket keeps no older generations, so a new object that was "
        + ("deleted" if live is None else "replaced or deleted")
        + " since would have left no trace"
    )


def _keeps_versions(client: storage.Client, bucket: str) -> bool:
    """Whether the bucket has versioning. One that may not be read counts as one that has not."""
    try:
        return bool(client.get_bucket(bucket, **ONCE).versioning_enabled)
    except Forbidden:
        return False


def evidence(blob: Blob) -> dict[str, Any] | None:
    """Return what is kept of a generation; None if it has no number and so proves nothing."""
    if not blob.generation:
        return None
    return {
        "id": f"{blob.bucket.name}/{blob.name}#{number_of(blob)}",
        "generation": number_of(blob),
        "crc32c": blob.crc32c,
        "size": blob.size,
    }


def source_fields(blob: Blob) -> dict[str, Any]:
    """Return the metadata of a generation that a restored one takes over, without any effect's id."""
    fields: dict[str, Any] = {name: getattr(blob, name) for name in FIELDS if getattr(blob, name)}
    metadata: Mapping[str, str] = blob.metadata or {}
    fields["metadata"] = {key: value for key, value in metadata.items() if key != EFFECT_ID}
    return fields
