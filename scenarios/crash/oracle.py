"""What the right answers are, worked out from the rules that the documentation states. It imports nothing of the gate.

``expected`` plays a cell through with a small world of its own: the effect's record, the requests, and what the
service makes of them. Where the world may go one way or the other (a late request lands before the process is
restarted, or after), all ways are tried, and each leads to a result that is right.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from scenarios.crash.cells import Cell
from scenarios.crash.contracts import Contract

MOST_DELAYS = 12
"""Bound on how often a cell tries what follows if a request stays on its way."""

MANY = -1
"""A number of requests that depends on how often an answer "in progress" was asked about again."""


class Result(NamedTuple):
    """One right result of a cell.

    Attributes:
        status, reason, via: the last answer.
        effects: how many effects the service ended up with.
        requests: how many requests reached it, or ``MANY``.
        before: how many of them when the first process had ended, or ``MANY``.
        first_died, second_died: whether the processes died at their crash points.
    """

    status: str
    reason: str
    via: str
    effects: int
    requests: int
    before: int
    first_died: bool
    second_died: bool


class Died(Exception):
    """The process reached its crash point."""


class Told(Exception):
    """The process has an answer that this run does not change any more: an effect that is open."""


@dataclass
class Send:
    """One request. ``fate``: ``landed``, ``pending``, ``gone``; ``maybe``: nobody has proof that it did nothing.

    ``resend``: it rests on the key, so that the key is known when it arrives.
    """

    number: int
    fate: str = "gone"
    maybe: bool = True
    executing: bool = False
    resend: bool = False


class Chooser:
    """Takes each way in turn: a script of choices, extended by the first choice where it ends."""

    def __init__(self, script: list[int]) -> None:
        self.script = script
        self.counts: list[int] = []

    def __call__(self, count: int) -> int:
        place = len(self.counts)
        self.counts.append(count)
        if place == len(self.script):
            self.script.append(0)
        return self.script[place]

    def next(self) -> list[int] | None:
        """The script of the next way, or None if there is none."""
        script = self.script[: len(self.counts)]
        while script and script[-1] + 1 >= self.counts[len(script) - 1]:
            script.pop()
        return [*script[:-1], script[-1] + 1] if script else None


class World:
    """One effect under one contract, its requests, and the service."""

    def __init__(self, cell: Cell, choose: Callable[[int], int]) -> None:
        self.cell = cell
        self.terms: Contract = cell.terms
        self.choose = choose
        self.record = "none"
        self.status, self.reason, self.via = "none", "", ""
        self.sends: list[Send] = []
        self.shortcuts = True
        self.effects = 0
        self.requests = 0
        self.counted = True
        self.stored = ""
        self.stored_error_seen = False
        self.declines = self.fails = False
        self.bumped = False
        self.decided_moved = False
        self.facts = "hold"
        self.crash, self.left = "none", 0
        self.sent_in_this_run = False
        self.revoked = False
        self.waited = False
        """So long that a short window has passed, as the sender counts."""
        self.delays = 0

    # -- the process ---------------------------------------------------------------------------------

    def arm(self, death: str) -> None:
        point, _, count = death.partition(":")
        self.crash, self.left = point, int(count or 1)
        self.sent_in_this_run = False

    def reach(self, point: str) -> None:
        if point == self.crash:
            self.left -= 1
            if self.left == 0:
                raise Died

    def close(self, status: str, reason: str = "", via: str = "") -> None:
        self.record = "closed" if status in ("COMMITTED", "REFUSED") else "ambiguous"
        self.status, self.reason, self.via = status, reason, via
        if status == "COMMITTED":
            self.reach("after_committed")

    def open_as(self, reason: str) -> None:
        self.status, self.reason, self.via = "IN_FLIGHT", reason, ""
        raise Told

    # -- checks --------------------------------------------------------------------------------------

    def failing(self) -> str:
        """Why the checks fail now; empty if they hold."""
        if self.facts == "revoked":
            return "not_allowed"
        moved = (self.facts == "moved") != self.decided_moved
        own = self.terms.own_seen and self.effects > 0
        return "stale_premise" if moved or self.bumped or own else ""

    # -- the protocol --------------------------------------------------------------------------------

    def propose(self) -> None:
        self.record = "proposed"
        self.reach("after_proposed")

    def call(self) -> None:
        if self.record == "none":
            return self._decide()
        if self.reason == "unreachable" and self.status == "REFUSED":
            self._try_again()
        return self.settle(called=True)

    def _try_again(self) -> None:
        """What never left the machine is tried again by a plain call, with everything read again."""
        self.reach("recovery_checked")
        failing = self.failing()
        if self.facts != "unreadable":
            self.close("REFUSED", failing) if failing else self.dispatch("send")

    def _decide(self) -> None:
        self.reach("before_journal")
        if self.facts == "unreadable":
            self.open_as("unreadable")
        if self.facts == "revoked":
            return self.close("REFUSED", "not_allowed")
        if self.bumped:
            return self.close("REFUSED", "premise_not_met")
        self.decided_moved = self.facts == "moved"
        self.dispatch("send")
        return self.settle(called=True)

    def recover(self) -> None:
        if self.record in ("open", "ambiguous"):
            self.settle(called=False)

    def settle(self, called: bool) -> None:
        if self.record == "open" and not self.sent_in_this_run:
            self.reach("recovery_started")
        while self.record == "open" or (self.record == "proposed" and called):
            self._round()
        if self.record == "ambiguous" and self.terms.lookup:
            self._time_passes()
            self.reach("recovery_looked_up")
            if self.effects:
                self.close("COMMITTED", via="lookup")

    def _round(self) -> None:
        self._time_passes()
        if self.sends:
            self.reach("recovery_checked")
        maybe = [send for send in self.sends if send.maybe]
        if self.facts == "unreadable":
            if maybe and self.terms.lookup:
                self.reach("recovery_looked_up")
                if self.effects and (not self.terms.lag_s or self.choose(2)):
                    return self.close("COMMITTED", via="lookup")
            self.open_as("unreadable")
        failing = self.failing()
        if not maybe:
            return self.close("REFUSED", failing) if failing else self.dispatch("send")
        if not failing and self.shortcuts and self._may_resend():
            return self.dispatch("resend")
        if self.terms.lookup:
            return self._look_up(failing)
        return self.close("AMBIGUOUS", "stored_error" if self.stored_error_seen else "no_evidence")

    def _may_resend(self) -> bool:
        if self.terms.window == "open":
            return True
        if self.terms.window == "either" and not self.waited and self.choose(2):
            return True
        return self.terms.enforces

    def _look_up(self, failing: str) -> None:
        """Asked until what it says counts: by then nothing can land any more."""
        self.reach("recovery_looked_up")
        self._time_passes(to_the_end=True)
        if self.effects:
            return self.close("COMMITTED", via="lookup")
        if self.terms.own_seen:
            failing = self.failing()
        if self.stored_error_seen:
            return self.close("AMBIGUOUS", "stored_error")
        for send in self.sends:
            send.maybe = False
        self.waited = True
        return self.close("REFUSED", failing) if failing else self.dispatch("send")

    def dispatch(self, via: str) -> None:
        self.record, self.sent_in_this_run = "open", True
        send = Send(len(self.sends) + 1, maybe=not self.terms.marks, resend=via == "resend")
        self.sends.append(send)
        self.reach("after_dispatched")
        if self.terms.window == "either" and not self.revoked and self.choose(2):
            # The service may have forgotten the key by now, so it is not handed over after all.
            self.revoked = True
            send.maybe = False
            if not any(other.maybe for other in self.sends):
                self.close("REFUSED", "unreachable")
            return
        self.reach("before_mark")
        send.maybe = True
        self.reach("before_bytes")
        self._time_passes()
        self.requests += 1
        self._end(send, via, self._bytes(send))

    def _end(self, send: Send, via: str, answer: str) -> None:
        """What the answer proves."""
        self.reach("after_response")
        others = [other for other in self.sends if other.maybe and other is not send]
        if answer == "evidence":
            return self.close("COMMITTED", via=via)
        if answer == "busy":
            send.maybe = False
        elif answer == "stored_error":
            self.shortcuts, self.stored_error_seen = False, True
        elif answer == "in_progress":
            self.counted = False
            self._time_passes(to_the_end=True)
        elif answer in ("declined", "declined_stored", "precondition"):
            send.maybe = False
            if answer == "declined_stored":
                for other in others:
                    other.maybe = False
            if answer == "declined_stored" or not others:
                return self.close("REFUSED", "precondition_failed" if answer == "precondition" else "rejected")
            self.shortcuts = False
        return None

    # -- the service ---------------------------------------------------------------------------------

    def _bytes(self, send: Send) -> str:
        """The bytes are out: what becomes of the request, and what its sender is told."""
        fate = self.cell.fate(self.requests)
        if fate in ("late", "slow", "executing", "slow_executing"):
            send.fate = "pending"
            send.executing = "executing" in fate and not self.stored
            self.reach("in_flight")
            if fate == "late":  # its sender is patient
                self._time_passes(to_the_end=True)
                return "evidence" if send.fate == "landed" else "unknown"
            return "unknown"
        if fate in ("never", "cut"):
            self.reach("in_flight")
            return "unknown"
        self.declines, self.fails = fate == "declined", fate == "fail"
        answer = self._apply(send, busy=fate == "busy")
        if answer == "evidence" and fate == "stored_500" and self.terms.dedupes_s:
            self.stored = "error"
        self.reach("in_flight")
        return "unknown" if fate in ("applied_500", "applied_cut", "stored_500") else answer

    def _apply(self, send: Send, busy: bool = False) -> str:
        """The service handles a request now."""
        fresh = self.terms.window == "either" and not send.resend and not self.effects
        if self.stored and fresh and self.choose(2):
            self.stored = ""  # forgotten by now: all that came before is proven not to have landed
        if self.stored:
            return {"ok": "evidence", "no": "declined_stored", "error": "stored_error"}[self.stored]
        if any(other.executing for other in self.sends if other is not send):
            return "in_progress"
        if busy:
            return "busy"
        if self.declines or self.fails:
            answer, kept = ("declined", "no") if self.declines else ("unknown", "error")
            self.declines = self.fails = False
            self.stored = kept if self.terms.dedupes_s else ""
            return answer
        if self.terms.enforces and (self.effects or self.bumped):
            return "precondition"
        self.effects += 1
        send.fate = "landed"
        self.stored = "ok" if self.terms.dedupes_s else ""
        return "evidence"

    def _time_passes(self, to_the_end: bool = False) -> None:
        """Requests on the way may land, or be thrown away as too old; ``to_the_end``: none stays on the way."""
        for send in self.sends:
            if send.fate != "pending":
                continue
            may_wait = not to_the_end and self.delays < MOST_DELAYS
            what = self.choose(3 if may_wait else 2)
            if what == 2:
                self.delays += 1
                continue
            send.fate, send.executing = "gone", False
            if what == 0:
                self._apply(send)


def _play(cell: Cell, choose: Callable[[int], int]) -> Result:
    """One way that a cell can go."""
    world = World(cell, choose)
    first = _run(world, cell.first, [world.propose] if cell.first == "after_proposed" else [world.call])
    before = world.requests if world.counted else MANY
    world.facts = {"moved_later": "hold", "moved_back": "moved"}.get(cell.facts, cell.facts)
    world._time_passes()
    world.bumped = cell.facts == "bumped"
    second = _run(world, cell.second, [world.recover, world.call])
    world.facts = {"moved_later": "moved", "moved_back": "hold"}.get(cell.facts, world.facts)
    if second:
        _run(world, "none", [world.recover, world.call])
    if world.facts == "unreadable":
        world.facts = "hold"
        _run(world, "none", [world.recover, world.call])
    world._time_passes(to_the_end=True)
    requests = world.requests if world.counted else MANY
    return Result(world.status, world.reason, world.via, world.effects, requests, before, first, second)


def _run(world: World, death: str, steps: list[Callable[[], None]]) -> bool:
    """One life of a process; whether it died at its crash point."""
    world.arm(death)
    world._time_passes()
    for step in steps:
        try:
            step()
        except Told:
            continue
        except Died:
            return True
    return False


def expected(cell: Cell) -> set[Result]:
    """Every right result of the cell."""
    results: set[Result] = set()
    script: list[int] | None = []
    while script is not None:
        chooser = Chooser(script)
        results.add(_play(cell, chooser))
        script = chooser.next()
    return results


def possible_deaths(cell: Cell) -> tuple[bool, bool]:
    """Whether the first and the second death can happen at all."""
    results = expected(cell)
    return any(result.first_died for result in results), any(result.second_died for result in results)
