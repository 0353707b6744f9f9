"""A 30-minute call in an agreed slot; the agent dies; the slot or the request changes; restart."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from scenarios.cases.calendar.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults

CASE = "call-5"


class Calendar(Scenario):
    """See the module."""

    key = "calendar"
    title = "A call in a slot"
    invariant = "The agent's event is there as often as it is wanted, and none on top of an event that was there."
    services = ("calendar",)
    sends = ("POST", "/calendar/v3/calendars/[^/]+/events")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "after_commit/none": Fault(AFTER_SEND, landed=True),
        "after_commit/slot_busy": Fault(AFTER_SEND, outage="slot_busy", landed=True),
        "after_commit/request_cancelled": Fault(AFTER_SEND, outage="request_cancelled", landed=True),
        "before_send/none": Fault(BEFORE_SEND),
        "before_send/slot_busy": Fault(BEFORE_SEND, outage="slot_busy", wanted=0),
        "before_send/request_cancelled": Fault(BEFORE_SEND, outage="request_cancelled", wanted=0),
        "before_send/pre_busy": Fault(None, wanted=0),
        "after_commit/deleted": Fault(AFTER_SEND, outage="deleted", landed=True, ours=True),
        **common_faults(),
    }
    premises = ("busy", "request")
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {
        "no_check": "5/7",
        "hand_check": "7/7",
        "interlock": "7/7",
        "interlock_change_only": "0/1",
    }
    live_needs = ("GOOGLE_CALENDAR_TOKEN",)

    def setup(self, world: World, fault: str) -> Work:
        world.approve(CASE, id="APR-7", by="Approver One")
        self._request(world, "live")
        start, end = _slot(world)
        arguments = {"summary": "Call", "start_datetime": start, "end_datetime": end, "timezone": "UTC"}
        arguments["calendar_id"] = "primary"
        if fault == "before_send/pre_busy":
            self._person(world, arguments)
        return Work(self.key, "", fault, CASE, str(world.folder), arguments)

    def _request(self, world: World, status: str) -> None:
        (world.folder / "request.json").write_text(json.dumps({"status": status}), encoding="utf-8")

    def _person(self, world: World, arguments: Mapping[str, Any]) -> None:
        start, end = (arguments[name] + "Z" for name in ("start_datetime", "end_datetime"))
        world.control.action("event", start=start, end=end, summary="Somebody else's")

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "slot_busy":
            self._person(world, work.arguments)
        elif name == "request_cancelled":
            self._request(world, "cancelled")
        elif name == "deleted":
            (own,) = [event for event in world.control.ledger()["events"] if event["via"] == "api"]
            world.control.action("delete", event=own["id"])

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "summary": "Another call"}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        events = ledger["events"]
        own = [event for event in events if event["via"] == "api"]
        others = [event for event in events if event["via"] != "api"]
        held = len(own) == fault.wanted and all(event["summary"] == "Call" for event in own)
        gone = any(event["status"] == "cancelled" for event in own)
        shown = f"{len(own)} event(s) of the agent{', deleted' if gone else ''}, {len(others)} of others"
        return Verdict(held, shown, tuple(event["id"] for event in own), gone)


def _slot(world: World) -> tuple[str, str]:
    """A slot of its own in a far week, so that cells at one calendar do not meet."""
    minutes = random.Random(f"{world.seed}{world.folder}").randrange(0, 20_000) * 30
    start = datetime(2031, 1, 6, 10, 0) + timedelta(minutes=minutes)
    return start.isoformat(), (start + timedelta(minutes=30)).isoformat()


SCENARIO = Calendar()
