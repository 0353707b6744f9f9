"""What must never be so, whatever happens: the invariants, checked against what the service really holds."""

from __future__ import annotations

from interlock_tools.core.decide import Action, Step
from interlock_tools.core.entries import Kind
from interlock_tools.core.states import Phase, SendStatus, State

from . import service as services
from .bridge import Bodies, Bridge, NotRecordable
from .setup import Setup
from .world import ALIVE, Gather, Job, Snapshot


class Judge:
    """Checks of one setup. Each method returns the invariant that is broken and how, or an empty text."""

    def __init__(self, setup: Setup, bridge: Bridge) -> None:
        self.setup = setup
        self.bridge = bridge
        self._settled: dict[int, bool] = {}
        self._asked: dict[int, str] = {}

    def record(self, snapshot: Snapshot) -> str:
        """What the journal says now is true."""
        state = self.bridge.states[snapshot.journal]
        landed = snapshot.service.landed
        for number in landed:
            send = state.send(number)
            if send is not None and send.status is SendStatus.NOT_LANDED:
                return f"I7, I8: send {number} is recorded as not landed, and it landed"
        if state.phase is Phase.REFUSED and landed:
            return "I8: refused, and it landed"
        if snapshot.journal not in self._asked:
            self._asked[snapshot.journal] = self._asked_again(snapshot.journal)
        if self._asked[snapshot.journal]:
            return self._asked[snapshot.journal]
        if state.phase is Phase.COMMITTED:
            if not landed and not snapshot.service.other:
                return "I8: committed, and it did not land"
            if snapshot.journal not in self._settled:
                self._settled[snapshot.journal] = self.bridge.settled_changes_nothing(snapshot.journal)
            if not self._settled[snapshot.journal]:
                return "I9: a SETTLED entry changes a decision"
        return ""

    def _asked_again(self, number: int) -> str:
        """Asking about an effect that has come to an end finds nothing to record or to do."""
        state = self.bridge.states[number]
        if state.phase in (Phase.PROPOSED, Phase.AUTHORIZED, Phase.DISPATCHED):
            return ""
        for host in range(self.setup.hosts):
            for earlier in (number, self.bridge.rebooted(number, host)):
                try:
                    _, observed = self.bridge.observe(earlier, host, ())
                except NotRecordable as error:
                    return f"an effect that has ended cannot be asked about again: {error}"
                step = self.bridge.step_of(earlier, host, "hold", lookup="not_found", began_age=0)
                if observed or step.action is not Action.NOTHING:
                    return f"something is recorded or done about an effect that has ended: {step.action.value}"
        return ""

    def landing(self, snapshot: Snapshot) -> str:
        """Nothing landed that must not have."""
        if len(snapshot.service.landed) > 1:
            return "I2: the effect happened twice"
        return self.record(snapshot)

    def bytes_leave(self, snapshot: Snapshot, job: Job) -> str:
        """This send may go out now."""
        state = self.bridge.states[snapshot.journal]
        if len(state.sends) < job.number:
            return "I1: bytes leave, and no DISPATCHED entry is durable"
        if job.window and not self._window_truly_open(state):
            return "I2: sent under a key that the service may have forgotten since the dispatch"
        rules = self.setup.rules
        if rules.enforces or services.dedupes_now(rules, snapshot.service):
            return ""
        others = [r.number for r in snapshot.service.requests if r.number != job.number]
        others += [j.number for j in snapshot.jobs if j.number != job.number and j.stage == "marked"]
        if others:
            return f"I2: send {job.number} goes out while send {others[0]} may still land"
        return ""

    def _window_truly_open(self, state: State) -> bool:
        first = next((send.dispatched for send in state.sends if send.handed_over), None)
        if first is None or not first.boot.startswith("host"):
            return True
        contract = self.setup.contract
        elapsed = self.bridge.now(0).boottime_ms - first.boottime_ms
        return contract.dedupes_ms - contract.send_timeout_ms - elapsed > 0

    def append(self, snapshot: Snapshot, gather: Gather, step: Step, observed: Bodies) -> str:
        """A worker may take this step, given what it really read."""
        known = len(self.bridge.states[snapshot.journal].sends)
        alive = [job for job in snapshot.jobs if job.stage in ALIVE and job.number <= known]
        held = [job for job in alive if job.cut < 0]
        for kind, body in observed:
            gone = {body["send"]} if kind is Kind.ORPHANED else set(body["sends"]) if kind is Kind.NOT_LANDED else set()
            if any(job.number in gone for job in alive):
                return "I6: a living sender is recorded as dead"
            if kind is Kind.SENDER_LOST and any(job.number == body["send"] for job in held):
                return "I6: the session of a living sender is recorded as lost"
        if step.action is Action.SEND:
            if held:
                return "I6: a living sender is taken over"
            if gather.truth != "hold":
                return f"I3: a send though the checks were read as {gather.truth or 'nothing'}"
            if len(self.bridge.states[gather.seen].sends) >= self.setup.most_sends:
                return f"I10: send number {self.setup.most_sends + 1}: there is no bound"
        if step.action is Action.REFUSE:
            if held:
                return "I6: a living sender is taken over"
            if gather.truth != "fail":
                return f"I3: refused though the checks were read as {gather.truth or 'nothing'}"
        return self._doubtful(snapshot, gather, step)

    def _doubtful(self, snapshot: Snapshot, gather: Gather, step: Step) -> str:
        """AMBIGUOUS is said where it must be, and only there."""
        state = self.bridge.states[gather.seen]
        contract = self.setup.contract
        maybe = state.maybe_landed
        lost = any(send.status is SendStatus.LOST for send in maybe)
        if step.action in (Action.SEND, Action.REFUSE) and contract.strict and lost:
            return "strict: acted without evidence after a session was lost"
        if step.action is not Action.AMBIGUOUS:
            return ""
        if not maybe:
            return "I8: ambiguous though no send of it can have landed"
        kept_error = snapshot.service.stored == "error" or state.stored_error or gather.lookup == "cannot_know"
        if contract.has_lookup and not kept_error and not (contract.strict and lost):
            return "I8: ambiguous though a lookup can tell"
        if gather.truth != "hold" or state.shortcuts_off or (contract.strict and lost):
            return ""
        if contract.enforces:
            return "I8: ambiguous though the service enforces a premise that holds"
        if self._must_know_key(state, lost):
            return "I8: ambiguous though the service still knows the key"
        return ""

    def _must_know_key(self, state: State, lost: bool) -> bool:
        """Whether the dedup window is open by every clock that may be trusted."""
        contract = self.setup.contract
        if contract.dedupes_ms < 0:
            return True
        if lost and self.setup.lease + contract.send_timeout_ms >= contract.dedupes_ms:
            return False
        first = next((send.dispatched for send in state.sends if send.handed_over), None)
        if first is None or not first.boot.startswith("host"):
            return False
        elapsed = self.bridge.now(0).boottime_ms - first.boottime_ms
        slack = contract.send_timeout_ms + 2 * contract.clock_skew_ms
        return contract.dedupes_ms - slack - elapsed > 0
