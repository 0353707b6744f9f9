"""``GatedTool``: a LangChain tool whose every call goes through the gate."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Literal

from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, ToolException
from pydantic import BaseModel, Field, SkipValidation, ValidationError

from ..core.canonical import encode
from ..core.states import fold
from ..effect import BaseEffect, Effect
from ..errors import BadArguments, BadRequest, DefinitionError, JournalError, NotRecorded, describe
from ..outcome import Outcome, Reason
from .approvals import Question, in_a_graph, interrupted, question_of
from .request import Source, ask, bubbles_up, check_source, check_sources, reference
from .schema import model_of, strict, summary, what_is_wrong

log = logging.getLogger("interlock_tools")

NO_CONFIG: RunnableConfig = {}


class RejectedArguments(BadArguments, ToolException):
    """Arguments of a model's tool call that are not accepted. LangChain shows them to the model as a message."""


class GatedTool(BaseTool):
    """A tool that acts at most once per request and says truthfully what became of it.

    Its content is the outcome's message and its artifact plain JSON: the outcome
    and the effect's record (``receipt``). No outcome is an exception, so no agent
    takes "may have happened" for "try again". Make one with ``effect_tool`` or
    take one from a toolkit.

    Raises, from ``invoke``:
        MissingRequestKey: the application gave no request reference. Nothing was written or sent.
        BadArguments: the arguments are not accepted. Nothing was written or sent. In answer to a
            model's tool call this is a message with ``status="error"`` instead.
    """

    effect: SkipValidation[Effect[Any]] = Field(exclude=True, repr=False)
    """The gated effect."""
    request: SkipValidation[Source | None] = Field(default=None, exclude=True, repr=False)
    """Where the request reference comes from; None: ``config["configurable"]["request_id"]``."""
    request_argument: str
    """The effect's argument that takes the request reference."""
    hidden: SkipValidation[Mapping[str, Source]] = Field(default_factory=dict, exclude=True, repr=False)
    """Further arguments that the application fills in."""
    wait: float | timedelta | None = None
    """How long a call waits for what others have to finish (seconds or timedelta); None: as the gate has it."""
    approval: Literal["journal", "interrupt"] = "journal"
    """How a person is asked where the effect requires it: by the journal alone (``interlock approve``, code), so that
    the call answers ``awaiting_approval``; or by a LangGraph interrupt too, so that the graph pauses."""
    approver: SkipValidation[Source | None] = Field(default=None, exclude=True, repr=False)
    """Who answers an interrupt, if the answer does not say; None: ``config["configurable"]["approver"]``."""
    response_format: Literal["content", "content_and_artifact"] = "content_and_artifact"
    handle_tool_error: Any = True

    def model_post_init(self, context: Any) -> None:
        """Check what subclasses and callers set, and make the schema strict. Raises ``DefinitionError``."""
        super().model_post_init(context)
        if self.response_format != "content_and_artifact":
            raise DefinitionError(f"{self.name}: a gated tool always answers with content and artifact")
        schema = self.args_schema
        if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
            raise DefinitionError(f"{self.name}: args_schema must be a pydantic model; a JSON schema checks nothing")
        self.args_schema = strict(schema)

    def _to_args_and_kwargs(
        self, tool_input: str | dict[str, Any], tool_call_id: str | None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        schema = self.args_schema
        try:
            if isinstance(schema, type) and issubclass(schema, BaseModel) and not schema.model_fields:
                schema.model_validate(tool_input or {})  # LangChain would drop what it does not know
            args, kwargs = super()._to_args_and_kwargs(tool_input, tool_call_id)
        except ValidationError as error:
            raise self._rejected(what_is_wrong(error), tool_call_id) from None
        return args, {**kwargs, "tool_call_id": tool_call_id}

    def _run(
        self, *args: Any, config: RunnableConfig = NO_CONFIG, tool_call_id: str | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        arguments = self._arguments(args, kwargs, config)
        try:
            outcome = self.effect.invoke((), arguments, wait=self.wait, context=_context(tool_call_id))
            if asked := self._asked(outcome, args, kwargs, tool_call_id):
                interrupted(asked, self.approver, config)
                outcome = self.effect.invoke((), arguments, wait=self.wait, context=_context(tool_call_id))
        except Exception as error:
            return self._failed(error, arguments, tool_call_id)
        return self._told(outcome)

    async def _arun(
        self, *args: Any, config: RunnableConfig = NO_CONFIG, tool_call_id: str | None = None, **kwargs: Any
    ) -> tuple[str, dict[str, Any]]:
        arguments = await asyncio.to_thread(self._arguments, args, kwargs, config)
        try:
            outcome = await self.effect.ainvoke((), arguments, wait=self.wait, context=_context(tool_call_id))
            if asked := await asyncio.to_thread(self._asked, outcome, args, kwargs, tool_call_id):
                await asyncio.to_thread(interrupted, asked, self.approver, config)
                outcome = await self.effect.ainvoke((), arguments, wait=self.wait, context=_context(tool_call_id))
        except Exception as error:
            return self._failed(error, arguments, tool_call_id)
        return await asyncio.to_thread(self._told, outcome)

    def _asked(
        self, outcome: Outcome, args: tuple[Any, ...], kwargs: dict[str, Any], tool_call_id: str | None
    ) -> Question | None:
        """The question for an interrupt, where the call waits for a person and this tool asks that way."""
        if self.approval != "interrupt" or not in_a_graph():
            return None
        return question_of(self, self._named(args, kwargs), tool_call_id, outcome)

    def propose(self, arguments: dict[str, Any], config: RunnableConfig) -> Outcome | None:
        """Record a call that needs a person's approval and send nothing; None where it needs none.

        Args:
            arguments: what a model gave.
            config: the run's configuration, for the request reference.

        Raises:
            BadRequest: the call cannot be journalled.
        """
        every = self._arguments((), self.checked(arguments, whole=True), config)
        definition = self.effect.definition
        if not definition.needs_approval(definition.bind((), dict(every))):
            return None
        return self.effect.propose(**every)

    def checked(self, arguments: dict[str, Any], whole: bool = False) -> dict[str, Any]:
        """Return arguments as the schema takes them: all, or those that are given. Raises ``BadArguments``."""
        schema = self.args_schema
        assert isinstance(schema, type) and issubclass(schema, BaseModel)
        unknown = sorted(set(arguments) - set(schema.model_fields))
        if unknown:
            raise BadArguments(f"{self.name} has no argument {', '.join(unknown)}")
        try:
            if whole:
                model = schema.model_validate(arguments)
                return {name: getattr(model, name) for name in schema.model_fields}
            for name, value in arguments.items():
                schema.__pydantic_validator__.validate_assignment(schema.model_construct(), name, value)
        except ValidationError as error:
            raise BadArguments(f"{self.name}: {what_is_wrong(error)}") from None
        return arguments

    def _named(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """The model's arguments by name."""
        arguments = {name: _plain(value) for name, value in kwargs.items()}
        if args and isinstance(self.args_schema, type) and issubclass(self.args_schema, BaseModel):
            arguments.update(zip(self.args_schema.model_fields, args, strict=False))
        return arguments

    def _arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any], config: RunnableConfig) -> dict[str, Any]:
        """The effect's arguments: the model's, and those that the application fills in."""
        arguments = self._named(args, kwargs)
        arguments[self.request_argument] = reference(self.request, config, self.name)
        for name, source in self.hidden.items():
            arguments[name] = ask(source, config, f"{self.name}: the argument {name}")
        return arguments

    def _told(self, outcome: Outcome) -> tuple[str, dict[str, Any]]:
        """Content and artifact of an outcome."""
        existing = outcome.existing
        edited = self._edited(outcome)
        if edited is not None and existing is not None:
            outcome = existing
        elif outcome.reason is Reason.CONFLICTING_PAYLOAD and existing is not None and existing.committed:
            outcome = replace(outcome, reason=Reason.ALREADY_DONE)
        receipt = None
        if outcome.effect_id:
            try:
                receipt = self.effect._gate.receipt(outcome.effect_id)
            except Exception as error:  # the outcome stands, whether or not its record can be read now
                log.warning("effect %s: its record could not be read: %s", outcome.effect_id, describe(error))
        content = self.content(outcome)
        if edited is not None:
            content += f" A person changed the call before it was approved; it is now {encode(edited)}."
        return content, {**outcome.to_json(), "receipt": receipt}

    def _edited(self, outcome: Outcome) -> dict[str, Any] | None:
        """The arguments that a person approved in place of this call's; None where it was not so."""
        existing = outcome.existing
        if outcome.reason is not Reason.CONFLICTING_PAYLOAD or existing is None:
            return None
        state = fold(self.effect._gate.history(existing.effect_id))
        if state.decision == 1 or state.approval is None or state.approval.answer != "approved":
            return None
        hidden = {self.request_argument, *self.hidden}
        return {name: value for name, value in state.payload.items() if name not in hidden}

    def content(self, outcome: Outcome) -> str:
        """Return what the model reads: the outcome's message. A toolkit may add what the service says about it."""
        return outcome.message

    def _failed(
        self, error: Exception, arguments: dict[str, Any], tool_call_id: str | None
    ) -> tuple[str, dict[str, Any]]:
        """Tell the truth about a call that ended without an outcome, or let the error through."""
        if bubbles_up(error):
            raise error
        if isinstance(error, BadArguments):
            raise self._rejected(str(error), tool_call_id) from error
        if isinstance(error, BadRequest):
            raise error
        ours = isinstance(error, (JournalError, NotRecorded))
        log.error("%s: a call ended without an outcome: %s", self.name, describe(error), exc_info=not ours)
        name, key, effect_id = self.effect.name, "", ""
        try:
            request = self.effect.definition.request((), arguments)
            key, effect_id = request.key, request.effect_id
        except BadRequest:
            pass
        message = (
            f"Unknown: what became of {name} for {key} could not be recorded ({describe(error)}). "
            "It may have happened. Do not repeat it and do not do it another way. A person has to look at the journal; "
            "once it works again, the same request finds out."
        )
        status = {"outcome": "UNKNOWN", "status": "UNKNOWN", "effect": name, "effect_id": effect_id, "request_key": key}
        return message, {**status, "message": message, "error": describe(error), "receipt": None}

    def _rejected(self, words: str, tool_call_id: str | None) -> BadArguments:
        message = f"Not done: {self.name} does not accept these arguments ({words}). Nothing was recorded or sent."
        return BadArguments(message) if tool_call_id is None else RejectedArguments(message)


def effect_tool(
    effect: BaseEffect,
    *,
    name: str | None = None,
    description: str | None = None,
    args_schema: type[BaseModel] | None = None,
    request: Source | None = None,
    request_argument: str | None = None,
    hidden: Mapping[str, Source] | None = None,
    wait: timedelta | float | None = None,
    approval: Literal["journal", "interrupt"] = "journal",
    approver: Source | None = None,
    **options: Any,
) -> GatedTool:
    """Return a gated effect as a LangChain tool.

    Args:
        effect: what ``@gate.effect(...)`` made.
        name: the tool's name; by default the send function's.
        description: what the model reads; by default the send function's docstring.
        args_schema: a pydantic model of the arguments that the model gives; by default made from the
            send function's annotations and docstring. It is made strict and closed in either case.
        request: where the request reference comes from: a function of the run's configuration or of
            nothing. By default ``config["configurable"]["request_id"]``.
        request_argument: the argument of the effect that takes the reference. By default ``request`` or
            ``request_id``, or the only argument that the effect's key function names. The model never
            gives it.
        hidden: further arguments that the application fills in, each by such a function.
        wait: how long a call waits for what others have to finish (seconds or timedelta).
        approval: how a person is asked where the effect requires an approval: by the ``journal`` alone, or
            also by a LangGraph ``interrupt``.
        approver: who answers an interrupt, if the answer does not say; see ``GatedTool``.
        options: further fields of ``BaseTool``, such as ``tags``.

    Raises:
        DefinitionError: something about it is wrong.
    """
    if not isinstance(effect, Effect):
        raise DefinitionError(f"effect_tool takes an effect declared with @gate.effect(...), not {effect!r}")
    definition = effect.definition
    docstring = inspect.getdoc(definition.function) or ""
    tool_name = name or str(getattr(definition.function, "__name__", definition.name))
    filled = dict(hidden or {})
    takes_reference = request_argument or _request_argument(effect, tool_name, filled)
    if request is not None:
        check_source("request", request)
    if approver is not None:
        check_source("approver", approver)
    check_sources(filled)
    unknown = sorted({takes_reference, *filled} - definition.parameters)
    if unknown or takes_reference in filled:
        raise DefinitionError(f"{tool_name}: {', '.join(unknown) or takes_reference} cannot be filled in here")
    exposed = [argument for argument in definition.signature.parameters if argument not in (takes_reference, *filled)]
    words = description or summary(docstring)
    if not words:
        raise DefinitionError(f"{tool_name}: a model needs a description; give the function a docstring")
    return GatedTool(
        name=tool_name,
        description=words,
        args_schema=model_of(definition, exposed, args_schema, tool_name),
        effect=effect,
        request=request,
        request_argument=takes_reference,
        hidden=filled,
        wait=wait,
        approval=approval,
        approver=approver,
        **options,
    )


def _request_argument(effect: Effect[Any], tool: str, hidden: Mapping[str, Source]) -> str:
    """The argument that takes the request reference, where nobody says which."""
    arguments = effect.definition.parameters
    for usual in ("request", "request_id"):
        if usual in arguments:
            return usual
    named = [name for name in inspect.signature(effect.definition.key.function).parameters if name in arguments]
    open_ones = [name for name in named if name not in hidden]
    if len(open_ones) == 1:
        return open_ones[0]
    raise DefinitionError(
        f"{tool}: which argument takes the request reference? Say request_argument=..., one that the key function "
        f"uses (it names {', '.join(named) or 'none'}); the application fills it in, never the model"
    )


def _context(tool_call_id: str | None) -> dict[str, Any] | None:
    """What is recorded about the call and never part of its identity."""
    return {"tool_call_id": str(tool_call_id)[:200]} if tool_call_id else None


def _plain(value: Any) -> Any:
    """Nested models as the values that the journal takes."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
