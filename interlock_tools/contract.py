"""What a service offers, declared once per effect."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from .core.decide import FOREVER, ServiceContract
from .errors import DefinitionError, describe

log = logging.getLogger("interlock_tools")

DEFAULT_SEND_TIMEOUT = timedelta(seconds=90)
"""Used where an effect declares none: a request that a minute and a half after
hand-over has neither landed nor been answered is taken never to land. Raise it
where proxies or queues may hold requests for longer."""

DEFAULT_CLOCK_SKEW = timedelta(seconds=60)
"""How far clocks of different machines (and the service's) may disagree."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What a service offers for one kind of action.

    Attributes:
        dedupes: for this long after the first send, the same idempotency key
            never has a second effect. True: for ever. None: it does not.
        enforces: names of premises that the service checks atomically with the
            send and that the effect's own landing makes false for ever. Where
            that depends on what was decided (a generation, or that there is
            none), a function of the decision's facts that returns them.
        never_true_again: those of ``enforces`` that nobody can make true again.
        lookup_lag: how stale the lookup's answer can be.
        send_timeout: longest time from hand-over until a request has landed or never will.
        clock_skew: how far clocks may disagree.
        marks: False where a send may leave the process unseen: it starts a
            program, or goes through a transport that retries by itself.
        natural_key: the thing itself is unique at the service, so the lookup
            needs no idempotency key.
        strict: after a lost session act only on evidence; otherwise AMBIGUOUS.
    """

    dedupes: timedelta | bool | None = None
    enforces: tuple[str, ...] | Callable[[dict[str, Any]], tuple[str, ...]] = ()
    never_true_again: tuple[str, ...] = ()
    lookup_lag: timedelta = timedelta(0)
    send_timeout: timedelta = DEFAULT_SEND_TIMEOUT
    clock_skew: timedelta = DEFAULT_CLOCK_SKEW
    marks: bool = True
    natural_key: bool = False
    strict: bool = False

    def plain(self, has_lookup: bool) -> ServiceContract:
        """Return the contract as the core's plain values. Raises ``DefinitionError``."""
        for label, duration in (("lookup_lag", self.lookup_lag), ("clock_skew", self.clock_skew)):
            if not isinstance(duration, timedelta) or duration < timedelta(0):
                raise DefinitionError(f"{label} must be a timedelta that is not negative, not {duration!r}")
        if not isinstance(self.send_timeout, timedelta) or self.send_timeout <= timedelta(0):
            raise DefinitionError(f"send_timeout must be a positive timedelta, not {self.send_timeout!r}")
        enforces = () if callable(self.enforces) else self.enforces
        if not callable(self.enforces) and not set(self.never_true_again) <= set(self.enforces):
            raise DefinitionError("never_true_again may only name premises that the service enforces")
        return ServiceContract(
            dedupes_ms=_dedupes_ms(self.dedupes),
            enforces=_names("enforces", enforces),
            never_true_again=_names("never_true_again", self.never_true_again),
            has_lookup=has_lookup,
            lookup_lag_ms=milliseconds(self.lookup_lag),
            send_timeout_ms=milliseconds(self.send_timeout),
            clock_skew_ms=milliseconds(self.clock_skew),
            strict=self.strict,
        )

    def decided_on(self, plain: ServiceContract, facts: Mapping[str, Any] | None) -> ServiceContract:
        """Return the contract of one decision. A function that fails enforces nothing, which only costs time."""
        if not callable(self.enforces):
            return plain
        try:
            return replace(plain, enforces=_names("enforces", self.enforces(dict(facts or {}))))
        except Exception as error:
            log.warning("the enforces function failed, so nothing counts as enforced: %s", describe(error))
            return plain

    def tier(self, has_lookup: bool) -> int:
        """1 if the service dedupes or enforces, 2 if the effect can only be looked up, 3 if neither."""
        return 1 if self.dedupes or self.enforces else 2 if has_lookup else 3


def milliseconds(duration: timedelta) -> int:
    """Return whole milliseconds, rounded up."""
    return -((-duration) // timedelta(milliseconds=1))


def _dedupes_ms(dedupes: timedelta | bool | None) -> int:
    if dedupes is True:
        return FOREVER
    if dedupes is None or dedupes is False:
        return 0
    if not isinstance(dedupes, timedelta) or dedupes <= timedelta(0):
        raise DefinitionError(f"dedupes must be a positive timedelta, True or None, not {dedupes!r}")
    return milliseconds(dedupes)


def _names(label: str, names: Iterable[str]) -> frozenset[str]:
    if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
        raise DefinitionError(f"{label} takes a tuple of premise names, not {names!r}")
    return frozenset(names)
