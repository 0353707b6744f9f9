"""Whom to trust: C2SP tlog-policy, and the keys of the writers.

A policy belongs to whoever verifies. It is never taken from a receipt or from
the operator whose receipts it judges. One item a line; a line that begins with
``#`` is a comment::

    writer <verifier key>
    log <verifier key> [<url>]
    witness <name> <verifier key> [<url>]
    group <name> <all, any or a number> <names of witnesses and groups …>
    quorum <name, or none>

Without its ``writer`` lines it is a plain tlog-policy.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from .errors import FormatError, PolicyError
from .keys import COSIGNATURE, NOTE_SIGNATURE, VerifierKey, parse_verifier_key
from .strict import parse_decimal

MAX_POLICY_BYTES = 1 << 20
_NONE = "none"


@dataclass(frozen=True, slots=True)
class Group:
    """Satisfied when at least ``threshold`` of its members (witnesses or groups) are."""

    name: str
    threshold: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The keys that are trusted, and how many witnesses must have seen a checkpoint.

    Attributes:
        writers: keys that may sign records.
        logs: keys that may sign checkpoints; a key's name is its log's origin.
        witnesses: by name.
        groups: by name, each after its members.
        quorum: the witness or group that must be satisfied, or None.
        urls: where a log or witness is found, by verifier key text or witness name.
    """

    writers: tuple[VerifierKey, ...] = ()
    logs: tuple[VerifierKey, ...] = ()
    witnesses: dict[str, VerifierKey] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    quorum: str | None = None
    urls: dict[str, str] = field(default_factory=dict)

    def met_by(self, seen: set[str]) -> bool:
        """Whether the witnesses in ``seen`` (names) satisfy the quorum. Never, where there is none."""
        if self.quorum is None:
            return False
        satisfied = set(seen)
        for group in self.groups.values():  # members come before their group
            if sum(member in satisfied for member in group.members) >= group.threshold:
                satisfied.add(group.name)
        return self.quorum in satisfied

    def __str__(self) -> str:
        lines = [f"writer {key}" for key in self.writers]
        lines += [f"log {key}{self._url(str(key))}" for key in self.logs]
        lines += [f"witness {name} {key}{self._url(name)}" for name, key in self.witnesses.items()]
        lines += [f"group {g.name} {g.threshold} {' '.join(g.members)}" for g in self.groups.values()]
        lines.append(f"quorum {self.quorum or _NONE}")
        return "".join(f"{line}\n" for line in lines)

    def _url(self, name: str) -> str:
        return f" {self.urls[name]}" if name in self.urls else ""


def parse_policy(data: bytes | str) -> Policy:
    """Parse a policy and refuse one that cannot be relied on.

    Raises:
        PolicyError: names the line: unknown words, missing or repeated names, a
            key that is malformed, small-order or not canonical, one key under
            two names, a threshold out of range, no or a second quorum.
    """
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError:
        raise PolicyError("the policy is not UTF-8 text") from None
    if len(text) > MAX_POLICY_BYTES:
        raise PolicyError(f"the policy has more than {MAX_POLICY_BYTES} characters")
    reader = _Reader()
    for number, line in enumerate(text.split("\n"), 1):
        words = line.removesuffix("\r").replace("\t", " ").split(" ")
        words = [word for word in words if word]
        if not words or words[0].startswith("#"):
            continue
        try:
            reader.read(words[0], words[1:])
        except FormatError as error:
            raise PolicyError(f"policy line {number}: {error}") from None
    return reader.finish()


