"""Writes and restores: ``write_object(bucket, name, content)``, ``restore_object(bucket, name, generation)``.

What they rest on, read at the decision and before every send:

* ``generation``: the live generation, 0 where there is none;
* ``content_type`` (write): the live object's, which the new one keeps;
* ``source``, ``source_fields`` (restore): whether the generation to restore is
  there and is not live already, and the metadata that it takes along.

The generation goes with the request (``ifGenerationMatch``), and Cloud Storage
compares and writes in one step. What that gives depends on what was decided:

* A generation that was replaced is never live again. So a write over one
  happens at most once however often it is sent (``enforces``).
* That there is no object (0) can become true again: created, deleted, created
  again. Such a write is not sent again on the service's word; it is looked for.

Every generation that is written carries the effect's id in its metadata. In a
bucket with versioning it stays to be found. Without, a generation that was
replaced or deleted leaves no trace; where that leaves it open whether ours was
ever there, the outcome says that nobody can know (``AMBIGUOUS:no_evidence``).
A metadata entry that a person removes, a lifecycle rule that deletes old
generations, and versioning that is switched off and on again are not seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Literal

from google.cloud import storage
from google.cloud.storage import Blob

from interlock_tools import BadArguments, CannotKnow, DefiniteNo, Gate, PreconditionFailed
from interlock_tools.effect import Effect

from ..declaring import with_more
from ..transport import sending
from .client import ONCE, SEND_TIMEOUT
from .errors import classified
from .reading import EFFECT_ID, FIELDS, MAX_GENERATION, evidence, find_own, number_of, read, source_fields, subject
from .watch import watch_object

MAX_CONTENT_BYTES = 1_000_000
"""Largest content. It is kept in the journal; past 8 MiB the client would make several requests of one upload."""

DEFAULT_TYPE = "text/plain; charset=utf-8"

Deletions = Literal["possible", "never"]


def enforced(facts: Mapping[str, Any]) -> tuple[str, ...]:
    """Which premises the service enforces for a decision: a generation, and not that there is none."""
    return ("generation",) if facts.get("generation") else ()


def declare_write(
    gate: Gate,
    client: storage.Client,
    *,
    name: str = "gcs.write",
    deletions: Deletions = "possible",
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the write effect on a gate and return it.

    The functions take, by name, any of ``request``, ``bucket``, ``name`` and
    ``content``; premises may also take ``idempotency_key``.

    Args:
        gate: the gate.
        client: made by ``gated_client``.
        name: the effect's stable name; another one for each project at one journal.
        deletions: ``never`` where nobody deletes the objects that are written. A new object that is not there, in
            a bucket without versioning, was then never written; otherwise nobody can know.
        approvals: returns the ``Grant`` that covers the write, or None.
        premises: returns further facts, or ones to replace those above.
        expect: values that facts must have, such as ``{"generation": 0}`` for new objects only.
        budget: returns a ``Budget`` or a list of them.
        send_timeout: see ``client.SEND_TIMEOUT``.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def write_facts(request: str, bucket: str, name: str, content: str, idempotency_key: str) -> dict[str, Any]:
        live = read(client, bucket, name)
        if live is None:
            return {"generation": 0, "content_type": ""}
        return {"generation": number_of(live), "content_type": live.content_type or ""}

    def find_written(bucket: str, name: str, idempotency_key: str, facts: dict[str, Any]) -> dict[str, Any] | None:
        return find_own(client, bucket, name, idempotency_key, facts["generation"], deletions)

    def key(request: str, bucket: str, name: str, content: str) -> str:
        size = len(content.encode("utf-8", "replace"))
        if size > MAX_CONTENT_BYTES:
            raise BadArguments(f"content has {size:,} bytes; at most {MAX_CONTENT_BYTES:,} are taken")
        return subject(request, bucket, name)

    @gate.effect(
        name,
        key=key,
        premises=with_more(write_facts, premises),
        expect=expect,
        allowed=approvals,
        budget=budget,
        enforces=enforced,
        never_true_again=("generation",),
        lookup=find_written,
        send_timeout=send_timeout,
        service={"name": "gcs", "kind": "write"},
        watch=watch_object(client),
    )
    def write_object(
        request: str,
        bucket: str,
        name: str,
        content: str,
        *,
        idempotency_key: str,
        on_send: Any,
        facts: dict[str, Any],
    ) -> dict[str, Any] | None:
        blob = client.bucket(bucket).blob(name)
        blob.metadata = {EFFECT_ID: idempotency_key}

        def send() -> None:
            blob.upload_from_string(
                content.encode("utf-8"),
                content_type=facts["content_type"] or DEFAULT_TYPE,
                if_generation_match=facts["generation"],
                **ONCE,
            )

        return _written(client, blob, send, on_send, idempotency_key, facts["generation"])

    return write_object


def declare_restore(
    gate: Gate,
    client: storage.Client,
    *,
    name: str = "gcs.restore",
    deletions: Deletions = "possible",
    approvals: Callable[..., Any] | None = None,
    premises: Callable[..., Any] | None = None,
    expect: Mapping[str, Any] | None = None,
    budget: Callable[..., Any] | None = None,
    send_timeout: timedelta = SEND_TIMEOUT,
) -> Effect[Any]:
    """Declare the restore effect on a gate and return it. It needs a bucket that keeps older generations.

    The functions take, by name, any of ``request``, ``bucket``, ``name`` and
    ``generation``; for the arguments see ``declare_write``.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def restore_facts(request: str, bucket: str, name: str, generation: int, idempotency_key: str) -> dict[str, Any]:
        live = read(client, bucket, name)
        source = read(client, bucket, name, generation)
        number = number_of(live) if live is not None else 0
        if source is None:
            return {"generation": number, "source": "not found", "source_fields": {}}
        state = "live already" if number == generation else "found"
        return {"generation": number, "source": state, "source_fields": source_fields(source)}

    def find_restored(bucket: str, name: str, idempotency_key: str, facts: dict[str, Any]) -> dict[str, Any] | None:
        return find_own(client, bucket, name, idempotency_key, facts["generation"], deletions)

    def key(request: str, bucket: str, name: str, generation: int) -> str:
        if not 1 <= generation <= MAX_GENERATION:
            raise BadArguments(f"{generation} is no generation")
        return subject(request, bucket, name)

    @gate.effect(
        name,
        key=key,
        premises=with_more(restore_facts, premises),
        expect={"source": "found", **(expect or {})},
        allowed=approvals,
        budget=budget,
        enforces=enforced,
        never_true_again=("generation",),
        lookup=find_restored,
        send_timeout=send_timeout,
        service={"name": "gcs", "kind": "restore"},
        watch=watch_object(client),
    )
    def restore_object(
        request: str,
        bucket: str,
        name: str,
        generation: int,
        *,
        idempotency_key: str,
        on_send: Any,
        facts: dict[str, Any],
    ) -> dict[str, Any] | None:
        place = client.bucket(bucket)
        source, blob = place.blob(name, generation=generation), place.blob(name)
        for field in FIELDS:
            if facts["source_fields"].get(field):
                setattr(blob, field, facts["source_fields"][field])
        blob.metadata = {**facts["source_fields"].get("metadata", {}), EFFECT_ID: idempotency_key}

        def send() -> None:
            token, done, size = blob.rewrite(
                source,
                if_generation_match=facts["generation"],
                **ONCE,
            )
            if token is not None:
                # Nothing is written until the last call of a rewrite, and one send is one request.
                raise DefiniteNo(f"too large to be restored in one request ({done} of {size} bytes)", code="too_large")

        return _written(client, blob, send, on_send, idempotency_key, facts["generation"])

    return restore_object


def _written(
    client: storage.Client, blob: Blob, send: Callable[[], None], on_send: Any, idempotency_key: str, decided: int
) -> dict[str, Any] | None:
    """Make the one request of a send and return its evidence. A 412 may be our own: whose it is, the generations tell.

    Where they cannot be read, the answer stays unknown and recovery asks again.
    """
    try:
        with classified(), sending(on_send):
            send()
    except PreconditionFailed:
        found = None
        with contextlib.suppress(CannotKnow):  # no trace of ours, and this request wrote nothing
            found = find_own(client, str(blob.bucket.name), str(blob.name), idempotency_key, decided, "never")
        if found is None:
            raise
        return found
    return evidence(blob)
