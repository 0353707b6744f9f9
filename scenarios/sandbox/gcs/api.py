"""The endpoints of the JSON API that the sandbox has."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from scenarios.sandbox.base import Reply, json_reply
from scenarios.sandbox.gcs.errors import GcsError, invalid
from scenarios.sandbox.gcs.render import bucket_json, object_json
from scenarios.sandbox.gcs.store import Bucket, Conditions, Generation, Store, number
from scenarios.sandbox.gcs.uploads import Uploads, parse_object

MAX_PAGE = 1000
"""Objects in one page at most (JSON API, ``objects.list``)."""


@dataclass
class Call:
    query: dict[str, str]
    headers: Mapping[str, str]
    raw: bytes
    args: dict[str, str]


Handler = Callable[[Call], Reply]


class Api:
    """Handlers by method and path; object names in a path are percent-encoded whole."""

    def __init__(self, store: Store, url: str, max_page: int, rewrite_bytes: int) -> None:
        self._store = store
        self._url = url
        self._max_page = max_page
        self._rewrite_bytes = rewrite_bytes
        self._rewrites: dict[str, int] = {}
        self._uploads = Uploads(store, url)
        v1, b, o = r"/storage/v1/b", r"/(?P<bucket>[^/]+)", r"/(?P<bucket>[^/]+)/o/(?P<object>[^/]+)"
        target = r"/b/(?P<to_bucket>[^/]+)/o/(?P<to_object>[^/]+)"
        routes: list[tuple[str, str, Handler]] = [
            ("GET", v1, self._buckets),
            ("POST", v1, self._create_bucket),
            ("GET", v1 + b, self._bucket),
            ("PATCH", v1 + b, self._change_bucket),
            ("DELETE", v1 + b, self._delete_bucket),
            ("GET", v1 + b + "/o", self._list),
            ("GET", v1 + o, self._object),
            ("PATCH", v1 + o, self._patch),
            ("PUT", v1 + o, self._put),
            ("DELETE", v1 + o, self._delete),
            ("POST", v1 + o + "/rewriteTo" + target, self._rewrite),
            ("POST", v1 + o + "/copyTo" + target, self._copy),
            ("GET", r"/download/storage/v1/b" + o, self._media),
            ("POST", r"/upload/storage/v1/b" + b + "/o", self._upload),
            ("PUT", r"/upload/storage/v1/b" + b + "/o", self._chunk),
        ]
        self._routes = [(method, re.compile(pattern), handler) for method, pattern, handler in routes]

    def find(self, method: str, path: str) -> tuple[Handler, dict[str, str]] | None:
        """The handler of a percent-encoded path, and the decoded names in it."""
        for known, pattern, handler in self._routes:
            match = pattern.fullmatch(path)
            if known == method and match:
                return handler, {name: unquote(value) for name, value in match.groupdict().items()}
        return None

    # -- buckets --------------------------------------------------------------------------------------

    def _buckets(self, call: Call) -> Reply:
        items = [bucket_json(self._url, bucket) for bucket in self._store.buckets.values()]
        return json_reply(200, {"kind": "storage#buckets", "items": items})

    def _create_bucket(self, call: Call) -> Reply:
        given = parse_object(call.raw)
        versioning = bool((given.get("versioning") or {}).get("enabled"))
        bucket = self._store.create_bucket(str(given.get("name", "")), versioning, str(given.get("location", "US")))
        return json_reply(200, bucket_json(self._url, bucket))

    def _bucket(self, call: Call) -> Reply:
        bucket = self._store.bucket(call.args["bucket"])
        bucket.check("storage.buckets.get")
        return json_reply(200, bucket_json(self._url, bucket))

    def _change_bucket(self, call: Call) -> Reply:
        bucket, given = self._store.bucket(call.args["bucket"]), parse_object(call.raw)
        if "versioning" in given:
            bucket.versioning = bool((given["versioning"] or {}).get("enabled"))
        bucket.metageneration += 1
        return json_reply(200, bucket_json(self._url, bucket))

    def _delete_bucket(self, call: Call) -> Reply:
        self._store.delete_bucket(call.args["bucket"])
        return json_reply(204, b"")

    # -- objects -----------------------------------------------------------------------------------------

    def _list(self, call: Call) -> Reply:
        bucket, query = self._store.bucket(call.args["bucket"]), call.query
        bucket.check("storage.objects.list")
        versions = query.get("versions", "false").lower() == "true"
        prefix = query.get("prefix", "")
        start, end = query.get("startOffset", ""), query.get("endOffset", "")
        names = sorted(n for n in bucket.generations if n.startswith(prefix) and n >= start and (not end or n < end))
        found = [generation for name in names for generation in bucket.kept(name) if versions or generation.live]
        prefixes, found = _folded(found, prefix, query.get("delimiter", ""))
        size = min(number(query, "maxResults") or MAX_PAGE, self._max_page, MAX_PAGE)
        after = _position(query.get("pageToken"))
        rest = [g for g in found if (g.name, g.generation) > after]
        body: dict[str, Any] = {"kind": "storage#objects"}
        if rest[:size]:
            body["items"] = [object_json(self._url, generation) for generation in rest[:size]]
        if prefixes:
            body["prefixes"] = prefixes
        if len(rest) > size:
            body["nextPageToken"] = _token(rest[size - 1])
        return json_reply(200, body)

    def _at(self, call: Call) -> tuple[Bucket, Generation]:
        bucket = self._store.bucket(call.args["bucket"])
        bucket.check("storage.objects.get")
        return bucket, self._store.find(bucket, call.args["object"], number(call.query, "generation"))

    def _object(self, call: Call) -> Reply:
        if call.query.get("alt") == "media":
            return self._media(call)
        _, found = self._at(call)
        Conditions(call.query).check(found, reading=True)
        return json_reply(200, object_json(self._url, found))

    def _media(self, call: Call) -> Reply:
        _, found = self._at(call)
        Conditions(call.query).check(found, reading=True)
        headers = {
            "Content-Type": found.fields["contentType"],
            "X-Goog-Generation": str(found.generation),
            "X-Goog-Metageneration": str(found.metageneration),
            "X-Goog-Hash": f"crc32c={found.crc32c},md5={found.md5}",
            "X-Goog-Stored-Content-Encoding": "identity",
        }
        given = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", ""))
        if given is None:
            return json_reply(200, found.content, headers)
        start, last = int(given[1]), min(int(given[2] or len(found.content)), len(found.content) - 1)
        if start >= len(found.content):
            raise GcsError(416, "Request range not satisfiable", "requestedRangeNotSatisfiable")
        headers["Content-Range"] = f"bytes {start}-{last}/{len(found.content)}"
        return json_reply(206, found.content[start : last + 1], headers)

    def _patch(self, call: Call) -> Reply:
        return self._changed(call, whole=False)

    def _put(self, call: Call) -> Reply:
        return self._changed(call, whole=True)

    def _changed(self, call: Call, *, whole: bool) -> Reply:
        bucket, found = self._at(call)
        bucket.check("storage.objects.update")
        Conditions(call.query).check(found)
        self._store.change(found, parse_object(call.raw), whole=whole)
        return json_reply(200, object_json(self._url, found))

    def _delete(self, call: Call) -> Reply:
        bucket = self._store.bucket(call.args["bucket"])
        generation = number(call.query, "generation")
        self._store.delete(bucket, call.args["object"], generation, Conditions(call.query))
        return json_reply(204, b"")

    def _upload(self, call: Call) -> Reply:
        bucket = self._store.bucket(call.args["bucket"])
        return self._uploads.post(bucket, call.query, call.headers, call.raw)

    def _chunk(self, call: Call) -> Reply:
        return self._uploads.put(call.query, call.headers, call.raw)

    # -- copies ------------------------------------------------------------------------------------------

    def _rewrite(self, call: Call) -> Reply:
        """One call of a rewrite; the object is written by the last one (JSON API, ``objects.rewrite``)."""
        source = self._source(call)
        size = len(source.content)
        token = call.query.get("rewriteToken")
        if token is not None and token not in self._rewrites:
            raise invalid("Invalid rewrite token.", "rewriteToken")
        done = self._rewrites.pop(token, 0) if token is not None else 0
        done = min(size, done + self._rewrite_bytes) if self._rewrite_bytes else size
        shown: dict[str, Any] = {
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": str(done),
            "objectSize": str(size),
            "done": done >= size,
        }
        if done < size:
            Conditions(call.query).check(self._store.bucket(call.args["to_bucket"]).live(call.args["to_object"]))
            shown["rewriteToken"] = f"rewrite-{len(self._rewrites)}-{done}"
            self._rewrites[shown["rewriteToken"]] = done
        else:
            shown["resource"] = object_json(self._url, self._copied(call, source, "rewrite"))
        return json_reply(200, shown)

    def _copy(self, call: Call) -> Reply:
        return json_reply(200, object_json(self._url, self._copied(call, self._source(call), "copy")))

    def _source(self, call: Call) -> Generation:
        bucket = self._store.bucket(call.args["bucket"])
        bucket.check("storage.objects.get")
        source = self._store.find(bucket, call.args["object"], number(call.query, "sourceGeneration"))
        Conditions(call.query, "Source").check(source)
        return source

    def _copied(self, call: Call, source: Generation, via: str) -> Generation:
        """With a body the copy has that metadata and none of the source's; without one it has all of the source's."""
        given = parse_object(call.raw)
        if not given:
            given = {**source.fields, "metadata": source.metadata}
        given.pop("md5Hash", None)
        given.pop("crc32c", None)
        bucket = self._store.bucket(call.args["to_bucket"])
        return self._store.write(bucket, call.args["to_object"], source.content, given, Conditions(call.query), via)


def _folded(found: list[Generation], prefix: str, delimiter: str) -> tuple[list[str], list[Generation]]:
    """Prefixes in place of the objects whose names go on past a delimiter."""
    if not delimiter:
        return [], found
    prefixes: set[str] = set()
    plain = []
    for generation in found:
        head, cut, _ = generation.name[len(prefix) :].partition(delimiter)
        if cut:
            prefixes.add(prefix + head + cut)
        else:
            plain.append(generation)
    return sorted(prefixes), plain


def _token(last: Generation) -> str:
    return base64.urlsafe_b64encode(f"{last.generation}:{last.name}".encode()).decode("ascii")


def _position(token: str | None) -> tuple[str, int]:
    """Where a page begins: after this name and generation. Raises the service's 400."""
    if token is None:
        return "", 0
    try:
        generation, _, name = base64.urlsafe_b64decode(token.encode("ascii")).decode("utf-8").partition(":")
        return name, int(generation)
    except (binascii.Error, ValueError):
        raise invalid("Invalid page token.", "pageToken") from None
