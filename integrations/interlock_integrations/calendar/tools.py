"""The tool that a model is given: name, arguments, description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source
from interlock_tools.outcome import Outcome

from ..declaring import gate_from_environment
from .client import calendar_from_environment, gated_service
from .events import declare_event
from .slots import CALENDAR_ID, LOCAL, MAX_SUMMARY, SUMMARY

DESCRIPTION = (
    "Book an event in a Google calendar. For the request being worked on it is booked at most once, and not at all if "
    "the time is taken. The answer says what became of it and whether asking again makes sense."
)


class CreateCalendarEventArguments(BaseModel):
    """What a model gives for an event."""

    summary: str = Field(min_length=1, max_length=MAX_SUMMARY, pattern=SUMMARY, description="The event's title.")
    start_datetime: str = Field(pattern=LOCAL, description="When it begins, local time: 2026-09-07T10:00:00.")
    end_datetime: str = Field(pattern=LOCAL, description="When it ends, local time: 2026-09-07T10:30:00.")
    timezone: str = Field(min_length=1, max_length=64, description="Time zone of both: Europe/Berlin, or UTC.")
    calendar_id: str = Field(
        default="primary",
        pattern=CALENDAR_ID,
        description="The calendar's id: an address, or primary for the own calendar.",
    )


class CreateCalendarEvent(GatedTool):
    """``create_calendar_event(summary, start_datetime, end_datetime, timezone, calendar_id)``.

    It makes itself from the environment, or from an effect that is there. See
    ``calendar_from_environment``; ``INTERLOCK_JOURNAL`` is a file that outlives
    the process. Making it so recovers what an earlier process left open.

    Args:
        effect: an effect that was declared already; the arguments below are then not used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        service: the Calendar service; by default one configured by the environment.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_event``, such as ``approvals``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    name: str = "create_calendar_event"
    description: str = DESCRIPTION
    args_schema: type[BaseModel] = CreateCalendarEventArguments
    request_argument: str = "request"

    def __init__(
        self,
        effect: Effect[Any] | None = None,
        *,
        gate: Gate | None = None,
        service: Any = None,
        recover: bool = True,
        declare: Mapping[str, Any] | None = None,
        request: Source | None = None,
        **fields: Any,
    ) -> None:
        if effect is None:
            ours = gated_service(service if service is not None else calendar_from_environment())
            gate = gate if gate is not None else gate_from_environment()
            effect = declare_event(gate, ours, **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, **fields})

    def content(self, outcome: Outcome) -> str:
        """Return the outcome's message, and what has to be known of an event that is not simply booked once."""
        result = outcome.result if outcome.committed and isinstance(outcome.result, dict) else {}
        words = outcome.message
        if result.get("status") == "cancelled":
            words += " It was booked, and the event has been deleted since."
        if result.get("copies"):
            count = result["copies"]
            words = f"Attention: {count} copies of this event are in the calendar; a person has to delete some. {words}"
        return words
