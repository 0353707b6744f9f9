"""What a server says of its tools' arguments, and whether it fits what the configuration says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..redaction import clean
from .config import KEY, REQUEST, Rule, names_of
from .server import ServerError


def schemas_of(page: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The schema of each tool on a page of the server's list. Raises ``ServerError``."""
    tools = page.get("tools")
    found = {}
    for tool in tools if isinstance(tools, list) else [tools]:
        name = tool.get("name") if isinstance(tool, dict) else None
        schema = (tool.get("inputSchema") or {}) if isinstance(tool, dict) else None
        if not isinstance(name, str) or not isinstance(schema, dict):
            raise ServerError("tools/list was answered with something that is no list of tools")
        found[name] = schema if isinstance(schema.get("properties", {}), dict) else {**schema, "properties": {}}
    return found


def untaken(schema: Mapping[str, Any], names: Iterable[str]) -> list[str]:
    """Those of some arguments that a schema does not name, if it does not take others."""
    if schema.get("additionalProperties") or schema.get("patternProperties"):
        return []
    return sorted(set(names) - set(schema.get("properties", {})))


def misfit(rule: Rule, schemas: Mapping[str, dict[str, Any]]) -> str | None:
    """What the configuration says of a tool and the server's list of tools does not, if anything.

    Many servers pass over an argument that they do not know. A key that is not taken makes a second effect of a
    repetition, and a lookup by nothing finds nothing, so neither is relied on.
    """
    if rule.tool not in schemas:
        return f"the server names no tool {rule.tool}"
    if rule.key_argument is not None and untaken(schemas[rule.tool], [rule.key_argument]):
        return f"{rule.tool} takes no argument {rule.key_argument}, which the configuration names"
    named = names_of(rule.key) - {REQUEST} | ({rule.amount} if rule.amount else set())
    for reading in (rule.lookup, rule.premises):
        if reading is None:
            continue
        named |= reading.names - {REQUEST, KEY}
        if reading.tool not in schemas:
            return f"the server names no tool {reading.tool}, which the configuration does"
        if "properties" in schemas[reading.tool] and (unknown := untaken(schemas[reading.tool], reading.arguments)):
            return f"{reading.tool} takes no argument {', '.join(unknown)}, which the configuration names"
    if unknown := untaken(shown_schema(rule, schemas[rule.tool]), named):
        return f"calls of {rule.tool} have no argument {', '.join(unknown)}, which the configuration names"
    return None


def shown_schema(rule: Rule, schema: dict[str, Any]) -> dict[str, Any]:
    """A tool's schema without the argument that the proxy fills in."""
    hidden = rule.key_argument
    if hidden is None:
        return schema
    properties = {name: one for name, one in schema.get("properties", {}).items() if name != hidden}
    named = schema.get("required")
    required = [name for name in named if name != hidden] if isinstance(named, list) else []
    return {**schema, "properties": properties, "required": required}


def invalid(schema: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    """Why arguments are not what a schema asks for, if they are not."""
    from jsonschema.validators import Draft202012Validator, validator_for
    from referencing import Registry

    try:
        kind: Any = validator_for(schema, default=Draft202012Validator)
        found = next(kind(schema, registry=Registry()).iter_errors(arguments), None)  # fetches nothing
    except Exception as error:
        return f"the tool's schema cannot be used ({type(error).__name__})"
    return None if found is None else f"{found.json_path}: {clean(found.message, 200)}"
