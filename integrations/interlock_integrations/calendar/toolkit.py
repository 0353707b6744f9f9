"""``CalendarToolkit``: the Calendar tool behind a gate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from interlock_tools import Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, calendar_from_environment, gated_service
from .events import declare_event
from .tools import CreateCalendarEvent


class CalendarToolkit(GatedToolkit):
    """Google Calendar's gated tool: ``create_agent(model, CalendarToolkit(gate, service=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        service: what ``googleapiclient.discovery.build("calendar", "v3", credentials=...)`` returns; by default one
            configured by the environment. It is left as it is: the tool uses one on the gated transport.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        send_timeout: longest time until a request has landed or never will.
        name: the effect's name; another one for each Google account at one journal.
        declare: further arguments of ``declare_event``: ``approvals``, ``slot``, ``others``, ``collisions``,
            ``premises``, ``expect`` and ``budget``.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        service: Any = None,
        request: Source | None = None,
        wait: timedelta | float | None = None,
        send_timeout: timedelta = SEND_TIMEOUT,
        name: str = "calendar.event",
        **declare: Any,
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        ours = gated_service(service if service is not None else calendar_from_environment())
        effect = declare_event(gate, ours, name=name, send_timeout=send_timeout, **declare)
        self.add(CreateCalendarEvent(effect, request=request, wait=wait))
