"""What each of GitHub's errors proves about the merge or the comment that it answers.

``TABLE`` is read from the top; the first row that fits decides. What nothing
fits proves nothing. Sources: "doc" is GitHub's REST API reference ("Pull
requests", "Issue comments", "Troubleshooting", "Rate limits", "Best
practices"); "seen" was observed against the live service; "quoted" is wording
that public clients of the API quote.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

from github import GithubException

from interlock_tools import InProgress, SendError
from interlock_tools.redaction import clean

from ..proofs import MAX_RETRY_AFTER_S, Proof, Row, anything_else, first_that_fits, raising, seconds, to_raise
from ..transport import send_error

SECONDARY_WAIT_S = 60.0
"""Wait after a secondary rate limit that does not say how long (doc: at least one minute)."""


class NotMergeable(InProgress):
    """405: merged already, being computed, or not to be merged. Which one only the pull request itself tells."""


@dataclass(frozen=True)
class Answer:
    """What is known of GitHub's answer.

    Attributes:
        status: HTTP status; None where no answer came.
        message: GitHub's words; None where the body is none of GitHub's.
        limited: it says that a rate limit was reached.
        retry_after_s: how long it asks to wait, where it does.
    """

    status: int | None
    message: str | None
    limited: bool
    retry_after_s: float | None

    def says(self, *words: str) -> bool:
        text = (self.message or "").lower()
        return any(word in text for word in words)


TABLE: tuple[Row[Answer], ...] = (
    Row(
        "no answer",
        lambda answer: answer.status is None,
        Proof.UNKNOWN,
        "The connection broke or time ran out after bytes had left, or what came back could not be read; the request "
        "may have been carried out. What fails before the first byte does not get here: the transport raises NotSent.",
        "transport: requests.RequestException",
    ),
    Row(
        "server error",
        lambda answer: (answer.status or 0) >= 500,
        Proof.UNKNOWN,
        "Something went wrong on GitHub's side, or it ended the request after its 10 s, at a moment that is not told. "
        "A merge can be in all the same.",
        "doc: Troubleshooting, Timeouts; seen: 502 for a merge that is in",
    ),
    Row(
        "moved",
        lambda answer: 300 <= (answer.status or 0) < 400,
        Proof.DEFINITE_NO,
        "The repository has another name now; nothing was done under the old one, and no redirect is followed.",
        "doc: Best practices, Follow redirects",
    ),
    Row(
        "not GitHub's words",
        lambda answer: answer.message is None,
        Proof.UNKNOWN,
        "The body is not GitHub's, so something in between answered. That it is a 4xx says nothing about GitHub.",
        "doc: Troubleshooting",
    ),
    Row(
        "rate limit",
        lambda answer: answer.status == 429 or (answer.status == 403 and answer.limited),
        Proof.RATE_LIMITED,
        "Turned away before anything was done; the primary limit says until when, the secondary how long.",
        "doc: Rate limits (403 or 429, x-ratelimit-*, retry-after)",
    ),
    Row(
        "credentials",
        lambda answer: answer.status == 401,
        Proof.DEFINITE_NO,
        "Turned away before anything was done.",
        "doc: 401 Bad credentials",
    ),
    Row(
        "not permitted",
        lambda answer: answer.status == 403,
        Proof.DEFINITE_NO,
        "These credentials may not do it, or the conversation is locked; nothing was done.",
        "doc: 403 Forbidden",
    ),
    Row(
        "not there",
        lambda answer: answer.status in (404, 410, 451),
        Proof.DEFINITE_NO,
        "There is no such repository, pull request or issue, or these credentials may not see it; nothing was done.",
        "doc: 404 Not Found, 410 Gone",
    ),
    Row(
        "base moved",
        lambda answer: answer.status in (405, 409) and answer.says("base branch was modified"),
        Proof.RATE_LIMITED,
        "The base branch moved during the merge, which was given up. It is not refused: it may be tried again.",
        "quoted: 405 Base branch was modified. Review and try the merge again.",
    ),
    Row(
        "head moved",
        lambda answer: answer.status == 409 and answer.says("head branch was modified"),
        Proof.PRECONDITION_FAILED,
        "The head is not the reviewed commit; GitHub compared them and did nothing. (It says so of one that is "
        "merged already never: that is a 405.)",
        "doc: 409 if sha was provided and the head did not match; seen: 3 of 3",
    ),
    Row(
        "method not allowed here",
        lambda answer: answer.status == 405 and answer.says("are not allowed on this repository"),
        Proof.DEFINITE_NO,
        "The repository does not allow this merge method; nothing was done.",
        "quoted: 405 Squash merges are not allowed on this repository.",
    ),
    Row(
        "not mergeable",
        lambda answer: answer.status == 405,
        Proof.IN_PROGRESS,
        "Merged already (perhaps by us), or mergeability is being computed after a push, or a conflict or a rule "
        "keeps it out. The pull request is read again, and that decides.",
        "doc: 405 Method Not Allowed; seen: for some seconds after a push",
    ),
    Row(
        "invalid request",
        lambda answer: answer.status in (400, 422),
        Proof.DEFINITE_NO,
        "A field is wrong or too long, or GitHub takes it for spam; nothing was done.",
        "doc: 400 Bad Request, 422 Validation Failed",
    ),
)

ANYTHING_ELSE: Row[Answer] = anything_else()


def row_of(answer: Answer) -> Row[Answer]:
    """Return the row that fits an answer."""
    return first_that_fits(TABLE, answer, ANYTHING_ELSE)


def answer_of(error: BaseException) -> Answer:
    """Return what an error of PyGithub, or of its transport, says of GitHub's answer."""
    if not isinstance(error, GithubException) or not isinstance(error.status, int):
        return Answer(None, None, False, None)
    headers = {str(name).lower(): str(value) for name, value in (error.headers or {}).items()}
    message = error.data.get("message") if isinstance(error.data, dict) else None
    words = message if isinstance(message, str) and message else None
    primary = headers.get("x-ratelimit-remaining") == "0" and "x-ratelimit-reset" in headers
    secondary = "retry-after" in headers or "rate limit" in (words or "").lower()
    wait = seconds(headers.get("retry-after"))
    if wait is None and (primary or secondary):
        wait = _until(headers) if primary else SECONDARY_WAIT_S
    return Answer(error.status, words, primary or secondary, wait)


def _until(headers: dict[str, str]) -> float:
    """Seconds until the primary limit starts afresh, by GitHub's own clock where it tells it."""
    reset = headers["x-ratelimit-reset"]
    if not (reset.isascii() and reset.isdigit()):
        return SECONDARY_WAIT_S
    try:
        now = parsedate_to_datetime(headers["date"]).timestamp()
    except (KeyError, ValueError, TypeError):
        now = time.time()
    return min(max(float(reset) - now, 1.0), MAX_RETRY_AFTER_S)


def classify(error: Exception) -> SendError | None:
    """Return what a send function should raise in place of ``error``; None where it proves nothing."""
    ours = send_error(error)
    if ours is not None:
        return ours
    answer = answer_of(error)
    row = row_of(answer)
    code = row.name.replace(" ", "_") if answer.status is not None else None
    if row.name == "not mergeable":
        return NotMergeable(clean(answer.message or ""), code=code)
    wait = 1.0 if row.name == "base moved" else answer.retry_after_s
    return to_raise(row.proves, answer.message or "", code, retry_after_s=wait)


def classified() -> AbstractContextManager[None]:
    """Turn the errors of one send into what they prove. What proves nothing passes through as it is."""
    return raising(classify)
