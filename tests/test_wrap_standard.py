"""LangChain's standard tests of tools, for a tool behind ``gate.wrap`` and for one that needs an approval.

They are pytest's; unittest passes them by.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from interlock_tools import Gate

_folders: list[tempfile.TemporaryDirectory[str]] = []


@pytest.fixture(scope="module", autouse=True)
def removed_at_the_end() -> Iterator[None]:
    yield
    while _folders:
        _folders.pop().cleanup()


def gate() -> Gate:
    """A gate on a new journal."""
    _folders.append(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    return Gate(Path(_folders[-1].name) / "journal.db")


@tool
def send_invoice(customer: str, cents: int) -> str:
    """Send an invoice to a customer."""
    return f"sent {cents} to {customer}"


class Wrapped:
    """What both kinds of tests are told."""

    requires_approval = False

    @property
    def tool_constructor(self) -> BaseTool:
        requires = self.requires_approval
        return gate().wrap(send_invoice, request=lambda: "case-1", requires_approval=requires)

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"customer": "acme", "cents": 1250}


class TestWrappedUnit(Wrapped, ToolsUnitTests):
    pass


class Integration(ToolsIntegrationTests):
    """Called with and without a tool call, sync and async."""

    test_async_invoke_matches_output_schema = pytest.mark.asyncio(
        ToolsIntegrationTests.test_async_invoke_matches_output_schema
    )
    test_async_invoke_no_tool_call = pytest.mark.asyncio(ToolsIntegrationTests.test_async_invoke_no_tool_call)


class TestWrappedIntegration(Wrapped, Integration):
    pass


class TestApprovalUnit(Wrapped, ToolsUnitTests):
    requires_approval = True


class TestApprovalIntegration(Wrapped, Integration):
    requires_approval = True
