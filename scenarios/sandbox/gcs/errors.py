"""Errors in the JSON API's shape: ``{"error": {"code", "message", "errors": [{"message", "domain", "reason"}]}}``.

Source: Cloud Storage's JSON API reference, "HTTP status and error codes for JSON".
"""

from __future__ import annotations

from typing import Any


class GcsError(Exception):
    """An error that a request is answered with."""

    def __init__(self, status: int, message: str, reason: str, location: tuple[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.reason = reason
        self.location = location

    def body(self) -> dict[str, Any]:
        item: dict[str, Any] = {"message": self.message, "domain": "global", "reason": self.reason}
        if self.location is not None:
            item["locationType"], item["location"] = self.location
        return {"error": {"code": self.status, "message": self.message, "errors": [item]}}


def no_object(bucket: str, name: str) -> GcsError:
    return GcsError(404, f"No such object: {bucket}/{name}", "notFound")


def no_bucket() -> GcsError:
    return GcsError(404, "The specified bucket does not exist.", "notFound")


def condition_not_met() -> GcsError:
    message = "At least one of the pre-conditions you specified did not hold."
    return GcsError(412, message, "conditionNotMet", ("header", "If-Match"))


def not_modified() -> GcsError:
    return GcsError(304, "", "notModified")


def invalid(message: str, parameter: str | None = None) -> GcsError:
    return GcsError(400, message, "invalid", ("parameter", parameter) if parameter else None)


def forbidden(permission: str) -> GcsError:
    message = (
        f"Caller does not have {permission} access to the Google Cloud Storage resource. "
        f"Permission '{permission}' denied on resource (or it may not exist)."
    )
    return GcsError(403, message, "forbidden")


def of_status(status: int) -> GcsError:
    """What the service says with a status that a fault asks for."""
    known = {
        401: ("Invalid Credentials", "authError"),
        403: ("Forbidden", "forbidden"),
        404: ("Not Found", "notFound"),
        408: ("Request Timeout", "requestTimeout"),
        409: ("Conflict", "conflict"),
        412: ("At least one of the pre-conditions you specified did not hold.", "conditionNotMet"),
        429: ("The rate of requests to this object is too high. Please reduce your request rate.", "rateLimitExceeded"),
        500: ("We encountered an internal error. Please try again.", "backendError"),
        503: ("We encountered an internal error. Please try again.", "backendError"),
    }
    message, reason = known.get(status, (f"Sandbox fault: answered {status}.", "backendError"))
    return GcsError(status, message, reason)
