"""What happens to a send: its hook, its bytes, its end, and the death of its process."""

from __future__ import annotations

from collections.abc import Iterator

from interlock_tools.core.entries import Kind
from interlock_tools.core.states import Phase, SendStatus

from . import service as services
from .bridge import Bridge, NotRecordable
from .checks import Judge
from .setup import Setup
from .worker import Worker
from .world import ALIVE, Job, Move, Snapshot

_TAKES_EVIDENCE = frozenset({Phase.DISPATCHED, Phase.AMBIGUOUS})


class Sends:
    """Moves of the sends that are under way."""

    def __init__(self, setup: Setup, bridge: Bridge, judge: Judge, worker: Worker, flaws: frozenset[str]) -> None:
        self.setup = setup
        self.bridge = bridge
        self.judge = judge
        self.worker = worker
        self.flaws = flaws

    def moves(self, snapshot: Snapshot) -> Iterator[Move]:
        """Everything that can happen to a send, but for the service's answer."""
        for job in snapshot.jobs:
            if job.stage == "dispatched":
                yield self._hook(snapshot, job)
                yield from self._not_sent(snapshot, job)
            elif job.stage == "marked":
                yield self._bytes(snapshot, job)
                yield from self._not_sent(snapshot, job)
            elif job.stage == "waiting":
                yield from self._time_out(snapshot, job)
            elif job.stage == "ended":
                yield self._record(snapshot, job)
            if snapshot.left.crashes and job.stage in ALIVE:
                yield from self._crash(snapshot, job)
        if self.setup.restarts and snapshot.left.crashes and self.bridge.states[snapshot.journal].sends:
            for host in range(self.setup.hosts):
                yield self._reboot(snapshot, host)

    def _hook(self, snapshot: Snapshot, job: Job) -> Move:
        """``on_send``: may this sender still send? Then the mark."""
        refused = ""
        if job.cut > self.setup.lease and "lease_unchecked" not in self.flaws:
            refused = "the lease is over"
        unchecked = "window_unchecked" in self.flaws or ("window_unchecked_on_first" in self.flaws and job.number == 1)
        if job.window and not unchecked and self.bridge.window_left(snapshot.journal, job.host) <= 0:
            refused = "the dedup window is over"
        if refused:
            after = job._replace(stage="ended", answer="not_sent", cut=min(job.cut, 0), window=False)
            return Move(("on_send refuses", job.number, refused), _with(snapshot, job, after))
        marked = job._replace(stage="marked", mark=1)
        if self.setup.stops:
            return Move(("on_send marks", job.number), _with(snapshot, job, marked))
        return self._bytes(_with(snapshot, job, marked), marked)

    def _not_sent(self, snapshot: Snapshot, job: Job) -> Iterator[Move]:
        if not snapshot.left.faults:
            return
        less = snapshot._replace(left=snapshot.left._replace(faults=snapshot.left.faults - 1))
        ended = job._replace(stage="ended", answer="not_sent", cut=min(job.cut, 0), window=False)
        yield Move(("not sent", job.number), _with(less, job, ended), True)
        if "cancelled_is_over" in self.flaws and job.stage == "dispatched":
            journal, _ = self.bridge.conclude(snapshot.journal, job.number, "unknown", job.host)
            yield Move(("cancelled", job.number), self.worker.recorded(less, journal, less.jobs), True)

    def _bytes(self, snapshot: Snapshot, job: Job) -> Move:
        written = 0 if self.worker.tracks_written else -1
        gone = job._replace(stage="waiting", written=written, cut=min(job.cut, 0), window=False)
        after = _with(snapshot, job, gone)
        after = after._replace(service=services.hand_over(snapshot.service, job.number))
        return Move(("bytes leave", job.number), after, False, self.judge.bytes_leave(snapshot, job))

    def _time_out(self, snapshot: Snapshot, job: Job) -> Iterator[Move]:
        """The client gives up waiting. Free where the request is gone already; that has been paid for."""
        ended = job._replace(stage="ended", answer="unknown")
        if not any(request.number == job.number for request in snapshot.service.requests):
            yield Move(("times out", job.number), _with(snapshot, job, ended))
        elif snapshot.left.faults:
            less = snapshot._replace(left=snapshot.left._replace(faults=snapshot.left.faults - 1))
            yield Move(("times out", job.number), _with(less, job, ended), True)

    def _record(self, snapshot: Snapshot, job: Job) -> Move:
        """The send function has ended; what that proves is recorded."""
        label = ("records the end", job.number, job.answer)
        try:
            journal, kinds = self.bridge.conclude(snapshot.journal, job.number, job.answer, job.host)
        except NotRecordable as error:
            return Move(label, snapshot, False, f"the journal refuses it: {error}")
        after = self.worker.recorded(snapshot, journal, tuple(other for other in snapshot.jobs if other is not job))
        broken = self.judge.record(after)
        before = self.bridge.states[snapshot.journal].phase
        if not broken and job.answer == "evidence" and before in _TAKES_EVIDENCE and Kind.COMMITTED not in kinds:
            broken = "I8: evidence, and not committed"
        return Move((*label, kinds), after, False, broken)

    def _crash(self, snapshot: Snapshot, job: Job) -> Iterator[Move]:
        """Kill the process; or lose its session; or find the journal unwritable at the end."""
        left = snapshot.left._replace(crashes=snapshot.left.crashes - 1)
        less = snapshot._replace(left=left)
        state = self.bridge.states[snapshot.journal]
        running = job.number <= len(state.sends) and state.sends[job.number - 1].status is SendStatus.RUNNING
        answer = job.answer if "mark_cleared" in self.flaws else ""
        dead = job._replace(stage="dead", answer=answer, cut=-1, window=False)
        if "journal_not_durable" in self.flaws and running:
            forgotten = less._replace(journal=self.bridge.undispatched(snapshot.journal))
            yield Move(("dies, and the journal forgets", job.number), self._fallen(forgotten, job, None), True)
        if job.stage == "dispatched" and not self.setup.stops:
            after = dead._replace(mark=1) if running else None
            yield Move(("dies", job.number, "marked"), self._fallen(less, job, after), True)
        for written in {job.written, -1} if running and job.stage != "dispatched" else {-1}:
            fallen = dead._replace(written=written) if running else None
            yield Move(("dies", job.number, job.stage), self._fallen(less, job, fallen), True)
        if self.setup.hosts > 1 and job.cut < 0:
            yield Move(("loses its session", job.number), _with(less, job, job._replace(cut=0)), True)
        if job.stage == "ended" and running:
            gave_up = job._replace(stage="gave up", answer="", window=False)
            yield Move(("cannot record the end", job.number), _with(less, job, gave_up), True)

    def _fallen(self, snapshot: Snapshot, job: Job, dead: Job | None) -> Snapshot:
        if dead is None:
            return snapshot._replace(jobs=tuple(other for other in snapshot.jobs if other is not job))
        return _with(snapshot, job, dead)

    def _reboot(self, snapshot: Snapshot, host: int) -> Move:
        """The machine restarts: its processes, their marks and its clock are gone."""
        sends = self.bridge.states[snapshot.journal].sends
        jobs = []
        for job in snapshot.jobs:
            if job.host != host:
                jobs.append(job)
            elif job.number <= len(sends) and sends[job.number - 1].status is SendStatus.RUNNING:
                jobs.append(Job(job.number, host, "dead", 2))
        memory = snapshot.memory if snapshot.memory and snapshot.memory.host != host else None
        after = snapshot._replace(
            journal=self.bridge.rebooted(snapshot.journal, host),
            jobs=tuple(sorted(jobs)),
            gathers=(),
            left=snapshot.left._replace(crashes=snapshot.left.crashes - 1),
            memory=memory,
        )
        return Move(("restarts", host), after, True)


def _with(snapshot: Snapshot, old: Job, new: Job) -> Snapshot:
    return snapshot._replace(jobs=tuple(sorted(new if job is old else job for job in snapshot.jobs)))
