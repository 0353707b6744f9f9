"""LangChain's standard tests of tools, for every Stripe tool. They are pytest's; unittest passes them by."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import stripe
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stripe_support import KEY

from interlock_integrations.stripe import CreateCredit, CreateRefund, CreateTransfer
from interlock_tools import Gate
from scenarios.sandbox import SandboxProcess

_running: list[SandboxProcess] = []
_folders: list[tempfile.TemporaryDirectory[str]] = []


def sandbox() -> SandboxProcess:
    """The sandbox that all tests of this module share."""
    if not _running:
        _running.append(SandboxProcess("stripe").start())
    return _running[0]


@pytest.fixture(scope="module", autouse=True)
def stopped_at_the_end() -> Iterator[None]:
    yield
    while _running:
        _running.pop().stop()
    while _folders:
        _folders.pop().cleanup()


def journal() -> str:
    """A new journal."""
    _folders.append(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    return str(Path(_folders[-1].name) / "journal.db")


def connect() -> stripe.StripeClient:
    return stripe.StripeClient(KEY, base_addresses={"api": sandbox().url})


class Unit(ToolsUnitTests):
    """Made from the environment, or from what is given."""

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"gate": Gate(journal()), "client": connect(), "request": lambda: "case-1"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        environment = {"STRIPE_API_KEY": KEY, "STRIPE_API_BASE": sandbox().url, "INTERLOCK_JOURNAL": journal()}
        return environment, {}, {"response_format": "content_and_artifact"}


class Integration(ToolsIntegrationTests):
    """Called with and without a tool call, sync and async."""

    tool_constructor_params = Unit.tool_constructor_params

    test_async_invoke_matches_output_schema = pytest.mark.asyncio(
        ToolsIntegrationTests.test_async_invoke_matches_output_schema
    )
    test_async_invoke_no_tool_call = pytest.mark.asyncio(ToolsIntegrationTests.test_async_invoke_no_tool_call)


class Refund:
    tool_constructor = CreateRefund

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"payment_intent": sandbox().control.action("pay")["id"], "amount": 2000, "reason": "duplicate"}


class Credit:
    tool_constructor = CreateCredit

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        customer = connect().v1.customers.create().id
        return {"customer": customer, "amount": 1000, "currency": "usd", "description": "Sorry"}


class Transfer:
    tool_constructor = CreateTransfer

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        capabilities: Any = {"transfers": {"requested": True}}
        seller = connect().v1.accounts.create({"type": "custom", "capabilities": capabilities}).id
        charge = sandbox().control.action("pay")["latest_charge"]
        return {"destination": seller, "amount": 2000, "currency": "usd", "source_transaction": charge}


class TestRefundUnit(Refund, Unit):
    pass


class TestRefundIntegration(Refund, Integration):
    pass


class TestCreditUnit(Credit, Unit):
    pass


class TestCreditIntegration(Credit, Integration):
    pass


class TestTransferUnit(Transfer, Unit):
    pass


class TestTransferIntegration(Transfer, Integration):
    pass
