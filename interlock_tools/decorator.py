"""What ``@gate.effect(...)`` returns: it turns a function into a gated effect."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, overload

from .declaration import define
from .effect import AsyncEffect, Effect

if TYPE_CHECKING:
    from .gate import Gate


class EffectDecorator:
    """What ``Gate.effect`` returns; applied to a function it declares the effect."""

    def __init__(self, gate: Gate, name: str, options: dict[str, Any]) -> None:
        self._gate = gate
        self._name = name
        self._options = options

    # Callers leave ``idempotency_key`` and ``on_send`` out, and no type can take a keyword off a signature. So
    # checkers let every argument through here, and the gate checks each call itself.

    @overload
    def __call__(self, function: Callable[..., Awaitable[Any]]) -> AsyncEffect[...]: ...

    @overload
    def __call__(self, function: Callable[..., Any]) -> Effect[...]: ...

    def __call__(self, function: Callable[..., Any]) -> Any:
        definition = define(function, self._name, **self._options).under(self._gate.rules)
        self._gate._register(definition)
        kind: type[Effect[Any]] = AsyncEffect if definition.is_async else Effect
        return kind(self._gate, definition)
