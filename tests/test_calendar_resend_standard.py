"""LangChain's standard tests of tools, for Calendar and Resend. They are pytest's; unittest passes them by."""

from __future__ import annotations

import itertools
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import sandbox_of

from interlock_integrations.calendar import CreateCalendarEvent
from interlock_integrations.resend import ResendClient, SendEmail
from interlock_tools import Gate

KEY = "re_full_0123456789abcdef"
SENDER = "bot@example.com"
_days = itertools.count(1)


def journal() -> str:
    return str(Path(tempfile.mkdtemp()) / "journal.db")


class Unit(ToolsUnitTests):
    """Made from what is given, or from the environment."""

    account: dict[str, Any]
    environment: dict[str, str]

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"gate": Gate(journal()), "request": lambda: "case-1", **self.account}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        environment = {**self.environment, "INTERLOCK_JOURNAL": journal()}
        return environment, {}, {"response_format": "content_and_artifact"}


class Integration(ToolsIntegrationTests):
    """Called with and without a tool call, sync and async."""

    tool_constructor_params = Unit.tool_constructor_params

    test_async_invoke_matches_output_schema = pytest.mark.asyncio(
        ToolsIntegrationTests.test_async_invoke_matches_output_schema
    )
    test_async_invoke_no_tool_call = pytest.mark.asyncio(ToolsIntegrationTests.test_async_invoke_no_tool_call)


class Calendar:
    tool_constructor = CreateCalendarEvent

    @property
    def account(self) -> dict[str, Any]:
        address = {"api_endpoint": sandbox_of("calendar").url + "/calendar/v3/"}
        return {"service": build("calendar", "v3", credentials=Credentials(token="t"), client_options=address)}

    @property
    def environment(self) -> dict[str, str]:
        return {"GOOGLE_CALENDAR_TOKEN": "t", "GOOGLE_CALENDAR_API": sandbox_of("calendar").url + "/calendar/v3/"}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        day = f"2026-09-{next(_days):02}"
        times = {"start_datetime": f"{day}T10:00:00", "end_datetime": f"{day}T10:30:00"}
        return {"summary": "Call", **times, "timezone": "Europe/Berlin", "calendar_id": "primary"}


class Resend:
    tool_constructor = SendEmail

    @property
    def account(self) -> dict[str, Any]:
        return {"client": ResendClient(KEY, sandbox_of("resend").url), "sender": SENDER}

    @property
    def environment(self) -> dict[str, str]:
        return {"RESEND_API_KEY": KEY, "RESEND_API_URL": sandbox_of("resend").url, "RESEND_FROM": SENDER}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"to": "anna@example.org", "subject": "Hello", "text": "Hi", "html": "<p>Hi</p>"}


class TestCalendarUnit(Calendar, Unit):
    pass


class TestCalendarIntegration(Calendar, Integration):
    pass


class TestResendUnit(Resend, Unit):
    pass


class TestResendIntegration(Resend, Integration):
    pass
