"""Google Calendar behind a gate: events that are booked at most once, into an empty slot, by the official client.

::

    from interlock_tools import Gate
    from interlock_integrations.calendar import CalendarToolkit

    gate = Gate("bookings.db")
    toolkit = CalendarToolkit(gate, service=build("calendar", "v3", credentials=credentials))
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [CreateCalendarEvent()])``.

LangChain is loaded when a tool or the toolkit is first asked for; a process
that only recovers declares the effect (``declare_event``) and does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import calendar_from_environment, gated_service
from .events import declare_event

if TYPE_CHECKING:
    from .toolkit import CalendarToolkit
    from .tools import CreateCalendarEvent

__all__ = [
    "CalendarToolkit",
    "CreateCalendarEvent",
    "calendar_from_environment",
    "declare_event",
    "gated_service",
]

_LAZY = {"CalendarToolkit": "toolkit", "CreateCalendarEvent": "tools"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
