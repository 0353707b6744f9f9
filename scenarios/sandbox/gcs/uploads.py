"""The three ways to send content: ``media``, ``multipart`` and ``resumable``.

Source: Cloud Storage's documentation, "JSON API uploads" and "Resumable uploads".
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from email.message import Message
from typing import Any

from scenarios.sandbox.base import Reply, json_reply
from scenarios.sandbox.gcs.errors import GcsError, invalid
from scenarios.sandbox.gcs.render import object_json
from scenarios.sandbox.gcs.store import Bucket, Conditions, Store

RANGE = re.compile(r"bytes (?:(\d+)-(\d+)|\*)/(\d+|\*)")


@dataclass
class Session:
    """A resumable upload that has been begun."""

    bucket: str
    name: str
    given: dict[str, Any]
    query: dict[str, str]
    content: bytes = b""
    finished: Reply | None = None


class Uploads:
    """Uploads to one store."""

    def __init__(self, store: Store, url: str) -> None:
        self._store = store
        self._url = url
        self._sessions: dict[str, Session] = {}
        self._ids = itertools.count(1)

    def post(self, bucket: Bucket, query: dict[str, str], headers: Mapping[str, str], body: bytes) -> Reply:
        """``POST /upload/…/o``. Raises GcsError."""
        kind = query.get("uploadType")
        content_type = headers.get("content-type", "")
        if kind == "media":
            given = {"contentType": content_type} if content_type else {}
            return self._write(bucket, query.get("name", ""), body, given, query, "media")
        if kind == "multipart":
            given, content = _parts(content_type, body)
            return self._write(bucket, given.get("name") or query.get("name", ""), content, given, query, "multipart")
        if kind == "resumable":
            return self._begin(bucket, query, headers, body)
        raise invalid("Invalid upload request", "uploadType")

    def _begin(self, bucket: Bucket, query: dict[str, str], headers: Mapping[str, str], body: bytes) -> Reply:
        given = parse_object(body)
        if headers.get("x-upload-content-type"):
            given.setdefault("contentType", headers["x-upload-content-type"])
        name = given.get("name") or query.get("name", "")
        Conditions(query).check(bucket.live(name))
        upload_id = f"upload-{next(self._ids)}"
        self._sessions[upload_id] = Session(bucket.name, name, given, query)
        location = f"{self._url}/upload/storage/v1/b/{bucket.name}/o?uploadType=resumable&upload_id={upload_id}"
        return json_reply(200, b"", {"Location": location, "X-GUploader-UploadID": upload_id})

    def put(self, query: dict[str, str], headers: Mapping[str, str], body: bytes) -> Reply:
        """``PUT`` of a chunk, or a question how far it got. Raises GcsError."""
        session = self._sessions.get(query.get("upload_id", ""))
        if session is None:
            raise GcsError(404, "Not Found", "notFound")
        if session.finished is not None:
            return session.finished
        given = headers.get("content-range")
        match = RANGE.fullmatch(given) if given else None
        if given and match is None:
            raise invalid("Failed to parse Content-Range header.")
        start = int(match[1]) if match and match[1] else None
        total = int(match[3]) if match and match[3] != "*" else None
        if match is None:
            session.content, total = body, len(body)
        elif start is not None:
            if start > len(session.content):
                raise GcsError(503, "Chunks must be sent in order.", "backendError")
            session.content = session.content[:start] + body
        if total is None or len(session.content) < total:
            have = {"Range": f"bytes=0-{len(session.content) - 1}"} if session.content else {}
            return json_reply(308, b"", {**have, "X-GUploader-UploadID": query["upload_id"]})
        bucket = self._store.bucket(session.bucket)
        session.finished = self._write(bucket, session.name, session.content, session.given, session.query, "resumable")
        return session.finished

    def _write(
        self, bucket: Bucket, name: str, content: bytes, given: dict[str, Any], query: dict[str, str], via: str
    ) -> Reply:
        made = self._store.write(bucket, name, content, given, Conditions(query), via)
        return json_reply(200, object_json(self._url, made), {"ETag": f"{made.generation}/{made.metageneration}"})


def parse_object(body: bytes) -> dict[str, Any]:
    """A JSON object; raises the service's 400."""
    if not body:
        return {}
    try:
        value = json.loads(body)
    except ValueError:
        raise GcsError(400, "Parse Error", "parseError") from None
    if not isinstance(value, dict):
        raise GcsError(400, "Parse Error", "parseError")
    return value


def _parts(content_type: str, body: bytes) -> tuple[dict[str, Any], bytes]:
    """Metadata and content of a ``multipart/related`` body. Raises the service's 400."""
    header = Message()
    header["content-type"] = content_type
    boundary = header.get_param("boundary")
    if header.get_content_type() != "multipart/related" or not isinstance(boundary, str):
        raise invalid("Bad multipart request: no boundary.")
    mark = b"--" + boundary.encode("latin-1")
    pieces = (b"\r\n" + body).split(b"\r\n" + mark)
    if len(pieces) != 4 or not pieces[3].startswith(b"--"):
        raise invalid("Bad multipart request: it takes a metadata part and a media part.")
    contents = []
    for piece in pieces[1:3]:
        head, blank, content = piece.partition(b"\r\n\r\n")
        if not blank:
            raise invalid("Bad multipart request: a part has no end of headers.")
        contents.append((head, content))
    given = parse_object(contents[0][1])
    for line in contents[1][0].split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-type":
            given.setdefault("contentType", value.strip().decode("latin-1"))
    return given, contents[1][1]
