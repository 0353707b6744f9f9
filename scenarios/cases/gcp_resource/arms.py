"""The tool ``write_object``, made in three ways."""

from __future__ import annotations

from typing import Any

import requests
from google.api_core import exceptions
from langchain_core.tools import BaseTool

from interlock_integrations.gcs import GcsToolkit, storage_from_environment
from interlock_integrations.transport import sending
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Again, Files, Instants, hand_tool, responded, settled
from scenarios.suite.model import Arm, Work

Said = tuple[str, dict[str, Any]]
JOB = "job"
"""Name of the metadata entry by which the hand-written arm finds what it wrote."""


def upload(blob: Any, content: str, **conditions: Any) -> None:
    """Write once. Raises what Google answers, and ``Again`` for what says nothing."""
    try:
        with sending(Instants()):
            blob.upload_from_string(content, content_type="application/json", retry=None, **conditions)
    except exceptions.ServerError as error:
        raise Again(f"Google answered {error.code}") from error
    except (requests.RequestException, ConnectionError) as error:
        raise Again(f"Google did not answer: {type(error).__name__}") from error
    responded()


def no_check(work: Work) -> BaseTool:
    """Save the decision and write the content; after a restart that did not save the result, write it again."""
    files, client = Files(work), storage_from_environment()

    def write_object(bucket: str, name: str, content: str) -> Said:
        """Write an object."""
        decided = files.decision(lambda: {"content": content})
        blob = client.bucket(bucket).blob(name)

        def once() -> Said:
            upload(blob, decided["content"])
            return files.finish("landed", f"Written: generation {blob.generation}.", id=str(blob.generation))

        try:
            return settled(files, once)
        except exceptions.GoogleAPICallError as error:
            return files.finish("not_landed", f"Google refused it: {error.code}")

    return hand_tool("write_object", write_object)


def hand_check(work: Work) -> BaseTool:
    """Write with ``ifGenerationMatch`` of the generation that was decided on; on a 412 look whether it was ours.

    The precondition makes a second write harmless. A 412 may come from our own
    first write, so the generations are searched for this job's mark.
    """
    files, client = Files(work), storage_from_environment()

    def write_object(bucket: str, name: str, content: str) -> Said:
        """Write an object."""
        place = client.bucket(bucket)

        def decide() -> dict[str, Any]:
            live = place.get_blob(name)
            return {"content": content, "generation": live.generation, "approval": files.approval()}

        decided = files.decision(decide)

        def ours() -> Any:
            found = client.list_blobs(place, prefix=name, versions=True)
            return next((one for one in found if (one.metadata or {}).get(JOB) == work.case), None)

        def once() -> Said:
            approval = files.approval()
            live = place.get_blob(name)
            files.log("checked", generation=live.generation if live else 0, content_type="", approval=approval)
            if approval is None:
                return files.finish("not_landed", "Not written: the approval is gone.")
            blob = place.blob(name)
            blob.metadata = {JOB: work.case}
            try:
                upload(blob, decided["content"], if_generation_match=decided["generation"])
            except exceptions.PreconditionFailed:
                found = ours()
                if found is not None:
                    return files.finish("landed", f"Written: generation {found.generation}.", id=str(found.generation))
                return files.finish("not_landed", "Not written: somebody else has written the object.")
            return files.finish("landed", f"Written: generation {blob.generation}.", id=str(blob.generation))

        try:
            return settled(files, once)
        except exceptions.GoogleAPICallError as error:
            return files.finish("not_landed", f"Google refused it: {error.code}")

    return hand_tool("write_object", write_object)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    kit = GcsToolkit(gate, tools=["write_object"], writes={"approvals": approvals(work)}, **options(work))
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
}
