"""Everything that this package raises.

::

    InterlockError
    ├── DefinitionError         an effect is declared wrongly (raised where it is declared)
    ├── BadRequest              a call that cannot be journalled; nothing was written or sent
    │   ├── BadArguments        unknown, missing, or without a canonical form (floats for money, ...)
    │   └── MissingRequestKey   the application supplied no request reference
    ├── NotRegistered           the effect's code is not loaded in this process
    ├── NotDecidable            a person's decision that the effect's state does not allow
    │   └── Archived            the effect's entries were moved to an archive
    ├── CannotKnow              raised by a lookup: the service answers, and nothing that it still says settles it
    ├── JournalError            the journal failed; nothing was written
    │   ├── JournalUnusable     cannot be opened here: corrupt, newer format, read-only, unsafe filesystem
    │   ├── RecordsMissing      a witness remembers records that the journal does not hold; nothing is sent
    │   ├── SigningFailed       the record could not be signed, or an entry is not what was signed
    │   └── CommitUnknown       the connection died in COMMIT; read back before deciding
    ├── NotRecorded             a send ended but its end could not be written; recovery will find out
    ├── VerificationError       a receipt or a policy (``receipts.errors``)
    ├── WitnessError            asking or running a witness (``witness.errors``)
    ├── ArchiveUnusable         an archive that cannot be written or read (``archive``)
    ├── KeyUnusable             a signing key that cannot be used (``keyfiles``)
    ├── OutcomeError            an outcome other than COMMITTED, from ``raise_for_status()``
    └── SendError               what a send function raises to say what the service's answer proves
        ├── DefiniteNo          the service did nothing, and says why
        ├── PreconditionFailed  an enforced premise was false on arrival
        ├── NotSent             not one byte left the process
        │   └── SendRevoked     raised by ``on_send``: this sender must not send any more
        ├── RateLimited         turned away unread; come again after ``retry_after`` seconds
        ├── StoredError         an earlier answer to this key, repeated, that says nothing
        └── InProgress          an earlier request under this key is still being worked on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .outcome import Outcome


class InterlockError(Exception):
    """Base of everything that this package raises."""


class DefinitionError(InterlockError):
    """An effect is declared wrongly. Raised where it is declared, before any call."""


class BadRequest(InterlockError):
    """A call that cannot be journalled. Nothing was written and nothing was sent."""


class BadArguments(BadRequest):
    """Arguments that are unknown, missing, of the wrong type or without a canonical form."""


class MissingRequestKey(BadRequest):
    """The application supplied no request reference, so a repeated call could not be told from a new one."""


class NotRegistered(InterlockError):
    """The effect's code is not loaded in this process, so it cannot be sent or looked up here."""


class NotDecidable(InterlockError):
    """A person's decision (``resolve``, ``redecide``) that the state of the effect does not allow."""


class Archived(NotDecidable):
    """The effect is finished, and its entries were moved to an archive (``retention.prune``).

    A call of the same request is answered with the earlier outcome, in short
    form. Attributes: ``effect_id``, and ``tombstone``, what the journal still
    knows of it.
    """

    def __init__(self, effect_id: str, tombstone: dict[str, Any]) -> None:
        super().__init__(
            f"effect {effect_id} was moved to the archive {tombstone['archive']}; for its receipt: "
            f"interlock receipt {effect_id} --archive DIRECTORY"
        )
        self.effect_id = effect_id
        self.tombstone = tombstone


class CannotKnow(InterlockError):
    """Raised by a lookup: the service answers, and what it still tells neither shows the effect nor rules it out.

    The service has forgotten it, or shows something that may be it. What raises
    anything else was not answered and is asked again; this ends as AMBIGUOUS,
    for a person, once no send can land any more.
    """


class JournalError(InterlockError):
    """The journal failed. Nothing was written."""


class JournalUnusable(JournalError):
    """The journal cannot be opened here: corrupt, of a newer format, read-only, or on an unsafe filesystem."""


class CommitUnknown(JournalError):
    """A commit was asked for and its answer was lost. Read the effect back before deciding anything."""


class SigningFailed(JournalError):
    """Signing is on, and a record could not be signed; or an entry is no longer what its record was signed over."""


class RecordsMissing(JournalError):
    """This journal does not hold what it held before: it was restored from a copy, or lost its disk or last commits.

    Where a witness has seen the records, nothing is sent until
    ``gate.reconcile(…)`` or ``interlock reconcile`` has gone through the
    services: what is missing may have been done. An unsigned journal in
    PostgreSQL is noticed by the process that wrote the entries, and only by
    it; it sends nothing more until it is started again.
    """


class NotRecorded(InterlockError):
    """A send ended, but its end could not be written to the journal.

    The effect stays open and recovery will find out what became of it. Call
    again with the same request, or run ``gate.recover()``, once the journal
    works. Attributes: ``effect_id``.
    """

    def __init__(self, effect_id: str, why: str) -> None:
        super().__init__(
            f"effect {effect_id}: a request was sent, but its end could not be recorded ({why}). It may have "
            "happened. Do not repeat it elsewhere; make the journal writable and call again with the same request."
        )
        self.effect_id = effect_id


class OutcomeError(InterlockError):
    """An outcome other than COMMITTED. Attributes: ``outcome``."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{outcome}: {outcome.message}")
        self.outcome = outcome


class SendError(InterlockError):
    """What a send function raises to say what the service's answer proves.

    Args:
        detail: the service's words. They reach the journal and the model, so
            they must hold no secret; what looks like a key is blotted out.
        code: the service's error code.
        stored: the service says that this is its stored answer to this very
            idempotency key, so no send under the key ever did anything else.
    """

    detail: str = ""
    code: str | None = None
    stored: bool = False

    def __init__(self, detail: str = "", *, code: str | None = None, stored: bool = False) -> None:
        super().__init__(detail or code or type(self).__name__)
        self.detail = detail
        self.code = code
        self.stored = stored

    def words(self) -> tuple[str, str | None]:
        """Return detail and code as they may be kept: one line each, without secrets."""
        from .redaction import clean

        try:
            return clean(str(self.detail or "")), clean(str(self.code), 100) if self.code else None
        except Exception:  # a subclass put something there that has no words
            return "", None


class DefiniteNo(SendError):
    """The service did nothing for this request, and says why: declined, invalid, not permitted."""


class PreconditionFailed(SendError):
    """A premise that the service enforces was false when this request arrived. It may be our own earlier write."""


class NotSent(SendError):
    """Not one byte of the request left the process: name lookup, refused connection, failed TLS handshake."""


class SendRevoked(NotSent):
    """Raised by ``on_send``: this sender must not send any more. Let it pass through."""


class RateLimited(SendError):
    """The service turned the request away without looking at it. Attributes: ``retry_after`` in seconds, or None."""

    def __init__(self, detail: str = "", *, retry_after: float | None = None, code: str | None = None) -> None:
        super().__init__(detail, code=code)
        self.retry_after = retry_after


class StoredError(SendError):
    """The service repeated an earlier answer to this key that does not say whether it happened (a stored 500)."""


class InProgress(SendError):
    """An earlier request under this key is still being worked on; its outcome is not known yet."""


def describe(error: BaseException) -> str:
    """Return one line about an exception for a journal or a message: its type, and its words without secrets."""
    from .redaction import clean

    try:
        words = clean(str(error), 200, first_line=True)
    except Exception:  # its words cannot be had
        words = ""
    return f"{type(error).__name__}: {words}" if words else type(error).__name__
