"""The proxy's configuration: which tools are gated, and what their operator says about each."""

from __future__ import annotations

import json
import math
import string
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from ..contract import DEFAULT_SEND_TIMEOUT
from ..errors import DefinitionError
from ..rules import Limit

_Seconds = TypeVar("_Seconds", timedelta, None)

REQUEST, KEY = "request", "key"
"""What a template may name besides a call's arguments: the request reference and, in ``lookup``, the effect id."""


@dataclass(frozen=True)
class Reading:
    """A tool of the same server that only reads: which, and its arguments as templates over those of the call."""

    tool: str
    arguments: Mapping[str, Any]
    fields: tuple[str, ...] = ()

    @property
    def names(self) -> set[str]:
        """What the templates of its arguments name."""
        return _all_names(self.arguments, "template")


@dataclass(frozen=True)
class Rule:
    """One gated tool. See ``docs/adapters.md`` for what each field means."""

    tool: str
    effect: str
    key: str
    key_argument: str | None = None
    dedupes: timedelta | None = None
    lookup: Reading | None = None
    lookup_lag: timedelta = timedelta(0)
    premises: Reading | None = None
    expect: Mapping[str, Any] | None = None
    send_timeout: timedelta = DEFAULT_SEND_TIMEOUT
    requires_approval: bool = False
    amount: str | None = None
    error_proves_nothing_done: bool = False


@dataclass(frozen=True)
class Config:
    """What ``load`` found."""

    journal: str
    rules: Mapping[str, Rule]
    request_env: str | None = None
    request_meta: str | None = None
    signing: str | None = None
    wait_s: float = 0.0
    limits: Sequence[Limit] = ()


def load(path: Path) -> Config:
    """Read a configuration file.

    Raises:
        DefinitionError: it cannot be read, or something in it is wrong; it says where.
    """
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib  # pyright: ignore[reportMissingImports]
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DefinitionError(f"{path}: {error}") from None
    except RecursionError:
        raise DefinitionError(f"{path}: nested too deep") from None
    top = _Table(str(path), given)
    request = _Table(f"{path}: [request]", top.take("request", dict, {}))
    env, meta = request.take("env", str, None), request.take("meta", str, None)
    request.done()
    if env is None and meta is None:
        raise DefinitionError(f"{path}: [request] says where the request reference comes from: env = …, meta = …")
    journal = top.take("journal", str)
    if "://" not in journal:
        journal = str(path.parent / journal)
    signing = top.take("signing", str, None)
    wait = top.seconds("wait_s", timedelta(0))
    rules = {name: _rule(path, name, table) for name, table in top.take("tools", dict).items()}
    limits = [_limit(f"{path}: [[limits]] {number}", one) for number, one in enumerate(top.take("limits", list, []), 1)]
    top.done()
    if not rules:
        raise DefinitionError(f"{path}: [tools.NAME] names the tools that are gated; there is none")
    _check_names(path, rules)
    _check_limits(path, rules, limits)
    signing = None if signing is None else str(path.parent / signing)
    return Config(journal, rules, env, meta, signing, wait.total_seconds(), limits)


def _check_names(path: Path, rules: Mapping[str, Rule]) -> None:
    effects = [rule.effect for rule in rules.values()]
    if len(set(effects)) < len(effects):
        raise DefinitionError(f"{path}: two tools have one effect name; each needs its own")
    for rule in rules.values():
        for reading in (rule.lookup, rule.premises):
            if reading is not None and reading.tool in rules:
                raise DefinitionError(f"{path}: [tools.{rule.tool}] reads by {reading.tool}, which is gated itself")


def _check_limits(path: Path, rules: Mapping[str, Rule], limits: Sequence[Limit]) -> None:
    """A limit that would count nothing is a mistake, never a limit that holds."""
    for limit in limits:
        counted = [rule for rule in rules.values() if limit.is_for(rule.effect)]
        if not counted:
            raise DefinitionError(f"{path}: limit {limit.name} is for no gated tool; effects = … takes effect names")
        for rule in counted:
            if not limit.counts and rule.amount is None:
                raise DefinitionError(
                    f"{path}: [tools.{rule.tool}]: limit {limit.name} counts amounts; say which argument is the amount "
                    "(amount = …), or give the limit counts = true, or effects = … without this tool"
                )


def _limit(where: str, given: Any) -> Limit:
    table = _Table(where, given)
    name = table.template("name")
    effects = table.take("effects", (str, list), "*")
    per, counts = table.take("per", str, None), table.take("counts", bool, False)
    most = table.take("limit", int)
    table.done()
    if isinstance(effects, list) and not all(isinstance(one, str) for one in effects):
        raise DefinitionError(f"{where}: effects is a pattern of effect names, or several")
    try:
        return Limit(name, most, per=per, counts=counts, effects=effects)
    except DefinitionError as error:
        raise DefinitionError(f"{where}: {error}") from None


