"""What reading and checking a receipt can raise.

::

    VerificationError
    ├── FormatError    bytes or text that are not what a format allows
    └── PolicyError    a trust policy that cannot be used
"""

from __future__ import annotations

from interlock_tools.errors import InterlockError


class VerificationError(InterlockError, ValueError):
    """The only error that checking a receipt raises, whatever it is fed."""


class FormatError(VerificationError):
    """Bytes or text that a format does not allow. Readers here accept one spelling of each value."""


class PolicyError(VerificationError):
    """A trust policy that cannot be used; the message names the line and what to write instead."""
