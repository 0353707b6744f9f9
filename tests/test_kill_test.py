"""The kill test that users run on their own code: it tells once from twice, and says when it could not kill."""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, tool

from interlock_tools import Gate
from interlock_tools.langchain import InterlockMiddleware
from interlock_tools.langchain.testing import ScriptedModel, calls, repeats_the_tool
from interlock_tools.testing.crash import CrashPoint
from interlock_tools.testing.kill import NotKilled, kill_test


def invoices(folder: Path) -> list[str]:
    path = folder / "sent.txt"
    return path.read_text().splitlines() if path.exists() else []


def sender(folder: Path) -> BaseTool:
    @tool
    def send_invoice(customer: str, cents: int) -> str:
        """Send an invoice to a customer."""
        with (folder / "sent.txt").open("a") as sent:
            sent.write(f"{customer} {cents}\n")
        return f"sent to {customer}"

    found: BaseTool = send_invoice
    return found


def agent_run(folder: Path, lookup: bool) -> Any:
    gate = Gate(folder / "journal.db")

    def find(customer: str) -> str | None:
        return next((line for line in invoices(folder) if line.startswith(customer)), None)

    plain = sender(folder)
    gated = gate.wrap(plain, lookup=find if lookup else None)
    gate.recover()
    model = ScriptedModel(script=[calls("send_invoice", customer="acme", cents=5), repeats_the_tool])
    agent = create_agent(model, [plain], middleware=[InterlockMiddleware([gated])])
    return agent.invoke({"messages": [HumanMessage("Bill acme.")]}, {"configurable": {"request_id": "order-7"}})


def count(folder: Path) -> int:
    return len(invoices(folder))


class KillTest(unittest.TestCase):
    def test_an_agent_with_a_tool_of_its_own(self) -> None:
        report = kill_test(lambda folder: agent_run(folder, lookup=True), count)
        self.assertTrue(report.once, str(report))
        self.assertEqual([kill.point for kill in report], [line.split()[0] for line in str(report).splitlines()[1:]])
        self.assertTrue(all(kill.said.startswith("Done:") for kill in report), str(report))

    def test_of_a_tool_of_which_nothing_is_known_it_tells_the_truth(self) -> None:
        report = kill_test(lambda folder: agent_run(folder, lookup=False), count, points=[CrashPoint.AFTER_RESPONSE])
        self.assertTrue(report.once)
        self.assertIn("a person has to look", str(report))

    def test_it_tells_twice_from_once(self) -> None:
        def careless(folder: Path) -> str:
            with (folder / "sent.txt").open("a") as sent:
                sent.write("acme 5\n")  # before the gate: this is what it is there to show
            return str(agent_run(folder, lookup=True))

        report = kill_test(careless, count, points=[CrashPoint.AFTER_DISPATCHED])
        self.assertFalse(report.once, str(report))

    def test_what_could_not_be_killed_says_why(self) -> None:
        with self.assertRaisesRegex(NotKilled, "does its request go through a gate"):
            kill_test(lambda folder: None, count, points=[CrashPoint.AFTER_RESPONSE])
        with self.assertRaisesRegex(NotKilled, "ended by itself: ZeroDivisionError"):
            kill_test(lambda folder: 1 / 0, count, points=[CrashPoint.AFTER_RESPONSE])


if __name__ == "__main__":
    unittest.main()
