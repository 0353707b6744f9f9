"""What each of Calendar's errors proves about the insert that it answers.

``TABLE`` is read from the top; the first row that fits decides. What nothing
fits proves nothing. Sources: "doc" is the Calendar API's guide, "Handle API
errors"; "description" is the API description that the client library ships
(``calendar.v3.json``); "seen" was observed against the live service.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from googleapiclient.errors import HttpError

from interlock_tools import SendError, StoredError

from ..proofs import Proof, Row, anything_else, first_that_fits, raising, seconds, to_raise
from ..transport import send_error

QUOTA = frozenset(
    {"rateLimitExceeded", "userRateLimitExceeded", "quotaExceeded", "dailyLimitExceeded", "calendarUsageLimitsExceeded"}
)
"""Reasons of a 403 that mean "later"."""


class AlreadyThere(StoredError):
    """An event with this id has been made before, so an earlier send landed. Look at it: it may be deleted by now."""


@dataclass(frozen=True)
class Answer:
    """What is known of Calendar's answer.

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
        "The connection broke or time ran out after bytes had left, or the library could not read what came back; the "
        "event may be there. What fails before the first byte does not get here: the transport raises NotSent.",
        "transport: requests.RequestException",
    ),
    Row(
        "server error",
        lambda answer: (answer.status or 0) >= 500,
        Proof.UNKNOWN,
        "Something went wrong on Google's side, at a moment that is not told.",
        "doc: 500 backendError",
    ),
    Row(
        "not Google's words",
        lambda answer: answer.reason is None,
        Proof.UNKNOWN,
        "The body is not an error object of Google's, so something in between answered. That it is a 4xx says nothing "
        "about what Calendar did.",
        "doc: error format",
    ),
    Row(
        "duplicate",
        lambda answer: answer.status == 409,
        Proof.STORED,
        "The id is used up for ever, also by an event that was deleted since. Nobody else makes our ids, so an earlier "
        "send of this effect landed; whether it is still booked has to be read.",
        "doc: 409 duplicate; seen: a deleted event reads 200 with status cancelled",
    ),
    Row(
        "quota",
        lambda answer: answer.status == 429 or (answer.status == 403 and answer.reason in QUOTA),
        Proof.RATE_LIMITED,
        "Turned away before anything was done.",
        "doc: 403 and 429 rateLimitExceeded, userRateLimitExceeded, quotaExceeded",
    ),
    Row(
        "credentials",
        lambda answer: answer.status == 401,
        Proof.DEFINITE_NO,
        "Turned away before anything was done.",
        "doc: 401 authError",
    ),
    Row(
        "not permitted",
        lambda answer: answer.status == 403,
        Proof.DEFINITE_NO,
        "The caller may not write to this calendar; nothing was done.",
        "doc: 403 forbidden, requiredAccessLevel, insufficientPermissions",
    ),
    Row(
        "no such calendar",
        lambda answer: answer.status == 404,
        Proof.DEFINITE_NO,
        "There is no such calendar, or the caller may not see it; nothing was done.",
        "doc: 404 notFound",
    ),
    Row(
        "invalid request",
        lambda answer: answer.status == 400,
        Proof.DEFINITE_NO,
        "A field is wrong; nothing was done.",
        "doc: 400 badRequest, invalid, required, timeRangeEmpty",
    ),
)

ANYTHING_ELSE: Row[Answer] = anything_else()


def row_of(answer: Answer) -> Row[Answer]:
    """Return the row that fits an answer."""
    return first_that_fits(TABLE, answer, ANYTHING_ELSE)


def answer_of(error: BaseException) -> Answer:
    """Return what an error of the library, or of its transport, says of Calendar's answer."""
    if not isinstance(error, HttpError):
        return Answer(None, None, "", None)
    detail, message = _first_error(error.content)
    reason = detail.get("reason")
    return Answer(
        status=int(error.resp.status),
        reason=reason if isinstance(reason, str) and reason else None,
        message=message,
        retry_after_s=seconds(error.resp.get("retry-after")),
    )


def _first_error(content: bytes) -> tuple[dict[str, Any], str]:
    try:
        told = json.loads(content)["error"]
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
    row = row_of(answer)
    known = to_raise(row.proves, answer.message, answer.reason, retry_after_s=answer.retry_after_s)
    if row.proves is Proof.STORED and known is not None:
        return AlreadyThere(known.detail, code=known.code)
    return known


def classified() -> AbstractContextManager[None]:
    """Turn the errors of one send into what they prove. What proves nothing passes through as it is."""
    return raising(classify)
