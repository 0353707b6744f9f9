"""What an email's arguments look like: for the tool's schema, and for the effect, which can be called without it."""

from __future__ import annotations

ADDRESS = r"^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]+@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$"
"""One address and nothing but it, so that nobody else is written to."""

MAX_ADDRESS = 254
SENDER = r"^[^\r\n]*@[^\r\n]+$"
SUBJECT = r"^[^\r\n]+$"
BODY = r"^[\s\S]+$"
MAX_BODY = 60_000
"""Longest body, in characters."""
