"""``Gate``: the one front door. Declares effects, recovers them, and answers questions about them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from . import deciding
from .authority import Grant
from .commands import arun, run
from .contract import DEFAULT_CLOCK_SKEW, DEFAULT_SEND_TIMEOUT, Contract
from .core.entries import Entry
from .core.states import Phase
from .deciding import ApprovalRequest
from .decorator import EffectDecorator
from .definition import Definition
from .effect import plain, seconds, words
from .errors import Archived, DefinitionError
from .flow import EffectFlow
from .journal.open import open_journal
from .journal.protocol import BudgetUse, EffectRow, Journal
from .observer import Observer, observed
from .outcome import Outcome, Reason, Status
from .recovery import Report, recover
from .reporting import outcome_of, outcome_of_tombstone
from .rules import Asked, Limit, Rules
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
        limits: budgets that all effects of this gate share, see ``Limit``.
        allowed: what is asked (``Asked``) -> ``Grant`` or None: an authority above that of each effect, read before
            every send. Where it returns None nothing is sent: a switch for the whole agent.
        requires_approval: what is asked -> whether a person has to approve it, besides what effects say.
        receipts_dir: where ``<effect id>.receipt.json`` is written at recovery and settlement.
        private: pattern of effect names -> values that receipts show as salted digests, besides what effects say:
            ``{"resend.*": ["payload.to"]}``.

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
        limits: Sequence[Limit] = (),
        allowed: Callable[[Asked], Grant | None] | None = None,
        requires_approval: Callable[[Asked], bool] | None = None,
        signing: Signing | str | os.PathLike[str] | None = None,
        witness: str | None = "after",
        witnesses: Policy | str | os.PathLike[str] | None = None,
        receipts_dir: str | os.PathLike[str] | None = None,
        private: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.journal: Journal = open_journal(os.fspath(journal)) if isinstance(journal, (str, os.PathLike)) else journal
        self.wait_s = seconds(wait)
        self.retry_s = seconds(retry)
        self.rules = Rules(tuple(limits), allowed, requires_approval, lambda: self.journal.now().wall_ms)
        self._definitions: dict[str, Definition] = {}
        self.observer: Observer | None = None
        self.records = Records(self.journal, signing, witness, witnesses, receipts_dir, private or {})

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
        requires_approval: Callable[..., bool] | bool = False,
        approval_expires: timedelta = timedelta(days=1),
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
            requires_approval: whether a person has to approve it before it is sent; or a function of the
                arguments that says so.
            approval_expires: how long a request for approval, and the approval, is good for.
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
                "requires_approval": requires_approval,
                "approval_expires": approval_expires,
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
        self.rules.check(definition.name, definition.parameters, definition.amount is not None)
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
        flow = self._recovery(wait)
        report: Report = run(flow)
        self.records.write(outcome.effect_id for outcome in report if outcome.effect_id)
        return report

    def _recovery(self, wait: timedelta | float) -> Any:
        wait_s = seconds(wait)
        return recover(self.journal, self._definitions, wait_s=wait_s, retry_s=self.retry_s, observer=self.observer)

    async def arecover(self, *, wait: timedelta | float = 0.0) -> Report:
        """``recover`` under asyncio."""
        flow = self._recovery(wait)
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

        deciding.state_of(self, effect_id)
        row = self.journal.effect(effect_id)
        assert row is not None
        Watcher(self, hooks).look([row])
        return outcome_of(effect_id, deciding.state_of(self, effect_id))

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
        """Return an effect's outcome as its entries tell it, or its tombstone. Sends and reads nothing else.

        Raises:
            NotDecidable: there is no such effect.
        """
        try:
            return outcome_of(effect_id, deciding.state_of(self, effect_id))
        except Archived as gone:
            row = self.journal.effect(effect_id)
            if row is None:
                raise  # its tombstone was removed at this moment
            return outcome_of_tombstone(gone, row.name, row.request_key)

    def pending(self) -> list[Outcome]:
        """Return what waits for a person: effects that are ambiguous or wait for an approval, oldest first, and then
        refused ones that a later answer of the service contradicts."""
        waits = (Phase.AMBIGUOUS.value, Phase.PROPOSED.value)
        found = [self.outcome(row.effect_id) for row in self.open_effects() if row.phase in waits]
        found += [self.outcome(row.effect_id) for row in self._watched() if row.phase == Phase.REFUSED.value]
        return [one for one in found if one.status is Status.AMBIGUOUS or one.reason is Reason.AWAITING_APPROVAL]

    def _watched(self) -> list[EffectRow]:
        """Return what is on the list of those to look at; refused effects are, where a later answer contradicts it."""
        rows: list[EffectRow] = []
        while page := self.journal.watched(rows[-1].position if rows else 0, 200):
            rows.extend(page)
        return rows

    def open_effects(self) -> list[EffectRow]:
        """Return the rows of all effects that are not closed, oldest first."""
        rows: list[EffectRow] = []
        while True:
            page = self.journal.open_effects(rows[-1].position if rows else 0, 200)
            rows.extend(page)
            if len(page) < 200:
                return rows

    def history(self, effect_id: str) -> list[Entry]:
        """Return an effect's entries in order; empty if there is no such effect. Raises ``Archived``."""
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

    def approval(self, effect_id: str) -> ApprovalRequest | None:
        """Return what a person is or was asked to approve; None if nothing. Raises ``NotDecidable``."""
        return deciding.asked(effect_id, deciding.state_of(self, effect_id))

    def approve(
        self,
        effect_id: str,
        *,
        by: str,
        why: str = "approved",
        digest: str | None = None,
        arguments: Mapping[str, Any] | None = None,
    ) -> Outcome:
        """Say that an effect that waits for an approval may be done. The next call or recovery of it sends it.

        Args:
            effect_id: the effect.
            by: who says so.
            why: the reason, for the record.
            digest: of what was seen, as ``approval`` tells it; anything else that waits is then not approved.
            arguments: those to change. An edited call is a new decision: what was asked is rejected, and the
                next decision of the request, which its premises are read for now, is the approved one.

        Returns:
            The outcome of what was approved: of the new decision, where the arguments were changed.

        Raises:
            NotDecidable: it does not wait for an approval, or not for this one any more.
            NotRegistered: ``arguments`` needs the code that declares the effect.
            BadArguments: the arguments are not ones of this effect, or belong to another request.
        """
        if arguments is not None:
            effect_id = deciding.approve_edited(self, effect_id, arguments, by, why)
        else:
            deciding.answer(self, effect_id, True, by, why, digest)
        return self.outcome(effect_id)

    def reject(self, effect_id: str, *, by: str, why: str, digest: str | None = None) -> Outcome:
        """Say that it must not be done; also what was approved and has not been sent. Raises ``NotDecidable``."""
        deciding.answer(self, effect_id, False, by, why, digest)
        self.records.write([effect_id])
        return self.outcome(effect_id)

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
        deciding.resolve(self, effect_id, landed, by, why)
        self.records.write([effect_id])
        return self.outcome(effect_id)

    def redecide(self, effect_id: str, *, by: str, facts: Mapping[str, Any] | None = None) -> Outcome:
        """Decide a refused request again, with the same arguments. The next call of it sends it.

        Unlike ``effect.redecide`` it needs no declaration: the new decision rests on ``facts``, or on what was
        read when it was refused (which ``interlock pending`` and ``show`` print). Raises ``NotDecidable``.
        """
        return self.outcome(deciding.redecide(self, None, effect_id, by, plain("facts", facts), None))

    def settle(self, effect_id: str, *, wait: timedelta | float = 0.0) -> Outcome:
        """Recover one effect. Raises ``NotRegistered`` if its code is not loaded here."""
        state = deciding.state_of(self, effect_id)
        definition = deciding.registered(self, state)
        flow = EffectFlow(
            self.journal, definition, effect_id, wait_s=seconds(wait), retry_s=self.retry_s, at_recovery=True
        )
        outcome: Outcome = run(observed(self.observer, flow, flow.settle(state), "settle"))
        return outcome

    def close(self) -> None:
        """Close the journal's connections and end this process's session. With signing on, sign a last checkpoint."""
        if self.observer is not None:
            self.observer.closed()
        self.records.close()
        self.journal.close()
