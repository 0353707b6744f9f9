"""Google Calendar v3: calendars with access roles, events, recurring ones, free/busy.

What each part reproduces, and where that is known from, stands in its module's docstring. Not reproduced: attendees'
copies and invitations, sync tokens, patch and update over HTTP, conference data, watch channels, yearly and monthly
rules.
"""

from scenarios.sandbox.calendar.service import CalendarService

SERVICE = CalendarService

__all__ = ["SERVICE", "CalendarService"]
