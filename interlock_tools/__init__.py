"""Drop-in tools for actions that cannot be taken back.

Every call goes through a gate that writes the decision down before it is sent,
re-checks what it rests on before every send, recovers at once after a crash,
and answers truthfully. Start with ``Gate``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .authority import Budget, Grant
from .contract import Contract
from .deciding import ApprovalRequest
from .effect import AsyncEffect, Effect
from .errors import (
    Archived,
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
    RecordsMissing,
    SendError,
    SendRevoked,
    SigningFailed,
    StoredError,
)
from .evidence import Evidence
from .gate import Gate
from .on_send import OnSend
from .outcome import Outcome, Reason, Status
from .recovery import Report
from .rules import Asked, Limit
from .settlement import Settlement

if TYPE_CHECKING:
    from .receipts import Policy, parse_policy, verify
    from .sealing import Signing

__version__ = "0.1.0"

_LAZY = {
    "Policy": ".receipts",
    "Signing": ".sealing",
    "parse_policy": ".receipts",
    "verify": ".receipts",
}
"""Names that need the cryptography package, by the module that has them. Loaded when they are first used."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ApprovalRequest",
    "Archived",
    "Asked",
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
    "Limit",
    "MissingRequestKey",
    "NotDecidable",
    "NotRecorded",
    "NotRegistered",
    "NotSent",
    "OnSend",
    "Outcome",
    "OutcomeError",
    "Policy",
    "PreconditionFailed",
    "RateLimited",
    "Reason",
    "RecordsMissing",
    "Report",
    "SendError",
    "SendRevoked",
    "Settlement",
    "Signing",
    "SigningFailed",
    "Status",
    "StoredError",
    "__version__",
    "parse_policy",
    "verify",
]
