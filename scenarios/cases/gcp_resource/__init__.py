"""A rollback of a config object from v42 to v41 was approved; the agent dies; a person deploys v43; restart."""

from __future__ import annotations

import os
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from scenarios.cases.gcp_resource.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

BUCKET, NAME = os.environ.get("GOOGLE_STORAGE_BUCKET", "configs"), f"config/{uuid.uuid4().hex[:8]}.json"
CASE = "rollback-9"
V41, V42, V43 = '{"version": 41}', '{"version": 42}', '{"version": 43}'
UNVERSIONED = "crash_after_commit_redeploy_unversioned"


class GcpResource(Scenario):
    """See the module."""

    key = "gcp_resource"
    title = "A rollback and a redeploy"
    invariant = "The agent writes once, or not at all after a redeploy, and never over what a person deployed since."
    services = ("gcs",)
    sends = ("POST", f"/upload/storage/v1/b/{BUCKET}/o")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "crash_before_send_redeploy": Fault(BEFORE_SEND, outage="redeploy", wanted=0),
        "crash_after_commit_redeploy": Fault(AFTER_SEND, outage="redeploy", landed=True),
        "crash_after_commit_no_change": Fault(AFTER_SEND, landed=True),
        UNVERSIONED: Fault(AFTER_SEND, outage="redeploy", landed=True, ours=True),
        **common_faults(),
    }
    premises = ("generation", "content_type")
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {"no_check": "0/3", "hand_check": "3/3", "interlock": "3/3"}
    sandbox_only = (UNVERSIONED,)
    live_needs = ("GOOGLE_STORAGE_TOKEN", "GOOGLE_STORAGE_BUCKET")

    def setup(self, world: World, fault: str) -> Work:
        world.control.action("create_bucket", bucket=BUCKET, versioning=fault != UNVERSIONED)
        for content in (V41, V42):
            self._deploy(world, content)
        world.approve(CASE, id="APR-7", by="Approver One")
        return Work(self.key, "", fault, CASE, str(world.folder), {"bucket": BUCKET, "name": NAME, "content": V41})

    def _deploy(self, world: World, content: str) -> None:
        world.control.action("put", bucket=BUCKET, object=NAME, content=content)

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "redeploy":
            self._deploy(world, V43)

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "content": '{"version": 40}'}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        written = ledger["buckets"][BUCKET]["objects"][NAME]["generations"]
        own = [one for one in written if one["via"] != "person"]
        last = written[-1]
        live_is_theirs = last["via"] == "person"
        held = len(own) == fault.wanted and live_is_theirs == (fault.outage == "redeploy")
        shown = f"{len(own)} write(s) of the agent, {'a person' if live_is_theirs else 'the agent'} wrote last"
        return Verdict(held, shown, tuple(str(one["generation"]) for one in own))


SCENARIO = GcpResource()
