"""Grants (may this be done at all) and budgets (how much of it, shared by several effects)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from .core.canonical import CanonicalError, normalise
from .errors import BadArguments


@dataclass(frozen=True, slots=True)
class Grant:
    """The authority to act. Every field but ``id`` is optional.

    Attributes:
        id: names the approval, for the record.
        by: who gave it.
        max_amount: largest amount that it covers, in the smallest unit of the currency.
        payload_digest: the only payload that it covers, as ``effect.digest(...)`` returns it.
        expires_at: when it ends, an aware ``datetime``.
        facts: what the approver saw; the effect is then held to these facts.

    Raises:
        BadArguments: a field has the wrong type.
    """

    id: str
    by: str | None = None
    max_amount: int | None = None
    payload_digest: str | None = None
    expires_at: datetime | None = None
    facts: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.id, str) or not self.id.strip():
            raise BadArguments("a grant needs an id: text that names the approval")
        for label, text in (("by", self.by), ("payload_digest", self.payload_digest)):
            if text is not None and not isinstance(text, str):
                raise BadArguments(f"grant {self.id}: {label} must be text, not {text!r}")
        if self.max_amount is not None and (type(self.max_amount) is not int or self.max_amount < 0):
            raise BadArguments(
                f"grant {self.id}: max_amount must be a whole number of the smallest unit (cents), "
                f"not {self.max_amount!r}"
            )
        if self.expires_at is not None and not (isinstance(self.expires_at, datetime) and self.expires_at.tzinfo):
            raise BadArguments(
                f"grant {self.id}: expires_at must be a datetime with a time zone, for example "
                f"datetime.now(timezone.utc), not {self.expires_at!r}"
            )
        if self.facts is not None and not isinstance(self.facts, Mapping):
            raise BadArguments(f"grant {self.id}: facts must be a dict, not {self.facts!r}")

    def refusal(self, payload_digest: str, amount: int | None, now_ms: int) -> str | None:
        """Return why this grant does not cover a payload, or None if it does."""
        if self.payload_digest is not None and self.payload_digest != payload_digest:
            return f"grant {self.id} is for another payload"
        if self.expires_at is not None and now_ms >= self.expires_at.timestamp() * 1000:
            return f"grant {self.id} expired at {self.expires_at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S} UTC"
        if self.max_amount is not None:
            if amount is None:
                return f"grant {self.id} has a maximum, but the effect declares no amount"
            if amount < 0:
                return f"grant {self.id} has a maximum, which says nothing about a negative amount ({amount})"
            if amount > self.max_amount:
                return f"grant {self.id} covers up to {self.max_amount}, not {amount}"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the grant as canonical values, without its facts."""
        body: dict[str, Any] = {"id": self.id}
        if self.by is not None:
            body["by"] = self.by
        if self.max_amount is not None:
            body["max_amount"] = self.max_amount
        if self.payload_digest is not None:
            body["payload_digest"] = self.payload_digest
        if self.expires_at is not None:
            body["expires_at_ms"] = int(self.expires_at.timestamp() * 1000)
        plain: dict[str, Any] = normalise(body, "grant")
        return plain


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit that several effects share, and this effect's part of it.

    Attributes:
        name: names the budget, for example ``case:4471``.
        amount: what this effect takes, in the smallest unit; 0 or more.
        limit: what all effects together may take. The smallest limit ever
            recorded for the budget counts.
    """

    name: str
    amount: int
    limit: int

    def to_json(self) -> dict[str, Any]:
        """Return the reservation as canonical values. Raises ``BadArguments``."""
        if not isinstance(self.name, str) or not self.name.strip():
            raise BadArguments(f"a budget needs a name, not {self.name!r}")
        for label, value in (("amount", self.amount), ("limit", self.limit)):
            if type(value) is not int or value < 0:
                raise BadArguments(
                    f"budget {self.name}: {label} must be a whole number of the smallest unit (cents), not {value!r}"
                )
        try:
            plain: dict[str, Any] = normalise({"budget": self.name, "amount": self.amount, "limit": self.limit})
        except CanonicalError as error:
            raise BadArguments(f"budget {self.name}: {error}") from None
        return plain
