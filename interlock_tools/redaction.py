"""Blots out what looks like a credential, before words of a service or an exception are kept or shown."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"""
    \b(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9_*]+          # Stripe API keys
    | \bwhsec_[A-Za-z0-9_/+=-]+                          # Stripe webhook secrets
    | \b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]+             # GitHub tokens
    | \bgithub_pat_[A-Za-z0-9_]+
    | \bre_[A-Za-z0-9]{6,}(?:_[A-Za-z0-9]+)+             # Resend keys
    | \bya29\.[A-Za-z0-9_.-]+                            # Google access tokens
    | \beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*   # JSON web tokens
    | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)                    # user:password in a URL
    | (?i:\b(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}
    | (?i:\b(?:api[_-]?key|password|secret|access[_-]?token|authorization)["']?\s*[=:]\s*)["']?[^\s"',;&]{4,}
    """,
    re.VERBOSE,
)


def redact(text: str) -> str:
    """Return ``text`` with everything that looks like a credential replaced by ``[secret]``."""
    return _SECRET.sub("[secret]", text)
