"""``gate.wrap(tool)``: a tool that is there already, behind the gate.

What can be promised for a tool that nothing is known about: it is written down
before it is called, it is called once for a request, and it is never called
again blindly. Where its end is not known (it raised, or the process died in
it), that is AMBIGUOUS, for a person. Everything that is said about it, a lookup
or that its service dedupes, makes more of these end by themselves.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from langchain_core.tools import BaseTool
from pydantic import BaseModel, Field, create_model

from ..declaration import define
from ..effect import Effect
from ..errors import DefinitionError
from ..gate import Gate
from .request import Source
from .tool import GatedTool, effect_tool

REQUEST = "request"
"""The effect's argument that takes the request reference. No wrapped tool may have one of that name."""


class ToolFailed(Exception):
    """A wrapped tool answered with an error. Whether it had acted before is not known."""


def wrap(
    gate: Gate,
    tool: BaseTool,
    *,
    effect: str | None = None,
    subject: Sequence[str] = (),
    request: Source | None = None,
    wait: timedelta | float | None = None,
    premises: Callable[..., Any] | BaseTool | None = None,
    lookup: Callable[..., Any] | BaseTool | None = None,
    **declaration: Any,
) -> GatedTool:
    """Return a gated tool of the same name, description and arguments.

    Args:
        gate: the gate.
        tool: any LangChain tool, also one of an MCP server.
        effect: the effect's stable name; by default ``tool.`` and the tool's name.
        subject: arguments that name what is acted on. For each of these, and each request reference, it is
            called once; by default once for each reference.
        request: where the request reference comes from, see ``effect_tool``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        premises, lookup: functions of its arguments, or other tools, which are called with those arguments that
            they share. A lookup tool answers with nothing (empty, null) for "not found".
        declaration: further arguments of ``Gate.effect``, such as ``expect``, ``allowed``, ``budget``,
            ``send_timeout`` and ``watch``.

    Raises:
        DefinitionError: something about it is wrong.
    """
    if isinstance(tool, GatedTool) or not isinstance(tool, BaseTool):
        raise DefinitionError(f"wrap takes a LangChain tool that is not gated yet, not {tool!r:.80}")
    schema = _schema(tool)
    names = list(schema.model_fields)
    if REQUEST in names:
        raise DefinitionError(f"{tool.name}: its argument {REQUEST!r} has the name of the request reference; rename it")
    missing = sorted(set(subject) - set(names))
    if missing:
        raise DefinitionError(f"{tool.name}: subject names {', '.join(missing)}; the arguments are {', '.join(names)}")
    options: dict[str, Any] = {
        "key": _key(subject),
        "premises": _reader(premises, names, _facts),
        "lookup": _reader(lookup, names, _found),
        "natural_key": lookup is not None,
        **declaration,
    }
    decorator = gate.effect(effect or f"tool.{tool.name}", **options)
    definition = define(_send(tool, schema), decorator._name, **decorator._options).under(gate.rules)
    gate._register(definition)
    made: Effect[Any] = Effect(gate, definition)
    return effect_tool(
        made,
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=schema,
        request=request,
        request_argument=REQUEST,
        wait=wait,
        tags=tool.tags,
        metadata=tool.metadata,
        return_direct=tool.return_direct,
    )


def _schema(tool: BaseTool) -> type[BaseModel]:
    """The arguments that a model gives, as a pydantic model. Tools of other servers have a JSON schema."""
    given = tool.tool_call_schema
    if isinstance(given, type) and issubclass(given, BaseModel):
        return given
    described: Mapping[str, Any] = given if isinstance(given, Mapping) else tool.args
    properties: Mapping[str, Any] = described.get("properties", {})
    required = set(described.get("required", ()))
    types: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}
    types.update(array=list[Any], object=dict[str, Any])
    fields: dict[str, Any] = {}
    for name, one in properties.items():
        kind = types.get(str(one.get("type")), Any)
        if name in required:
            fields[name] = (kind, Field(description=one.get("description")))
        else:
            fields[name] = (kind | None, Field(default=one.get("default"), description=one.get("description")))
    return create_model(tool.name, **fields)


def _key(subject: Sequence[str]) -> Callable[..., str]:
    """The request key: the reference, and the arguments that name what is acted on."""

    def key(**arguments: Any) -> str:
        parts = [json.dumps(arguments[name], sort_keys=True, ensure_ascii=False) for name in subject]
        return ":".join([str(arguments[REQUEST]), *parts])

    return key


def _send(tool: BaseTool, schema: type[BaseModel]) -> Callable[..., Any]:
    """The send function: it calls the tool as a model's call would."""

    def call(arguments: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in arguments.items() if name != REQUEST}
        return {"name": tool.name, "args": given, "id": "gated", "type": "tool_call"}

    def send(**arguments: Any) -> dict[str, Any]:
        return _evidence(tool.invoke(call(arguments)))

    async def asend(**arguments: Any) -> dict[str, Any]:
        return _evidence(await tool.ainvoke(call(arguments)))

    only_async = getattr(tool, "coroutine", None) is not None and getattr(tool, "func", None) is None
    function: Any = asend if only_async else send
    parameters = [inspect.Parameter(REQUEST, inspect.Parameter.KEYWORD_ONLY)]
    for name, field in schema.model_fields.items():
        default = inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)
        parameters.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    function.__signature__ = inspect.Signature(parameters)
    function.__name__ = tool.name
    function.__doc__ = tool.description
    return function  # type: ignore[no-any-return]


def _evidence(answer: Any) -> dict[str, Any]:
    """What a tool answered, as evidence. Raises ``ToolFailed`` for an answer that says it failed."""
    if getattr(answer, "status", None) == "error":
        raise ToolFailed(str(answer.content)[:300])
    kept = {"answer": getattr(answer, "content", answer)}
    artifact = getattr(answer, "artifact", None)
    if artifact is not None:
        kept["artifact"] = artifact
    plain: dict[str, Any] = json.loads(json.dumps(kept, default=str))
    return plain


def _reader(given: Callable[..., Any] | BaseTool | None, names: Sequence[str], read: Callable[[Any], Any]) -> Any:
    """A function for a premise or a lookup; of a tool, one that calls it with those arguments that it has."""
    if not isinstance(given, BaseTool):
        return given
    shared = [name for name in names if name in given.args]

    def function(**arguments: Any) -> Any:
        return read(given.invoke({name: arguments[name] for name in shared}))

    function.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY) for name in shared]
    )
    return function


def _facts(answer: Any) -> dict[str, Any]:
    """A tool's answer as facts: a JSON object, or whatever it says under one name."""
    found = _parsed(answer)
    return found if isinstance(found, dict) else {"answer": found}


def _found(answer: Any) -> Any:
    """A tool's answer as evidence; None where it says that there is nothing."""
    return _parsed(answer) or None


def _parsed(answer: Any) -> Any:
    if not isinstance(answer, str):
        return answer
    try:
        return json.loads(answer)
    except ValueError:
        return answer
