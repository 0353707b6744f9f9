"""The signed log of a journal: checkpoints, their witnesses, and what a witness remembers that the journal does not.

The hot path only says that there is something new. A thread signs a checkpoint
once a second, or sooner after many records, and asks the witnesses.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

from ..errors import JournalError, JournalUnusable, RecordsMissing, describe
from ..journal.records import Records
from ..receipts.checkpoint import Checkpoint, parse_signed_checkpoint, sign_checkpoint
from ..receipts.errors import FormatError
from ..receipts.keys import Signer
from ..receipts.merkle import consistency_proof, root_at
from ..receipts.policy import Policy
from ..witness import Gathered, WitnessAhead, WitnessClient, clients_of, gather

log = logging.getLogger("interlock_tools")

MISSING = "missing"
"""The fact about a log that says why nothing may be sent."""
ORIGIN = "origin"
"""The fact about a log that says its name."""

TIMEOUT_S = 5.0
"""How long to wait for a witness's answer."""
_TRIES = 5
_MAX_NODES = 4096
_REST_S = 0.1
_IDLE_ROUNDS = 30
_MAX_PAUSE = 60
"""Longest pause after failures, in flush intervals."""


class Log:
    """Signs checkpoints of a log and has witnesses cosign them.

    Args:
        records: the log as the journal stores it.
        signers: the log's key; where the log has moved to another one, both.
        policy: names the witnesses and says how many of them are enough; None: there are none.
        flush_s: how often, in seconds.
        flush_records: after how many records sooner.
        flushed: called after a checkpoint has been signed.
        wall_ms: the clock, UTC milliseconds.
    """

    def __init__(
        self,
        records: Records,
        signers: list[Signer],
        policy: Policy | None,
        flush_s: float,
        flush_records: int,
        flushed: Callable[[], None],
        wall_ms: Callable[[], int],
    ) -> None:
        self._records = records
        self.signers = signers
        self._policy = policy
        self._clients: dict[str, WitnessClient] = clients_of(policy, TIMEOUT_S) if policy is not None else {}
        self._flush_s = flush_s
        self._flush_records = flush_records
        self._flushed = flushed
        self._wall_ms = wall_ms
        self.missing: RecordsMissing | None = None
        self._sizes: dict[str, int] = {}
        self._nodes: dict[tuple[int, int], bytes] = {}
        self._kept = 0
        self._seen = -1
        """How many records enough witnesses have seen."""
        self._closed = False
        self._begin()
        _logs.add(self)

    def _begin(self) -> None:
        """Set up for this process: at first, and in a forked child."""
        self._mutex = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()
        self._new = 0

    @property
    def origin(self) -> str:
        """The log's name."""
        return self.signers[-1].name

    # -- checkpoints -----------------------------------------------------------------------------------

    def open(self) -> None:
        """Find out whether records are missing: ask every witness what it remembers.

        A witness that cannot be reached has not been asked; it is asked again with every checkpoint.
        """
        fact = self._records.fact(MISSING)
        if fact is not None:
            self.missing = _missing(json.loads(fact))
            return
        size = self._records.place()
        if (changed := self._changed(size)) is not None:
            self._stop(size, changed)
        elif self._clients:
            errors = self.flush()
            for name, error in errors.items() if self.missing is None else ():
                log.warning("witness %s was not asked what it remembers of %s: %s", name, self.origin, error)

    def _changed(self, size: int) -> JournalError | None:
        """Whether the journal holds what its own checkpoints say: removed by hand, records leave them behind."""
        try:
            beyond = self._records.first_checkpoint(size)
            if beyond is not None:
                signed = parse_signed_checkpoint(beyond)[0]
                if self._records.place() < signed.size:  # otherwise another process was faster
                    return JournalError(f"the journal holds {size} records, and had signed {signed.size}")
            for note in {self._records.first_checkpoint(0), self._records.first_checkpoint(max(size - 1, 0))} - {None}:
                signed = parse_signed_checkpoint(note or "")[0]
                if signed.size <= size and signed.root != root_at(signed.size, self._node):
                    return JournalError(f"the journal's first {signed.size} records are not those that it had signed")
        except FormatError as error:
            return JournalError(f"one of the journal's checkpoints is none: {error}")
        return None

    def flush(self) -> dict[str, str]:
        """Sign a checkpoint of all records and have it cosigned. Returns why witnesses did not, by their names."""
        with self._mutex:
            return self._flush()

    def _flush(self) -> dict[str, str]:
        self._ask_journal()
        for _ in range(_TRIES):
            self._new = 0
            size = self._records.place()
            root = root_at(size, self._node)
            note = sign_checkpoint(Checkpoint(self.origin, size, root), *self.signers)
            gathered = gather(note, self._clients, self._prove, self._sizes)
            amnesia = gathered.amnesia
            if isinstance(amnesia, WitnessAhead) and self._records.place() >= amnesia.seen:
                continue  # another process was faster
            self._sizes.update(gathered.sizes)
            if amnesia is not None:
                self._stop(size, amnesia)
            else:
                self._keep(size, gathered)
            return {name: str(error) for name, error in gathered.errors.items()}
        return {"all": "other processes sign this log's checkpoints all the time; try again"}

    def _ask_journal(self) -> None:
        """See what other processes found out. Raises ``JournalUnusable`` where the log goes on under another name."""
        if self._records.fact(ORIGIN) != self.origin:
            raise JournalUnusable(
                f"the log {self.origin} has ended and goes on under another name, after records were lost; "
                "start this process again"
            )
        fact = self._records.fact(MISSING)
        if fact is not None and self.missing is None:
            self.missing = _missing(json.loads(fact))

    def _prove(self, old: int, new: int) -> list[bytes]:
        return consistency_proof(old, new, self._node)

    def _node(self, level: int, position: int) -> bytes:
        """A node of the tree. It never changes, so those that are used again and again are kept."""
        found = self._nodes.get((level, position))
        if found is None:
            if len(self._nodes) >= _MAX_NODES:
                self._nodes.clear()
            found = self._nodes[level, position] = self._records.node(level, position)
        return found

    def _keep(self, size: int, gathered: Gathered) -> None:
        policy = self._policy
        enough = (
            bool(gathered.sizes)
            and policy is not None
            and (policy.quorum is None or policy.met_by(set(gathered.sizes)))
        )
        if size > self._kept or (enough and size > self._seen):
            self._records.put_checkpoint(size, str(gathered.note), enough)
            self._kept = max(size, self._kept)
        if enough:
            self._seen = max(size, self._seen)
        self._flushed()

    def _stop(self, size: int, error: Exception) -> None:
        """Remember that records are missing, and since when that is known."""
        seen = error.seen if isinstance(error, WitnessAhead) else None
        fact = {"why": str(error), "seen": seen, "held": size, "found_ms": self._wall_ms()}
        self._records.put_facts({MISSING: json.dumps(fact)})
        self.missing = _missing(fact)
        log.error("%s", self.missing)

    def begin_anew(self, signer: Signer) -> None:
        """Go on as another log, after records were lost."""
        with self._mutex:
            self.signers = [signer]
            self._sizes.clear()
            self._kept, self._seen = 0, -1
            self.missing = None
        for name, why in self.flush().items():
            log.warning("witness %s did not cosign the new log %s: %s", name, signer.name, why)

    def clear(self, leaf: Callable[[], int | None]) -> str | None:
        """Wait until enough witnesses have seen a record. Returns why they have not, or None.

        Threads that wait at the same time share one checkpoint.
        """
        if not self._clients:
            return "no witness has an address in the policy"
        try:
            with self._mutex:
                place = leaf()
                if place is not None and place < self._seen:
                    return None
                errors = self._flush()
                place = leaf()
        except JournalError as error:
            return describe(error)
        if place is not None and place < self._seen:
            return None
        return "; ".join(errors.values()) or "too few witnesses have seen the record"

    # -- the thread ------------------------------------------------------------------------------------

    def note(self, count: int) -> None:
        """Say that there are new records; a checkpoint will cover them soon."""
        self._new += count
        if self._thread is None:
            self._start()
        if self._new >= self._flush_records:
            self._wake.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="interlock-checkpoints", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        idle = failures = 0
        while not self._closed and idle < _IDLE_ROUNDS:
            self._wake.wait(self._flush_s * min(2**failures, _MAX_PAUSE))
            self._wake.clear()
            if not self._closed:
                self._ended.wait(_REST_S)
            if self._closed:
                return
            if not self._new and not failures:
                idle += 1
                continue
            idle = 0
            try:
                failures = failures + 1 if self.flush() and self.missing is None else 0
            except Exception as error:
                failures += 1
                log.warning("no checkpoint of %s could be signed: %s", self.origin, describe(error))
        self._thread = None
        if self._new:
            self._start()

    def close(self) -> None:
        """Sign a last checkpoint and end the thread."""
        self._closed = True
        self._ended.set()
        thread, self._thread = self._thread, None
        self._wake.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(2 * TIMEOUT_S)
        if self._new:
            try:
                self.flush()
            except JournalError as error:
                log.warning("no last checkpoint of %s could be signed: %s", self.origin, describe(error))


def _missing(fact: dict[str, Any]) -> RecordsMissing:
    words = str(fact["why"]).rstrip(".")
    return RecordsMissing(f"{words}. Run gate.reconcile(…) or: interlock reconcile")


_logs: weakref.WeakSet[Log] = weakref.WeakSet()


def _after_fork_in_child() -> None:
    for found in list(_logs):
        found._begin()


os.register_at_fork(after_in_child=_after_fork_in_child)
