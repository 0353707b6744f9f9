"""A gated effect: what ``@gate.effect(...)`` turns a function into."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, cast

from .commands import arun, run
from .core.canonical import CanonicalError, normalise
from .definition import Definition, Request
from .errors import BadArguments
from .flow import EffectFlow
from .observer import observed
from .outcome import Outcome
from .redaction import clean

if TYPE_CHECKING:
    import asyncio

    from langchain_core.tools import BaseTool

    from .gate import Gate
    from .recording import Steps

P = ParamSpec("P")

_background: set[asyncio.Task[Any]] = set()
"""Calls whose caller was cancelled and whose send goes on. Kept here so that they are not collected."""


class BaseEffect:
    """What plain and async effects share. Get one from ``Gate.effect``."""

    def __init__(self, gate: Gate, definition: Definition) -> None:
        self._gate = gate
        self.definition = definition
        update_wrapper(cast(Any, self), definition.function)

    @property
    def name(self) -> str:
        """The effect's stable name."""
        return self.definition.name

    def digest(self, *args: Any, **kwargs: Any) -> str:
        """Return the digest of a call's payload, 64 hex digits, for ``Grant(payload_digest=...)``.

        Raises:
            BadArguments: the arguments cannot be journalled.
        """
        return self.definition.request(args, kwargs).digest

    def effect_id(self, *args: Any, **kwargs: Any) -> str:
        """Return the effect id of a call's first decision. Raises ``BadRequest``."""
        return self.definition.request(args, kwargs).effect_id

    def propose(
        self, *args: Any, facts: Mapping[str, Any] | None = None, by: str | None = None, **kwargs: Any
    ) -> Outcome:
        """Record the decision now and send nothing; a later call is held to the facts of this moment.

        Args:
            args, kwargs: the effect's arguments.
            facts: what was seen when it was decided; by default the premises are read now.
            by: who decided.

        Returns:
            ``IN_FLIGHT:waiting`` once recorded; ``REFUSED`` if it may not be done; what
            there is already if the request was decided before.
        """
        found: Outcome = run(self._proposal(args, kwargs, facts, by))
        return found

    async def apropose(
        self, *args: Any, facts: Mapping[str, Any] | None = None, by: str | None = None, **kwargs: Any
    ) -> Outcome:
        """``propose`` under asyncio: blocking functions run in threads, async ones in the running loop."""
        found: Outcome = await arun(self._proposal(args, kwargs, facts, by))
        return found

    def _proposal(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], facts: Mapping[str, Any] | None, by: str | None
    ) -> Steps:
        request = self.definition.request(args, kwargs)
        flow = self._flow(request, 0.0)
        who = None if by is None else words("by", by)
        return observed(self._gate.observer, flow, flow.propose(request, plain("facts", facts), who), "propose")

    def redecide(
        self,
        effect_id: str,
        *,
        by: str,
        facts: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Decide a refused request again. A later call then sends it under a new effect id.

        Args:
            effect_id: the refused decision, the latest of its request.
            by: who decides.
            facts: what the decider saw; by default the premises are read now.
            arguments: what to do instead; by default the same.

        Raises:
            NotDecidable: it is not refused, or may still land.
            BadArguments: the arguments are not ones of this effect, or belong to another request.
        """
        from . import deciding

        gate = self._gate
        return gate.outcome(deciding.redecide(gate, self.definition, effect_id, by, plain("facts", facts), arguments))

    def as_tool(self, **options: Any) -> BaseTool:
        """Return the effect as a LangChain tool.

        Args:
            options: see ``interlock_tools.langchain.effect_tool``: ``name``, ``description``,
                ``args_schema``, ``request``, ``hidden`` arguments and how to fill them, ``wait``.
        """
        from .langchain import effect_tool

        return effect_tool(self, **options)

    def _flow(self, request: Request, wait_s: float) -> EffectFlow:
        gate = self._gate
        return EffectFlow(gate.journal, self.definition, request.effect_id, wait_s=wait_s, retry_s=gate.retry_s)


class Effect(BaseEffect, Generic[P]):
    """A gated plain function. Calling it returns an ``Outcome`` and never raises for what the service does."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Outcome:
        """Do it, at most once, or say why not. See ``invoke``."""
        return self.invoke(args, kwargs)

    def invoke(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        wait: timedelta | float | None = None,
        context: dict[str, Any] | None = None,
    ) -> Outcome:
        """Do it, at most once, or say why not.

        Args:
            args, kwargs: the effect's arguments.
            wait: how long to wait where an earlier send may still land or a live sender is at it
                (seconds or timedelta; by default the gate's). Without it the outcome is IN_FLIGHT.
            context: recorded with the decision and never part of its identity, such as a tool call's id.

        Raises:
            BadRequest: the call cannot be journalled; nothing was written or sent.
            JournalError: the journal failed before anything was sent.
            NotRecorded: it was sent, and its end could not be written.
        """
        request = self.definition.request(args, kwargs)
        flow = self._flow(request, self._gate.wait_s if wait is None else seconds(wait))
        steps = flow.call(request, plain("context", context))
        outcome: Outcome = run(observed(self._gate.observer, flow, steps, "call"))
        return outcome

    async def ainvoke(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        wait: timedelta | float | None = None,
        context: dict[str, Any] | None = None,
    ) -> Outcome:
        """``invoke`` under asyncio: blocking functions run in threads, and a send survives cancellation.

        When the awaiting task is cancelled, a request that was not handed over
        is not sent any more; one that was goes on, and its end is recorded.
        """
        import asyncio

        given = plain("context", context)
        request = self.definition.request(args, kwargs)
        flow = self._flow(request, self._gate.wait_s if wait is None else seconds(wait))
        steps = observed(self._gate.observer, flow, flow.call(request, given), "call")
        task: asyncio.Task[Outcome] = asyncio.ensure_future(arun(steps))
        _background.add(task)
        task.add_done_callback(_background.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            flow.cancel()
            raise


class AsyncEffect(Effect[P]):
    """A gated async function. Calling it returns an awaitable ``Outcome``."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Outcome:  # type: ignore[override]
        """Do it, at most once, or say why not. See ``Effect.invoke`` and ``Effect.ainvoke``."""
        return await self.ainvoke(args, kwargs)


def seconds(duration: timedelta | float) -> float:
    """Return a duration in seconds. Raises ``BadArguments`` for anything that is not one."""
    given = duration.total_seconds() if isinstance(duration, timedelta) else duration
    if isinstance(given, (int, float)) and not isinstance(given, bool) and given >= 0:
        return float(given)
    raise BadArguments(f"a wait is a timedelta or a number of seconds that is not negative, not {duration!r}")


def words(label: str, text: str) -> str:
    """Return what a person said, on one line and without secrets. Raises ``BadArguments`` if it is no text."""
    if not isinstance(text, str) or not text.strip():
        raise BadArguments(f"{label} must be text that is not empty, not {text!r}")
    return clean(text, 1000)


def plain(label: str, values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    if not isinstance(values, Mapping):
        raise BadArguments(f"{label} must be a dict, not {type(values).__name__}")
    try:
        plain: dict[str, Any] = normalise(dict(values), label)
    except CanonicalError as error:
        raise BadArguments(str(error)) from None
    return plain
