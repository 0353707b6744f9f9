"""What the tests of the Stripe tools share: a sandbox process, a gate on a journal of its own, ways to look at both."""

from __future__ import annotations

import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import stripe
from langchain_core.messages import ToolMessage

from interlock_integrations.stripe import StripeToolkit
from interlock_tools import Gate
from interlock_tools.core.entries import Kind
from interlock_tools.langchain import GatedTool
from scenarios.sandbox import SandboxProcess

KEY = "sk_test_NotToBeSeenAnywhere1234"


class StripeToolCase(unittest.TestCase):
    """One sandbox for the class, reset for each test; a new journal for each test."""

    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("stripe").start()
        cls.addClassCleanup(cls.sandbox.stop)

    def setUp(self) -> None:
        self.control = self.sandbox.control
        self.control.reset()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.gate = self.open_gate()
        self.v1 = self.client().v1

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def open_gate(self, **options: Any) -> Gate:
        gate = Gate(self.folder / "journal.db", **options)
        self.addCleanup(gate.close)
        return gate

    def client(self, key: str = KEY, **options: Any) -> stripe.StripeClient:
        return stripe.StripeClient(key, base_addresses={"api": self.sandbox.url}, **options)

    def toolkit(self, gate: Gate | None = None, **options: Any) -> StripeToolkit:
        options.setdefault("client", self.client())
        options.setdefault("request", lambda: "case-1")
        return StripeToolkit(gate or self.gate, **options)

    def tool(self, tool_name: str, gate: Gate | None = None, **options: Any) -> GatedTool:
        """One tool. Options that the toolkit does not know go to the effect's declaration."""
        known = {"client", "request", "wait", "approvals", "send_timeout", "live", "name"}
        declaration = {name: options.pop(name) for name in set(options) - known}
        kind = tool_name.removeprefix("create_") + "s"
        (tool,) = self.toolkit(gate, tools=[tool_name], **{kind: declaration}, **options).get_tools()
        assert isinstance(tool, GatedTool)
        return tool

    def call(self, tool: GatedTool, config: Any = None, **arguments: Any) -> ToolMessage:
        call = {"name": tool.name, "args": arguments, "id": "call_1", "type": "tool_call"}
        message = tool.invoke(call, config)
        self.assertIsInstance(message, ToolMessage)
        return message

    def pay(self, amount: int = 10_000, **values: Any) -> str:
        payment: str = self.control.action("pay", amount=amount, **values)["id"]
        return payment

    def assert_outcome(self, message: ToolMessage, outcome: str, via: str | None = None) -> None:
        self.assertEqual((message.artifact["outcome"], message.artifact.get("via")), (outcome, via), message.text)

    def refunds(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.control.ledger()["refunds"]
        return found

    def assert_every_request_was_journalled(self, path: str) -> None:
        """As many requests on the wire as sends in the journal, each under its effect's id."""
        received = self.control.requests("POST", path, "received")
        keys = [record["headers"].get("idempotency-key") for record in received]
        sends = [
            entry.effect_id
            for effect_id in dict.fromkeys(keys)
            for entry in self.gate.history(str(effect_id))
            if entry.kind is Kind.DISPATCHED
        ]
        self.assertTrue(received)
        self.assertEqual(sorted(map(str, keys)), sorted(sends))

    def between(self, happens: Callable[[], Any]) -> Callable[..., dict[str, Any]]:
        """Premises that let something happen once, right after the decision was read."""
        pending = [happens]

        def premises(idempotency_key: str) -> dict[str, Any]:
            if self.control.count("POST", "/v1/(refunds|transfers|customers/.*)") and pending:
                pending.pop()()
            return {}

        return premises
