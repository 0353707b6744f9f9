"""Errors as Resend words them: ``{"statusCode", "name", "message"}``.

Names and statuses: API reference, "Errors" and "Idempotency keys"; the Python SDK maps them in
``resend/exceptions.py``. Observed: a sending-only key gets 401 ``restricted_api_key`` on reads.
"""

from __future__ import annotations

from typing import Any


class ResendFailure(Exception):
    """An answer that is not a success."""

    def __init__(self, status: int, name: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.name = name
        self.message = message

    def body(self) -> dict[str, Any]:
        return {"statusCode": self.status, "name": self.name, "message": self.message}


def missing(field: str) -> ResendFailure:
    return ResendFailure(422, "missing_required_field", f"Missing `{field}` field.")


def invalid(message: str) -> ResendFailure:
    return ResendFailure(422, "validation_error", message)


def not_found() -> ResendFailure:
    return ResendFailure(404, "not_found", "Email not found")


def key_misused() -> ResendFailure:
    words = (
        "This idempotency key has been used on a request that had a different payload. Change the key or the payload."
    )
    return ResendFailure(409, "invalid_idempotent_request", words)


def key_in_use() -> ResendFailure:
    words = "Another request with the same idempotency key is still in progress. Try again later."
    return ResendFailure(409, "concurrent_idempotent_requests", words)


_BY_STATUS = {
    400: ("validation_error", "The request is not valid."),
    401: ("restricted_api_key", "This API key is restricted to only send emails"),
    403: ("validation_error", "The domain is not verified. Please, add and verify your domain."),
    404: ("not_found", "The requested endpoint does not exist."),
    405: ("method_not_allowed", "This endpoint does not support the specified HTTP method."),
    422: ("validation_error", "The request is not valid."),
    429: ("rate_limit_exceeded", "Too many requests. You can only make 2 requests per second."),
    451: ("security_error", "We may have found a security issue with the request."),
    500: ("application_error", "An unexpected error occurred."),
}


def of_status(status: int) -> ResendFailure:
    """How the service words an answer with this status where nothing more is said."""
    if status == 409:
        return key_in_use()
    name, message = _BY_STATUS.get(status, ("internal_server_error", "An unexpected error occurred."))
    return ResendFailure(status, name, message)
