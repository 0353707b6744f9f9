"""What each of Stripe's errors proves about the request that it answers.

``TABLE`` is read from the top; the first row that fits decides. What nothing
fits proves nothing. Sources: "doc" is Stripe's public API reference ("Errors",
"Error codes", "Idempotent requests", "Rate limits"); "sdk" is the Python SDK
16.1 (``_api_requestor.py``); "seen" was observed against the live service in
test mode.

Details of the SDK that matter here: an error's code is missing from ``e.code``
for statuses other than 400, 402 and 404 and is found in ``e.error.code``; the
response's headers are in ``e.headers``; what its transport raised is the cause
of an ``APIConnectionError``.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass

import stripe

from interlock_tools import SendError

from ..proofs import Proof, Row, anything_else, first_that_fits, raising, seconds, to_raise
from ..transport import send_error


@dataclass(frozen=True)
class Answer:
    """What is known of Stripe's answer.

    Attributes:
        status: HTTP status; None where no answer came.
        type: type of Stripe's error object; None where the body is none of Stripe's.
        code: its code.
        message: its words.
        replayed: Stripe marks it as its stored answer to this idempotency key.
        retry_after_s: how long Stripe asks to wait, where it does.
    """

    status: int | None
    type: str | None
    code: str | None
    message: str
    replayed: bool
    retry_after_s: float | None


TABLE: tuple[Row[Answer], ...] = (
    Row(
        "no answer",
        lambda answer: answer.status is None,
        Proof.UNKNOWN,
        "The connection broke or time ran out after bytes had left; the request may have been carried out. What fails "
        "before the first byte does not get here: the transport raises NotSent.",
        "sdk: APIConnectionError",
    ),
    Row(
        "not Stripe's words",
        lambda answer: answer.type is None,
        Proof.UNKNOWN,
        "The body is not a Stripe error object, so something in between answered, or the answer was damaged. That it "
        "is a 4xx says nothing about what Stripe did.",
        "sdk: APIError 'Invalid response'",
    ),
    Row(
        "key in use",
        lambda answer: answer.status == 409,
        Proof.IN_PROGRESS,
        "A request under this key is being carried out right now. Its answer can be had under the same key later.",
        "doc: 409 Conflict, idempotency_key_in_use",
    ),
    Row(
        "key used with other parameters",
        lambda answer: answer.type == "idempotency_error",
        Proof.STORED,
        "Nobody else makes our keys, so an earlier send of this effect was received, with a body of another form (an "
        "older version of this code). What it did is not said, and the same key will never say more: look it up.",
        "doc: idempotency_error",
    ),
    Row(
        "rate limit",
        lambda answer: answer.status == 429 or answer.code in ("rate_limit", "lock_timeout"),
        Proof.RATE_LIMITED,
        "Turned away before anything was done, and not remembered for the key.",
        "doc: 429 Too Many Requests, rate_limit and lock_timeout; Idempotent requests",
    ),
    Row(
        "stored server error",
        lambda answer: (answer.status or 0) >= 500 and answer.replayed,
        Proof.STORED,
        "The first answer under this key was a server error, and Stripe repeats it for a day. It does not say whether "
        "the request was carried out.",
        "doc: Idempotent requests (500s are stored too)",
    ),
    Row(
        "server error",
        lambda answer: (answer.status or 0) >= 500 or answer.status == 424,
        Proof.UNKNOWN,
        "Something went wrong on Stripe's side or beyond it, at a moment that is not told.",
        "doc: 500, 502, 503, 504 Server Errors; 424 External Dependency Failed",
    ),
    Row(
        "already refunded",
        lambda answer: answer.code == "charge_already_refunded",
        Proof.PRECONDITION_FAILED,
        "Nothing is left to refund. This request did nothing, but an earlier one of ours may be what left nothing.",
        "doc: charge_already_refunded",
    ),
    Row(
        "charged back",
        lambda answer: answer.code == "charge_disputed",
        Proof.PRECONDITION_FAILED,
        "The bank has taken the money back; Stripe refuses to refund it a second time.",
        "seen: 400 'has been charged back'; doc: charge_disputed",
    ),
    Row(
        "card declined",
        lambda answer: answer.status == 402,
        Proof.DEFINITE_NO,
        "The parameters were valid, and the request failed as a whole.",
        "doc: 402 Request Failed",
    ),
    Row(
        "no valid key",
        lambda answer: answer.status == 401,
        Proof.DEFINITE_NO,
        "Turned away before anything was done.",
        "doc: 401 Unauthorized",
    ),
    Row(
        "not permitted",
        lambda answer: answer.status == 403,
        Proof.DEFINITE_NO,
        "The key may not do this; turned away before anything was done.",
        "doc: 403 Forbidden",
    ),
    Row(
        "invalid request",
        lambda answer: answer.status in (400, 404) and answer.type == "invalid_request_error",
        Proof.DEFINITE_NO,
        "A parameter is wrong, or Stripe refuses the action; nothing was done. If it is replayed, Stripe says so for "
        "every send under the key.",
        "doc: 400 Bad Request, 404 Not Found, invalid_request_error",
    ),
)

ANYTHING_ELSE: Row[Answer] = anything_else()


def row_of(answer: Answer) -> Row[Answer]:
    """Return the row that fits an answer."""
    return first_that_fits(TABLE, answer, ANYTHING_ELSE)


def answer_of(error: stripe.StripeError) -> Answer:
    """Return what an error of the SDK says of Stripe's answer."""
    body = error.json_body
    told = body.get("error") if isinstance(body, dict) else None
    fields = told if isinstance(told, dict) else {}
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    return Answer(
        status=error.http_status,
        type=_text(fields.get("type")),
        code=_text(fields.get("code")),
        message=_text(fields.get("message")) or "",
        replayed=headers.get("idempotent-replayed", "").lower() == "true",
        retry_after_s=seconds(headers.get("retry-after")),
    )


def classify(error: Exception) -> SendError | None:
    """Return what a send function should raise in place of ``error``; None where it proves nothing."""
    ours = send_error(error)
    if ours is not None:
        return ours
    if not isinstance(error, stripe.StripeError):
        return None
    answer = answer_of(error)
    proves, code = row_of(answer).proves, answer.code or answer.type
    return to_raise(proves, answer.message, code, stored=answer.replayed, retry_after_s=answer.retry_after_s)


def classified() -> AbstractContextManager[None]:
    """Turn Stripe's errors of one send into what they prove. What proves nothing passes through as it is."""
    return raising(classify)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
