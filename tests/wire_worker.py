"""An agent's process for ``test_wire_order``, run under strace: ``wire_worker.py HOW URL JOURNAL``.

HOW is ``honest``, or one of two wrong builds: ``send_first`` records the dispatch only together with the send's end,
``no_sync`` records in the right order but not durably.
"""

from __future__ import annotations

import http.client
import os
import sys
import threading
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from interlock_tools import Gate
from interlock_tools.core.entries import Kind
from interlock_tools.journal.protocol import Write
from interlock_tools.journal.sqlite import SqliteJournal


class SendFirst(SqliteJournal):
    """Wrong on purpose: a dispatch waits for the next append."""

    held: tuple[Write, ...] = ()

    def append(self, writes: Sequence[Write]) -> None:
        if any(entry.kind is Kind.DISPATCHED for write in writes for entry in write.entries):
            self.held = tuple(writes)
            return
        held, self.held = self.held, ()
        if held:
            super().append(held)
        super().append(writes)


class NoSync(SqliteJournal):
    """Wrong on purpose: nothing is made durable before it is used."""

    def append(self, writes: Sequence[Write]) -> None:
        self._open().connections.cursor().connection.execute("PRAGMA synchronous=OFF")
        super().append(writes)


BUILDS = {"honest": SqliteJournal, "send_first": SendFirst, "no_sync": NoSync}


def post(url: str, case: str, idempotency_key: str, on_send: Any) -> Any:
    where = urlsplit(url)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=20)
    connection.connect()
    try:
        connection.putrequest("POST", f"/{case}/{idempotency_key}")
        connection.putheader("Content-Length", "0")
        on_send()
        connection.endheaders()
        on_send.written()
        response = connection.getresponse()
        response.read()
        if response.status != 200:
            raise RuntimeError(f"status {response.status}")
        return {"id": case}
    finally:
        connection.close()


def say(words: str) -> None:
    """Leave a mark in the trace."""
    os.write(2, f"MARK {words}\n".encode())


def main(how: str, url: str, path: str) -> None:
    gate = Gate(BUILDS[how](path))

    @gate.effect("wire", key=lambda case: case, dedupes=timedelta(days=1))
    def effect(case: str, *, idempotency_key: str, on_send: Any) -> Any:
        return post(url, case, idempotency_key, on_send)

    say(str(effect(case="warm")))
    for case in ("one", "two"):
        say("begin")
        outcome = effect(case=case)
        say("end")
        say(str(outcome))
    say(str(effect(case="fails-first")))
    if how == "honest":
        threads = [threading.Thread(target=effect, kwargs={"case": f"thread-{number}"}) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    say("done")


if __name__ == "__main__":
    main(*sys.argv[1:])
