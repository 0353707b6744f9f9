"""What an effect is made of: its send function, the functions that read the world for it, and its contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .authority import Budget
from .contract import Contract
from .core.canonical import CanonicalError, digest, effect_id, encode, normalise
from .core.decide import ServiceContract
from .errors import BadArguments, BadRequest, MissingRequestKey, describe
from .redaction import clean
from .rules import NONE, Asked, Rules

RESERVED = ("idempotency_key", "on_send", "facts")
EXACT: dict[type, str] = {int: "a whole number", str: "text", bool: "True or False", type(None): "None"}

MAX_PAYLOAD_CHARACTERS = 10_000_000
"""Largest payload, as canonical text. It is kept in the journal and read again before every send."""

MAX_KEY_CHARACTERS = 1000


@dataclass(frozen=True, slots=True)
class Reader:
    """A function of the application's, called with those of the arguments that it names."""

    function: Callable[..., Any]
    names: tuple[str, ...] | None
    takes_key: bool
    takes_facts: bool = False
    takes_evidence: bool = False

    def arguments(
        self,
        payload: Mapping[str, Any],
        idempotency_key: str,
        facts: Mapping[str, Any] | None = None,
        evidence: Any = None,
    ) -> dict[str, Any]:
        """Return the keyword arguments for one call."""
        chosen = dict(payload) if self.names is None else {name: payload[name] for name in self.names}
        if self.takes_key:
            chosen["idempotency_key"] = idempotency_key
        if self.takes_facts:
            chosen["facts"] = dict(facts or {})
        if self.takes_evidence:
            chosen["evidence"] = evidence
        return chosen


@dataclass(frozen=True, slots=True)
class Request:
    """One call, ready to be journalled: payload, its digest, request key, effect id of the first decision."""

    payload: dict[str, Any]
    text: str
    digest: str
    key: str
    effect_id: str


