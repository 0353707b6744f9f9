"""What becomes of appends when connections, transactions and the server itself fail. Every fault is a real one."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_proxy import TO_CLIENT, TO_SERVER, Proxy
from postgres_support import URL, PostgresCase, new_server, require_driver, server

from interlock_tools.core import canonical
from interlock_tools.core.entries import Kind
from interlock_tools.core.states import CLOSED_PHASES, TRANSITIONS, IllegalTransition
from interlock_tools.errors import CommitUnknown, JournalError, JournalUnusable
from interlock_tools.journal.open import open_journal
from interlock_tools.journal.protocol import Conflict, OverBudget
from interlock_tools.testing.journal_kit_base import KitBase
from interlock_tools.testing.journal_story import TO_DISPATCHED, Story
from interlock_tools.testing.postgres import SECRET

BUDGET = {"budget": "day", "amount": 10, "limit": 100}


class ConnectionsCase(PostgresCase):
    """Tests that need a server of known address."""

    def setUp(self) -> None:
        if os.environ.get(URL):
            self.skipTest("needs a server that the tests may break")
        super().setUp()

    def through(self, proxy: Proxy, **parameters: Any) -> Any:
        parameters = {"interlock_schema": self.schema, "interlock_pool": 1, **parameters}
        journal = open_journal(server().url(proxy.port, **parameters))
        self.addCleanup(journal.close)
        return journal

    def proxy(self, **options: Any) -> Proxy:
        proxy = Proxy(server().port, **options)
        self.addCleanup(proxy.__exit__)
        return proxy


class TestCuts(ConnectionsCase):
    """A connection that ends somewhere in an append."""

    def measured(self, journal: Any, proxy: Proxy) -> tuple[int, int]:
        """How many bytes one append takes in each direction."""
        Story(journal, "warm").append(*TO_DISPATCHED, budgets=[BUDGET])
        proxy.count()
        Story(journal, "size").append(*TO_DISPATCHED, budgets=[BUDGET])
        return proxy.passed[TO_SERVER], proxy.passed[TO_CLIENT]

    def test_a_connection_that_dies_at_any_byte_of_a_commit_appends_once(self) -> None:
        proxy = self.proxy()
        journal = self.through(proxy)
        request, response = self.measured(journal, proxy)
        places = [(TO_SERVER, at) for at in (0, 1, request // 2, request - 5, request - 1, request)]
        places += [(TO_CLIENT, at) for at in (0, 1, response // 2, response - 6, response - 1)]
        for number, (direction, at) in enumerate(places):
            with self.subTest(direction=direction, at=at):
                name = f"cut {number}"
                proxy.arm(direction, at)
                budgets = [{"budget": name, "amount": 7, "limit": 10}]
                story = Story(journal, f"cut-{number}").append(*TO_DISPATCHED, budgets=budgets)
                self.assertEqual([entry.seq for entry in journal.entries(story.effect_id)], [1, 2, 3])
                self.assertEqual(journal.budget(name).used, 7)
                self.assertEqual(proxy.cuts, number + 1)

    def test_what_nobody_can_tell_is_said_and_can_be_read_back(self) -> None:
        proxy = self.proxy()
        journal = self.through(proxy)
        self.measured(journal, proxy)
        for direction, at, there in ((TO_SERVER, 1, 0), (TO_CLIENT, 0, 3)):
            with self.subTest(direction=direction):
                story = Story(journal, direction)
                proxy.arm(direction, at, then_down=True)
                soon = mock.patch("interlock_tools.journal.pg.appends.READ_BACK_S", 0.2)
                with soon, self.assertRaisesRegex(CommitUnknown, "read back"):
                    story.append(*TO_DISPATCHED)
                proxy.up()
                self.assertEqual(len(journal.entries(story.effect_id)), there)

    def test_a_read_survives_a_stale_connection(self) -> None:
        proxy = self.proxy()
        journal = self.through(proxy)
        story = Story(journal).append(*TO_DISPATCHED)
        proxy.down()
        with self.assertRaisesRegex(JournalError, "nothing was written"):
            journal.entries(story.effect_id)
        proxy.up()
        self.assertEqual(len(journal.entries(story.effect_id)), 3)

    def test_a_server_that_cannot_be_reached_is_named_without_the_password(self) -> None:
        proxy = self.proxy()
        journal = self.through(proxy)
        proxy.down()
        with self.assertRaisesRegex(JournalError, "cannot be reached; nothing was written") as caught:
            Story(self.through(proxy, interlock_schema="another"), "x").append(Kind.PROPOSED)
        self.assertNotIn("s3cr3t", str(caught.exception))
        self.assertNotIn("s3cr3t", journal.url)


class TestTransactions(ConnectionsCase):
    """What the database gives up by itself."""

    def test_a_backend_that_is_terminated_between_claim_and_end(self) -> None:
        journal = open_journal(self.url(interlock_pool=1, application_name=self.schema))
        self.addCleanup(journal.close)
        story = Story(journal).append(*TO_DISPATCHED)
        raw = self.raw()
        end_all = "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE application_name = %s"
        self.assertEqual(raw.execute(end_all, (self.schema,)).fetchall(), [(1,)])
        story.append(Kind.COMMITTED)
        self.assertEqual(len(journal.entries(story.effect_id)), 4)

    def test_an_error_at_commit_after_the_answer_is_an_error(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        raw = self.raw()
        raw.execute(
            f"CREATE FUNCTION {self.schema}.no() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'not now'; END $$; "
            f"CREATE CONSTRAINT TRIGGER no AFTER INSERT ON {self.schema}.entries DEFERRABLE INITIALLY DEFERRED "
            f"FOR EACH ROW EXECUTE FUNCTION {self.schema}.no()"
        )
        story = Story(journal)
        with self.assertRaisesRegex(JournalError, "not now; nothing was written"):
            story.append(*TO_DISPATCHED)
        self.assertEqual(journal.entries(story.effect_id), [])

    def test_a_deadlock_is_done_again(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        stories = [Story(journal, f"case {number}").append(Kind.PROPOSED) for number in range(2)]
        writes = [story.write(Kind.AUTHORIZED) for story in stories]
        raw, done = self.raw(), []
        raw.execute("SET deadlock_timeout = '60s'")  # so that the append is the one that gives up
        lock = f"SELECT 1 FROM {self.schema}.effects WHERE effect_id = %s FOR UPDATE"
        with raw.transaction():
            raw.execute(lock, (stories[1].effect_id,))
            thread = threading.Thread(target=lambda: done.append(journal.append(writes)))
            thread.start()
            self.await_lock(stories[0].effect_id)
            raw.execute(lock, (stories[0].effect_id,))
        thread.join(30)
        self.assertEqual(done, [None])
        self.assertEqual([row.phase for row in journal.effects()], ["authorized"] * 2)

    def await_lock(self, effect_id: str) -> None:
        """Wait until somebody holds the effect's row and waits for another one."""
        watcher = self.raw()
        waiting = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE %s"
        for _ in range(10_000):
            if watcher.execute(waiting, (f"%{self.schema}.append%",)).fetchall():
                return
        self.fail("nobody waits")

    def test_a_commit_is_durable_whatever_the_session_is_set_to(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        raw = self.raw()
        raw.execute(
            f"CREATE TABLE {self.schema}.seen (setting text); "
            f"CREATE FUNCTION {self.schema}.look() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            f"INSERT INTO {self.schema}.seen VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$; "
            f"CREATE CONSTRAINT TRIGGER look AFTER INSERT ON {self.schema}.entries DEFERRABLE INITIALLY DEFERRED "
            f"FOR EACH ROW EXECUTE FUNCTION {self.schema}.look()"
        )
        careless = open_journal(self.url(options="-c synchronous_commit=off"))
        self.addCleanup(careless.close)
        Story(careless).append(Kind.PROPOSED)
        self.assertEqual(raw.execute(f"SELECT setting FROM {self.schema}.seen").fetchall(), [("on",)])

    def test_an_effect_that_goes_well_costs_two_transactions_that_write(self) -> None:
        from interlock_tools import Budget, Gate

        gate = Gate(self.url(interlock_lease_s=3600))
        self.addCleanup(gate.close)

        @gate.effect(
            "kit.refund",
            key=lambda case: case,
            premises=lambda case: {"refunded": 0},
            budget=lambda case: Budget("day", amount=1, limit=10),
        )
        def refund(case: str) -> str:
            return "re_1"

        refund(case="the first opens the session")
        raw = self.raw()
        number = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"
        before = raw.execute(number).fetchall()[0][0]
        self.assertEqual(str(refund(case="4471")), "COMMITTED")
        self.assertEqual(raw.execute(number).fetchall()[0][0] - before, 2)

    def test_the_end_of_a_send_that_a_failover_has_forgotten_is_told(self) -> None:
        """A standby that lost the last commits: here, their rows are taken away below the triggers."""
        from interlock_tools import Gate, NotRecorded

        gate = Gate(self.url())
        self.addCleanup(gate.close)
        raw = self.raw()

        @gate.effect("kit.refund", key=lambda case: case, premises=lambda case: {"refunded": 0})
        def refund(case: str) -> str:
            raw.execute("SET session_replication_role = replica")
            raw.execute(f"DELETE FROM {self.schema}.entries")
            raw.execute(f"DELETE FROM {self.schema}.effects")
            return "re_1"

        with (
            self.assertLogs("interlock_tools", "ERROR") as logged,
            self.assertRaisesRegex(NotRecorded, "forgotten.*may have happened"),
        ):
            refund(case="4471")
        self.assertIn("the service answered: evidence", logged.output[0])


class TestSerializable(PostgresCase, KitBase):
    """A server that is set to the strictest isolation gives up transactions all the time."""

    def url(self, **parameters: Any) -> str:
        return super().url(options="-c default_transaction_isolation=serializable", **parameters)

    def test_threads_decide_races_alike(self) -> None:
        journal = self.journal()

        def reserve(number: int) -> None:
            Story(journal, f"case {number // 2}").append(*TO_DISPATCHED, budgets=[BUDGET])

        results = self.in_threads([lambda n=n: reserve(n) for n in range(32)])  # type: ignore[misc]
        self.assertEqual(results.count(None), 10, results)
        self.assertEqual({type(result) for result in results if result}, {Conflict, OverBudget})
        self.assertEqual(journal.budget("day").used, 100)


class TestServer(unittest.TestCase):
    """The server itself goes."""

    def test_what_was_acknowledged_survives_a_server_that_is_killed(self) -> None:
        if os.environ.get(URL):
            self.skipTest("needs a server that the tests may break")
        own = new_server()
        self.addCleanup(own.remove)
        sessions = tempfile.TemporaryDirectory()
        self.addCleanup(sessions.cleanup)
        with mock.patch.dict(os.environ, {"INTERLOCK_SESSIONS": sessions.name}):
            journal: Any = open_journal(own.url())
        self.addCleanup(journal.close)
        done = [Story(journal, f"case {number}").append(*TO_DISPATCHED) for number in range(20)]
        sent = Story(journal, "sent").dispatch()
        own.kill()
        with self.assertRaisesRegex(JournalError, "nothing was written") as caught:
            Story(journal, "while it is away").append(*TO_DISPATCHED)
        self.assertNotIsInstance(caught.exception, CommitUnknown)
        own.start()
        for story in done:
            self.assertEqual(len(journal.entries(story.effect_id)), 3)
        self.assertEqual(journal.sight(sent.last_send())[0].sender.value, "live")
        sent.append(Kind.COMMITTED)
        assert sent.slot is not None
        again = Story(journal, "after").dispatch()
        assert again.slot is not None
        self.assertIsNone(again.slot.check())
        self.assertEqual(len(journal.effects()), 22)


class TestSchema(PostgresCase):
    """What the database itself refuses, formats, and URLs."""

    def test_the_table_of_steps_is_that_of_the_core(self) -> None:
        self.addCleanup(self.open().close)
        rows = self.raw().execute(f"SELECT before, kind, after FROM {self.schema}.transitions").fetchall()
        expected = {(before.value, kind.value, after.value) for (before, kind), after in TRANSITIONS.items()}
        self.assertEqual(set(rows), expected)
        closed = {phase.value for phase in CLOSED_PHASES}
        query = "SELECT pg_get_expr(indpred, indrelid) FROM pg_index WHERE indexrelid = %s::regclass"
        ((index,),) = self.raw().execute(query, (f"{self.schema}.open_effects",)).fetchall()
        phases = {after.value for after in TRANSITIONS.values()}
        self.assertEqual({phase for phase in phases if f"'{phase}'" in index}, phases - closed)

    def test_the_database_refuses_what_does_not_follow_and_changes_nothing(self) -> None:
        import psycopg

        journal = self.open()
        self.addCleanup(journal.close)
        story = Story(journal).append(*TO_DISPATCHED)
        raw = self.raw()
        row = "SELECT position, %s, %s, 1, 'committed', '{}', 1 FROM"
        insert = f"INSERT INTO {self.schema}.entries {row} {self.schema}.effects"
        for seq, kind in ((5, "committed"), (4, "proposed"), (0, "proposed"), (3, "committed")):
            with self.subTest(seq=seq, kind=kind), self.assertRaises(psycopg.Error):
                raw.execute(insert, (seq, kind))
        for statement in (
            "UPDATE {}.entries SET body = ''",
            "DELETE FROM {}.entries",
            "TRUNCATE {}.entries",
            "DELETE FROM {}.effects",
            "DELETE FROM {}.transitions",
        ):
            with self.subTest(statement), self.assertRaisesRegex(psycopg.Error, "never changed"):
                raw.execute(statement.format(self.schema))
        self.assertEqual(len(journal.entries(story.effect_id)), 3)
        with self.assertRaises(IllegalTransition):
            story.append(Kind.RESOLVED)

    def test_a_journal_of_a_newer_format_and_a_foreign_schema_are_refused(self) -> None:
        self.open().close()
        raw = self.raw()
        raw.execute(f"UPDATE {self.schema}.journal SET format = 99")
        with self.assertRaisesRegex(JournalUnusable, "format 99.*Install"):
            self.open()
        raw.execute(f"DROP SCHEMA {self.schema} CASCADE; CREATE SCHEMA {self.schema}; CREATE TABLE {self.schema}.x ()")
        with self.assertRaisesRegex(JournalUnusable, "another program"):
            self.open()

    def test_an_older_journal_is_migrated_by_one_of_several_processes_at_once(self) -> None:
        from interlock_tools.journal.pg import schema

        scripts = [schema.read_sql(name, self.schema) for name in schema.MIGRATIONS]
        schema.migrate(self.raw(), self.schema, "x", scripts)
        scripts.append(f"CREATE TABLE {self.schema}.added (x integer)")
        connections = [self.raw() for _ in range(4)]
        found = KitBase.in_threads(
            self,  # type: ignore[arg-type]
            [lambda c=c: schema.migrate(c, self.schema, "x", scripts) for c in connections],  # type: ignore[misc]
        )
        self.assertEqual(len(set(found)), 1, found)
        rows = self.raw().execute(f"SELECT format FROM {self.schema}.journal").fetchall()
        self.assertEqual(rows, [(len(scripts),)])

    def test_several_open_a_new_journal_at_once(self) -> None:
        from interlock_tools.journal.pg import schema

        connections = [self.raw() for _ in range(4)]
        found = KitBase.in_threads(
            self,  # type: ignore[arg-type]
            [lambda c=c: schema.migrate(c, self.schema, "x") for c in connections],  # type: ignore[misc]
        )
        self.assertEqual(len(set(found)), 1, found)

    def test_long_names_and_nul(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        for name in ("x" * 10_000, "a\x00b", 'quo"te\\', "é" * 300):
            story = Story(journal, name).append(*TO_DISPATCHED, budgets=[{**BUDGET, "budget": name}])
            self.assertEqual(journal.budget(name).used, 10)
            row = journal.effect(story.effect_id)
            self.assertEqual(row.request_key, name)
            with self.assertRaises(OverBudget) as caught:
                Story(journal, name + "2").append(*TO_DISPATCHED, budgets=[{**BUDGET, "budget": name, "amount": 91}])
            self.assertEqual(caught.exception.budget, name)

    def test_twenty_decisions(self) -> None:
        journal = self.open()
        self.addCleanup(journal.close)
        for number in range(1, 20):
            Story(journal, "case", number).append(Kind.PROPOSED)
            row = journal.latest_decision("kit.refund", "case")
            self.assertEqual((row.decision, row.effect_id), (number, canonical.effect_id("kit.refund", "case", number)))


class TestUrls(unittest.TestCase):
    """URLs that cannot be read, and passwords."""

    def setUp(self) -> None:
        require_driver()

    def test_a_password_is_never_shown(self) -> None:
        from interlock_tools.journal.pg.target import parse

        for url in (
            "postgresql://u:hunter2@h:1/d?interlock_schema=x",
            "postgresql://u@h/d?password=hunter2&sslmode=disable",
            "postgresql://u:hunter2@h1:1,h2:2/d",
        ):
            target = parse(url)
            self.assertNotIn("hunter2", target.url + repr(target))
            self.assertNotIn("hunter2", target.clean("for hunter2\n  hunter2"))

    def test_urls_that_cannot_be_read_are_refused_without_repeating_them(self) -> None:
        for url in (
            "postgresql://u:hun@ter2@h/d",
            "postgresql://u:hunter2%@h/d",
            "postgresql://u:hunter2@h:port/d",
            "postgresql://u:hunter2@h/d?nonsense=1",
            "postgresql://u:hunter2/@h/d",
            "postgresql://u:hunter2@h/d?interlock_lease_s=0",
            "postgresql://u:hunter2@h/d?interlock_schema=Bad-Name",
            "postgresql://u:hunter2@h/d?interlock_what=1",
        ):
            with self.subTest(url), self.assertRaises(JournalUnusable) as caught:
                open_journal(url)
            self.assertNotIn("hunter2", str(caught.exception))
            self.assertNotIn("ter2", str(caught.exception))

    def test_a_wrong_password_is_said_and_not_shown(self) -> None:
        if os.environ.get(URL):
            self.skipTest("needs a server of its own")
        url = server().url().replace("s3cr3t", "wr0ng")
        self.assertNotEqual(url, server().url(), SECRET)
        with self.assertRaisesRegex(JournalError, "password authentication failed") as caught:
            open_journal(url)
        self.assertNotIn("wr0ng", str(caught.exception))
