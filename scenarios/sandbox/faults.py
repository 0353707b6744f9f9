"""Rules that make matching requests go wrong, or slowly."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from typing import Any

ACTIONS = ("latency", "hold", "apply_then_status", "apply_then_cut", "cut_before", "answer")


class BadRule(ValueError):
    """A rule that says something impossible; nothing was added."""


@dataclass
class Rule:
    """What to do to requests of ``method`` whose whole path matches ``path`` (and whose body contains ``body``).

    It starts with the ``nth`` match (counted from when the rule was added, the first is 1) and holds for ``times``
    matches; None is for ever. Of several rules that fit, the one added first is used; latencies add up and go with
    any other rule.

    - ``latency``: wait ``seconds`` (real ones), then go on.
    - ``hold``: do not answer. Apply after ``seconds`` real seconds, or on a release where it is None, also if the
      client has gone; then answer whoever is still there, or cut the connection where ``then`` is "cut". With
      ``executing`` the service takes the request for one that it is working on (a repeat is told so); without it the
      request is still on its way to the service.
    - ``apply_then_status``: apply, then answer ``status`` and ``answer`` (or the service's own shape of it). With
      ``stored`` that answer is what the service remembers for the request's idempotency key.
    - ``apply_then_cut``: apply, then drop the connection.
    - ``cut_before``: drop the connection and apply nothing.
    - ``answer``: answer ``status`` and ``answer``, with ``headers``, and apply nothing.

    ``applications`` is how often an applied request is handed to the service: 2 is a proxy that repeats it.
    """

    action: str
    method: str | None = None
    path: str = ".*"
    body: str | None = None
    nth: int = 1
    times: int | None = 1
    seconds: float | None = None
    then: str = "answer"
    executing: bool = False
    status: int = 500
    answer: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    stored: bool = False
    applications: int = 1
    id: int = 0
    matched: int = 0
    used: int = 0

    def matches(self, method: str, path: str, body: bytes) -> bool:
        return (
            (not self.method or self.method.upper() == method)
            and re.fullmatch(self.path, path) is not None
            and (self.body is None or re.search(self.body, body.decode("latin-1")) is not None)
        )

    def take(self) -> bool:
        """Count a match; True if the rule is to be used for it."""
        self.matched += 1
        if self.matched < self.nth or (self.times is not None and self.used >= self.times):
            return False
        self.used += 1
        return True

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


def parse_rule(values: dict[str, Any]) -> Rule:
    """A rule from the JSON of a control call. Raises BadRule on anything that is not known or does not fit."""
    known = {item.name for item in fields(Rule)} - {"id", "matched", "used"}
    unknown = sorted(set(values) - known)
    if unknown:
        raise BadRule(f"unknown field(s) {', '.join(unknown)}; known: {', '.join(sorted(known))}")
    if values.get("action") not in ACTIONS:
        raise BadRule(f"action must be one of {', '.join(ACTIONS)}")
    rule = Rule(**values)
    try:
        re.compile(rule.path)
        re.compile(rule.body or "")
    except re.error as error:
        raise BadRule(f"not a regular expression: {error}") from error
    if rule.action == "latency" and rule.seconds is None:
        raise BadRule("latency needs seconds")
    if rule.then not in ("answer", "cut"):
        raise BadRule('then must be "answer" or "cut"')
    if rule.nth < 1 or rule.applications < 1:
        raise BadRule("nth and applications start at 1")
    return rule


class Rules:
    """The rules of one sandbox, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []
        self._last_id = 0

    def add(self, rule: Rule) -> Rule:
        self._last_id += 1
        rule.id = self._last_id
        self._rules.append(rule)
        return rule

    def remove(self, rule_id: int | None = None) -> int:
        """Remove one rule, or all; returns how many went."""
        kept = [rule for rule in self._rules if rule_id is not None and rule.id != rule_id]
        removed = len(self._rules) - len(kept)
        self._rules = kept
        return removed

    def all(self) -> list[Rule]:
        return list(self._rules)

    def match(self, method: str, path: str, body: bytes) -> tuple[float, Rule | None]:
        """Seconds of latency and the fault, if any, for a request that has just been received."""
        latency_s = 0.0
        fault: Rule | None = None
        for rule in self._rules:
            if not rule.matches(method, path, body):
                continue
            if rule.action == "latency":
                latency_s += (rule.seconds or 0.0) if rule.take() else 0.0
            elif fault is not None:
                rule.matched += 1
            elif rule.take():
                fault = rule
        return latency_s, fault
