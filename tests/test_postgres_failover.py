"""A real failover to an asynchronous standby that has not seen the last commits."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import Service
from postgres_support import PostgresCase, new_server, require_driver
from sealing_support import WitnessServer

from interlock_tools import Gate, JournalError, NotRecorded, RecordsMissing, parse_policy
from interlock_tools.receipts.keys import verifier_key
from interlock_tools.sealing import Keys, Signing
from interlock_tools.testing.postgres import SECRET

PATIENCE_S = 30


class Failover(unittest.TestCase):
    """A primary, a standby, and a gate that names both; so it goes on at whichever can be written to."""

    def setUp(self) -> None:
        require_driver()
        if os.environ.get("INTERLOCK_TEST_POSTGRES"):
            self.skipTest("a failover needs servers of its own")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        sessions = mock.patch.dict(os.environ, {"INTERLOCK_SESSIONS": str(self.folder / "sessions")})
        sessions.start()
        self.addCleanup(sessions.stop)
        self.service = Service()
        self.primary = new_server()
        self.addCleanup(self.primary.remove)
        self.standby = self.primary.standby()
        self.addCleanup(self.standby.remove)

    def open(self, schema: str, **options: Any) -> tuple[Gate, Any]:
        hosts = f"127.0.0.1:{self.primary.port},127.0.0.1:{self.standby.port}"
        url = f"postgresql://tester:{quote(SECRET, safe='')}@{hosts}/postgres?interlock_schema={schema}"
        gate = Gate(url, retry=0.3, **options)
        self.addCleanup(gate.close)

        @gate.effect(
            "shop.refund",
            key=lambda case: case,
            premises=lambda idempotency_key: {
                "others": len([key for key in self.service.by_key if key != idempotency_key])
            },
            dedupes=True,
        )
        def refund(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            made = self.service.create(idempotency_key, case=case)
            if case == "in flight":
                self.fail_over()
            return made

        return gate, refund

    def caught_up(self) -> None:
        """Wait until the standby has everything."""
        import psycopg

        with psycopg.connect(self.primary.url(), autocommit=True) as primary:
            end = primary.execute("SELECT pg_current_wal_flush_lsn()").fetchall()[0][0]
        with psycopg.connect(self.standby.url(), autocommit=True) as standby:
            deadline = time.monotonic() + PATIENCE_S
            while standby.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [end]).fetchall() != [(True,)]:
                self.assertLess(time.monotonic(), deadline, "the standby does not follow")
                time.sleep(0.02)

    def fail_over(self) -> None:
        """The primary is lost as by a power cut, and the standby takes over with what it has."""
        self.primary.kill()
        self.standby.start()
        self.standby.promote()

    def test_the_truth_after_a_failover(self) -> None:
        """The process that wrote what was lost notices, and with a witness every process does, and sends nothing."""
        keys = Keys.in_directory(self.folder / "keys", "refunds.example")
        witness = WitnessServer(self.folder, "a")
        self.addCleanup(witness.close)
        witness.book.add_log(str(verifier_key(keys.logs[0])))
        signed = {
            "signing": Signing(keys.writer, keys.logs[0]),
            "witnesses": parse_policy(keys.policy() + witness.line + "quorum a\n"),
        }
        gate, refund = self.open("plain")
        seen, witnessed = self.open("witnessed", **signed)
        self.assertEqual([str(one("kept")) for one in (refund, witnessed)], ["COMMITTED"] * 2)
        seen.records.flush()
        self.caught_up()
        self.standby.stop()  # from here on nothing reaches it
        lost = refund("in the gap")
        self.assertEqual([str(lost), str(witnessed("in the gap"))], ["COMMITTED"] * 2)
        seen.records.flush()
        seen.close()
        with self.assertLogs("interlock_tools", "ERROR"), self.assertRaisesRegex(NotRecorded, "forgotten that send"):
            refund("in flight")  # its DISPATCHED was on the primary alone

        made = len(self.service.created)
        self.assertEqual(str(refund("kept")), "COMMITTED")
        sent = len(self.service.requests)
        for case in ("in the gap", "in flight", "another"):
            with self.assertRaisesRegex(RecordsMissing, "that this process has written are missing"):
                refund(case)
        self.assertEqual((len(self.service.requests), len(gate.journal.effects())), (sent, 1), "nothing is sent")
        gate.close()  # as when the process is started again
        gate, refund = self.open("plain")
        again = refund("in the gap")
        self.assertEqual((again.effect_id, len(self.service.created)), (lost.effect_id, made), "one key, one effect")
        self.assertEqual(len(gate.journal.effects()), 2)

        sent = len(self.service.requests)
        _, witnessed = self.open("witnessed", **signed)
        for case in ("in the gap", "new"):
            with self.assertRaisesRegex(RecordsMissing, "are missing"):
                witnessed(case)
        self.assertEqual(len(self.service.requests), sent)


class RolledBack(PostgresCase):
    """A failed transaction, whose COMMIT the server answers with ROLLBACK and without an error."""

    def test_it_is_no_success(self) -> None:
        import psycopg

        journal = self.open()
        self.addCleanup(journal.close)

        def careless(connection: Any, sql: dict[str, bytes]) -> None:
            connection.execute(sql["put_log_fact"], ("size", "1"))
            with contextlib.suppress(psycopg.Error):
                connection.execute("SELECT 1 / 0")

        with self.assertRaisesRegex(JournalError, "nothing was written"):
            journal._open().transact(careless)
        self.assertEqual(journal._open().read("log_fact", ("size",)), [])


class Terminated(PostgresCase):
    """The backends of a gate are terminated between its claim and its send: the journal's and the session's."""

    def test_a_send_within_its_lease_goes_on_and_is_recorded_once(self) -> None:
        service = Service()
        gate = Gate(self.url(application_name=self.schema))
        self.addCleanup(gate.close)
        raw = self.raw()
        ended: list[int] = []

        @gate.effect("shop.refund", key=lambda case: case, premises=lambda case: {"refunded": 0}, dedupes=True)
        def refund(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            query = (
                "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = %s "
                f"OR application_name IN (SELECT 'interlock session ' || name FROM {self.schema}.sessions)"
            )
            ended.append(raw.execute(query, [self.schema]).fetchall()[0][0])
            on_send()
            return service.create(idempotency_key, case=case)

        outcomes = [refund("one"), refund("two")]
        self.assertEqual([str(outcome) for outcome in outcomes], ["COMMITTED"] * 2)
        self.assertEqual(ended[0], 2)
        for outcome in outcomes:
            kinds = [entry.kind.value for entry in gate.journal.entries(outcome.effect_id)]
            self.assertEqual(kinds, ["proposed", "authorized", "dispatched", "committed"])
        self.assertEqual(len(service.created), 2)


if __name__ == "__main__":
    unittest.main()
