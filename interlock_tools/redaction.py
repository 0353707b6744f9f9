"""Blots out what looks like a credential, before words of a service or an exception are kept or shown.

Credentials are known by their shape (a vendor's prefix), by the word before
them (``Authorization:``, ``password=``), or by their place (in a URL before the
host). Words without any of these cannot be told from a secret: an application
must not put one into an argument, a fact or an exception.
"""

from __future__ import annotations

import re
from functools import cache

BLOT = "[secret]"

_NAME = (
    r"api[_-]?key|apikey|secret(?:[_-]?key)?|password|passwd|passphrase|authorization|private[_-]?key|credentials?"
    r"|(?:access|refresh|id|auth|bearer|session|csrf)[_-]?token|token|set-cookie|cookie|signature|x-amz-security-token"
)
"""Words whose value is a credential, also at the end of a longer name (``client_secret``, ``x-api-key``)."""

_SHAPES = r"""
    -----BEGIN[ ][A-Z ]*PRIVATE[ ]KEY-----.*?(?:-----END[ ][A-Z ]*PRIVATE[ ]KEY-----|\Z)   # PEM
    | (?<![A-Za-z0-9])(?:
        (?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9_*]+        # Stripe API keys
      | whsec_[A-Za-z0-9_/+=-]+                          # Stripe webhook secrets
      | gh[pousr]_[A-Za-z0-9_]+ | github_pat_[A-Za-z0-9_]+ | glpat-[A-Za-z0-9_-]+
      | re_[A-Za-z0-9]{6,12}_[A-Za-z0-9]{12,}            # Resend keys; a Stripe refund (re_3Nx...) has no second _
      | ya29\.[A-Za-z0-9_.-]+ | AIza[A-Za-z0-9_-]{20,} | GOCSPX-[A-Za-z0-9_-]+ | 1//[A-Za-z0-9_-]{20,}   # Google
      | (?:AKIA|ASIA)[A-Z0-9]{12,}                       # AWS key ids
      | sk-[A-Za-z0-9_-]{16,}                            # model providers
      | xox[a-z]-[A-Za-z0-9-]+                           # Slack
      | SG\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+           # SendGrid
      | eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?   # JSON web tokens
    )
"""
_IN_URL = r"(?<=://)[^/\s@]*:[^/\s]*(?=@)"
_NAMED = rf"""
    ( (?:{_NAME}) ["']? \s{{0,5}} [=:] \s{{0,5}} (?:b(?=["']))? )                # the name, kept
    (?: (?:bearer|basic|digest|token) \s{{1,5}} )?
    (?: "(?:[^"\\]|\\.)*(?:"|\Z) | '(?:[^'\\]|\\.)*(?:'|\Z) | ["']?(?!\[secret\])[^\s"',;&)}}\]]+ )
"""
_SCHEME = (
    r"\b(bearer|basic|digest|token)(\s{1,5})"
    r"(?=(?-i:\S+[0-9=A-Z]))[A-Za-z0-9._~+/=:-]{8,}"  # "token expiration" is prose
)
_FIELD = rf"(?:^|[^a-z0-9])(?:{_NAME})$"


@cache
def _compiled() -> tuple[tuple[re.Pattern[str], str], ...]:
    """What to look for and what to put in its place. Compiled on first use: most programs start without any."""
    return (
        (re.compile(_SHAPES, re.VERBOSE | re.DOTALL), BLOT),
        (re.compile(_IN_URL), BLOT),
        (re.compile(_NAMED, re.VERBOSE | re.IGNORECASE), rf"\g<1>{BLOT}"),
        (re.compile(_SCHEME, re.IGNORECASE), rf"\g<1>\g<2>{BLOT}"),
    )


@cache
def _field() -> re.Pattern[str]:
    return re.compile(_FIELD, re.IGNORECASE)


def redact(text: str) -> str:
    """Return ``text`` with everything that looks like a credential replaced by ``[secret]``. Idempotent."""
    for pattern, instead in _compiled():
        text = pattern.sub(instead, text)
    return text


def names_a_secret(name: str) -> bool:
    """Whether a field of this name holds a credential, for example ``client_secret`` or ``Authorization``."""
    return _field().search(name) is not None


def clean(text: str, most: int = 300, *, first_line: bool = False) -> str:
    """Return words of a service or a person: one line, valid Unicode, no secrets, at most ``most`` characters."""
    if len(text) > 8000:  # a cut must not leave the first half of a credential unrecognised
        text = text[:8000].rpartition(" ")[0] or text[:4000]
    text = redact(text.encode("utf-8", "replace").decode("utf-8"))
    if first_line:
        text = text.strip().partition("\n")[0]
    text = " ".join(text.split())
    text = "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)
    return text if len(text) <= most else text[: most - 1] + "…"
