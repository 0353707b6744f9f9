"""A case may be refunded up to $30; two bots each want $20; the first to reach the crash point is killed and restarted.

On two hosts the bots share no filesystem: each has a folder of its own, and only the database in common.
Restarted at once means that the next process stands by with its program loaded. The service takes a while over each
refund, except in the rows that say "instant": who comes first is the whole of this scenario, so that matters.
"""

from __future__ import annotations

import atexit
import functools
import json
import shutil
import threading
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from scenarios.cases.shared_cap.arms import ARMS, CAP, CAP_CASE
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World

REFUND = 20_00
REFUND_S = 1.2
"""How long the service takes over a refund. In the reference study no_check, which only sends, settled in 1.1 s where
the refund was there already, and in 2.3 s where it had to be made."""
BOTS = ("1", "2")
_server_mutex = threading.Lock()


class SharedCap(Scenario):
    """See the module."""

    key = "shared_cap"
    title = "Two bots under one cap"
    invariant = "What is refunded never exceeds the cap of $30."
    services = ("stripe",)
    sends = ("POST", "/v1/refunds")
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "after_commit": Fault(AFTER_SEND, latency_s=REFUND_S),
        "before_send": Fault(BEFORE_SEND, latency_s=REFUND_S),
        "two_hosts/after_commit": Fault(AFTER_SEND, latency_s=REFUND_S, ours=True),
        "two_hosts/before_send": Fault(BEFORE_SEND, latency_s=REFUND_S, ours=True),
        "instant/after_commit": Fault(AFTER_SEND, ours=True),
        "instant/before_send": Fault(BEFORE_SEND, ours=True),
    }
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {
        "no_check": "0/40",
        "hand_check": "4/40",
        "hand_lock": "40/40",
        "interlock_core": "25/40",
        "interlock": "40/40",
    }
    repetitions = 20
    race = True
    live_needs = ("STRIPE_API_KEY",)

    def setup(self, world: World, fault: str) -> Work:
        payment = str(world.control.action("pay", amount=100_00)["id"])
        arguments = {"payment_intent": payment, "amount": REFUND}
        facts: dict[str, Any] = {"payment": payment}
        if fault.startswith("two_hosts"):
            world.environment.update(self._database())
        return Work(self.key, "", fault, CAP_CASE, str(world.folder), arguments, facts)

    def agents(self, world: World, work: Work) -> list[Work]:
        """The two bots. On two hosts each has a folder, session files, and a copy of the signing keys of its own."""
        bots = []
        for bot in BOTS:
            folder = world.folder / f"host-{bot}" if work.fault.startswith("two_hosts") else world.folder
            folder.mkdir(exist_ok=True)
            case = f"{CAP_CASE}/bot-{bot}"
            bots.append(replace(work, case=case, worker=bot, folder=str(folder)))
        both = {bot.case: {"id": "APR-7", "by": "Approver One", "max_amount": REFUND} for bot in bots}
        for bot in bots:
            (bot.path / "approvals.json").write_text(json.dumps(both), encoding="utf-8")
        if work.fault.startswith("two_hosts") and self.arms[work.arm].kind == "interlock":
            self._hand_out_keys([bot.path / "keys" for bot in bots])
        return bots

    def _hand_out_keys(self, folders: list[Path]) -> None:
        """Give each host the keys, as a deployment does with its secrets. They are made once."""
        from interlock_tools.sealing import Keys

        first, *others = folders
        Keys.in_directory(first)
        for folder in others:
            shutil.copytree(first, folder)

    def _database(self) -> dict[str, str]:
        """A schema of its own on a PostgreSQL that all cells of this process share."""
        import psycopg

        with _server_mutex:
            url = _server()
        schema = f"cell_{uuid.uuid4().hex[:12]}"
        with psycopg.connect(url, autocommit=True) as db:
            db.execute(f"CREATE SCHEMA {schema}")  # type: ignore[call-overload]
            db.execute(  # type: ignore[call-overload]
                f"CREATE TABLE {schema}.case_budget (name text PRIMARY KEY, used int NOT NULL, cap int NOT NULL)"
            )
            db.execute(  # type: ignore[call-overload]
                f"INSERT INTO {schema}.case_budget VALUES (%s, 0, %s)", (CAP_CASE, CAP)
            )
        return {
            "SCENARIO_DATABASE": f"{url}options=-csearch_path%3D{schema}",
            "INTERLOCK_JOURNAL": f"{url}interlock_schema={schema}_journal",
        }

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        refunds = _refunds(ledger, work)
        total = sum(one["amount"] for one in refunds if one["status"] not in ("failed", "canceled"))
        return Verdict(total <= CAP, f"${total / 100:.0f} refunded", tuple(one["id"] for one in refunds))

    def effects_of(self, ledger: Mapping[str, Any], work: Work, verdict: Verdict) -> Verdict:
        """Those of the bot that died: by its case, or by the effect id of its case."""
        from interlock_tools.core.canonical import effect_id

        payment = work.arguments["payment_intent"]
        ours = {work.case, effect_id("stripe.refund", f"{work.case}:{payment}", 1)}
        mine = [one["id"] for one in _refunds(ledger, work) if ours & set(one["metadata"].values())]
        return replace(verdict, effects=tuple(mine))

    def raced(self, ledger: Mapping[str, Any], work: Work, died_at: float) -> dict[str, Any]:
        """When the other bot's refund was made, if it was."""
        mine = self.effects_of(ledger, work, Verdict(True, "", ())).effects
        others = [one["created_at"] for one in _refunds(ledger, work) if one["id"] not in mine]
        return {"other_landed_s": round(min(others) - died_at, 3) if others else None}

    def notes(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> dict[str, Any]:
        """Whether money of the cap was lost to a refund that never happened: one of the two always fits."""
        return {"stranded": not _refunds(ledger, work)}


def _refunds(ledger: Mapping[str, Any], work: Work) -> list[dict[str, Any]]:
    return [one for one in ledger["refunds"] if one["payment_intent"] == work.arguments["payment_intent"]]


@functools.cache
def _server() -> str:
    from interlock_tools.testing.postgres import Server

    server = Server()
    atexit.register(server.remove)
    return server.url()


SCENARIO = SharedCap()
