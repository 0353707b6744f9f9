"""What each of Cloud Storage's errors proves about the write that it answers.

``TABLE`` is read from the top; the first row that fits decides. What nothing
fits proves nothing. Sources: "doc" is the JSON API reference, "HTTP status and
error codes for JSON", and the pages on preconditions and retries; "sdk" was
measured with the Python client 3.17.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from google.api_core.exceptions import GoogleAPICallError

from interlock_tools import SendError

from ..proofs import Proof, Row, anything_else, first_that_fits, raising, seconds, to_raise
from ..transport import send_error

LIMITS = frozenset({"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded"})
"""Reasons of a 403 that mean "later"."""


@dataclass(frozen=True)
class Answer:
    """What is known of the service's answer.

    Attributes:
        status: HTTP status; None where no answer came.
        reason: reason of its first error; None where the body is none of Google's.
        message: its words.
        retry_after_s: how long it asks to wait, where it does.
    """

    status: int | None
    reason: str | None
    message: str
    retry_after_s: float | None


TABLE: tuple[Row[Answer], ...] = (
    Row(
        "no answer",
        lambda answer: answer.status is None,
        Proof.UNKNOWN,
        "The connection broke or time ran out after bytes had left, or what came back could not be read; the object "
        "may be written. What fails before the first byte does not get here: the transport raises NotSent.",
        "transport: requests.RequestException",
    ),
    Row(
        "server error",
        lambda answer: (answer.status or 0) >= 500,
        Proof.UNKNOWN,
        "Something went wrong on Google's side, at a moment that is not told.",
        "doc: 500, 502, 503, 504",
    ),
    Row(
        "not Google's words",
        lambda answer: answer.reason is None,
        Proof.UNKNOWN,
        "The body is not an error object of Google's, so something in between answered. That it is a 4xx says nothing "
        "about what Cloud Storage did.",
        "doc: error response format",
    ),
    Row(
        "timed out",
        lambda answer: answer.status == 408,
        Proof.UNKNOWN,
        "The service gave up on the upload; the reference counts it among those that may be tried again, and does not "
        "say that nothing was written.",
        "doc: 408 Request Timeout",
    ),
    Row(
        "precondition",
        lambda answer: answer.status == 412,
        Proof.PRECONDITION_FAILED,
        "The live generation is not the one that was read. This request wrote nothing, but an earlier one of ours, or "
        "this very one repeated on the way, may be what replaced it: the generations are looked at.",
        "doc: 412 Precondition Failed; sdk: a 412 caused by the client's own first attempt",
    ),
    Row(
        "rate limit",
        lambda answer: answer.status == 429 or (answer.status == 403 and answer.reason in LIMITS),
        Proof.RATE_LIMITED,
        "Turned away before anything was done (an object takes about one write a second).",
        "doc: 429 Too Many Requests; 403 rateLimitExceeded, quotaExceeded",
    ),
    Row(
        "credentials",
        lambda answer: answer.status == 401,
        Proof.DEFINITE_NO,
        "Turned away before anything was done.",
        "doc: 401 Unauthorized",
    ),
    Row(
        "not permitted",
        lambda answer: answer.status == 403,
        Proof.DEFINITE_NO,
        "The caller may not do it, or a hold or retention keeps the object as it is; nothing was done.",
        "doc: 403 Forbidden, retentionPolicyNotMet",
    ),
    Row(
        "not there",
        lambda answer: answer.status == 404,
        Proof.DEFINITE_NO,
        "There is no such bucket, or no such generation to restore; nothing was done.",
        "doc: 404 Not Found",
    ),
    Row(
        "invalid request",
        lambda answer: answer.status == 400,
        Proof.DEFINITE_NO,
        "A name or a field is wrong, or the content did not arrive as it was sent (checksum); nothing was done.",
        "doc: 400 Bad Request",
    ),
)

ANYTHING_ELSE: Row[Answer] = anything_else()


def row_of(answer: Answer) -> Row[Answer]:
    """Return the row that fits an answer."""
    return first_that_fits(TABLE, answer, ANYTHING_ELSE)


def answer_of(error: BaseException) -> Answer:
    """Return what an error of the client, or of its transport, says of the service's answer."""
    response = getattr(error, "response", None)
    if not isinstance(error, GoogleAPICallError) or response is None:
        return Answer(None, None, "", None)
    detail, message = _first_error(response)
    reason = detail.get("reason")
    return Answer(
        status=int(response.status_code),
        reason=reason if isinstance(reason, str) and reason else None,
        message=message,
        retry_after_s=seconds(response.headers.get("retry-after")),
    )


def _first_error(response: Any) -> tuple[dict[str, Any], str]:
    """The first error of a body: uploads and other calls fill the client's own fields in differently."""
    try:
        told = json.loads(response.content)["error"]
        detail = told["errors"][0]
        return (detail, str(told.get("message", ""))) if isinstance(detail, dict) else ({}, "")
    except (ValueError, KeyError, IndexError, TypeError):
        return {}, ""


def classify(error: Exception) -> SendError | None:
    """Return what a send function should raise in place of ``error``; None where it proves nothing."""
    ours = send_error(error)
    if ours is not None:
        return ours
    answer = answer_of(error)
    return to_raise(row_of(answer).proves, answer.message, answer.reason, retry_after_s=answer.retry_after_s)


def classified() -> AbstractContextManager[None]:
    """Turn the errors of one send into what they prove. What proves nothing passes through as it is."""
    return raising(classify)
