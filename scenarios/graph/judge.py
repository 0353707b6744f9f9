"""Judges a cell: by the service's ledger, by the journal after each life, and by every message that the model got."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock_tools import Gate, parse_policy, verify
from interlock_tools.sealing import Keys
from scenarios.graph.agent import AMOUNT, JOURNAL, KEYS
from scenarios.graph.cells import Cell


class HarnessError(Exception):
    """The cell was not played as it should have been; it has no result."""


@dataclass(frozen=True)
class Life:
    """One process of a cell: its number from 1, how it begins, and where it ends (None: by itself)."""

    number: int
    ask: str
    death: str | None


class Told:
    """What is seen of a cell while it is played."""

    def __init__(self, cell: Cell, payments: list[str], folder: Path) -> None:
        self.cell = cell
        self.payments = payments
        self.folder = folder
        self.how: list[str] = []
        self.messages: list[dict[str, Any]] = []
        self.refunds: list[dict[str, Any]] = []
        self.made: list[list[int]] = []
        self.effect_ids: dict[str, set[str]] = {}

    def after(self, life: Life, said: dict[str, Any] | None, refunds: list[dict[str, Any]]) -> None:
        """Take in what a life left. Raises ``HarnessError`` if it died in another place than the cell says."""
        if said is not None:
            self.how.append(said["how"])
            self.messages = said["tools"]
        self.refunds = refunds
        counts = Counter(one["payment_intent"] for one in refunds)
        made = [counts[payment] for payment in self.payments]
        first_to_act = all(not any(earlier) for earlier in self.made)
        if life.death is not None and first_to_act and made != self.cell.made_at(life.death):
            raise HarnessError(f"life {life.number} made {made} refunds before it died at {life.death}")
        self.made.append(made)
        if self.cell.arm != "no_gate":
            self._read_the_journal()

    def _read_the_journal(self) -> None:
        gate = Gate(self.folder / JOURNAL, signing=self.folder / KEYS)
        try:
            for row in gate.journal.effects():
                self.effect_ids.setdefault(row.request_key, set()).add(row.effect_id)
        finally:
            gate.close()

    def judged(self) -> dict[str, Any]:
        """The cell's record."""
        refunds: dict[str, list[str]] = {payment: [] for payment in self.payments}
        for one in self.refunds:
            refunds[one["payment_intent"]].append(one["id"])
        effects = [len(ids) for ids in refunds.values()]
        record: dict[str, Any] = {
            "effects": effects,
            "made_after_each_life": self.made,
            "how": self.how,
            "refunds": list(refunds.values()),
            "once": set(effects) == {1},
            "told": [{name: value for name, value in one.items() if name != "receipt"} for one in self.messages],
        }
        if self.cell.arm == "no_gate":
            return record
        problems = [] if record["once"] else [f"made {effects} refunds"]
        problems += [f"{one['id']} is of {one['amount']}" for one in self.refunds if one["amount"] != AMOUNT]
        if len(self.effect_ids) != len(self.payments) or any(len(ids) != 1 for ids in self.effect_ids.values()):
            problems.append(f"not one effect for each refund: {self.effect_ids}")
        policy = Keys.in_directory(self.folder / KEYS).policy() + "quorum none\n"
        about = {pay: [one for one in self.messages if pay in (one["request"] or "")] for pay in self.payments}
        if sum(map(len, about.values())) != len(self.messages):
            problems.append("a message is about none of the refunds")
        for payment, messages in about.items():
            problems += self._wrong_about(messages, refunds[payment], policy)
        return {**record, "problems": problems}

    def _wrong_about(self, messages: Sequence[dict[str, Any]], refunds: Sequence[str], policy: str) -> list[str]:
        """What is wrong with the messages about one refund: the truth told, and the same receipt in each."""
        wrong = []
        if len(messages) < 2:
            wrong.append(f"{len(messages)} messages, where it was asked for at least twice")
        for one in messages:
            if one["outcome"] != "COMMITTED" or one["status"] == "error":
                wrong.append(f"the model was told {one['outcome'] or one['content'][:120]}")
            elif not any(refund in one["content"] for refund in refunds):
                wrong.append(f"the refund is not named in: {one['content'][:160]}")
        named = {one["effect_id"] for one in messages}
        if not any(named == ids for ids in self.effect_ids.values()):
            wrong.append(f"messages name {named}, the journal {self.effect_ids}")
        records = {json.dumps(one["receipt"]["records"], sort_keys=True) for one in messages if one["receipt"]}
        if len(records) != 1 or not all(one["receipt"] for one in messages):
            wrong.append(f"{len(records)} different receipts")
        else:
            report = verify(messages[-1]["receipt"], parse_policy(policy))
            if report.failed:
                wrong.append(f"the receipt does not verify: {report}")
        return wrong
