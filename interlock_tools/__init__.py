"""Drop-in tools for actions that cannot be taken back.

Every call goes through a gate that writes the decision down before it is sent,
re-checks what it rests on before every send, recovers at once after a crash,
and answers truthfully. Start with ``Gate``.
"""

from __future__ import annotations

from .authority import Budget, Grant
from .contract import Contract
from .effect import AsyncEffect, Effect
from .errors import (
    BadArguments,
    BadRequest,
    CannotKnow,
    CommitUnknown,
    DefiniteNo,
    DefinitionError,
    InProgress,
    InterlockError,
    JournalError,
    JournalUnusable,
    MissingRequestKey,
    NotDecidable,
    NotRecorded,
    NotRegistered,
    NotSent,
    OutcomeError,
    PreconditionFailed,
    RateLimited,
    SendError,
    SendRevoked,
    StoredError,
)
from .evidence import Evidence
from .gate import Gate
from .on_send import OnSend
from .outcome import Outcome, Reason, Status
from .recovery import Report

__version__ = "0.1.0"

__all__ = [
    "AsyncEffect",
    "BadArguments",
    "BadRequest",
    "Budget",
    "CannotKnow",
    "CommitUnknown",
    "Contract",
    "DefiniteNo",
    "DefinitionError",
    "Effect",
    "Evidence",
    "Gate",
    "Grant",
    "InProgress",
    "InterlockError",
    "JournalError",
    "JournalUnusable",
    "MissingRequestKey",
    "NotDecidable",
    "NotRecorded",
    "NotRegistered",
    "NotSent",
    "OnSend",
    "Outcome",
    "OutcomeError",
    "PreconditionFailed",
    "RateLimited",
    "Reason",
    "Report",
    "SendError",
    "SendRevoked",
    "Status",
    "StoredError",
    "__version__",
]
