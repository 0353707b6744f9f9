"""The service, and the fact that it can enforce: the ground truth that answers are judged by.

It knows nothing of the journal or of the rules of recovery and shares no code
with them. Time is a count of ticks. A request is applied at any moment from its
hand-over until ``timeout`` ticks later, also when its sender is dead, or never.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

FOREVER = -1


class Rules(NamedTuple):
    """What this service does. Durations in ticks; ``dedupes`` 0: not at all."""

    dedupes: int = 0
    enforces: bool = False
    final: bool = False
    """What made the enforced fact false cannot be undone by anybody."""
    undoable: bool = False
    """Somebody can make the enforced fact true again after our own landing (created, deleted, created again)."""
    lookup: bool = False
    lag: int = 1
    timeout: int = 1


class Request(NamedTuple):
    """A request that may still land. ``again``: it has been applied once and is delivered a second time."""

    number: int
    age: int
    again: bool = False


class Service(NamedTuple):
    """What the service holds.

    ``landed`` names the send of every effect that exists. ``stored`` is the
    answer kept for the key: ``evidence``, ``no``, ``error`` or nothing yet.
    ``first`` is the age of the first hand-over, -1 before it. ``fact`` is the
    enforced fact; ``other``: somebody else did the identical thing.
    """

    requests: tuple[Request, ...] = ()
    landed: tuple[int, ...] = ()
    landed_age: int = 0
    stored: str = ""
    first: int = -1
    fact: bool = True
    other: bool = False


class Outcome(NamedTuple):
    """One way in which a request can be handled. ``cost``: how far from "the service answers" it is."""

    what: str
    answer: str
    service: Service
    cost: int


def hand_over(service: Service, number: int) -> Service:
    """The bytes of a request are on the wire."""
    first = 0 if service.first < 0 else service.first
    return service._replace(requests=tuple(sorted((*service.requests, Request(number, 0)))), first=first)


def tick(rules: Rules, service: Service) -> tuple[Service, tuple[int, ...]]:
    """Let a tick pass. Returns the sends whose requests can no longer land, too."""
    gone = tuple(request.number for request in service.requests if request.age >= rules.timeout)
    kept = tuple(request._replace(age=request.age + 1) for request in service.requests if request.age < rules.timeout)
    first = service.first
    if rules.dedupes > 0 and 0 <= first < rules.dedupes:
        first += 1
    forgotten = rules.dedupes > 0 and first >= rules.dedupes
    aged = Service(
        kept,
        service.landed,
        min(service.landed_age + 1, rules.lag) if service.landed or service.other else 0,
        "" if forgotten else service.stored,
        first if rules.dedupes > 0 else min(first, 0),
        service.fact,
        service.other,
    )
    return aged, gone


def dedupes_now(rules: Rules, service: Service) -> bool:
    """Whether the key is still known, whatever it stands for."""
    return rules.dedupes == FOREVER or (rules.dedupes > 0 and service.first < rules.dedupes)


def handle(rules: Rules, service: Service, request: Request, awaited: bool) -> Iterator[Outcome]:
    """Yield every way in which a request in flight can be handled now.

    ``awaited``: somebody still waits for the answer. What differs in the answer
    alone is left out where nobody does. An answer that is lost or unreadable, a
    5xx that nothing keeps and a 409 for a request that another one is in the way
    of all tell the sender as little as a time-out does, which may come before the
    request lands or instead of it; they are explored as that.
    """
    rest = service._replace(requests=tuple(other for other in service.requests if other is not request))
    dedupes = dedupes_now(rules, service)
    if dedupes and service.stored:
        answer = {"evidence": "evidence", "no": "no_stored", "error": "error_stored"}[service.stored]
        yield Outcome("repeats its answer", answer, rest, 0)
        return
    if rules.enforces and not service.fact:
        yield Outcome("finds the precondition false", "precondition", rest, 0)
        return
    if request.again and not dedupes:
        return  # a request that only the network repeats; a service that does not know its key is not asked
    done = _landed(rules, rest, request.number)
    stored = "evidence" if dedupes else ""
    yield Outcome("applies it", "evidence", done._replace(stored=stored), 0)
    if (dedupes or rules.enforces) and not request.again:
        twice = done._replace(stored=stored, requests=_with(done.requests, request._replace(again=True)))
        yield Outcome("applies it and gets it a second time", "evidence", twice, 1)
    if dedupes:
        yield Outcome("applies it, answers 500 and keeps that", "unknown", done._replace(stored="error"), 1)
        yield Outcome("fails, answers 500 and keeps that", "unknown", rest._replace(stored="error"), 1)
    if dedupes or awaited:
        yield Outcome("declines it", "no", rest._replace(stored="no" if dedupes else ""), 1)
    if awaited:
        yield Outcome("is too busy to look at it", "limited", rest, 1)
        if dedupes:
            yield Outcome("finds it malformed, and keeps nothing", "no", rest, 1)


def _with(requests: tuple[Request, ...], request: Request) -> tuple[Request, ...]:
    return tuple(sorted((*requests, request)))


def _landed(rules: Rules, service: Service, number: int) -> Service:
    fact = service.fact and not rules.enforces
    age = service.landed_age if service.landed or service.other else 0
    return service._replace(landed=(*service.landed, number), landed_age=age, fact=fact)


def look_up(rules: Rules, service: Service) -> tuple[bool, ...]:
    """What a lookup that is answered now can say: found, not found, or, within its lag, either."""
    if not service.landed and not service.other:
        return (False,)
    return (True,) if service.landed_age >= rules.lag else (True, False)


def fact_moves(rules: Rules, service: Service) -> Iterator[tuple[str, Service]]:
    """Yield what others can do to the enforced fact."""
    if not rules.enforces:
        return
    if service.fact:
        yield "somebody changes the enforced fact", service._replace(fact=False)
        if not service.landed:
            yield "somebody else does the same thing", service._replace(fact=False, other=True, landed_age=0)
    elif not rules.final and ((not service.landed and not service.other) or rules.undoable):
        yield "somebody restores the enforced fact", service._replace(fact=True)
