"""Receipts: an effect's records as one file that a stranger can check offline.

Everything here is pure: bytes and values go in, values come out. Nothing reads
a clock, a file or a socket, and trust always comes from the caller.

* ``record``, ``bodies``, ``private``: what one record says
* ``dsse``, ``merkle``, ``note``, ``checkpoint``, ``proof``, ``policy``, ``keys``, ``strict``: the formats below it
* ``build``: making records and receipts
* ``file``, ``keyring``, ``verify``, ``claims``, ``report``: checking one
"""

from .errors import FormatError, PolicyError, VerificationError
from .policy import Policy, parse_policy
from .report import Answer, Carrier, Line, Report, ServiceFinding, Word
from .verify import verify

__all__ = [
    "Answer",
    "Carrier",
    "FormatError",
    "Line",
    "Policy",
    "PolicyError",
    "Report",
    "ServiceFinding",
    "VerificationError",
    "Word",
    "parse_policy",
    "verify",
]
