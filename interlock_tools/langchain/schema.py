"""The schema of a gated tool's arguments: strict, closed, described."""

from __future__ import annotations

import inspect
import re
import typing
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from ..definition import Definition
from ..errors import DefinitionError

RESERVED = frozenset({"args", "callbacks", "config", "kwargs", "run_manager", "runtime", "tool_call_id"})
"""Argument names that LangChain fills in by itself or leaves out."""

STRICT = ConfigDict(extra="forbid", strict=True)
"""Nothing is converted and nothing dropped: True, "1_000" and 500.0 are no integers, and a made-up key is refused."""


def model_of(definition: Definition, exposed: Sequence[str], given: Any, name: str) -> type[BaseModel]:
    """Return the strict model of the arguments that a model may give.

    Args:
        definition: the effect.
        exposed: its arguments that the application does not fill in.
        given: a model of the application's for them, or None to make one from the send function.
        name: of the tool.

    Raises:
        DefinitionError: an argument's name is reserved, or the given model does not fit the effect.
    """
    taken = sorted(RESERVED & set(exposed))
    if taken:
        raise DefinitionError(f"{name}: LangChain keeps the argument name(s) {', '.join(taken)} to itself; use another")
    if given is None:
        return _made(definition, exposed, name)
    if not (isinstance(given, type) and issubclass(given, BaseModel)):
        raise DefinitionError(f"{name}: args_schema must be a pydantic model; a JSON schema checks nothing")
    parameters = definition.signature.parameters
    fields = set(given.model_fields)
    needed = {argument for argument in exposed if parameters[argument].default is inspect.Parameter.empty}
    if not needed <= fields <= set(exposed):
        raise DefinitionError(
            f"{name}: args_schema has the fields {', '.join(sorted(fields))}; the effect takes {', '.join(exposed)}"
        )
    return strict(given)


def strict(model: type[BaseModel]) -> type[BaseModel]:
    """Return a model as strict and closed as ``STRICT``, which may be the one given."""
    if all(model.model_config.get(name) == value for name, value in STRICT.items()):
        return model
    return type(model.__name__, (model,), {"model_config": STRICT, "__doc__": model.__doc__, "__module__": __name__})


def _made(definition: Definition, exposed: Sequence[str], name: str) -> type[BaseModel]:
    function = definition.function
    try:
        hints = typing.get_type_hints(inspect.unwrap(function), include_extras=True)
    except Exception as error:
        raise DefinitionError(f"{name}: the annotations cannot be read ({error}); give args_schema=") from None
    words = argument_words(inspect.getdoc(function) or "")
    fields: dict[str, Any] = {}
    for argument in exposed:
        default = definition.signature.parameters[argument].default
        field = Field(... if default is inspect.Parameter.empty else default, description=words.get(argument))
        fields[argument] = (hints.get(argument, Any), field)
    return create_model(name, __config__=STRICT, **fields)


def summary(docstring: str) -> str:
    """Return what a docstring says before its sections."""
    return re.split(r"^(?:Args|Returns|Raises|Example|Examples|Note):\s*$", docstring, maxsplit=1, flags=re.MULTILINE)[
        0
    ].strip()


def argument_words(docstring: str) -> dict[str, str]:
    """Return the description of each argument from a docstring's ``Args:`` section."""
    section = re.search(r"^Args:\s*$\n((?:^[ \t]+.*$\n?|^\s*$\n?)*)", docstring, flags=re.MULTILINE)
    if section is None:
        return {}
    words: dict[str, str] = {}
    lines = inspect.cleandoc(section.group(1)).splitlines()
    current = ""
    for line in lines:
        begun = re.match(r"(\w+)(?:\s*\([^)]*\))?:\s*(.*)", line)
        if begun:
            current = begun.group(1)
            words[current] = begun.group(2)
        elif current:
            words[current] = f"{words[current]} {line.strip()}".strip()
    return words


def what_is_wrong(error: ValidationError) -> str:
    """Return the complaints of a validation error, without the values: they may hold anything."""
    parts = []
    for item in error.errors(include_url=False, include_context=False, include_input=False)[:8]:
        where = ".".join(str(part) for part in item["loc"]) or "arguments"
        parts.append(f"{where}: {item['msg']}")
    return "; ".join(parts)
