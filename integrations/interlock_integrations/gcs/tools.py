"""The tools that a model is given: names, arguments, descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from google.cloud import storage
from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source

from ..declaring import gate_from_environment
from .client import gated_client, storage_from_environment
from .objects import MAX_CONTENT_BYTES, declare_restore, declare_write
from .reading import BUCKET, MAX_GENERATION, MAX_NAME_BYTES

WRITE_DESCRIPTION = (
    "Write an object in Google Cloud Storage, in place of the one that is there or as a new one. For the request being "
    "worked on it is written at most once, and not at all if somebody else has changed the object since that was "
    "decided. The answer says what became of it and whether asking again makes sense."
)
RESTORE_DESCRIPTION = (
    "Make an older generation of a Google Cloud Storage object the live one again, by copying it. For the request "
    "being worked on it is done at most once, and not at all if somebody else has changed the object since that was "
    "decided. The answer says what became of it and whether asking again makes sense."
)


class WriteObjectArguments(BaseModel):
    """What a model gives for a write."""

    bucket: str = Field(pattern=BUCKET, description="The bucket's name, without gs://.")
    name: str = Field(
        min_length=1, max_length=MAX_NAME_BYTES, description="The object's name, such as config/prod.json."
    )
    content: str = Field(max_length=MAX_CONTENT_BYTES, description="The whole content, as text.")


class RestoreObjectArguments(BaseModel):
    """What a model gives for a restore."""

    bucket: str = Field(pattern=BUCKET, description="The bucket's name, without gs://.")
    name: str = Field(
        min_length=1, max_length=MAX_NAME_BYTES, description="The object's name, such as config/prod.json."
    )
    generation: int = Field(ge=1, le=MAX_GENERATION, description="The number of the generation to bring back.")


class GcsTool(GatedTool):
    """What the Cloud Storage tools share: each makes itself from the environment, or from an effect that is there.

    See ``storage_from_environment``; ``INTERLOCK_JOURNAL`` is a file that
    outlives the process. Making it so recovers what an earlier process left open.

    Args:
        effect: an effect that was declared already; the arguments below are then not used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        client: the Cloud Storage client; by default one configured by the environment.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_write`` or ``declare_restore``, such as ``approvals``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    declares: ClassVar[Callable[..., Effect[Any]]]
    request_argument: str = "request"

    def __init__(
        self,
        effect: Effect[Any] | None = None,
        *,
        gate: Gate | None = None,
        client: storage.Client | None = None,
        recover: bool = True,
        declare: Mapping[str, Any] | None = None,
        request: Source | None = None,
        **fields: Any,
    ) -> None:
        if effect is None:
            ours = gated_client(client if client is not None else storage_from_environment())
            gate = gate if gate is not None else gate_from_environment()
            effect = type(self).declares(gate, ours, **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, **fields})


class WriteObject(GcsTool):
    """``write_object(bucket, name, content)``."""

    declares = staticmethod(declare_write)
    name: str = "write_object"
    description: str = WRITE_DESCRIPTION
    args_schema: type[BaseModel] = WriteObjectArguments


class RestoreObject(GcsTool):
    """``restore_object(bucket, name, generation)``."""

    declares = staticmethod(declare_restore)
    name: str = "restore_object"
    description: str = RESTORE_DESCRIPTION
    args_schema: type[BaseModel] = RestoreObjectArguments


TOOLS: dict[str, type[GcsTool]] = {"write_object": WriteObject, "restore_object": RestoreObject}
"""Tools by name."""
