"""What an effect is made of: its send function, the functions that read the world for it, and its contract.

Everything that can be wrong about a declaration is found here, when the effect
is declared, and raised as ``DefinitionError``.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from .authority import Budget
from .contract import Contract, milliseconds
from .core.canonical import CanonicalError, digest, effect_id, encode, normalise
from .core.decide import ServiceContract
from .errors import BadArguments, BadRequest, DefinitionError, MissingRequestKey, describe
from .redaction import clean

RESERVED = ("idempotency_key", "on_send", "facts")
_EXACT: dict[type, str] = {int: "a whole number", str: "text", bool: "True or False", type(None): "None"}

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
                wanted = " or ".join(_EXACT[kind] for kind in kinds)
                raise BadArguments(
                    f"{self.name}: {name} must be {wanted}, not {_shown(value)} ({type(value).__name__})"
                )
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
                f"{self.name}: the key function returned {_shown(key)}; it must return text of 1 to "
                f"{MAX_KEY_CHARACTERS} characters that names the approved request"
            )
        try:
            checked: str = normalise(key)
        except CanonicalError as error:
            raise MissingRequestKey(f"{self.name}: request key: {error}") from None
        return checked

    def budgets(self, payload: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the reservations of a call as canonical values. Raises ``BadArguments``."""
        if self.budget is None:
            return []
        try:
            found = self.budget.function(**self.budget.arguments(payload, ""))
        except Exception as error:
            raise BadArguments(f"{self.name}: the budget function raised {describe(error)}") from error
        if found is None:
            return []
        budgets = [found] if isinstance(found, Budget) else found
        if not isinstance(budgets, (list, tuple)) or not all(isinstance(budget, Budget) for budget in budgets):
            raise BadArguments(
                f"{self.name}: the budget function must return a Budget, a list of them or None, not {_shown(found)}"
            )
        return [budget.to_json() for budget in budgets]

    def needs_approval(self, payload: dict[str, Any]) -> bool:
        """Return whether a person has to approve this call. Raises ``BadArguments``."""
        asks = self.requires_approval
        if isinstance(asks, bool):
            return asks
        try:
            found = asks.function(**asks.arguments(payload, ""))
        except Exception as error:
            raise BadArguments(f"{self.name}: the requires_approval function raised {describe(error)}") from error
        if type(found) is not bool:
            raise BadArguments(f"{self.name}: requires_approval must return True or False, not {_shown(found)}")
        return found

    def amount_of(self, payload: dict[str, Any]) -> int | None:
        """Return the amount that a grant's maximum is compared with, or None. Raises ``BadArguments``."""
        if self.amount is None:
            found = payload.get("amount")
            return found if type(found) is int else None
        found = self.amount.function(**self.amount.arguments(payload, ""))
        if type(found) is not int:
            raise BadArguments(f"{self.name}: the amount function must return whole cents, not {_shown(found)}")
        return found


def define(
    function: Callable[..., Any],
    name: str,
    *,
    key: Callable[..., str],
    premises: Callable[..., Any] | None,
    expect: Mapping[str, Any] | Callable[..., Any] | None,
    allowed: Callable[..., Any] | None,
    amount: Callable[..., int] | None,
    budget: Callable[..., Any] | None,
    requires_approval: Callable[..., bool] | bool,
    approval_expires: timedelta,
    lookup: Callable[..., Any] | None,
    watch: Callable[..., Any] | None,
    watch_many: Callable[..., Any] | None,
    contract: Contract,
) -> Definition:
    """Check a declaration and return the definition. Raises ``DefinitionError``."""
    if not isinstance(name, str) or not name.strip() or not (name.isascii() and name.isprintable()):
        raise DefinitionError(f"an effect needs a stable name of printable ASCII, not {name!r}")
    signature, arguments = _signature(name, function)
    takes_key = "idempotency_key" in _parameters(name, function)
    if contract.dedupes and not takes_key:
        raise DefinitionError(
            f"{name}: dedupes= rests on the idempotency key, so the send function must take idempotency_key"
        )
    reader_of = {
        role: _reader(name, role, given, arguments)
        for role, given in (
            ("key", key),
            ("premises", premises),
            ("expect", expect if callable(expect) else None),
            ("allowed", allowed),
            ("amount", amount),
            ("budget", budget),
            ("requires_approval", None if isinstance(requires_approval, bool) else requires_approval),
            ("lookup", lookup),
            ("watch", watch),
        )
    }
    looked_up = reader_of["lookup"]
    if looked_up is not None and not looked_up.takes_key and not contract.natural_key:
        raise DefinitionError(
            f"{name}: the lookup must take idempotency_key to find this very effect, "
            "or the effect must declare natural_key=True because the thing itself is unique"
        )
    if looked_up is None and _hint(function, "return") in (type(None), bool):
        raise DefinitionError(
            f"{name}: the send function returns nothing that could be kept as evidence; return what the service "
            "returned, such as the object's id, or give a lookup"
        )
    key_reader = reader_of["key"]
    assert key_reader is not None
    return Definition(
        name=name,
        function=function,
        signature=signature,
        parameters=frozenset(arguments),
        exact=_exact_types(function, arguments),
        takes_on_send="on_send" in _parameters(name, function),
        takes_key=takes_key,
        takes_facts="facts" in _parameters(name, function),
        is_async=inspect.iscoroutinefunction(function),
        key=key_reader,
        premises=reader_of["premises"],
        expect=reader_of["expect"] if callable(expect) else _expected(name, expect),
        allowed=reader_of["allowed"],
        amount=reader_of["amount"],
        budget=reader_of["budget"],
        requires_approval=reader_of["requires_approval"] or requires_approval is True,
        approval_expires_ms=_positive_ms(name, approval_expires),
        lookup=looked_up,
        watch=reader_of["watch"],
        watch_many=watch_many,
        declared=contract,
        contract=contract.plain(has_lookup=lookup is not None),
    )