class _Reader:
    """Takes lines one by one; what a line names must have been defined before it."""

    def __init__(self) -> None:
        self.writers: list[VerifierKey] = []
        self.logs: list[VerifierKey] = []
        self.witnesses: dict[str, VerifierKey] = {}
        self.groups: dict[str, Group] = {}
        self.urls: dict[str, str] = {}
        self.quorum: str | None = None
        self.public_keys: dict[bytes, str] = {}

    def read(self, word: str, rest: list[str]) -> None:
        handlers = {
            "writer": self._writer,
            "log": self._log,
            "witness": self._witness,
            "group": self._group,
            "quorum": self._quorum,
        }
        if word not in handlers:
            raise FormatError(f"{word[:40]!r} is not one of {', '.join(handlers)}")
        handlers[word](rest)

    def finish(self) -> Policy:
        if self.quorum is None:
            if self.logs or self.witnesses or self.groups:
                raise PolicyError("the policy has no quorum line; write 'quorum none' to ask for no witness")
            self.quorum = _NONE
        if not (self.writers or self.logs):
            raise PolicyError("the policy trusts nobody; add a 'writer' or a 'log' line")
        return Policy(
            tuple(self.writers),
            tuple(self.logs),
            self.witnesses,
            self.groups,
            None if self.quorum == _NONE else self.quorum,
            self.urls,
        )

    def _writer(self, rest: list[str]) -> None:
        _count(rest, 1, 1, "writer <verifier key>")
        key = parse_verifier_key(rest[0], (NOTE_SIGNATURE,))
        self._new_key(key, "operator")
        self.writers.append(key)

    def _log(self, rest: list[str]) -> None:
        _count(rest, 1, 2, "log <verifier key> [<url>]")
        key = parse_verifier_key(rest[0], (NOTE_SIGNATURE,))
        if key in self.logs:
            raise FormatError(f"the log {key.name!r} is listed twice")
        self._new_key(key, "operator")
        self.logs.append(key)
        self._remember_url(str(key), rest[1:])

    def _witness(self, rest: list[str]) -> None:
        _count(rest, 2, 3, "witness <name> <verifier key> [<url>]")
        name = self._new_name(rest[0])
        key = parse_verifier_key(rest[1], (COSIGNATURE,))
        self._new_key(key, f"witness {name}")
        self.witnesses[name] = key
        self._remember_url(name, rest[2:])

    def _group(self, rest: list[str]) -> None:
        _count(rest, 3, None, "group <name> <threshold> <members …>")
        name, written, members = rest[0], rest[1], tuple(rest[2:])
        if len(set(members)) != len(members):
            raise FormatError(f"group {name!r} names a member twice")
        for member in members:
            if member not in self.witnesses and member not in self.groups:
                raise FormatError(f"group {name!r} names {member!r}, which no earlier line defines")
        if written in ("all", "any"):
            threshold = len(members) if written == "all" else 1
        else:
            threshold = parse_decimal(written, "threshold", len(members))
        if threshold < 1:
            raise FormatError(f"group {name!r} would be satisfied by nobody; the threshold is at least 1")
        self.groups[self._new_name(name)] = Group(name, threshold, members)

    def _quorum(self, rest: list[str]) -> None:
        _count(rest, 1, 1, "quorum <name>")
        if self.quorum is not None:
            raise FormatError("a second quorum line")
        if rest[0] not in (_NONE, *self.witnesses, *self.groups):
            raise FormatError(f"the quorum {rest[0]!r} is neither a witness, a group nor 'none'")
        self.quorum = rest[0]

    def _new_name(self, name: str) -> str:
        if name == _NONE or name in self.witnesses or name in self.groups:
            raise FormatError(f"the name {name!r} is taken")
        return name

    def _new_key(self, key: VerifierKey, owner: str) -> None:
        """One key held by two parties would let one of them speak as both."""
        if self.public_keys.setdefault(key.public_key, owner) != owner:
            raise FormatError(f"the key of {key.name!r} belongs to {self.public_keys[key.public_key]} already")

    def _remember_url(self, name: str, url: list[str]) -> None:
        if url:
            self.urls[name] = url[0]


def _count(rest: list[str], least: int, most: int | None, form: str) -> None:
    if len(rest) < least or (most is not None and len(rest) > most):
        raise FormatError(f"write it as: {form}")
