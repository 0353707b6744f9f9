"""Errors in Stripe's shape: ``{"error": {"type", "code", "message", "param", …}}`` with an HTTP status.

Types, statuses and the list of codes: Stripe's public API reference, "Errors" and "Error codes". Whether an error is
remembered for its idempotency key is in ``stored``: Stripe remembers what an endpoint answered once it began to
execute, and not a failed parameter validation, a failed authentication, a rate limit or a conflict with a request
that is still executing (API reference, "Idempotent requests").
"""

from __future__ import annotations

from typing import Any

DOC_URL = "https://stripe.com/docs/error-codes/"


class StripeError(Exception):
    """An error that a request is answered with."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        type: str = "invalid_request_error",
        code: str | None = None,
        param: str | None = None,
        stored: bool = True,
        **extra: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.type = type
        self.code = code
        self.param = param
        self.stored = stored
        self.extra = extra

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"message": self.message, "type": self.type}
        if self.code:
            error["code"] = self.code
            error["doc_url"] = DOC_URL + self.code.replace("_", "-")
        if self.param:
            error["param"] = self.param
        error.update(self.extra)
        return {"error": error}


def refused(message: str, *, code: str | None = None, param: str | None = None, **extra: Any) -> StripeError:
    """400 from an endpoint that executed and said no; remembered for the key."""
    return StripeError(400, message, code=code, param=param, **extra)


def invalid(message: str, param: str | None = None, code: str | None = None) -> StripeError:
    """400 from parameter validation; not remembered."""
    return StripeError(400, message, code=code, param=param, stored=False)


def no_such(kind: str, name: str, param: str, *, in_path: bool = False) -> StripeError:
    """An object that does not exist: 404 where the URL names it, 400 where a parameter does."""
    status = 404 if in_path else 400
    return StripeError(status, f"No such {kind}: '{name}'", code="resource_missing", param=param)


def key_in_use(key: str) -> StripeError:
    """409 for a key whose first request is still executing. The code is Stripe's; the type is an assumption."""
    return StripeError(
        409,
        "There is currently another in-progress request using this Idempotent Key (that probably means you submitted "
        f"twice, and the other request is still going through): {key}. Please try again later.",
        type="idempotency_error",
        code="idempotency_key_in_use",
        stored=False,
    )


def rate_limited() -> StripeError:
    return StripeError(
        429,
        "Request rate limit exceeded. Learn more about rate limits here https://stripe.com/docs/rate-limits.",
        code="rate_limit",
        stored=False,
    )


def server_error(status: int = 500) -> StripeError:
    return StripeError(status, "An unknown error occurred.", type="api_error")
