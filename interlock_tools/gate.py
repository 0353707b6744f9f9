"""``Gate``: the one front door. Declares effects, recovers them, and answers questions about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .commands import arun, run
from .contract import DEFAULT_CLOCK_SKEW, DEFAULT_SEND_TIMEOUT, Contract
from .core.entries import Entry, Kind
from .core.states import IllegalTransition, Phase, State, fold
from .decorator import EffectDecorator
from .definition import Definition, Request
from .effect import seconds, words
from .errors import BadArguments, DefinitionError, NotDecidable, NotRegistered
from .flow import EffectFlow, next_decision, proposed_body, request_of
from .journal.open import open_journal
from .journal.protocol import BudgetUse, Conflict, EffectRow, Journal, Write
from .outcome import Outcome
from .recovery import Report, recover
from .reporting import outcome_of
from .signed import Records

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from .hooks import Hook
    from .langchain import GatedTool
    from .receipts import Policy
    from .receipts.keys import Signer
    from .sealing import Signing
    from .sealing.reconcile import Reconciliation
    from .watching import WatchReport


class Gate:
    """Stands between an agent's tools and the services.

    Args:
        journal: a path (``"refunds.db"``), a URL (``"sqlite:///…"``,
            ``"postgresql://…"``) or an open journal.
        wait: how long calls wait by default for what others have to finish
            (seconds or timedelta; 0 returns IN_FLIGHT at once).
        retry: how long one call goes on after rate limits and answers that say
            nothing, under the same key (seconds or timedelta).
        signing: signs every record: a directory for the keys, which are made there
            on first use, or a ``Signing``. None: records are not signed.
        witness: with ``witnesses``: ``"before"`` waits for them before every send and
            sends nothing without them; ``"after"`` never waits; None asks no witness.
        witnesses: a policy, or the path of one, that names witnesses with their addresses.
        receipts_dir: where ``<effect id>.receipt.json`` is written at recovery and settlement.

    Raises:
        JournalUnusable: the journal cannot be opened here, and why.
        DefinitionError: ``witness`` does not fit the rest.
        KeyUnusable, PolicyError: a key or the policy cannot be used.
    """

    def __init__(
        self,
        journal: str | os.PathLike[str] | Journal,
        *,
        wait: timedelta | float = 0.0,
        retry: timedelta | float = 10.0,
        signing: Signing | str | os.PathLike[str] | None = None,
        witness: str | None = "after",
        witnesses: Policy | str | os.PathLike[str] | None = None,
        receipts_dir: str | os.PathLike[str] | None = None,
    ) -> None:
        self.journal: Journal = open_journal(os.fspath(journal)) if isinstance(journal, (str, os.PathLike)) else journal
        self.wait_s = seconds(wait)
        self.retry_s = seconds(retry)
        self._definitions: dict[str, Definition] = {}
        self.records = Records(self.journal, signing, witness, witnesses, receipts_dir)

    def effect(
        self,
        name: str,
        *,
        key: Callable[..., str],
        premises: Callable[..., Any] | None = None,
        expect: Mapping[str, Any] | Callable[..., Any] | None = None,
        allowed: Callable[..., Any] | None = None,
        amount: Callable[..., int] | None = None,
        budget: Callable[..., Any] | None = None,
        dedupes: timedelta | bool | None = None,
        enforces: tuple[str, ...] | Callable[[dict[str, Any]], tuple[str, ...]] = (),
        never_true_again: tuple[str, ...] = (),
        lookup: Callable[..., Any] | None = None,
        lookup_lag: timedelta = timedelta(0),
        natural_key: bool = False,
        send_timeout: timedelta = DEFAULT_SEND_TIMEOUT,
        clock_skew: timedelta = DEFAULT_CLOCK_SKEW,
        marks: bool = True,
        strict: bool = False,
        watch: Callable[..., Any] | None = None,
        watch_many: Callable[..., Any] | None = None,
        private: Sequence[str] = (),
        service: Mapping[str, str] | None = None,
    ) -> EffectDecorator:
        """Declare a function with a side effect; calling it then goes through the gate.

        The functions below are called with those of the effect's arguments that
        they name (all of them if they take ``**kwargs``); those that read the
        service may also take ``idempotency_key``, to leave the effect's own
        result out. The send function and the lookup may also take ``facts``,
        what the decision rests on.

        Args:
            name: stable name; recovery finds the effect by it after a redeploy.
            key: arguments -> the request reference that names the approved request.
            premises: arguments -> dict of facts that the decision rests on.
            expect: values that premises must have at decision, dispatch and
                recovery; or a function of the arguments that returns them.
            allowed: arguments -> ``Grant`` or None.
            amount: arguments -> amount in the smallest unit that a grant's
                maximum is compared with; by default the argument ``amount``.
            budget: arguments -> ``Budget`` or a list of them.
            dedupes, enforces, never_true_again, lookup_lag, natural_key,
            send_timeout, clock_skew, marks, strict: the service's contract, see ``Contract``.
            lookup: arguments, idempotency_key -> evidence, or None if not found. Raises ``CannotKnow``
                where the service answers and its answer settles nothing.
            watch: arguments, ``evidence`` -> ``Settlement``: what became of it since.
            watch_many: ``effects`` (a list of ``Watched``) -> settlements by effect id, in few requests.
            private: values that receipts show as salted digests, such as ``payload.to`` or ``facts.email``.
            service: whom it is done at, for receipts, such as ``{"name": "stripe", "account": "acct_1"}``.

        Raises:
            DefinitionError: something about the declaration is wrong.
        """
        contract = Contract(
            dedupes, enforces, never_true_again, lookup_lag, send_timeout, clock_skew, marks, natural_key, strict
        )
        if private or service:
            self.records.declare(name, private, service)
        return EffectDecorator(
            self,
            name,
            {
                "key": key,
                "premises": premises,
                "expect": expect,
                "allowed": allowed,
                "amount": amount,
                "budget": budget,
                "lookup": lookup,
                "watch": watch,
                "watch_many": watch_many,
                "contract": contract,
            },
        )

    def wrap(self, tool: BaseTool, **declaration: Any) -> GatedTool:
        """Put a LangChain tool that is there already behind this gate; see ``langchain.wrapping.wrap``."""
        from .langchain.wrapping import wrap

        return wrap(self, tool, **declaration)

    def _register(self, definition: Definition) -> None:
        if definition.name in self._definitions:
            raise DefinitionError(
                f"an effect named {definition.name!r} is declared already; names are how recovery finds the code, "
                "so each may stand once for a gate"
            )
        self._definitions[definition.name] = definition

    @property
    def effects(self) -> tuple[str, ...]:
        """Names of the effects declared here."""
        return tuple(self._definitions)

    def definition(self, name: str) -> Definition | None:
        """Return the declaration of this name; None if there is none here."""
        return self._definitions.get(name)

    # -- recovery -----------------------------------------------------------------------------------

    def recover(self, *, wait: timedelta | float = 0.0) -> Report:
        """Bring every open effect to an end, or say what keeps it open. Call it once, at start.

        Args:
            wait: how long to wait for effects that a live sender or a request
                that may still land keeps open (seconds or timedelta).
        """
        flow = recover(self.journal, self._definitions, wait_s=seconds(wait), retry_s=self.retry_s)
        report: Report = run(flow)
        self.records.write(outcome.effect_id for outcome in report if outcome.effect_id)
        return report

    async def arecover(self, *, wait: timedelta | float = 0.0) -> Report:
        """``recover`` under asyncio."""
        flow = recover(self.journal, self._definitions, wait_s=seconds(wait), retry_s=self.retry_s)
        report: Report = await arun(flow)
        if self.records.writes:
            import asyncio

            await asyncio.to_thread(self.records.write, [one.effect_id for one in report if one.effect_id])
        return report

    def watch(self, *, limit: int = 1000, hooks: Sequence[Hook] = ()) -> WatchReport:
        """Look once at what is due: what became of effects that were committed. Any number of workers may do so.

        Args:
            limit: how many effects at most.
            hooks: who is told when one fails, is reversed, comes at risk or turns ambiguous, see ``hooks``.
        """
        from .watching import Watcher

        return Watcher(self, hooks).watch(limit)

    def look(self, effect_id: str, *, hooks: Sequence[Hook] = ()) -> Outcome:
        """Look at one effect now, due or not. Raises ``NotDecidable`` if there is none."""
        from .watching import Watcher

        self._state(effect_id)
        row = self.journal.effect(effect_id)
        assert row is not None
        Watcher(self, hooks).look([row])
        return outcome_of(effect_id, self._state(effect_id))

    def reconcile(
        self, requests: Iterable[tuple[str, Mapping[str, Any]]] = (), *, by: str, log: Signer | None = None
    ) -> Reconciliation:
        """Go through the services after records were lost, write what is found, and let effects be sent again.

        Args:
            requests: effect name and arguments of requests that the journal may have lost; an effect that the
                journal knows is looked up without being named. What is neither known nor named is not looked up.
            by: who has it done.
            log: the key of the log that goes on, of a new name; by default one is made beside the other keys.

        Returns:
            What was found. Unless it is ``done``, run it again, after ``wait_s`` where it says so; nothing is sent
            until then. Afterwards ``recover()`` brings to an end what is open.

        Raises:
            BadArguments: no record is missing, or signing is off.
        """
        return self.records.reconcile(self._definitions, requests, words("by", by), log)

    # -- questions ----------------------------------------------------------------------------------

    def outcome(self, effect_id: str) -> Outcome:
        """Return an effect's outcome as its entries tell it. Sends and reads nothing else.

        Raises:
            NotDecidable: there is no such effect.
        """
        return outcome_of(effect_id, self._state(effect_id))

    def pending(self) -> list[Outcome]:
        """Return what only a person can settle: ambiguous effects, oldest first."""
        return [self.outcome(row.effect_id) for row in self.open_effects() if row.phase == Phase.AMBIGUOUS.value]

    def open_effects(self) -> list[EffectRow]:
        """Return the rows of all effects that are not closed, oldest first."""
        rows: list[EffectRow] = []
        while True:
            page = self.journal.open_effects(rows[-1].position if rows else 0, 200)
            rows.extend(page)
            if len(page) < 200:
                return rows

    def history(self, effect_id: str) -> list[Entry]:
        """Return an effect's entries in order; empty if there is no such effect."""
        return self.journal.entries(effect_id)

    def budget(self, name: str) -> BudgetUse:
        """Return how much of a budget is taken now."""
        return self.journal.budget(name)

    def receipt(self, effect_id: str, *, disclosing: Sequence[str] = ()) -> dict[str, Any]:
        """Return an effect's receipt as plain JSON values, for ``verify`` and for a file that can be mailed.

        Args:
            effect_id: the effect.
            disclosing: private values that the reader may see, such as ``payload.to``.

        Raises:
            NotDecidable: there is no such effect, or a value was not declared private.
            SigningFailed: an entry is not what its record was signed over.
        """
        return self.records.plain_receipt(effect_id, disclosing)

    # -- a person's decisions -----------------------------------------------------------------------

    def resolve(self, effect_id: str, *, landed: bool, by: str, why: str) -> Outcome:
        """Settle an ambiguous effect: a person has looked at the service.

        Args:
            effect_id: the effect.
            landed: whether it took effect there.
            by: who says so.
            why: what was seen.

        Raises:
            NotDecidable: there is no such effect, or it is not ambiguous.
        """
        if type(landed) is not bool:
            raise BadArguments(f"landed must be True or False, not {landed!r}")
        body = {"landed": landed, "by": words("by", by), "why": words("why", why)}
        state = self._state(effect_id)
        self._append(effect_id, state, [(Kind.RESOLVED, body)])
        self.records.write([effect_id])
        return self.outcome(effect_id)

    def _redecide(
        self,
        definition: Definition,
        effect_id: str,
        by: str,
        facts: dict[str, Any] | None,
        arguments: Mapping[str, Any] | None,
    ) -> Outcome:
        by = words("by", by)
        state = self._state(effect_id)
        if state.name != definition.name:
            raise NotDecidable(f"effect {effect_id} is a {state.name!r}, not a {definition.name!r}")
        request = request_of(state, effect_id)
        if arguments is not None:
            asked = definition.request((), dict(arguments))
            if asked.key != request.key:
                raise BadArguments(f"these arguments name request {asked.key!r}, the effect is of {request.key!r}")
            request = asked
        number, new_id = next_decision(state)
        if facts is None:
            facts = self._read_facts(definition, request, new_id)
        proposed = proposed_body(definition.name, request, number, facts, "redecide", {"by": by})
        replaced = (Kind.REPLACED, {"effect_id": new_id, "by": by})
        self._append(effect_id, state, [replaced], then=(new_id, proposed))
        return self.outcome(new_id)

    def _read_facts(self, definition: Definition, request: Request, effect_id: str) -> dict[str, Any]:
        from .core.decide import Checks
        from .reading import read_checks

        flow = read_checks(
            self.journal,
            definition,
            effect_id,
            request.payload,
            request.digest,
            None,
            grant_may_be_missing=True,
        )
        reading = run(flow)
        if reading.checks is Checks.UNREADABLE:
            raise NotDecidable(f"the premises could not be read ({reading.why}); decide again when they can be")
        facts: dict[str, Any] = reading.decided
        return facts

    def _append(
        self,
        effect_id: str,
        state: State,
        bodies: list[tuple[Kind, dict[str, Any]]],
        then: tuple[str, tuple[Kind, dict[str, Any]]] | None = None,
    ) -> None:
        at_ms = self.journal.now().wall_ms
        entries = tuple(
            Entry(effect_id, state.seq + index, kind, at_ms, body) for index, (kind, body) in enumerate(bodies, 1)
        )
        try:
            fold(entries, state)
            writes = [Write(effect_id, state.seq, entries)]
            if then is not None:
                new_id, (kind, body) = then
                writes.append(Write(new_id, 0, (Entry(new_id, 1, kind, at_ms, body),)))
            self.journal.append(writes)
        except IllegalTransition as error:
            raise NotDecidable(
                f"effect {effect_id} is {state.phase.value}, so it cannot be {error.kind.value}. {_NEXT[error.kind]}"
            ) from None
        except Conflict:
            raise NotDecidable(f"effect {effect_id} changed at the same moment; look at it and decide again") from None

    def _state(self, effect_id: str) -> State:
        entries = self.journal.entries(effect_id)
        if not entries:
            raise NotDecidable(f"there is no effect {effect_id} in this journal")
        return fold(entries)

    def settle(self, effect_id: str, *, wait: timedelta | float = 0.0) -> Outcome:
        """Recover one effect. Raises ``NotRegistered`` if its code is not loaded here."""
        state = self._state(effect_id)
        definition = self._definitions.get(state.name)
        if definition is None:
            raise NotRegistered(f"effect {state.name!r} is not declared in this process; import the code that does")
        flow = EffectFlow(
            self.journal, definition, effect_id, wait_s=seconds(wait), retry_s=self.retry_s, at_recovery=True
        )
        outcome: Outcome = run(flow.settle(state))
        return outcome

    def close(self) -> None:
        """Close the journal's connections and end this process's session. With signing on, sign a last checkpoint."""
        self.records.close()
        self.journal.close()


_NEXT = {
    Kind.RESOLVED: "A person settles what is ambiguous; recover() settles what is open.",
    Kind.REPLACED: "Only a refused effect is decided again, once no send of it can land any more.",
}