@dataclass(frozen=True)
class Definition:
    """One declared effect. Use ``define`` to make one."""

    name: str
    function: Callable[..., Any]
    signature: inspect.Signature
    parameters: frozenset[str]
    exact: Mapping[str, tuple[type, ...]]
    takes_on_send: bool
    takes_key: bool
    takes_facts: bool
    is_async: bool
    key: Reader
    premises: Reader | None
    expect: Reader | Mapping[str, Any] | None
    allowed: Reader | None
    amount: Reader | None
    budget: Reader | None
    requires_approval: Reader | bool
    approval_expires_ms: int
    lookup: Reader | None
    watch: Reader | None
    watch_many: Callable[..., Any] | None
    declared: Contract
    contract: ServiceContract
    rules: Rules = NONE

    def contract_for(self, facts: Mapping[str, Any] | None) -> ServiceContract:
        """Return what the service offers a decision that rests on these facts."""
        return self.declared.decided_on(self.contract, facts)

    def request(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Request:
        """Turn a call into a request.

        Raises:
            BadArguments: unknown, missing or ill-typed arguments, or values without a canonical form.
            MissingRequestKey: the key function raised, or returned something other than text.
        """
        payload = self.bind(args, kwargs)
        text = encode(payload)
        if len(text) > MAX_PAYLOAD_CHARACTERS:
            raise BadArguments(
                f"{self.name}: the arguments take {len(text):,} characters, more than the {MAX_PAYLOAD_CHARACTERS:,} "
                "that a journal keeps; pass a path or an address and a digest in place of the content"
            )
        key = self._key(payload)
        return Request(payload, text, digest(text), key, effect_id(self.name, key, 1))

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as a canonical payload. Raises ``BadArguments``."""
        if args or kwargs.keys() != self.parameters:
            try:
                bound = self.signature.bind(*args, **kwargs)
            except TypeError as error:
                raise BadArguments(f"{self.name}: {error}") from None
            bound.apply_defaults()
            kwargs = bound.arguments
        for name, kinds in self.exact.items():
            value = kwargs[name]
            if type(value) not in kinds and not (str in kinds and isinstance(value, str)):
                wanted = " or ".join(EXACT[kind] for kind in kinds)
                raise BadArguments(f"{self.name}: {name} must be {wanted}, not {shown(value)} ({type(value).__name__})")
        try:
            payload: dict[str, Any] = normalise(dict(kwargs))
        except CanonicalError as error:
            raise BadArguments(f"{self.name}: {error}") from None
        return payload

    def _key(self, payload: dict[str, Any]) -> str:
        try:
            key = self.key.function(**self.key.arguments(payload, ""))
        except BadRequest:
            raise
        except Exception as error:
            raise MissingRequestKey(
                f"{self.name}: the key function raised {describe(error)}; it must return the request reference"
            ) from error
        if not isinstance(key, str) or not key.strip() or len(key) > MAX_KEY_CHARACTERS:
            if inspect.iscoroutine(key):
                key.close()
            raise MissingRequestKey(
                f"{self.name}: the key function returned {shown(key)}; it must return text of 1 to "
                f"{MAX_KEY_CHARACTERS} characters that names the approved request"
            )
        try:
            checked: str = normalise(key)
        except CanonicalError as error:
            raise MissingRequestKey(f"{self.name}: request key: {error}") from None
        return checked

    def under(self, rules: Rules) -> Definition:
        """Return the same under a gate's rules."""
        return replace(self, rules=rules)

    def asked(self, payload: dict[str, Any]) -> Asked:
        """Return a call as a gate's rules see it. Raises ``BadRequest``."""
        return Asked(self.name, self._key(payload), dict(payload), self.amount_of(payload))

    def budgets(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the reservations of a call, its own and those of the gate. Raises ``BadArguments``."""
        own = self._own_budgets(payload)
        if not self.rules.limits:
            return own
        both = {item["budget"]: item for item in own}
        for item in self.rules.budgets(self.asked(payload)):
            named = both.setdefault(item["budget"], item)
            both[item["budget"]] = {**named, "limit": min(named["limit"], item["limit"])}
        return list(both.values())

    def _own_budgets(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        if self.budget is None:
            return []
        try:
            found = self.budget.function(**self.budget.arguments(payload, ""))
        except BadRequest:
            raise
        except Exception as error:
            raise BadArguments(f"{self.name}: the budget function raised {describe(error)}") from error
        if found is None:
            return []
        budgets = [found] if isinstance(found, Budget) else found
        if not isinstance(budgets, (list, tuple)) or not all(isinstance(budget, Budget) for budget in budgets):
            raise BadArguments(
                f"{self.name}: the budget function must return a Budget, a list of them or None, not {shown(found)}"
            )
        return [budget.to_json() for budget in budgets]

    def needs_approval(self, payload: dict[str, Any]) -> bool:
        """Return whether a person has to approve this call. Raises ``BadArguments``."""
        if self.rules.requires_approval is not None and self.rules.needs_approval(self.asked(payload)):
            return True
        asks = self.requires_approval
        if isinstance(asks, bool):
            return asks
        try:
            found = asks.function(**asks.arguments(payload, ""))
        except Exception as error:
            raise BadArguments(f"{self.name}: the requires_approval function raised {describe(error)}") from error
        if type(found) is not bool:
            raise BadArguments(f"{self.name}: requires_approval must return True or False, not {shown(found)}")
        return found

    def amount_of(self, payload: dict[str, Any]) -> int | None:
        """Return the amount that a grant's maximum and limits are of, or None. Raises ``BadArguments``."""
        if self.amount is None:
            found = payload.get("amount")
            return found if type(found) is int else None
        found = self.amount.function(**self.amount.arguments(payload, ""))
        if type(found) is not int:
            raise BadArguments(f"{self.name}: the amount function must return whole cents, not {shown(found)}")
        return found


def shown(value: Any) -> str:
    """A value as an error shows it: short, on one line, without secrets."""
    try:
        return clean(repr(value), 80)
    except Exception:
        return f"a {type(value).__name__}"
