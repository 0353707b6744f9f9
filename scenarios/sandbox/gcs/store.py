"""Buckets, objects and generations, and the rules by which they change. Nothing here awaits.

Source: Cloud Storage's documentation, "Object versioning", "Request preconditions", "Consistency"; the JSON API's
published description (``storage.v1``).
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.gcs.crc32c import encoded
from scenarios.sandbox.gcs.errors import (
    GcsError,
    condition_not_met,
    forbidden,
    invalid,
    no_bucket,
    no_object,
    not_modified,
)

WRITABLE = ("contentType", "contentEncoding", "contentDisposition", "contentLanguage", "cacheControl", "customTime")
"""Fields of an object that a writer may set, besides ``metadata``."""


@dataclass
class Generation:
    """One generation of one object. Times are sandbox time."""

    bucket: str
    name: str
    generation: int
    content: bytes
    created_at: float
    fields: dict[str, str]
    metadata: dict[str, str]
    via: str
    metageneration: int = 1
    updated_at: float = 0.0
    live: bool = True
    deleted_at: float | None = None
    """When it ceased to be live."""
    gone: bool = False
    """The service keeps no trace of it any more."""

    @property
    def md5(self) -> str:
        return base64.b64encode(hashlib.md5(self.content).digest()).decode("ascii")

    @property
    def crc32c(self) -> str:
        return encoded(self.content)


@dataclass
class Bucket:
    name: str
    created_at: float
    versioning: bool = False
    location: str = "US"
    metageneration: int = 1
    denied: set[str] = field(default_factory=set)
    """Permissions that nobody has here."""
    generations: dict[str, list[Generation]] = field(default_factory=dict)
    """By object name, oldest first, those that are gone included."""

    def live(self, name: str) -> Generation | None:
        return next((g for g in self.generations.get(name, ()) if g.live), None)

    def kept(self, name: str) -> list[Generation]:
        """What the service still has of an object, oldest first."""
        return [g for g in self.generations.get(name, ()) if not g.gone]

    def check(self, permission: str) -> None:
        """Raises the service's 403."""
        if permission in self.denied:
            raise forbidden(permission)


class Conditions:
    """The ``if…Match`` parameters of a request, for its target or (``prefix="Source"``) for what it copies from."""

    def __init__(self, query: Mapping[str, str], prefix: str = "") -> None:
        self._wanted = {
            part: number(query, f"if{prefix}{part}")
            for part in ("GenerationMatch", "GenerationNotMatch", "MetagenerationMatch", "MetagenerationNotMatch")
        }

    def check(self, live: Generation | None, *, reading: bool = False) -> None:
        """Raises the service's 412, or 304 where a read asks for what it has already."""
        generation = live.generation if live is not None else 0
        metageneration = live.metageneration if live is not None else 0
        for part, found in (("Generation", generation), ("Metageneration", metageneration)):
            wanted, unwanted = self._wanted[f"{part}Match"], self._wanted[f"{part}NotMatch"]
            if wanted is not None and wanted != found:
                raise condition_not_met()
            if unwanted is not None and unwanted == found:
                raise not_modified() if reading else condition_not_met()


