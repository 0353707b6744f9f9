"""What the workers do: gather a view, record a step, send, record the end of a send.

A small and faithful copy of what the gate does around the core:

* a view is gathered in the order sighting of the sends, checks, lookup, and
  the core is asked again after each;
* what was seen of the sends and the step are appended in one transaction,
  under the journal's compare-and-set; a worker that has to wait appends what
  it saw alone, so that the wait begins there;
* ``on_send`` checks the session's lease, and the dedup window if the send
  relies on it or was dispatched within it, then stores the mark; then the
  bytes leave;
* the end of a send is recorded when its function has ended, and not before.

A worker that dies while it gathers leaves nothing behind, so that needs no
move of its own: the world in which it never began is explored as well. For the
same reason a view is gathered and its step appended in one move, unless the
setup says ``slow``: what the journal, the sends and the service do meanwhile
either makes the append fail, or might as well happen after it.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock_tools.core.decide import Action, Step
from interlock_tools.core.states import Phase, SendStatus

from . import service as services
from .bridge import Bridge, NotRecordable, Seen
from .checks import Judge
from .setup import Setup
from .world import ALIVE, Budget, Gather, Job, Memory, Move, Snapshot

Label = tuple[object, ...]

_MARKS = ("no", "yes", "maybe")
_OPEN = frozenset({Phase.PROPOSED, Phase.AUTHORIZED, Phase.DISPATCHED})


class Worker:
    """Moves of the workers. ``flaws`` names the ways in which a mutant departs from the above."""

    def __init__(self, setup: Setup, bridge: Bridge, judge: Judge, flaws: frozenset[str]) -> None:
        self.setup = setup
        self.bridge = bridge
        self.judge = judge
        self.flaws = flaws
        self._known: dict[tuple[object, ...], list[Move]] = {}
        self.tracks_written = setup.rules.lookup and setup.hosts == 1

    # -- the journal --------------------------------------------------------------------------

    def recorded(self, snapshot: Snapshot, journal: int, jobs: tuple[Job, ...], keep: Gather | None = None) -> Snapshot:
        """The world after an append. Whoever gathers a view has to start over, and what is recorded is forgotten."""
        sends = self.bridge.states[journal].sends
        left = tuple(
            job
            for job in jobs
            if job.stage in ALIVE or (job.number <= len(sends) and sends[job.number - 1].status is SendStatus.RUNNING)
        )
        gathers = snapshot.gathers if "no_compare_and_set" in self.flaws else ()
        return snapshot._replace(
            journal=journal, jobs=tuple(sorted(left)), gathers=tuple(other for other in gathers if other is not keep)
        )

    # -- gathering ----------------------------------------------------------------------------

    def gathering(self, snapshot: Snapshot) -> Iterator[Move]:
        """Begin to gather a view, go on, or append."""
        if self.setup.slow:
            yield from self._gathering(snapshot)
            return
        # All that a worker looks at, so that what it does need not be found out twice.
        journal, jobs, _, service, premise, (crashes, faults, moves, unread), memory = snapshot
        error = service.stored == "error"
        less = Budget(0, min(faults, 1), min(moves, 1), min(unread, 2))
        key = (journal, jobs, service.fact, service.other, service.landed, service.landed_age, error)
        seen = (*key, premise, less, memory)
        known = self._known.get(seen)
        if known is None:
            looked = service._replace(requests=(), first=-1, stored="error" if error else "")
            known = self._known[seen] = list(self._gathering(snapshot._replace(service=looked, left=less)))
        for label, after, bad, broken in known:
            left = after.left
            spent = Budget(
                crashes, faults - less[1] + left.faults, moves - less[2] + left.moves, unread - less[3] + left.unread
            )
            moved = Snapshot(after.journal, after.jobs, (), service, after.premise, spent, after.memory)
            yield Move(label, moved, bad, broken)

    def _gathering(self, snapshot: Snapshot) -> Iterator[Move]:
        try:
            if len(snapshot.gathers) < self.setup.gatherers:
                for host in range(self.setup.hosts):
                    yield from self._begin(snapshot, host)
            for gather in snapshot.gathers:
                if gather.stage == "ready":
                    yield self._append(snapshot, gather, (gather.host,))
                else:
                    yield from self._go(snapshot, gather, (gather.host, "goes on"), False)
        except NotRecordable as error:
            yield Move(("recovers",), snapshot, False, f"what was seen cannot be recorded: {error}")

    def sight(self, snapshot: Snapshot, host: int) -> tuple[Seen, ...]:
        """What a worker on ``host`` sees of the running sends."""
        seen: list[Seen] = []
        sends = self.bridge.states[snapshot.journal].sends
        for job in snapshot.jobs:
            if job.number > len(sends) or sends[job.number - 1].status is not SendStatus.RUNNING:
                continue
            mark = job.mark
            if mark == 2 and "marks_survive_reboot" in self.flaws:
                mark = 0
            if "mark_cleared" in self.flaws and job.stage == "dead" and job.answer:
                mark = 0
            proven = (job.number, _MARKS[mark], job.written)
            if job.host == host:
                sender = "dead" if job.stage == "dead" else "returned" if job.stage == "gave up" else "live"
            else:
                sender = "lost" if job.stage == "dead" or job.cut >= 0 else "live"
            if sender == "lost" and "lost_is_dead" in self.flaws:
                sender = "dead"
            if sender == "live" and "stopped_is_dead" in self.flaws:
                sender = "dead"
            if sender == "returned" and "never_gives_up" in self.flaws:
                sender = "live"
            seen.append((proven[0], sender, proven[1], proven[2]))
        return tuple(seen)

    def _begin(self, snapshot: Snapshot, host: int) -> Iterator[Move]:
        """Take the effect up, if there is anything to do about it."""
        state = self.bridge.states[snapshot.journal]
        gather = Gather(host, snapshot.journal, "read")
        if state.phase is Phase.AMBIGUOUS:
            if self.setup.rules.lookup:
                yield from self._go(snapshot, gather, (host,), False)
            return
        if state.phase is Phase.REFUSED:
            # What never left the machine is tried again when the application asks for it again.
            if state.closing is not None and state.closing.body["reason"] == "unreachable" and snapshot.left.faults:
                less = snapshot._replace(left=snapshot.left._replace(faults=snapshot.left.faults - 1))
                for move in self._read(less, gather._replace(again=True), (host, "is asked again")):
                    yield move._replace(bad=True)
            return
        if state.phase not in _OPEN:
            return
        seen, observed = self.bridge.observe(snapshot.journal, host, self.sight(snapshot, host))
        first = self.bridge.step_of(seen, host)
        if first.action is Action.READ_CHECKS:
            yield from self._read(snapshot, gather, (host,))
        elif observed:
            yield Move(("recovers", host, first), self._saw(snapshot, seen))

    def _read(self, snapshot: Snapshot, gather: Gather, label: Label) -> Iterator[Move]:
        """Read the premises and the grant, in every way that they can be read."""
        host = gather.host
        fact = snapshot.service.fact or not self.setup.rules.enforces
        for premise in self._premises(snapshot):
            moved = premise != snapshot.premise
            after = snapshot._replace(premise=premise)
            if moved:
                after = after._replace(left=snapshot.left._replace(moves=snapshot.left.moves - 1))
            holds = fact and premise == "holds"
            names = () if fact else ("fact",)
            failing = frozenset(names if premise != "fails" else (*names, "premise"))
            memory = self._memory(snapshot, host, holds, failing) if self.setup.contract.never_true_again else None
            truth = "hold" if holds else "fail"
            read = gather._replace(truth=truth, checks=truth, failing=failing, failed=memory.age if memory else -1)
            if "keeps_old_checks" in self.flaws and self.bridge.states[snapshot.journal].sends:
                read = read._replace(truth="", checks="hold", failing=frozenset(), failed=-1)
            after = after._replace(memory=memory)
            yield from self._go(after, read, (*label, f"reads: {truth}", *sorted(failing)), moved)
        if snapshot.left.unread:
            less = snapshot._replace(left=snapshot.left._replace(unread=snapshot.left.unread - 1), memory=None)
            checks = "fail" if "unreadable_is_failed" in self.flaws else "unreadable"
            unread = gather._replace(truth="unreadable", checks=checks)
            yield from self._go(less, unread, (*label, "cannot read"), True)

    def _premises(self, snapshot: Snapshot) -> Iterator[str]:
        """What the premise that the service does not look at can be by now.

        Nobody but the workers looks at it, so that it need not move before it is read.
        """
        yield snapshot.premise
        if snapshot.left.moves and snapshot.premise != "revoked":
            yield "fails" if snapshot.premise == "holds" else "holds"
            if self.setup.rules.final:  # otherwise no rule tells a missing grant from a premise that fails
                yield "revoked"

    def _memory(self, snapshot: Snapshot, host: int, holds: bool, failing: frozenset[str]) -> Memory | None:
        if holds:
            return None
        known = snapshot.memory
        if known is not None and known.host == host and known.failing == failing:
            return known
        return Memory(host, 0, failing)

    def _go(self, snapshot: Snapshot, gather: Gather, label: Label, bad: bool) -> Iterator[Move]:
        """Ask the core about the view so far, and do what it says: look up, append, or leave it."""
        host = gather.host
        others = tuple(other for other in snapshot.gathers if other is not gather)
        seen, observed = self.bridge.observe(gather.base, host, self.sight(snapshot, host))
        step = self._ask(seen, gather)
        if step is None:
            return
        if step.action is Action.LOOK_UP:
            if self.setup.slow and gather.stage == "read" and label[-1:] != ("goes on",):
                after = snapshot._replace(gathers=_sorted(*others, gather))
                yield Move(("recovers", *label, step), after, bad)
            else:
                yield from self._look_up(snapshot, others, gather, label, bad)
        elif step.action in (Action.SEND, Action.REFUSE, Action.AMBIGUOUS, Action.COMMIT):
            ready = Gather(
                host, gather.base, "ready", gather.age, gather.truth, lookup=gather.lookup, seen=seen, step=step
            )
            broken = self.judge.append(snapshot, ready, step, observed)
            if self.setup.slow or broken:
                after = snapshot._replace(gathers=_sorted(*others, ready))
                yield Move(("recovers", *label, step), after, bad, broken)
            else:
                yield self._append(snapshot, ready, label, bad)
        elif observed:
            yield Move(("recovers", *label, step), self._saw(snapshot, seen), bad)
        elif others != snapshot.gathers or snapshot.memory is not None:
            yield Move(("recovers", *label, step), snapshot._replace(gathers=others), bad)

    def _ask(self, seen: int, gather: Gather) -> Step | None:
        if gather.again:
            return None if gather.checks == "unreadable" else self.bridge.tried_again(gather.checks)
        began = 0 if "lookup_counts_from_its_answer" in self.flaws and gather.began >= 0 else gather.began
        return self.bridge.step_of(
            seen, gather.host, gather.checks, gather.failing, gather.failed, gather.lookup, began, gather.found
        )

    def _look_up(
        self, snapshot: Snapshot, others: tuple[Gather, ...], gather: Gather, label: Label, bad: bool
    ) -> Iterator[Move]:
        """Ask the service. The answer is that of now; it may arrive later."""
        answers = [(found, "not_found", "finds it" if found else "finds nothing", 0) for found in
                   services.look_up(self.setup.rules, snapshot.service)]  # fmt: skip
        if snapshot.left.unread:
            answers.append((False, "cannot_know", "gets an answer that settles nothing", 1))
            counts = "unreadable_lookup_counts" in self.flaws
            answers.append((False, "not_found" if counts else "unreadable", "cannot look it up", 1))
        for found, lookup, what, cost in answers:
            asked = gather._replace(stage="asked", began=0, lookup=lookup, found=found)
            after = snapshot
            if cost:
                after = snapshot._replace(left=snapshot.left._replace(unread=snapshot.left.unread - cost))
            if self.setup.slow:
                waits = after._replace(gathers=_sorted(*others, asked))
                yield Move(("recovers", *label, what), waits, bad or cost > 0)
            else:
                yield from self._go(after, asked, (*label, what), bad or cost > 0)

    def _saw(self, snapshot: Snapshot, seen: int) -> Snapshot:
        """What was seen of the sends is recorded, alone."""
        return self.recorded(snapshot, seen, snapshot.jobs)

    def _append(self, snapshot: Snapshot, gather: Gather, label: Label, bad: bool = False) -> Move:
        """Record a step. A worker whose view is old has been sent back by ``recorded`` already."""
        step = gather.step
        assert step is not None
        label = ("recovers", *label, step)
        stale = gather.base != snapshot.journal
        start = snapshot.journal if stale else gather.seen
        try:
            if step.action is Action.SEND:
                journal = self.bridge.dispatched(start, gather.host, step.resend, step.not_landed)
            else:
                journal = self.bridge.closed(start, step)
        except NotRecordable as error:
            if not stale:
                return Move(label, snapshot, bad, f"the journal refuses it: {error}")
            journal = snapshot.journal
        jobs = snapshot.jobs
        if step.action is Action.SEND:
            # It is held to the window if the core relied on that, or if it was dispatched within it.
            relies = step.resend and not self.setup.contract.enforces and self.setup.contract.dedupes_ms > 0
            window = self.bridge.window_left(journal, gather.host) > 0
            window = window or (relies and "window_known_late" not in self.flaws)
            number = len(self.bridge.states[gather.seen].sends) + 1
            jobs = (*jobs, Job(number, gather.host, window=window))
            if "sends_first" in self.flaws:
                return Move(label, snapshot._replace(jobs=jobs, gathers=()), bad)
        after = self.recorded(snapshot, journal, jobs, gather)
        return Move(label, after, bad, self.judge.record(after))


def _sorted(*gathers: Gather) -> tuple[Gather, ...]:
    """Workers of one host are alike, so that their order says nothing."""
    return gathers if len(gathers) < 2 else tuple(sorted(gathers, key=_order))


def _order(gather: Gather) -> tuple[object, ...]:
    return (*gather[:6], tuple(sorted(gather.failing)), *gather[7:12], repr(gather.step), gather.again)