def _rule(path: Path, name: str, given: Any) -> Rule:
    table = _Table(f"{path}: [tools.{name}]", given)
    key = table.template("key", "{request}")
    if REQUEST not in names_of(key):
        raise DefinitionError(f"{table.where}: key must name {{request}}, which the application supplies")
    rule = Rule(
        tool=name,
        effect=table.take("effect", str, f"mcp.{name}"),
        key=key,
        key_argument=table.take("key_argument", str, None),
        dedupes=table.seconds("dedupes_s", None, above_zero=True),
        lookup=_reading(table, "lookup"),
        lookup_lag=table.seconds("lookup_lag_s", timedelta(0)),
        premises=_reading(table, "premises"),
        expect=table.take("expect", dict, None),
        send_timeout=table.seconds("send_timeout_s", DEFAULT_SEND_TIMEOUT, above_zero=True),
        requires_approval=table.take("requires_approval", bool, False),
        amount=table.take("amount", str, None),
        error_proves_nothing_done=table.take("error_proves_nothing_done", bool, False),
    )
    table.done()
    if rule.dedupes is not None and rule.key_argument is None:
        raise DefinitionError(f"{table.where}: dedupes_s rests on a key; key_argument says which argument takes it")
    if rule.lookup_lag and rule.lookup is None:
        raise DefinitionError(f"{table.where}: lookup_lag_s says how stale a lookup is, and there is no lookup")
    if rule.premises is not None and KEY in rule.premises.names:
        raise DefinitionError(f"{table.where}: premises cannot take {{{KEY}}}")
    if rule.premises is not None and rule.premises.fields:
        unread = sorted(set(rule.expect or {}) - set(rule.premises.fields))
        if unread:
            raise DefinitionError(f"{table.where}: expect names {', '.join(unread)}, which is not among fields")
    return rule


def _reading(table: _Table, name: str) -> Reading | None:
    given = table.take(name, dict, None)
    if given is None:
        return None
    inner = _Table(f"{table.where} {name}", given)
    arguments = inner.take("arguments", dict, {})
    _all_names(arguments, inner.where)
    fields = inner.take("fields", list, [])
    if not all(isinstance(one, str) and one for one in fields):
        raise DefinitionError(f"{inner.where}: fields is a list of names")
    reading = Reading(inner.take("tool", str), arguments, tuple(fields))
    inner.done()
    return reading


class _Table:
    """A table of the file, of which every entry must be understood."""

    def __init__(self, where: str, given: Any) -> None:
        if not isinstance(given, dict):
            raise DefinitionError(f"{where} must be a table")
        self.where = where
        self.left = dict(given)

    def take(self, name: str, kind: Any, *default: Any) -> Any:
        if name not in self.left and default:
            return default[0]
        found = self.left.pop(name, None)
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise DefinitionError(f"{self.where}: {name} is missing, or not what it must be")
        if isinstance(found, str) and not found.strip():
            raise DefinitionError(f"{self.where}: {name} is empty")
        return found

    def seconds(self, name: str, default: _Seconds, *, above_zero: bool = False) -> timedelta | _Seconds:
        found = self.take(name, (int, float), None)
        if found is None:
            return default
        if not 0 <= found < 1e9 or (above_zero and timedelta(seconds=found) == timedelta(0)):
            raise DefinitionError(f"{self.where}: {name} is a number of seconds{', above 0' if above_zero else ''}")
        return timedelta(seconds=found)

    def template(self, name: str, *default: str) -> str:
        text: str = self.take(name, str, *default)
        names_of(text, self.where)
        return text

    def done(self) -> None:
        if self.left:
            raise DefinitionError(f"{self.where}: {', '.join(sorted(map(str, self.left)))} means nothing here")


def names_of(text: str, where: str = "template") -> set[str]:
    """The names in a template. Raises ``DefinitionError`` for anything but plain ``{name}``."""
    try:
        parts = [part for part in string.Formatter().parse(text) if part[1] is not None]
    except ValueError as error:
        raise DefinitionError(f"{where}: {text!r}: {error}") from None
    for _, name, spec, conversion in parts:
        if not name or spec or conversion or set(".[]") & set(name):
            raise DefinitionError(f"{where}: {text!r} may hold names in braces and nothing else")
    return {str(name) for _, name, _, _ in parts}


def _all_names(value: Any, where: str) -> set[str]:
    """The names in all templates of an argument, however deep. Raises ``DefinitionError`` for what is not JSON."""
    if isinstance(value, str):
        return names_of(value, where)
    if isinstance(value, dict):
        return set().union(*(_all_names(one, where) for one in value.values()))
    if isinstance(value, list):
        return set().union(*(_all_names(one, where) for one in value))
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return set()
    raise DefinitionError(f"{where}: {value!r} is no JSON value")


def fill(text: str, values: Mapping[str, Any], exact: tuple[str, ...] = ()) -> str:
    """Fill a template in. Values stand as JSON, so that no two calls can be taken for one; those in ``exact`` as text.

    Raises ``KeyError`` for a value that the call does not have.
    """
    parts = []
    for literal, name, _, _ in string.Formatter().parse(text):
        parts.append(literal)
        if name is not None:
            value = values[name]
            plain = name in exact and isinstance(value, str)
            parts.append(value if plain else json.dumps(value, sort_keys=True, ensure_ascii=False))
    return "".join(parts)


def filled(value: Any, values: Mapping[str, Any]) -> Any:
    """Arguments of a reading tool, with all templates in them filled in. A template that is one name alone gives the
    value as it is, of its own type. Raises ``KeyError`` for a value that the call does not have."""
    if isinstance(value, dict):
        return {name: filled(one, values) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, values) for one in value]
    if not isinstance(value, str):
        return value
    names = tuple(names_of(value))
    return values[names[0]] if names and value == f"{{{names[0]}}}" else fill(value, values, names)
