"""Rules for everything that goes through one gate: limits, an authority, approvals. Effects may add their own."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from typing import Any

from .authority import Budget
from .errors import BadArguments, DefinitionError, describe

log = logging.getLogger("interlock_tools")


@dataclass(frozen=True, slots=True)
class Asked:
    """One call, as rules see it.

    Attributes:
        effect: the effect's name.
        request_key: the request reference.
        arguments: what would be sent.
        amount: in the smallest unit of the currency, where the effect has one.
    """

    effect: str
    request_key: str
    arguments: dict[str, Any]
    amount: int | None = None


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that the effects of a gate share::

        Gate("refunds.db", limits=[
            Limit("case:{case}", 100_00),                          # each case
            Limit("agent:support", 2_000_00, per="day"),           # this agent, every day
            Limit("mails:{to}", 3, per="day", counts=True, effects="resend.*"),
        ])

    Attributes:
        name: of the budget. ``{effect}``, ``{request_key}`` and ``{argument}`` stand for the call's; one budget
            for each value. Effects without that argument are not counted.
        limit: what all of them together may take, in the smallest unit, or how many there may be.
        per: ``day`` or ``month`` (UTC, of the moment it is sent): one budget for each.
        counts: each effect counts 1, whatever its amount. Otherwise those without an amount are not counted.
        effects: pattern of the names of effects that it is for, such as ``stripe.*``, or several.

    Amounts of different currencies must not share a limit: use ``effects`` or ``{currency}``.

    Raises:
        DefinitionError: a field is wrong.
    """

    name: str
    limit: int
    per: str | None = None
    counts: bool = False
    effects: str | Sequence[str] = "*"

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise DefinitionError(f"a limit needs a name, not {self.name!r}")
        if type(self.limit) is not int or self.limit < 0:
            raise DefinitionError(f"limit {self.name}: a whole number that is not negative, not {self.limit!r}")
        if self.per not in (None, "day", "month"):
            raise DefinitionError(f"limit {self.name}: per='day', per='month' or None, not {self.per!r}")

    @property
    def names(self) -> set[str]:
        """What the name of the budget is made of, besides its own words."""
        return set(re.findall(r"\{(\w+)\}", self.name))

    def is_for(self, effect: str) -> bool:
        """Whether effects of this name are counted."""
        patterns = [self.effects] if isinstance(self.effects, str) else self.effects
        return any(fnmatchcase(effect, pattern) for pattern in patterns)

    def budget(self, asked: Asked, now_ms: int) -> Budget | None:
        """Return what a call takes of it; None where it is not for that call."""
        amount = 1 if self.counts else asked.amount
        if amount is None or not self.is_for(asked.effect):
            return None
        known = {**asked.arguments, "effect": asked.effect, "request_key": asked.request_key}
        if any(known.get(name) is None for name in self.names):
            return None
        name = re.sub(r"\{(\w+)\}", lambda found: str(known[found[1]]), self.name)
        if self.per is not None:
            moment = datetime.fromtimestamp(now_ms / 1000, timezone.utc)
            name += f":{moment:%Y-%m-%d}" if self.per == "day" else f":{moment:%Y-%m}"
        return Budget(name, amount, self.limit)


@dataclass(frozen=True, slots=True)
class Rules:
    """What a gate asks of all its effects. ``now_ms`` tells the time, UTC."""

    limits: Sequence[Limit] = ()
    allowed: Callable[[Asked], Any] | None = None
    requires_approval: Callable[[Asked], bool] | None = None
    now_ms: Callable[[], int] = field(default=lambda: 0)

    def __post_init__(self) -> None:
        if not all(isinstance(limit, Limit) for limit in self.limits):
            raise DefinitionError(f"limits= takes a list of Limit, not {self.limits!r}")
        for label, rule in (("allowed", self.allowed), ("requires_approval", self.requires_approval)):
            if rule is not None and not callable(rule):
                raise DefinitionError(f"{label}= takes a function of what is asked, not {rule!r}")

    def check(self, effect: str, arguments: Collection[str], has_amount: bool) -> None:
        """Warn of limits whose pattern fits an effect that they can count nothing of."""
        for limit in self.limits:
            if not limit.is_for(effect):
                continue
            missing = sorted(limit.names - set(arguments) - {"effect", "request_key"})
            if missing:
                log.warning("limit %s does not count %s, which has no argument %s", limit.name, effect, missing[0])
            elif not (limit.counts or has_amount or "amount" in arguments):
                log.warning("limit %s does not count %s, which has no amount; say amount=", limit.name, effect)

    def budgets(self, asked: Asked) -> list[dict[str, Any]]:
        """Return what a call takes of the limits, as canonical values. Raises ``BadArguments``."""
        if not self.limits:
            return []
        now_ms = self.now_ms()
        found = [limit.budget(asked, now_ms) for limit in self.limits]
        return [budget.to_json() for budget in found if budget is not None]

    def needs_approval(self, asked: Asked) -> bool:
        """Return whether a person has to approve a call. Raises ``BadArguments``."""
        if self.requires_approval is None:
            return False
        try:
            found = self.requires_approval(asked)
        except Exception as error:
            raise BadArguments(f"the gate's requires_approval function raised {describe(error)}") from error
        if type(found) is not bool:
            raise BadArguments(f"the gate's requires_approval must return True or False, not {found!r:.80}")
        return found


NONE = Rules()
