"""What a journal's URL says: where the database is, and how to use it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

import psycopg
from psycopg.conninfo import conninfo_to_dict

from ...errors import JournalUnusable

LEASE_S = 15
"""How long a session may send after its last sign of life was begun, in seconds."""

POOL = 10
"""Most connections for appends and reads of one process. One more keeps its session."""

_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_PORT = re.compile(r"[0-9]{0,5}")
_SECRET = frozenset({"password", "sslpassword", "sslkey", "passfile", "oauth_client_secret"})
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": 10,
    "application_name": "interlock",
    "target_session_attrs": "read-write",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}


@dataclass(frozen=True, slots=True)
class Target:
    """A database and how to use it. ``url`` is without password and is the only text that may be shown."""

    url: str
    schema: str
    lease_ms: int
    pool: int
    sessions: Path
    parameters: dict[str, Any] = field(repr=False)
    secrets: tuple[str, ...] = field(repr=False)

    def clean(self, words: str) -> str:
        """Return words of the driver on one line, without the password."""
        for secret in self.secrets:
            for form in (secret, quote(secret, safe="")):
                words = words.replace(form, "***")
        return " ".join(words.split())


def parse(url: str, sessions: Path | None = None) -> Target:
    """Read a journal's URL.

    Args:
        url: ``postgresql://…`` as libpq takes it. Parameters of our own:
            ``interlock_schema`` (``interlock``), ``interlock_lease_s`` (15),
            ``interlock_pool`` (10).
        sessions: the directory for session files; by default ``$INTERLOCK_SESSIONS``,
            ``$XDG_STATE_HOME/interlock`` or ``~/.local/state/interlock``.

    Raises:
        JournalUnusable: the URL cannot be read. The message holds nothing of it that may be secret.
    """
    try:
        parts = urlsplit(url)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        ours = {name: value for name, value in pairs if name.startswith("interlock_")}
        rest = [(name, value) for name, value in pairs if not name.startswith("interlock_")]
        # libpq does not read "+" as a space.
        plain = urlunsplit((parts.scheme, parts.netloc, parts.path, urlencode(rest, quote_via=quote), ""))
        given = conninfo_to_dict(plain)
    except (ValueError, psycopg.Error):
        raise _unreadable() from None
    ports = str(given.get("port", "")).split(",")
    if parts.fragment or "@" in str(given.get("host", "")) or not all(map(_PORT.fullmatch, ports)):
        raise _unreadable()
    schema = ours.pop("interlock_schema", "interlock")
    if not _SCHEMA.fullmatch(schema):
        raise JournalUnusable("interlock_schema must be lower-case letters, digits and underscores")
    lease_s = _number(ours, "interlock_lease_s", LEASE_S, 1, 3600)
    pool = _number(ours, "interlock_pool", POOL, 1, 1000)
    if ours:
        raise JournalUnusable(f"{', '.join(sorted(ours))}: no such parameter; see docs/postgresql.md")
    secrets = {str(given[name]) for name in _SECRET & given.keys() if given[name]}
    if parts.password:
        secrets.add(unquote(parts.password))
    return Target(
        url=_shown(url, secrets),
        schema=schema,
        lease_ms=lease_s * 1000,
        pool=pool,
        sessions=sessions if sessions is not None else _sessions(),
        parameters={**_DEFAULTS, **given},
        secrets=tuple(sorted(secrets, key=len, reverse=True)),
    )


def _unreadable() -> JournalUnusable:
    return JournalUnusable(
        "the journal's URL cannot be read; write postgresql://user:password@host:5432/database, with special "
        "characters of the password percent-encoded (@ is %40, / is %2F)"
    )


def _shown(url: str, secrets: set[str]) -> str:
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    netloc = user.partition(":")[0] + at + host
    pairs = [(name, value) for name, value in parse_qsl(parts.query) if name not in _SECRET and value not in secrets]
    return urlunsplit((parts.scheme, netloc, parts.path, urlencode(pairs, quote_via=quote), ""))


def _number(given: dict[str, str], name: str, default: int, least: int, most: int) -> int:
    text = given.pop(name, None)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit() and len(text) < 6 and least <= int(text) <= most):
        raise JournalUnusable(f"{name} must be a whole number from {least} to {most}")
    return int(text)


def _sessions() -> Path:
    named = os.environ.get("INTERLOCK_SESSIONS")
    if named:
        return Path(named)
    state = os.environ.get("XDG_STATE_HOME")
    try:
        base = Path(state) if state and Path(state).is_absolute() else Path.home() / ".local" / "state"
    except RuntimeError:
        raise JournalUnusable(
            "there is no home directory to keep this host's session files in; set INTERLOCK_SESSIONS"
        ) from None
    return base / "interlock"
