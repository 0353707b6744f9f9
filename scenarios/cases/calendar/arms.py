"""The tool ``create_calendar_event``, made in four ways."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import requests
from googleapiclient.errors import HttpError
from langchain_core.tools import BaseTool

from interlock_integrations.calendar import CalendarToolkit, calendar_from_environment
from interlock_integrations.transport import sending
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Again, Files, Instants, hand_tool, responded, settled
from scenarios.suite.model import Arm, Work

Said = tuple[str, dict[str, Any]]
ZONE = "UTC"


def request_status(work: Work) -> str:
    """What has become of the customer's request, in the application's own books."""
    found = json.loads((work.path / "request.json").read_text(encoding="utf-8"))
    return str(found["status"])


def event_id(work: Work) -> str:
    """An event id of our own: Google takes 0-9 and a-v, so a hex digest will do."""
    return hashlib.sha256(f"{work.case}:{work.arguments['start_datetime']}".encode()).hexdigest()[:32]


class Books:
    """The Calendar calls that the hand-written arms make, by the official client."""

    def __init__(self, work: Work) -> None:
        self.service = calendar_from_environment()
        self.id = event_id(work)

    def busy(self, start: str, end: str, calendar_id: str) -> list[Any]:
        """Busy times of the slot. Raises ``Again`` where there is an error in place of them."""
        asked = {"timeMin": start + "Z", "timeMax": end + "Z", "items": [{"id": calendar_id}]}
        found = self.service.freebusy().query(body=asked).execute()["calendars"][calendar_id]
        if found.get("errors"):
            raise Again("free/busy could not be read")
        return list(found["busy"])

    def own(self, calendar_id: str) -> dict[str, Any] | None:
        """The event of this case; cancelled ones are answered too."""
        try:
            found: dict[str, Any] = self.service.events().get(calendarId=calendar_id, eventId=self.id).execute()
        except HttpError as error:
            if error.resp.status == 404:
                return None
            raise
        return found

    def insert(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Insert with our id. Raises ``HttpError``, and ``Again`` for what says nothing."""
        body = {
            "id": self.id,
            "summary": arguments["summary"],
            "start": {"dateTime": arguments["start_datetime"], "timeZone": ZONE},
            "end": {"dateTime": arguments["end_datetime"], "timeZone": ZONE},
        }
        call = self.service.events().insert(calendarId=arguments["calendar_id"], body=body)
        try:
            with sending(Instants()):
                made: dict[str, Any] = call.execute()
        except HttpError as error:
            if error.resp.status >= 500:
                raise Again(f"Google answered {error.resp.status}") from error
            raise
        except (requests.RequestException, ConnectionError) as error:
            raise Again(f"Google did not answer: {type(error).__name__}") from error
        responded()
        return made


def no_check(work: Work) -> BaseTool:
    """Check slot and request once, when the job is taken on; then insert with an id of our own, and again after a
    restart. A 409 says that the id is taken, so the event is there: a common reading."""
    files, books = Files(work), Books(work)

    def create_calendar_event(
        summary: str, start_datetime: str, end_datetime: str, timezone: str, calendar_id: str
    ) -> Said:
        """Book an event."""
        asked = {"summary": summary, "start_datetime": start_datetime, "end_datetime": end_datetime}
        asked["calendar_id"] = calendar_id

        def decide() -> dict[str, Any]:
            free = not books.busy(start_datetime, end_datetime, calendar_id)
            return {**asked, "go": free and request_status(work) == "live"}

        decided = files.decision(decide)
        if not decided["go"]:
            return files.finish("not_landed", "Not booked: the slot is taken or the request is not live.")

        def once() -> Said:
            try:
                made = books.insert(decided)
            except HttpError as error:
                if error.resp.status == 409:
                    return files.finish("landed", f"Booked: {books.id}.", id=books.id)
                return files.finish("not_landed", f"Google refused it: {error.resp.status}")
            return files.finish("landed", f"Booked: {made['id']}.", id=made["id"])

        return settled(files, once)

    return hand_tool("create_calendar_event", create_calendar_event)


def hand_check(work: Work) -> BaseTool:
    """Get the event by our own id first; then the request must be live and the slot free; then insert with that id.

    An event that is found cancelled was booked and taken away by a person: it
    is neither booked again nor reported as booked. The id makes a second insert harmless.
    """
    files, books = Files(work), Books(work)

    def create_calendar_event(
        summary: str, start_datetime: str, end_datetime: str, timezone: str, calendar_id: str
    ) -> Said:
        """Book an event."""
        asked = {"summary": summary, "start_datetime": start_datetime, "end_datetime": end_datetime}
        decided = files.decision(lambda: {**asked, "calendar_id": calendar_id})

        def once() -> Said:
            found = books.own(calendar_id)
            if found is not None and found["status"] == "cancelled":
                return files.finish("landed", f"It was booked and deleted since: {books.id}.", id=books.id)
            if found is not None:
                return files.finish("landed", f"Booked: {books.id}.", id=books.id)
            busy, status = books.busy(start_datetime, end_datetime, calendar_id), request_status(work)
            if busy or status != "live":
                return files.finish("not_landed", f"Not booked: busy {busy}, request {status}.")
            try:
                made = books.insert(decided)
            except HttpError as error:
                if error.resp.status == 409:
                    raise Again("the id is taken; look again") from error
                return files.finish("not_landed", f"Google refused it: {error.resp.status}")
            return files.finish("landed", f"Booked: {made['id']}.", id=made["id"])

        return settled(files, once)

    return hand_tool("create_calendar_event", create_calendar_event)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals, and its request as a further fact."""
    return _gated(work, slot="empty")


def interlock_change_only(work: Work) -> BaseTool:
    """Configured so that the slot only has to stay as it was when it was decided on, taken or not."""
    return _gated(work, slot="unchanged")


def _gated(work: Work, **slot: Any) -> BaseTool:
    gate = gate_of(work)

    def still_wanted(request: str) -> dict[str, Any]:
        return {"request": request_status(work)}

    kit = CalendarToolkit(
        gate, approvals=approvals(work), premises=still_wanted, expect={"request": "live"}, **slot, **options(work)
    )
    return recovered(gate, kit.get_tools())


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
    "interlock_change_only": Arm(
        interlock_change_only, "interlock", interlock_change_only.__doc__ or "", ("before_send/pre_busy",)
    ),
}
