"""What asking a witness, or running one, can raise.

::

    WitnessError
    ├── WitnessUnreachable   no answer, or "come again later"
    ├── WitnessRefused       it does not know this log or key, or answered something that is no cosignature
    ├── WitnessAhead         it has seen more records than this log holds: records are missing here
    ├── WitnessDisagrees     it has seen another history of this log
    └── WitnessUnusable      a witness's own database or key cannot be used
"""

from __future__ import annotations

from interlock_tools.errors import InterlockError


class WitnessError(InterlockError):
    """Base of what a witness can raise."""


class WitnessUnreachable(WitnessError):
    """No answer, or one that says to come again. Attributes: ``retry_after_s``, or None."""

    def __init__(self, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class WitnessRefused(WitnessError):
    """The witness does not know this log or its key, or its answer is no valid cosignature. Attributes: ``status``."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class WitnessAhead(WitnessError):
    """The witness has seen more of this log than the log holds: a restored backup, or a lost disk.

    Attributes:
        seen: how many records the witness has seen.
        held: how many this log holds.
    """

    def __init__(self, witness: str, seen: int, held: int) -> None:
        super().__init__(
            f"witness {witness} has seen {seen} records of this journal, which holds {held}: {seen - held} are missing "
            "here (a restored backup, a lost disk). Nothing may be sent until the services have been gone through."
        )
        self.seen = seen
        self.held = held


class WitnessDisagrees(WitnessError):
    """The witness has seen another history of this log, which this one does not extend."""


class WitnessUnusable(WitnessError):
    """A witness's database or key cannot be used; the message says what to do."""
