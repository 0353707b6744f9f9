"""The JSON API's shapes. Source: its published description, ``storage.v1``."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any
from urllib.parse import quote

from scenarios.sandbox.gcs.store import Bucket, Generation

Json = dict[str, Any]


def moment(at: float) -> str:
    """RFC 3339 with milliseconds, UTC."""
    return datetime.fromtimestamp(at, timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def bucket_json(url: str, bucket: Bucket) -> Json:
    shown: Json = {
        "kind": "storage#bucket",
        "id": bucket.name,
        "name": bucket.name,
        "selfLink": f"{url}/storage/v1/b/{bucket.name}",
        "projectNumber": "1",
        "generation": str(int(bucket.created_at * 1_000_000)),
        "metageneration": str(bucket.metageneration),
        "location": bucket.location,
        "locationType": "multi-region",
        "storageClass": "STANDARD",
        "etag": "CAE=",
        "timeCreated": moment(bucket.created_at),
        "updated": moment(bucket.created_at),
    }
    if bucket.versioning:
        shown["versioning"] = {"enabled": True}
    return shown


def object_json(url: str, found: Generation) -> Json:
    name = quote(found.name, safe="")
    base = f"{url}/storage/v1/b/{found.bucket}/o/{name}"
    shown: Json = {
        "kind": "storage#object",
        "id": f"{found.bucket}/{found.name}/{found.generation}",
        "selfLink": base,
        "mediaLink": f"{url}/download/storage/v1/b/{found.bucket}/o/{name}?generation={found.generation}&alt=media",
        "name": found.name,
        "bucket": found.bucket,
        "generation": str(found.generation),
        "metageneration": str(found.metageneration),
        "storageClass": "STANDARD",
        "size": str(len(found.content)),
        "md5Hash": found.md5,
        "crc32c": found.crc32c,
        "etag": f"{found.generation}/{found.metageneration}",
        "timeCreated": moment(found.created_at),
        "updated": moment(found.updated_at),
        "timeStorageClassUpdated": moment(found.created_at),
        "timeFinalized": moment(found.created_at),
        **found.fields,
    }
    if found.metadata:
        shown["metadata"] = dict(found.metadata)
    if not found.live and found.deleted_at is not None:
        shown["timeDeleted"] = moment(found.deleted_at)
    return shown
