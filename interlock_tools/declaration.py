"""From a declaration to a ``Definition``. Everything that can be wrong about it is found here."""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import Any

from .contract import Contract, milliseconds
from .core.canonical import CanonicalError, normalise
from .definition import EXACT, RESERVED, Definition, Reader
from .errors import DefinitionError


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
    if expect is not None and premises is None:
        raise DefinitionError(f"{name}: expect= says what premises must be, so it needs premises=, which reads them")
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
        if kinds and all(kind in EXACT for kind in kinds):
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
