"""After records were lost: goes through the services by lookup and writes what it finds.

A witness remembers more of the log than the journal holds. What is missing may
have been done, so nothing is sent until every effect that may have been sent
meanwhile has been looked up. Those are the effects that the journal knows and
that have not landed, their next decisions, and the requests that the
application names, because no journal knows what it has lost. A "not found"
counts only once no lost send can land any more.

What goes on is a log of another name: the old one ended where the witness saw
it end, and whoever trusts the new one decides that anew.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..commands import run
from ..core.canonical import effect_id as id_of
from ..core.decide import Lookup
from ..core.entries import Entry, Kind
from ..core.states import IllegalTransition, Phase, State, fold
from ..definition import Definition, Request
from ..errors import BadArguments
from ..flow import proposed_body, request_of
from ..journal.protocol import ARCHIVED, Conflict, Journal, OverBudget, Write
from ..keyfiles import KeyUnusable
from ..reading import Looked, look_up
from ..receipts.keys import Signer
from .front import Front
from .log import MISSING, ORIGIN
from .signing import new_key

_LANDED = (Phase.COMMITTED,)
_PAGE = 200
_MAX_DECISIONS = 1000

Named = tuple[str, Mapping[str, Any]]
"""An effect's name and the arguments of a request."""


@dataclass
class Reconciliation:
    """What going through the services found.

    Attributes:
        found: effect ids of what had been done and was not recorded; it is now.
        not_found: effect ids that the service does not know, and that no lost send can bring about any more.
        unreadable: effect ids of which the service could not be asked, and why.
        undecided: effect ids that nobody can look up; they are ambiguous now, for a person to settle.
        wait_s: for how long a lost send may still land, so that a "not found" does not count yet.
        log: the name of the log that goes on; None while something is left to do, and nothing is sent.
    """

    found: list[str] = field(default_factory=list)
    not_found: list[str] = field(default_factory=list)
    unreadable: dict[str, str] = field(default_factory=dict)
    undecided: list[str] = field(default_factory=list)
    wait_s: float = 0.0
    log: str | None = None

    @property
    def done(self) -> bool:
        """Whether everything was looked at, and effects may be sent again."""
        return self.log is not None

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON."""
        return {
            "done": self.done,
            "found": self.found,
            "not_found": self.not_found,
            "unreadable": self.unreadable,
            "undecided": self.undecided,
            "wait_s": self.wait_s,
            "log": self.log,
        }


class Reconciler:
    """One pass through the services.

    Args:
        front: what signs.
        definitions: the effects whose code is loaded here.
        by: who has it done.
    """

    def __init__(self, front: Front, definitions: Mapping[str, Definition], by: str) -> None:
        self._front = front
        self._journal: Journal = front.journal
        self._definitions = definitions
        self._by = by
        self._report = Reconciliation()
        self._now_ms = self._journal.now().wall_ms
        fact = self._journal.records.fact(MISSING)
        self._fact: dict[str, Any] = json.loads(fact) if fact is not None else {}

    def run(self, requests: Iterable[Named], signer: Signer | None) -> Reconciliation:
        """Go through what the journal knows and through ``requests``; go on with a new log when nothing is left.

        Raises:
            BadArguments: nothing is missing, or a request is of an effect that is not declared here.
            KeyUnusable: there is no key for the new log.
        """
        if self._front.log is None or self._front.log.missing is None:
            raise BadArguments("no record is missing here, as far as the witnesses that were asked can tell")
        named = [(self._definition(name), arguments) for name, arguments in requests]
        seen: set[str] = set()
        after = 0
        while rows := self._journal.effects(after, _PAGE):
            for row in rows:
                seen.add(row.effect_id)
                if row.phase == ARCHIVED:
                    continue  # finished; its receipt is in an archive
                if row.name in self._definitions:
                    self._known(self._definitions[row.name], row.effect_id)
                elif row.phase not in (Phase.COMMITTED.value, Phase.REPLACED.value):
                    self._report.unreadable[row.effect_id] = f"{row.name} is not declared here; import its code"
            after = rows[-1].position
        for definition, arguments in named:
            request = definition.request((), dict(arguments))
            if request.effect_id not in seen:
                seen.add(request.effect_id)
                self._look(definition, request, 1, State(), request.effect_id)
        if not self._report.unreadable and self._report.wait_s == 0:
            self._report.log = self._go_on(signer)
        return self._report

    def _definition(self, name: str) -> Definition:
        if name not in self._definitions:
            raise BadArguments(f"effect {name!r} is not declared here; import the code that declares it")
        return self._definitions[name]

    def _known(self, definition: Definition, effect_id: str) -> None:
        """An effect of the journal that has not landed, and the decision that may have followed it."""
        state = fold(self._journal.entries(effect_id))
        landed = state.phase is Phase.RESOLVED and state.closing is not None and state.closing.body["landed"]
        if state.phase in _LANDED or state.phase is Phase.REPLACED or landed:
            return
        request = request_of(state, effect_id)
        self._look(definition, request, state.decision, state, effect_id)
        if state.phase in (Phase.REFUSED, Phase.RESOLVED) and definition.lookup is not None:
            number = state.decision + 1
            later = id_of(definition.name, request.key, number)
            self._look(definition, request, number, State(), later, before=effect_id)

    def _look(
        self, definition: Definition, request: Request, number: int, state: State, effect_id: str, before: str = ""
    ) -> None:
        report = self._report
        if definition.lookup is None:
            if state.phase not in (Phase.REFUSED, Phase.RESOLVED, Phase.AMBIGUOUS):
                self._write(definition, request, number, state, effect_id, None, before)
                report.undecided.append(effect_id)
            return
        looked = Looked()
        run(look_up(self._journal, definition, effect_id, dict(request.payload), looked, state.facts))
        if looked.evidence is not None:
            self._write(definition, request, number, state, effect_id, looked.evidence, before)
            report.found.append(effect_id)
        elif looked.lookup is Lookup.NOT_FOUND:
            contract = definition.contract_for(state.facts)
            settled_ms = int(self._fact.get("found_ms", self._now_ms)) + contract.send_timeout_ms
            left_ms = settled_ms + contract.lookup_lag_ms - self._now_ms
            report.wait_s = max(report.wait_s, left_ms / 1000)
            report.not_found.append(effect_id)
        else:
            report.unreadable[effect_id] = looked.lookup_why

    def _write(
        self,
        definition: Definition,
        request: Request,
        number: int,
        state: State,
        effect_id: str,
        evidence: tuple[Any, str] | None,
        before: str,
    ) -> None:
        """Record what was found; None: that nobody can tell. A send that was lost is recorded as made again."""
        bodies: list[tuple[Kind, dict[str, Any]]] = []
        if state.phase is Phase.NEW:
            how = {"reconciled_by": self._by}
            bodies.append(proposed_body(definition.name, request, number, {}, "reconcile", how))
        if state.phase in (Phase.NEW, Phase.PROPOSED):
            bodies.append((Kind.AUTHORIZED, {"grant": None}))
        closed = state.phase in (Phase.REFUSED, Phase.RESOLVED)
        if not closed and state.phase not in (Phase.DISPATCHED, Phase.AMBIGUOUS):
            bodies.append((Kind.DISPATCHED, self._send(definition, request)))
        if closed:
            assert evidence is not None
            found = {"ending": "evidence", "evidence": evidence[0], "by_us": evidence[1]}
            bodies.append((Kind.LATE, {"send": max(1, len(state.sends)), "result": found}))
        elif evidence is not None:
            bodies.append((Kind.COMMITTED, {"evidence": evidence[0], "by_us": evidence[1], "via": "lookup"}))
        elif state.phase is not Phase.AMBIGUOUS:
            bodies.append((Kind.AMBIGUOUS, {"reason": "unverifiable", "detail": "its records were lost"}))
        try:
            self._append(state, effect_id, bodies, before)
        except OverBudget:
            for _, body in bodies:
                body.pop("budgets", None)  # it has happened, whatever the limit says
            self._append(state, effect_id, bodies, before)

    def _send(self, definition: Definition, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "send": 1,
            "session": "reconciled",
            "mark": None,
            "clock": self._journal.now().to_json(),
            "reconstructed": True,
        }
        budgets = definition.budgets(request.payload)
        return {**body, "budgets": budgets} if budgets else body

    def _append(self, state: State, effect_id: str, bodies: list[tuple[Kind, dict[str, Any]]], before: str) -> None:
        at_ms = self._journal.now().wall_ms
        entries = tuple(
            Entry(effect_id, state.seq + number, kind, at_ms, body) for number, (kind, body) in enumerate(bodies, 1)
        )
        writes = [Write(effect_id, state.seq, entries)]
        if before:
            old = fold(self._journal.entries(before))
            replaced = Entry(before, old.seq + 1, Kind.REPLACED, at_ms, {"effect_id": effect_id, "by": self._by})
            writes.insert(0, Write(before, old.seq, (replaced,)))
        try:
            self._journal.append(writes)
        except (Conflict, IllegalTransition) as error:
            self._report.unreadable[effect_id] = f"it could not be recorded ({error}); run this again"

    def _go_on(self, signer: Signer | None) -> str:
        """Let the log go on under another name, and effects be sent again."""
        log, keys = self._front.log, self._front.keys
        assert log is not None and keys is not None
        old = log.origin
        if signer is None:
            base, _, number = old.rpartition(".")
            name = f"{base}.{int(number) + 1}" if base and number.isdecimal() and len(number) < 6 else f"{old}.2"
            made, seed = new_key(name)
            keys.add("log", made, seed)
            signer = made
        elif signer.name == old:
            raise KeyUnusable(f"the log that goes on needs a name of its own; {old!r} has ended")
        else:
            keys.logs.append(signer)
        done = {"at_ms": self._now_ms, "by": self._by, "old": old, **self._fact}
        facts = {ORIGIN: signer.name, MISSING: None, f"ended:{old}": json.dumps(done)}
        self._journal.records.put_facts(facts, new_log=True)
        log.begin_anew(signer)
        return signer.name
