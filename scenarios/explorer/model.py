"""Everything that can happen next in one state of the explored world."""

from __future__ import annotations

from collections.abc import Iterator

from interlock_tools.core.states import Phase

from . import service as services
from .bridge import PRODUCTION, Bridge, Core
from .checks import Judge
from .sends import Sends
from .service import Service
from .setup import Setup
from .worker import Worker
from .world import ALIVE, Budget, Gather, Job, Memory, Move, Snapshot

ENDS = frozenset({Phase.COMMITTED, Phase.REFUSED, Phase.AMBIGUOUS, Phase.RESOLVED, Phase.REPLACED})


class Model:
    """The moves of one setup, with the production core or a broken one."""

    def __init__(self, setup: Setup, core: Core = PRODUCTION, flaws: frozenset[str] = frozenset()) -> None:
        self.setup = setup
        self.bridge = Bridge(setup, core)
        self.judge = Judge(setup, self.bridge)
        self.worker = Worker(setup, self.bridge, self.judge, flaws)
        self.sends = Sends(setup, self.bridge, self.judge, self.worker, flaws)

    def first(self) -> Snapshot:
        """An effect that is decided, and nothing else."""
        setup = self.setup
        budget = Budget(setup.crashes, setup.faults, setup.moves, setup.unread)
        return Snapshot(self.bridge.first(), (), (), Service(), "holds", budget)

    def is_end(self, snapshot: Snapshot) -> bool:
        """Whether the effect has come to an end."""
        return self.bridge.states[snapshot.journal].phase in ENDS

    def moves(self, snapshot: Snapshot) -> Iterator[Move]:
        """Everything that can happen next."""
        ended = self.is_end(snapshot)
        alive = any(job.stage in ALIVE for job in snapshot.jobs)
        still = ended and not alive and not snapshot.service.requests
        yield from self.worker.gathering(snapshot)
        if still and self.bridge.states[snapshot.journal].phase is not Phase.AMBIGUOUS:
            return
        if not still:
            yield from self.sends.moves(snapshot)
            yield from self._service(snapshot)
            yield from self._facts(snapshot)
        older = self._tick(snapshot)
        if older is not None and older.after != snapshot:
            yield older

    def _service(self, snapshot: Snapshot) -> Iterator[Move]:
        """The service handles a request, in time or late, whether or not anybody waits for the answer."""
        done = set()
        for request in snapshot.service.requests:
            waiting = next((j for j in snapshot.jobs if j.number == request.number and j.stage == "waiting"), None)
            for what, answer, after, cost in services.handle(
                self.setup.rules, snapshot.service, request, waiting is not None
            ):
                if cost > snapshot.left.faults or (waiting is None and (request.number, after) in done):
                    continue
                done.add((request.number, after))
                left = snapshot.left._replace(faults=snapshot.left.faults - cost)
                jobs = snapshot.jobs
                if waiting is not None:
                    told = waiting._replace(stage="ended", answer=answer)
                    jobs = tuple(sorted(told if job is waiting else job for job in jobs))
                moved = snapshot._replace(service=after, jobs=jobs, left=left)
                broken = self.judge.landing(moved) if after.landed != snapshot.service.landed else ""
                yield Move(("service", request.number, what, answer if waiting else ""), moved, cost > 0, broken)

    def _facts(self, snapshot: Snapshot) -> Iterator[Move]:
        """The enforced fact moves. (The other premise moves when it is read.)"""
        if not snapshot.left.moves:
            return
        less = snapshot._replace(left=snapshot.left._replace(moves=snapshot.left.moves - 1))
        for what, service in services.fact_moves(self.setup.rules, snapshot.service):
            yield Move(("fact", what), less._replace(service=service), True)

    def _tick(self, snapshot: Snapshot) -> Move | None:
        """A tick passes, if nothing has to happen first."""
        if any(gather.age >= self.setup.patience for gather in snapshot.gathers):
            return None  # the world in which this worker never began goes on
        if not all(self._may_rest(job) for job in snapshot.jobs):
            return None
        service, gone = services.tick(self.setup.rules, snapshot.service)
        left = snapshot.left
        if gone:
            unanswered = sum(1 for job in snapshot.jobs if job.stage == "waiting" and job.number in gone)
            if unanswered > left.faults:
                return None
            left = left._replace(faults=left.faults - unanswered)
        after = Snapshot(
            self.bridge.older(snapshot.journal),
            tuple(sorted(self._older_job(job) for job in snapshot.jobs)) if snapshot.jobs else (),
            tuple(self._older_gather(gather) for gather in snapshot.gathers) if snapshot.gathers else (),
            service,
            snapshot.premise,
            left,
            self._older_memory(snapshot.memory),
        )
        return Move(("tick",), after, left is not snapshot.left and left != snapshot.left)

    def _may_rest(self, job: Job) -> bool:
        """A process stopped between the check in ``on_send`` and the bytes: the limits that are stated, no more."""
        if job.stage != "marked":
            return True
        if self.setup.contract.dedupes_ms > 0:
            return False
        return job.cut < 0 or job.cut < self.setup.lease

    def _capped(self, age: int) -> int:
        return min(age + 1, self.bridge.wait_cap)

    def _older_memory(self, memory: Memory | None) -> Memory | None:
        return memory and memory._replace(age=min(memory.age + 1, self.bridge.memory_cap))

    def _older_job(self, job: Job) -> Job:
        if job.written < 0 and job.cut < 0:
            return job
        written = self._capped(job.written) if job.written >= 0 else -1
        cut = job.cut  # once the hook has been called, it does not matter any more since when
        if cut >= 0 and job.stage in ("dispatched", "marked"):
            cut = min(cut + 1, self.setup.lease + 1)
        return job._replace(written=written, cut=cut)

    def _older_gather(self, gather: Gather) -> Gather:
        return gather._replace(
            base=self.bridge.older(gather.base),
            age=gather.age + 1,
            failed=min(gather.failed + 1, self.bridge.memory_cap) if gather.failed >= 0 else -1,
            began=gather.began + 1 if gather.began >= 0 else -1,
            seen=self.bridge.older(gather.seen) if gather.seen >= 0 else -1,
        )
