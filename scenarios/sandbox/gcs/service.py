"""The Cloud Storage sandbox as a service: dispatch, ledger and control actions."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp

from scenarios.sandbox.base import Incoming, Reply, Service, incoming_of, json_reply
from scenarios.sandbox.clock import Clock
from scenarios.sandbox.gcs.api import MAX_PAGE, Api, Call
from scenarios.sandbox.gcs.errors import GcsError, of_status
from scenarios.sandbox.gcs.store import Bucket, Conditions, Generation, Store

OPTIONS = ("max_page", "rewrite_bytes")
SHOWN_CONTENT = 4096
"""Bytes of content that the ledger shows."""


class GcsService(Service):
    """Cloud Storage. Options: ``max_page`` (objects in one page of a listing at most, as the service may choose) and
    ``rewrite_bytes`` (bytes that one rewrite call copies at most; 0 is without end).

    Any credentials will do, none too; a bearer token with ``invalid`` in it is refused.
    """

    name = "gcs"
    kept_headers = frozenset({"content-range", "x-goog-api-client"})

    def __init__(self, clock: Clock, options: Mapping[str, str]) -> None:
        super().__init__(clock, options)
        unknown = sorted(set(options) - set(OPTIONS))
        if unknown:
            raise ValueError(f"unknown option(s) {', '.join(unknown)}; known: {', '.join(OPTIONS)}")
        self._numbers = {"max_page": MAX_PAGE, "rewrite_bytes": 0} | {k: int(v) for k, v in options.items()}
        self.reset()

    def reset(self) -> None:
        self.store = Store(self.clock)
        self._api: Api | None = None
        self._limits = dict(self._numbers)

    def app(self) -> ASGIApp:
        return Router([Route("/{path:path}", self._endpoint, methods=["GET", "POST", "PUT", "PATCH", "DELETE"])])

    def environment(self, url: str) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": url, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true"}

    def ledger(self) -> dict[str, Any]:
        return {
            "now": self.clock.now(),
            "buckets": {
                bucket.name: {
                    "versioning": bucket.versioning,
                    "objects": {name: _history(bucket, name) for name in bucket.generations},
                }
                for bucket in self.store.buckets.values()
            },
        }

    def actions(self) -> dict[str, Callable[..., Any]]:
        return {
            "create_bucket": self._create_bucket,
            "set_versioning": self._set_versioning,
            "put": self._put,
            "delete": self._delete,
            "patch": self._patch,
            "deny": self._deny,
            "limit": self._limit,
        }

    def fault_reply(self, incoming: Incoming, status: int) -> Reply:
        return json_reply(status, of_status(status).body())

    async def _endpoint(self, request: Request) -> Response:
        reply = self._answer(incoming_of(request.scope))
        response = Response(reply.body, reply.status)
        response.raw_headers = reply.headers
        return response

    def _answer(self, incoming: Incoming) -> Reply:
        """Answer one request. Nothing here awaits, so what it does is done as a whole."""
        if self._api is None:
            self._api = Api(self.store, self.url, self._limits["max_page"], self._limits["rewrite_bytes"])
        path = incoming.scope["raw_path"].decode("latin-1").partition("?")[0]
        query = dict(parse_qsl(incoming.scope["query_string"].decode("latin-1"), keep_blank_values=True))
        try:
            if "invalid" in incoming.headers.get("authorization", ""):
                raise of_status(401)
            found = self._api.find(incoming.record.method, path)
            if found is None:
                raise of_status(404)
            handler, args = found
            return handler(Call(query, incoming.headers, incoming.body, args))
        except GcsError as error:
            return json_reply(error.status, b"" if error.status == 304 else error.body())

    # -- control calls -------------------------------------------------------------------------------------

    def _create_bucket(self, bucket: str, versioning: bool = False) -> dict[str, Any]:
        """A bucket: {"bucket", "versioning": bool}."""
        try:
            self.store.create_bucket(bucket, versioning)
        except GcsError as error:
            raise ValueError(error.message) from None
        return {"bucket": bucket, "versioning": versioning}

    def _set_versioning(self, bucket: str, enabled: bool) -> dict[str, Any]:
        """Turn a bucket's versioning on or off."""
        self.store.named(bucket).versioning = enabled
        return {"versioning": enabled}

    def _put(
        self,
        bucket: str,
        object: str,
        content: str,
        metadata: Mapping[str, str] | None = None,
        content_type: str = "text/plain",
        count: int = 1,
    ) -> dict[str, Any]:
        """A person writes an object, ``count`` times over; the last generation."""
        if not 1 <= count <= 5000:
            raise ValueError("count is 1 to 5000")
        found, given = self.store.named(bucket), {"metadata": metadata, "contentType": content_type}
        made = [
            self.store.write(found, object, content.encode("utf-8"), given, Conditions({}), "person")
            for _ in range(count)
        ]
        return {"generation": made[-1].generation}

    def _delete(self, bucket: str, object: str, generation: int | None = None) -> dict[str, Any]:
        """A person deletes an object, or one generation of it for good."""
        try:
            self.store.delete(self.store.named(bucket), object, generation, Conditions({}))
        except GcsError as error:
            raise ValueError(error.message) from None
        return {"deleted": object}

    def _patch(self, bucket: str, object: str, metadata: Mapping[str, str | None]) -> dict[str, Any]:
        """A person changes the live object's metadata (null removes an entry)."""
        found = self.store.find(self.store.named(bucket), object, None)
        self.store.change(found, {"metadata": metadata}, whole=False)
        return {"metageneration": found.metageneration}

    def _deny(self, bucket: str, permissions: list[str]) -> dict[str, Any]:
        """Which permissions nobody has on a bucket, such as ``storage.objects.list``."""
        self.store.named(bucket).denied = set(permissions)
        return {"denied": sorted(permissions)}

    def _limit(self, max_page: int = MAX_PAGE, rewrite_bytes: int = 0) -> dict[str, Any]:
        """Change the options until the next reset."""
        self._limits = {"max_page": max_page, "rewrite_bytes": rewrite_bytes}
        self._api = None
        return dict(self._limits)


def _history(bucket: Bucket, name: str) -> dict[str, Any]:
    live = bucket.live(name)
    return {
        "live": live.generation if live is not None else None,
        "generations": [_row(generation) for generation in bucket.generations[name]],
    }


def _row(found: Generation) -> dict[str, Any]:
    content = found.content[:SHOWN_CONTENT]
    try:
        shown = content.decode("utf-8")
    except UnicodeDecodeError:
        shown = "base64:" + base64.b64encode(content).decode("ascii")
    return {
        "generation": found.generation,
        "metageneration": found.metageneration,
        "live": found.live,
        "gone": found.gone,
        "created_at": found.created_at,
        "deleted_at": found.deleted_at,
        "size": len(found.content),
        "md5": found.md5,
        "content": shown,
        "metadata": found.metadata,
        "via": found.via,
    }
