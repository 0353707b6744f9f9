"""A host that loses its network to the database while it sends. Hosts are network namespaces, and the wire is cut."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from postgres_network import NoNamespaces, Wire
from postgres_support import URL, missing, new_server, require_driver
from test_journal_postgres_sessions import LEASE_S, WorkersCase

from interlock_tools.core.decide import Sender
from interlock_tools.core.entries import Kind
from interlock_tools.testing.journal_story import Story


class TestCutOff(WorkersCase):
    """Two workers on a host: one is cut off right before its bytes go out, the other while its answer comes back."""

    @classmethod
    def setUpClass(cls) -> None:
        unittest.TestCase.setUpClass()
        require_driver()
        if os.environ.get(URL):
            raise unittest.SkipTest("needs a server that listens where the test says")

    def setUp(self) -> None:
        self.wires: dict[str, Wire] = {}
        try:
            for host in "ab":
                self.wires[host] = Wire()
                self.addCleanup(self.wires[host].remove)
        except NoNamespaces as error:
            missing(str(error))
        addresses = ",".join(["127.0.0.1", *(wire.address for wire in self.wires.values())])
        self.own = new_server(f"listen_addresses='{addresses}'")
        self.addCleanup(self.own.remove)
        with (self.own.data / "pg_hba.conf").open("a") as file:
            file.write("host all all 198.18.0.0/15 scram-sha-256\n")
        super().setUp()
        self.raw().execute("SELECT pg_reload_conf()")

    def url(self, **parameters: Any) -> str:
        return self.own.url(interlock_schema=self.schema, interlock_pool=2, **parameters)

    def raw(self) -> Any:
        import psycopg

        connection = psycopg.connect(self.own.url(), autocommit=True)
        self.addCleanup(connection.close)
        return connection

    def url_on(self, host: str) -> str:
        return self.url(interlock_lease_s=LEASE_S).replace("@127.0.0.1:", f"@{self.wires[host].address}:")

    def test_i2_a_sender_without_network_does_not_send_after_its_lease_and_a_late_answer_is_late(self) -> None:
        held = {where: self.folder / f"hold-{where}" for where in ("before", "after")}
        prefix = self.wires["a"].prefix
        workers = {
            where: self.start("a", f"{where} cap-{where}", hold=str(path), prefix=prefix)
            for where, path in held.items()
        }
        for path in held.values():
            self.wait_for(lambda path=path: Path(f"{path}.held").exists())  # type: ignore[misc]
        journal = self.here()
        effects = {row.request_key.partition(" ")[0]: row.effect_id for row in journal.open_effects()}
        stories = [Story(journal, f"{where} cap-{where}", name="kit.refund") for where in workers]
        self.assertEqual([self.seen(story) for story in stories], [Sender.LIVE] * 2)

        self.wires["a"].cut()
        for story in stories:
            self.wait_for(lambda story=story: self.seen(story) is Sender.LOST)  # type: ignore[misc]
        recovered = self.answer(self.start("b", "recover", prefix=self.wires["b"].prefix))
        self.assertEqual((recovered["outcomes"], recovered["open"]), (["COMMITTED"] * 2, 0))
        for path in held.values():
            Path(f"{path}.go").touch()
        revoked = Path(f"{held['before']}.revoked")
        self.wait_for(lambda: revoked.exists() and bool(revoked.read_text()))
        self.assertIn("has not been renewed in time", revoked.read_text())
        self.wires["a"].mend()

        self.assertEqual({self.answer(worker)["outcome"] for worker in workers.values()}, {"COMMITTED"})
        self.assertEqual(sorted(self.ledger()), sorted(effects.values()), "each happened once")
        kinds = {where: [entry.kind for entry in journal.entries(effect)] for where, effect in effects.items()}
        self.assertEqual(kinds["before"].count(Kind.DISPATCHED), 2)
        self.assertEqual(kinds["after"].count(Kind.DISPATCHED), 1)
        for found in kinds.values():
            self.assertIn(Kind.SENDER_LOST, found)
            self.assertEqual(found.count(Kind.COMMITTED), 1)
        self.assertEqual(kinds["after"][-1], Kind.LATE)


if __name__ == "__main__":
    unittest.main()
