"""The service in a schedule, and the requests on their way to it. Times are milliseconds since the schedule began."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

from scenarios.sandbox.generic.model import FOREVER, Account, Answer, Call, Terms


@dataclass(frozen=True)
class Declared:
    """What the effect's declaration says of the service. Durations in milliseconds; ``dedupes_ms`` -1 is for ever."""

    dedupes_ms: int = 0
    enforces: bool = False
    own_seen: bool = False
    final: bool = False
    lookup: bool = False
    lag_ms: int = 0
    timeout_ms: int = 1000
    skew_ms: int = 0
    marks: bool = True
    on_send: bool = True

    @staticmethod
    def drawn(source: random.Random) -> Declared:
        """Any contract, with windows that can pass within a schedule."""
        timeout_ms = source.choice((200, 1000, 5000))
        skew_ms = source.choice((0, 100, 500))
        window = timeout_ms + skew_ms + source.choice((50, 400, 3000))
        enforces = source.random() < 0.4
        lookup = source.random() < 0.6
        return Declared(
            dedupes_ms=source.choice((0, 0, -1, window, window)),
            enforces=enforces,
            own_seen=enforces and source.random() < 0.3,
            final=enforces and lookup and source.random() < 0.3,
            lookup=lookup,
            lag_ms=source.choice((0, 100, 700)) if lookup else 0,
            timeout_ms=timeout_ms,
            skew_ms=skew_ms,
            marks=source.random() < 0.85,
            on_send=source.random() < 0.85,
        )


@dataclass
class Flight:
    """A request on its way. ``sent``: when it was handed over; ``answer``: what came of it."""

    call: Call
    sent: int
    sender: Any
    answer: Answer | None = None
    executing: bool = False


@dataclass
class Lie:
    """How the service breaks its promises, for the tests that such schedules are caught. Factors."""

    timeout: float = 1.0
    lag: float = 1.0
    dedupes: float = 1.0
    enforces: bool = True


@dataclass
class World:
    """The accounts, one a request key, and what is on its way to them."""

    declared: Declared
    lie: Lie
    source: random.Random
    now: int = 0
    accounts: dict[str, Account] = field(default_factory=dict)
    flights: list[Flight] = field(default_factory=list)
    numbers: int = 0

    def account(self, case: str) -> Account:
        found = self.accounts.get(case)
        if found is None:
            declared, lie = self.declared, self.lie
            window = FOREVER if declared.dedupes_ms == -1 else declared.dedupes_ms / 1000
            terms = Terms(
                dedupes_s=window * lie.dedupes if lie.dedupes else 0.0,
                enforces=declared.enforces and lie.enforces,
                lag_s=declared.lag_ms * lie.lag / 1000,
                timeout_s=declared.timeout_ms * lie.timeout / 1000,
            )
            found = self.accounts[case] = Account(case, terms)
        return found

    @property
    def seconds(self) -> float:
        return self.now / 1000

    def hand_over(self, case: str, key: str, body: dict[str, Any], version: int | None, sender: Any) -> Flight:
        """The bytes of a request leave its sender's machine."""
        self.numbers += 1
        flight = Flight(Call(key, body, self.seconds, self.numbers, version), self.now, sender)
        self.flights.append(flight)
        return flight

    def may_land(self, flight: Flight) -> bool:
        return self.now - flight.sent <= self.declared.timeout_ms * self.lie.timeout

    def may_repeat(self) -> bool:
        """Whether a request may reach the service twice: only where its promise covers that."""
        return self.declared.enforces or self.declared.dedupes_ms != 0

    def begin(self, flight: Flight) -> None:
        """The service starts to work on it: repeats of its key are told so."""
        flight.executing = True
        self.account(flight.call.body["case"]).begin(flight.call, self.seconds)

    def deliver(self, flight: Flight, how: str = "") -> Answer:
        """The service handles it now. ``how``: ``decline``, ``fail``, ``busy``, ``stored_error``, or "" for well."""
        account = self.account(flight.call.body["case"])
        account.next = [how] if how in ("decline", "fail", "busy") else []
        stored = Answer(500, {"error": "failed"}) if how == "stored_error" else None
        flight.answer = account.do(flight.call, self.seconds, stored)
        account.next = []
        return stored if stored is not None and flight.answer.status == 200 else flight.answer

    def drop(self, flight: Flight) -> None:
        """It will not arrive (again)."""
        self.flights.remove(flight)
        if flight.executing and flight.answer is None:
            self.account(flight.call.body["case"]).abandon(flight.call)

    def drop_old(self) -> None:
        """What can no longer land is gone."""
        for flight in list(self.flights):
            if not self.may_land(flight):
                self.drop(flight)
