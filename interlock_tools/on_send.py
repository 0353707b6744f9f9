"""One send: the ``on_send`` hook that guards it, and what its end says."""

from __future__ import annotations

import threading
from typing import Any

from . import errors
from .core.ends import End, Ending
from .evidence import InvalidEvidence, keep
from .journal.protocol import Journal, SendSlot
from .redaction import clean
from .testing.crash import CrashPoint, reach


class OnSend:
    """Called by whoever sends the bytes, right before they go out. Give it to the transport.

    ``on_send()`` raises ``SendRevoked`` if this sender must not send any more.
    ``on_send.written()`` may be called when every byte has been written.
    """

    def __init__(self, journal: Journal, slot: SendSlot, deadline_ms: int | None) -> None:
        self._journal = journal
        self._slot = slot
        self.deadline_ms = deadline_ms
        self._lock = threading.Lock()
        self._revoked = False
        self.handed_over = False

    def __call__(self) -> None:
        """Store the mark, so that bytes may leave from now on.

        Raises:
            SendRevoked: this sender must not send any more; nothing was sent.
            SendError: called twice; one journalled send is one request on the wire.
        """
        with self._lock:
            if self.handed_over:
                raise errors.SendError(
                    "on_send was called twice: one journalled send is one request; switch the client's own retries off"
                )
            reason = "the call was cancelled before it was sent" if self._revoked else self._slot.check()
            if reason is None and self._is_past_deadline():
                reason = "the service may have forgotten this idempotency key by now"
            if reason is not None:
                raise errors.SendRevoked(reason)
            reach(CrashPoint.BEFORE_MARK)
            self._slot.hand_over()
            self.handed_over = True
            reach(CrashPoint.BEFORE_BYTES)

    def _is_past_deadline(self) -> bool:
        return self.deadline_ms is not None and self._journal.now().boottime_ms >= self.deadline_ms

    def written(self) -> None:
        """Store that all bytes have been handed to the kernel; the wait for a late landing starts here."""
        self._slot.written()
        reach(CrashPoint.IN_FLIGHT)

    def revoke(self) -> bool:
        """Forbid the hand-over. Returns False if it has happened already."""
        with self._lock:
            self._revoked = True
            return not self.handed_over


def end_of_result(result: Any) -> End:
    """Return the end of a send whose function returned."""
    try:
        evidence, by_us = keep(result)
    except InvalidEvidence as error:
        return End(Ending.UNKNOWN, cause="no_evidence", detail=clean(str(error)))
    return End(Ending.EVIDENCE, evidence=evidence, by_us=by_us)


_ENDINGS: tuple[tuple[type[errors.SendError], Ending], ...] = (
    (errors.DefiniteNo, Ending.DEFINITE_NO),
    (errors.PreconditionFailed, Ending.PRECONDITION_FAILED),
    (errors.NotSent, Ending.NOT_SENT),
    (errors.RateLimited, Ending.RATE_LIMITED),
    (errors.StoredError, Ending.STORED_ERROR),
)


def end_of_error(error: BaseException, never_handed_over: bool) -> End:
    """Return the end of a send whose function raised.

    Args:
        error: what it raised.
        never_handed_over: it takes ``on_send`` and never called it with
            success, so that whatever went wrong, not one byte left.
    """
    detail, code = errors.describe(error), None
    if isinstance(error, errors.SendError):
        detail, code = error.words()
        for kind, ending in _ENDINGS:
            if isinstance(error, kind):
                return End(ending, stored=error.stored is True, code=code, detail=detail or None)
    if never_handed_over:
        return End(Ending.NOT_SENT, code=code, detail=detail or None)
    cause = "in_progress" if isinstance(error, errors.InProgress) else type(error).__name__
    return End(Ending.UNKNOWN, cause=cause, code=code, detail=detail or None)


def retry_after_s(error: BaseException) -> float | None:
    """Return how long the service asked to wait, in seconds, if an exception says so; None if it does not."""
    asked = getattr(error, "retry_after", None)
    if isinstance(asked, str) and asked.strip().isdecimal():
        asked = float(asked)
    if isinstance(asked, (int, float)) and not isinstance(asked, bool) and 0 <= asked < 1e9:
        return float(asked)
    return None