class Store:
    """Everything the service holds."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_generation = 0
        self.buckets: dict[str, Bucket] = {}

    def now(self) -> float:
        return self._clock.now()

    def bucket(self, name: str) -> Bucket:
        """Raises the service's 404."""
        found = self.buckets.get(name)
        if found is None:
            raise no_bucket()
        return found

    def named(self, name: str) -> Bucket:
        """For control calls. Raises ValueError."""
        if name not in self.buckets:
            raise ValueError(f"no bucket {name!r}; there are {', '.join(self.buckets) or 'none'}")
        return self.buckets[name]

    def create_bucket(self, name: str, versioning: bool = False, location: str = "US") -> Bucket:
        """Raises the service's 409."""
        if not name:
            raise invalid("Required", "name")
        if name in self.buckets:
            raise GcsError(
                409, "Your previous request to create the named bucket succeeded and you already own it.", "conflict"
            )
        self.buckets[name] = Bucket(name, self.now(), versioning, location)
        return self.buckets[name]

    def delete_bucket(self, name: str) -> None:
        """Raises the service's 404, or 409 while there are objects in it."""
        bucket = self.bucket(name)
        if any(bucket.kept(each) for each in bucket.generations):
            raise GcsError(409, "The bucket you tried to delete is not empty.", "conflict")
        del self.buckets[name]

    def find(self, bucket: Bucket, name: str, generation: int | None) -> Generation:
        """The live generation, or the one that is asked for. Raises the service's 404."""
        if generation is None:
            found = bucket.live(name)
        else:
            found = next((g for g in bucket.kept(name) if g.generation == generation), None)
        if found is None:
            raise no_object(bucket.name, name)
        return found

    def write(
        self, bucket: Bucket, name: str, content: bytes, given: Mapping[str, Any], conditions: Conditions, via: str
    ) -> Generation:
        """A new generation in place of the live one, if the conditions hold: compared and written as one step."""
        if not name:
            raise invalid("Required", "name")
        live = bucket.live(name)
        conditions.check(live)
        bucket.check("storage.objects.create")
        if live is not None:
            bucket.check("storage.objects.delete")  # what replaces an object needs both (IAM reference)
        _check_hashes(content, given)
        if live is not None:
            self._retire(bucket, live)
        now = self.now()
        self._last_generation = max(self._last_generation + 1, int(now * 1_000_000))
        fields = {key: str(given[key]) for key in WRITABLE if given.get(key) is not None}
        fields.setdefault("contentType", "application/octet-stream")
        made = Generation(
            bucket.name, name, self._last_generation, content, now, fields, _metadata(given.get("metadata")), via
        )
        made.updated_at = now
        bucket.generations.setdefault(name, []).append(made)
        return made

    def change(self, found: Generation, given: Mapping[str, Any], *, whole: bool) -> None:
        """PATCH (``whole`` False: what is given is laid over what is there) or PUT of an object's metadata."""
        if whole:
            found.fields = {"contentType": found.fields["contentType"]}
            found.metadata = {}
        for key in WRITABLE:
            if given.get(key) is not None:
                found.fields[key] = str(given[key])
            elif key in given:
                found.fields.pop(key, None)
        if "metadata" in given:
            changes = given["metadata"] or {}
            laid_over = {**found.metadata, **{k: v for k, v in changes.items() if v is not None}}
            removed = {k for k, v in changes.items() if v is None}
            found.metadata = {k: str(v) for k, v in laid_over.items() if k not in removed} if given["metadata"] else {}
        found.metageneration += 1
        found.updated_at = self.now()

    def delete(self, bucket: Bucket, name: str, generation: int | None, conditions: Conditions) -> None:
        """Delete the live object (kept as noncurrent where the bucket has versioning) or one generation for good."""
        found = self.find(bucket, name, generation)
        conditions.check(found)
        bucket.check("storage.objects.delete")
        self._retire(bucket, found)
        if generation is not None:
            found.gone = True

    def _retire(self, bucket: Bucket, found: Generation) -> None:
        if found.live:
            found.live = False
            found.deleted_at = self.now()
        if not bucket.versioning:
            found.gone = True


def number(query: Mapping[str, str], name: str) -> int | None:
    """A whole number of the query. Raises the service's 400."""
    given = query.get(name)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit()):
        raise invalid(f"Invalid value '{given}' for parameter {name}.", name)
    return int(given)


def _metadata(given: Any) -> dict[str, str]:
    return {str(key): str(value) for key, value in (given or {}).items() if value is not None}


def _check_hashes(content: bytes, given: Mapping[str, Any]) -> None:
    """Raises the service's 400 where a checksum that came along does not fit the content."""
    md5 = base64.b64encode(hashlib.md5(content).digest()).decode("ascii")
    for key, found in (("md5Hash", md5), ("crc32c", encoded(content))):
        if given.get(key) not in (None, found):
            label = "MD5 hash" if key == "md5Hash" else "CRC32C"
            raise invalid(f'Provided {label} "{given[key]}" doesn\'t match calculated {label} "{found}".')
