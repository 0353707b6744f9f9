"""Errors as Calendar words them.

Shape and reasons: Calendar API guide, "Handle API errors"; the client library reads ``error.errors[0].reason``
(``googleapiclient/http.py``). Quota errors are 403 ``rateLimitExceeded`` or ``userRateLimitExceeded``, or 429 (same
guide).
"""

from __future__ import annotations

from typing import Any


class CalendarError(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, reason: str, message: str, domain: str = "global", location: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.domain = domain
        self.location = location

    def body(self) -> dict[str, Any]:
        detail = {"domain": self.domain, "reason": self.reason, "message": self.message}
        if self.location:
            detail |= {"locationType": "parameter", "location": self.location}
        return {"error": {"errors": [detail], "code": self.status, "message": self.message}}


def not_found() -> CalendarError:
    return CalendarError(404, "notFound", "Not Found")


def duplicate() -> CalendarError:
    return CalendarError(409, "duplicate", "The requested identifier already exists.")


def gone() -> CalendarError:
    return CalendarError(410, "deleted", "Resource has been deleted")


def invalid(message: str, location: str = "") -> CalendarError:
    return CalendarError(400, "invalid", message, location=location)


def required(message: str) -> CalendarError:
    return CalendarError(400, "required", message)


def no_access(message: str) -> CalendarError:
    return CalendarError(403, "requiredAccessLevel", message, domain="calendar")


_BY_STATUS = {
    400: ("badRequest", "Bad Request", "global"),
    401: ("authError", "Invalid Credentials", "global"),
    403: ("rateLimitExceeded", "Rate Limit Exceeded", "usageLimits"),
    404: ("notFound", "Not Found", "global"),
    409: ("duplicate", "The requested identifier already exists.", "global"),
    410: ("deleted", "Resource has been deleted", "global"),
    412: ("conditionNotMet", "Precondition Failed", "global"),
    429: ("rateLimitExceeded", "Rate Limit Exceeded", "usageLimits"),
    500: ("backendError", "Backend Error", "global"),
    503: ("backendError", "Service unavailable. Please try again later.", "global"),
}


def of_status(status: int) -> CalendarError:
    """How the service words an answer with this status where nothing more is said."""
    reason, message, domain = _BY_STATUS.get(status, ("unknown", f"status {status}", "global"))
    return CalendarError(status, reason, message, domain)
