"""Form parameters with brackets, as Stripe's SDKs send them, and typed access to them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from scenarios.sandbox.stripe.errors import invalid

MAX_METADATA_KEYS = 50
MAX_METADATA_NAME = 40
MAX_METADATA_VALUE = 500
_NAME = re.compile(r"^([^\[\]]+)((?:\[[^\[\]]*\])*)$")


def parse_form(text: str) -> dict[str, Any]:
    """``a[b][0]=c`` as ``{"a": {"b": ["c"]}}``; every leaf is a string. Raises a 400 for a malformed name."""
    tree: dict[str, Any] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        match = _NAME.match(name)
        if match is None:
            raise invalid(f"Invalid parameter name: {name}", param=name)
        path = [match[1], *re.findall(r"\[([^\[\]]*)\]", match[2])]
        _put(tree, path, value, name)
    return {name: _lists(value) for name, value in tree.items()}


def _put(tree: dict[str, Any], path: Sequence[str], value: str, name: str) -> None:
    node = tree
    for depth, part in enumerate(path):
        part = part or str(len(node))
        if depth == len(path) - 1:
            node[part] = value
            return
        node = node.setdefault(part, {})
        if not isinstance(node, dict):
            raise invalid(f"Invalid parameter: {name} is given twice in different shapes", param=name)


def _lists(value: Any) -> Any:
    """Objects whose names are 0, 1, 2 … are lists."""
    if not isinstance(value, dict):
        return value
    items = {name: _lists(item) for name, item in value.items()}
    if items and all(name.isdecimal() for name in items):
        return [items[name] for name in sorted(items, key=int)]
    return items


def money_words(amount: int, currency: str) -> str:
    """How Stripe writes an amount inside a message: ``$20.00``, or ``20 jpy`` elsewhere."""
    if currency == "usd":
        return f"${amount / 100:,.2f}"
    if currency in ZERO_DECIMAL:
        return f"{amount} {currency}"
    return f"{amount / 100:,.2f} {currency}"


ZERO_DECIMAL = frozenset(
    ["bif", "clp", "djf", "gnf", "jpy", "kmf", "krw", "mga", "pyg", "rwf", "ugx", "vnd", "vuv", "xaf", "xof", "xpf"]
)
"""Currencies without a smaller unit (API reference, "Supported currencies")."""

CURRENCIES = ZERO_DECIMAL | frozenset(
    [
        "aud",
        "brl",
        "cad",
        "chf",
        "czk",
        "dkk",
        "eur",
        "gbp",
        "hkd",
        "inr",
        "mxn",
        "nok",
        "nzd",
        "pln",
        "sek",
        "sgd",
        "usd",
        "zar",
    ]
)


class Params:
    """The parameters of one call. Accessors raise the 400 that Stripe answers for a missing or malformed one."""

    def __init__(self, values: Mapping[str, Any], prefix: str = "") -> None:
        self.values = dict(values)
        self._prefix = prefix

    def name(self, key: str) -> str:
        return f"{self._prefix}[{key}]" if self._prefix else key

    def has(self, key: str) -> bool:
        return key in self.values

    def check_known(self, known: frozenset[str]) -> None:
        for key in self.values:
            if key not in known:
                raise invalid(f"Received unknown parameter: {self.name(key)}", self.name(key), "parameter_unknown")

    def text(self, key: str) -> str | None:
        """A string, or None if it is absent or empty (an empty value unsets)."""
        value = self.values.get(key)
        if value is None or value == "":
            return None
        if not isinstance(value, str):
            raise invalid(f"Invalid string: {self.name(key)} is not a string", self.name(key))
        return value

    def need_text(self, key: str) -> str:
        value = self.text(key)
        if value is None:
            raise invalid(f"Missing required param: {self.name(key)}.", self.name(key), "parameter_missing")
        return value

    def integer(self, key: str, least: int | None = None) -> int | None:
        text = self.text(key)
        if text is None:
            return None
        if re.fullmatch(r"-?[0-9]{1,18}", text) is None:
            raise invalid(f"Invalid integer: {text}", self.name(key), "parameter_invalid_integer")
        number = int(text)
        if least is not None and number < least:
            raise invalid(
                f"This value must be greater than or equal to {least}.", self.name(key), "parameter_invalid_integer"
            )
        return number

    def need_integer(self, key: str, least: int | None = None) -> int:
        number = self.integer(key, least)
        if number is None:
            raise invalid(f"Missing required param: {self.name(key)}.", self.name(key), "parameter_missing")
        return number

    def boolean(self, key: str, default: bool = False) -> bool:
        text = self.text(key)
        if text is None:
            return default
        if text not in ("true", "false"):
            raise invalid(f"Invalid boolean: {text}", self.name(key))
        return text == "true"

    def choice(self, key: str, among: Sequence[str]) -> str | None:
        text = self.text(key)
        if text is not None and text not in among:
            listed = ", ".join(among[:-1]) + (" or " if len(among) > 1 else "") + among[-1]
            raise invalid(f"Invalid {self.name(key)}: must be one of {listed}", self.name(key))
        return text

    def currency(self, key: str = "currency") -> str:
        value = self.need_text(key).lower()
        if value not in CURRENCIES:
            raise invalid(f"Invalid currency: {value}.", self.name(key))
        return value

    def child(self, key: str) -> Params:
        """A nested object; empty if it is absent."""
        value = self.values.get(key) or {}
        if not isinstance(value, dict):
            raise invalid("Invalid object", self.name(key))
        return Params(value, self.name(key))

    def children(self, key: str) -> list[Params]:
        """A list of nested objects; empty if it is absent."""
        value = self.values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise invalid("Invalid array", self.name(key))
        return [Params(item, f"{self.name(key)}[{index}]") for index, item in enumerate(value)]

    def strings(self, key: str) -> list[str]:
        value = self.values.get(key) or []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise invalid("Invalid array", self.name(key))
        return list(value)

    def metadata(self, current: Mapping[str, str] | None = None) -> dict[str, str]:
        """``current`` with the given metadata merged in: an empty value removes a name, an empty object all."""
        given = self.values.get("metadata")
        merged = dict(current or {})
        if given is None:
            return merged
        if given == "":
            return {}
        if isinstance(given, list):
            given = {str(index): value for index, value in enumerate(given)}
        for name, value in given.items():
            if not isinstance(value, str):
                raise invalid("Metadata values must be strings", f"metadata[{name}]")
            if len(name) > MAX_METADATA_NAME or len(value) > MAX_METADATA_VALUE:
                raise invalid(
                    f"Metadata names have at most {MAX_METADATA_NAME} characters and values {MAX_METADATA_VALUE}",
                    f"metadata[{name}]",
                )
            if value == "":
                merged.pop(name, None)
            else:
                merged[name] = value
        if len(merged) > MAX_METADATA_KEYS:
            raise invalid(f"Metadata has at most {MAX_METADATA_KEYS} names", "metadata")
        return merged