def _positive_ms(name: str, expires: timedelta) -> int:
    if not isinstance(expires, timedelta) or expires <= timedelta(0):
        raise DefinitionError(f"{name}: approval_expires must be a positive timedelta, not {expires!r}")
    return milliseconds(expires)


def _parameters(name: str, function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError) as error:
        raise DefinitionError(f"{name}: cannot read the signature of {function!r}: {error}") from None


def _signature(name: str, function: Callable[..., Any]) -> tuple[inspect.Signature, list[str]]:
    """The signature without the reserved parameters, and its argument names."""
    kept = []
    for parameter in _parameters(name, function).values():
        if parameter.name in RESERVED:
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(
                f"{name}: the send function must name its arguments; *args, **kwargs and positional-only ones "
                "cannot be journalled by name"
            )
        kept.append(parameter)
    return inspect.Signature(kept), [parameter.name for parameter in kept]


def _reader(name: str, role: str, function: Any, arguments: Iterable[str]) -> Reader | None:
    if function is None:
        return None
    if not callable(function):
        raise DefinitionError(f"{name}: {role}= takes a function, not {function!r}")
    if inspect.iscoroutinefunction(function) and role in ("key", "amount", "budget", "requires_approval"):
        raise DefinitionError(f"{name}: {role}= must be a plain function of the arguments, not async")
    known = set(arguments)
    names: list[str] = []
    takes_all = takes_key = takes_facts = takes_evidence = False
    for parameter in _parameters(name, function).values():
        if parameter.kind is parameter.VAR_KEYWORD:
            takes_all = True
        elif parameter.name == "idempotency_key":
            takes_key = True
        elif parameter.name == "facts" and role == "lookup":
            takes_facts = True
        elif parameter.name == "evidence" and role == "watch":
            takes_evidence = True
        elif parameter.name in known and parameter.kind is not parameter.POSITIONAL_ONLY:
            names.append(parameter.name)
        elif parameter.default is parameter.empty and parameter.kind is not parameter.VAR_POSITIONAL:
            raise DefinitionError(
                f"{name}: {role}= wants {parameter.name!r}, which is not an argument of the effect "
                f"({', '.join(sorted(known)) or 'none'})"
            )
    if role == "key" and takes_key:
        raise DefinitionError(f"{name}: the request key comes before the idempotency key; key= cannot take it")
    return Reader(function, None if takes_all else tuple(names), takes_key, takes_facts, takes_evidence)


def _exact_types(function: Callable[..., Any], arguments: Iterable[str]) -> dict[str, tuple[type, ...]]:
    """Arguments annotated as ``int``, ``str``, ``bool``, ``None`` or a union of these: nothing else is let through."""
    exact = {}
    for name in arguments:
        hint = _hint(function, name)
        kinds = typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, types.UnionType) else (hint,)
        if kinds and all(kind in _EXACT for kind in kinds):
            exact[name] = tuple(kinds)
    return exact


def _hint(function: Callable[..., Any], name: str) -> Any:
    """The type that an argument (or ``return``) is annotated with, or Any.

    Each is resolved by itself: others may name what exists for type checkers only.
    """
    inner = inspect.unwrap(function)
    annotations = getattr(inner, "__annotations__", {})
    if name not in annotations:
        return Any
    one = types.SimpleNamespace(__annotations__={name: annotations[name]})
    try:
        return typing.get_type_hints(one, globalns=getattr(inner, "__globals__", {}))[name]
    except Exception:
        return Any


def _shown(value: Any) -> str:
    """A value as an error shows it: short, on one line, without secrets."""
    try:
        return clean(repr(value), 80)
    except Exception:
        return f"a {type(value).__name__}"


def _expected(name: str, expect: Any) -> dict[str, Any] | None:
    if expect is None:
        return None
    if not isinstance(expect, Mapping):
        raise DefinitionError(f"{name}: expect= takes a dict of premise values or a function, not {expect!r}")
    try:
        plain: dict[str, Any] = normalise(dict(expect), "expect")
    except CanonicalError as error:
        raise DefinitionError(f"{name}: {error}") from None
    return plain
