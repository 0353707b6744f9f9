"""Lets threads that commit at the same time share one transaction, and so one fsync."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import CommitUnknown
from .records import Seal
from .writes import Plan

MAX_BATCH = 64
"""Most appends that share one commit."""

WAIT_S = 120.0
"""Longest wait for the thread that commits; far beyond what it may take."""


Statements = Sequence[tuple[str, Sequence[Any] | Mapping[str, Any]]]
"""Queries by name, and what is bound to them."""


class Job:
    """One caller's append. ``error`` is what to raise to that caller.

    ``statements`` and ``key_changes`` belong to the log and to no effect.
    """

    __slots__ = ("error", "key_changes", "leads", "plans", "statements", "wake")

    def __init__(self, plans: Sequence[Plan], statements: Statements = (), key_changes: Sequence[Seal] = ()) -> None:
        self.plans = plans
        self.statements = statements
        self.key_changes = key_changes
        self.error: BaseException | None = None
        self.leads = False
        self.wake: threading.Lock | None = None


class CommitQueue:
    """The first thread to come commits; those that come meanwhile wait, and the next of them commits for all.

    There is no thread of its own, so a caller that comes alone hands nothing over.

    Args:
        commit: commits a batch of jobs and sets their errors.
    """

    def __init__(self, commit: Callable[[Sequence[Job]], None]) -> None:
        self._commit = commit
        self._mutex = threading.Lock()
        self._idle = threading.Condition(self._mutex)
        self._waiting: deque[Job] = deque()
        self._busy = False
        self._paused = False

    def run(self, plans: Sequence[Plan], statements: Statements = (), key_changes: Sequence[Seal] = ()) -> None:
        """Commit one append, alone or with others. Raises what became of this one."""
        job = Job(plans, statements, key_changes)
        try:
            with self._mutex:
                if self._busy or self._paused:
                    job.wake = threading.Lock()
                    job.wake.acquire()
                    self._waiting.append(job)
                else:
                    self._busy = job.leads = True
            if job.wake is not None and not job.wake.acquire(timeout=WAIT_S):
                raise CommitUnknown("the thread that commits for all has not answered; read back")
            if job.leads:
                self._lead(job)
        except BaseException:
            self._abandon(job)
            raise
        if job.error is not None:
            raise job.error

    def _lead(self, own: Job) -> None:
        batch = [own]
        if self._waiting:
            with self._mutex:
                while self._waiting and len(batch) < MAX_BATCH:
                    batch.append(self._waiting.popleft())
        try:
            self._commit(batch)
        except BaseException as error:  # an interruption: nobody knows how far it came
            for job in batch:
                job.error = job.error or error
        finally:
            self._abandon(own)
            for job in batch[1:]:
                _wake(job)

    def _abandon(self, job: Job) -> None:
        """Leave the queue; whoever leads lets the next in line lead."""
        with self._mutex:
            if job.leads:
                job.leads = self._busy = False
                self._pass_on()
            elif job in self._waiting:
                self._waiting.remove(job)

    def _pass_on(self) -> None:
        if self._paused:
            self._idle.notify_all()
        elif self._waiting:
            heir = self._waiting.popleft()
            heir.leads = self._busy = True
            _wake(heir)

    def pause(self, timeout_s: float) -> bool:
        """Keep new commits waiting until ``resume``. Returns whether none is running any more."""
        with self._mutex:
            self._paused = True
            return self._idle.wait_for(lambda: not self._busy, timeout_s)

    def resume(self) -> None:
        """Let commits go on."""
        with self._mutex:
            self._paused = False
            if not self._busy:
                self._pass_on()


def _wake(job: Job) -> None:
    assert job.wake is not None
    job.wake.release()
