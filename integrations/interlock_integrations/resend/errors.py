"""What each of Resend's errors proves about the send that it answers.

``TABLE`` is read from the top; the first row that fits decides. What nothing
fits proves nothing. Sources: "doc" is Resend's documentation ("Errors",
"Idempotency keys", "Rate limit"); "sdk" is the Python SDK 2.52
(``exceptions.py``); "seen" was observed against the live service.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

from resend.exceptions import ResendError

from interlock_tools import SendError

from ..proofs import Proof, Row, anything_else, first_that_fits, raising, seconds, to_raise
from ..transport import send_error
from .client import NotResend

NAMELESS = "InternalServerError"
"""What the SDK calls an error whose body has no name."""


@dataclass(frozen=True)
class Answer:
    """What is known of Resend's answer.

    Attributes:
        status: HTTP status; None where no answer came.
        name: name of the error; None where the body is none of Resend's.
        message: its words.
        replayed: Resend marks it as its stored answer to this idempotency key.
        retry_after_s: how long it asks to wait, where it does.
    """

    status: int | None
    name: str | None
    message: str
    replayed: bool
    retry_after_s: float | None


TABLE: tuple[Row[Answer], ...] = (
    Row(
        "no answer",
        lambda answer: answer.status is None,
        Proof.UNKNOWN,
        "The connection broke or time ran out after bytes had left; the email may be on its way. What fails before the "
        "first byte does not get here: the transport raises NotSent.",
        "transport: requests.RequestException",
    ),
    Row(
        "not Resend's words",
        lambda answer: answer.name is None,
        Proof.UNKNOWN,
        "The body is not an error object of Resend's, so something in between answered, or the answer was damaged.",
        "sdk: request.py, 'Expected JSON response'",
    ),
    Row(
        "key in progress",
        lambda answer: answer.name == "concurrent_idempotent_requests",
        Proof.IN_PROGRESS,
        "A request under this key is being carried out right now. Its answer can be had under the same key later.",
        "doc: 409 concurrent_idempotent_requests",
    ),
    Row(
        "key used with another body",
        lambda answer: answer.name == "invalid_idempotent_request",
        Proof.STORED,
        "Nobody else makes our keys, so an earlier send of this effect was accepted, with a body of another form (an "
        "older version of this code). The same key will never say more: look it up.",
        "doc: 409 invalid_idempotent_request",
    ),
    Row(
        "rate limit",
        lambda answer: answer.status == 429,
        Proof.RATE_LIMITED,
        "Turned away before anything was done: too many requests, or the day's or month's emails are used up.",
        "doc: 429 rate_limit_exceeded, daily_quota_exceeded, monthly_quota_exceeded",
    ),
    Row(
        "stored server error",
        lambda answer: (answer.status or 0) >= 500 and answer.replayed,
        Proof.STORED,
        "The first answer under this key was a server error and is repeated. It does not say whether the email went "
        "out. That Resend stores one is not documented; nothing is lost by being ready for it.",
        "doc: Idempotency keys (the original response is returned)",
    ),
    Row(
        "server error",
        lambda answer: (answer.status or 0) >= 500,
        Proof.UNKNOWN,
        "Something went wrong on Resend's side, at a moment that is not told.",
        "doc: 500 application_error, internal_server_error",
    ),
    Row(
        "no valid key",
        lambda answer: answer.status == 401 or answer.name == "invalid_api_key",
        Proof.DEFINITE_NO,
        "Turned away before anything was done.",
        "doc: 401 missing_api_key, restricted_api_key; 403 invalid_api_key",
    ),
    Row(
        "not permitted",
        lambda answer: answer.status == 403,
        Proof.DEFINITE_NO,
        "The sender's domain is not verified, or the account may not write to this recipient; nothing was sent.",
        "doc: 403 validation_error",
    ),
    Row(
        "invalid request",
        lambda answer: answer.status in (400, 404, 405, 422),
        Proof.DEFINITE_NO,
        "A field is missing or wrong; nothing was sent.",
        "doc: 400 and 422 validation_error, missing_required_field, invalid_idempotency_key; 404, 405",
    ),
)

ANYTHING_ELSE: Row[Answer] = anything_else()


def row_of(answer: Answer) -> Row[Answer]:
    """Return the row that fits an answer."""
    return first_that_fits(TABLE, answer, ANYTHING_ELSE)


def answer_of(error: BaseException) -> Answer:
    """Return what an error of the SDK, or of its transport, says of Resend's answer."""
    if isinstance(error, NotResend):
        return Answer(error.status, None, "", False, None)
    if not isinstance(error, ResendError):
        return Answer(None, None, "", False, None)
    headers = {name.lower(): value for name, value in error.headers.items()}
    name = error.error_type if isinstance(error.error_type, str) and error.error_type != NAMELESS else None
    return Answer(
        status=int(error.code),
        name=name or None,
        message=str(error.message or ""),
        replayed=headers.get("idempotent-replayed", "").lower() == "true",
        retry_after_s=seconds(headers.get("retry-after")),
    )


def classify(error: Exception) -> SendError | None:
    """Return what a send function should raise in place of ``error``; None where it proves nothing."""
    ours = send_error(error)
    if ours is not None:
        return ours
    answer = answer_of(error)
    proves = row_of(answer).proves
    return to_raise(proves, answer.message, answer.name, stored=answer.replayed, retry_after_s=answer.retry_after_s)


def classified() -> AbstractContextManager[None]:
    """Turn the errors of one send into what they prove. What proves nothing passes through as it is."""
    return raising(classify)
