"""LangChain's standard tests of tools, for GitHub and Cloud Storage. They are pytest's; unittest passes them by."""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from github import Auth, Github
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import sandbox_of

from interlock_integrations.gcs import RestoreObject, WriteObject
from interlock_integrations.github import CreateIssueComment, MergePullRequest
from interlock_tools import Gate

TOKEN = "ghp_sandbox_interlock"
_numbers = itertools.count(1)
_folders: list[tempfile.TemporaryDirectory[str]] = []


@pytest.fixture(scope="module", autouse=True)
def cleaned_up_at_the_end() -> Iterator[None]:
    for service in ("github", "gcs"):
        sandbox_of(service).control.reset()
    yield
    while _folders:
        _folders.pop().cleanup()


def journal() -> str:
    """A new journal."""
    _folders.append(tempfile.TemporaryDirectory(ignore_cleanup_errors=True))
    return str(Path(_folders[-1].name) / "journal.db")


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


class OnGithub:
    @property
    def account(self) -> dict[str, Any]:
        return {"client": Github(base_url=sandbox_of("github").url, auth=Auth.Token(TOKEN))}

    @property
    def environment(self) -> dict[str, str]:
        return {"GITHUB_TOKEN": TOKEN, "GITHUB_API_URL": sandbox_of("github").url}

    def repo(self) -> dict[str, str]:
        """A new repository."""
        name = f"shop-{next(_numbers)}"
        sandbox_of("github").control.action("create_repo", full_name=f"acme/{name}")
        return {"owner": "acme", "repo": name}


class Merge(OnGithub):
    tool_constructor = MergePullRequest

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        where, act = self.repo(), sandbox_of("github").control.action
        full_name = f"acme/{where['repo']}"
        head = act("commit", repo=full_name, branch="fix", files={"a": "b"})["sha"]
        number = act("open_pull", repo=full_name, head="fix")["number"]
        sandbox_of("github").control.advance(10)
        return {**where, "pull_number": number, "merge_method": "squash", "sha": head}


class Comment(OnGithub):
    tool_constructor = CreateIssueComment

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        where = self.repo()
        made = sandbox_of("github").control.action("open_issue", repo=f"acme/{where['repo']}")
        return {**where, "issue_number": made["number"], "body": "It is fixed."}


class OnGcs:
    @property
    def account(self) -> dict[str, Any]:
        address = {"api_endpoint": sandbox_of("gcs").url}
        credentials: Any = AnonymousCredentials()  # type: ignore[no-untyped-call]
        return {"client": storage.Client(project="p", credentials=credentials, client_options=address)}

    @property
    def environment(self) -> dict[str, str]:
        return {"STORAGE_EMULATOR_HOST": sandbox_of("gcs").url}

    def bucket(self) -> str:
        """A new bucket."""
        name = f"configs-{next(_numbers)}"
        sandbox_of("gcs").control.action("create_bucket", bucket=name, versioning=True)
        return name


class Write(OnGcs):
    tool_constructor = WriteObject

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return {"bucket": self.bucket(), "name": "config.json", "content": "{}"}


class Restore(OnGcs):
    tool_constructor = RestoreObject

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        bucket, act = self.bucket(), sandbox_of("gcs").control.action
        made = act("put", bucket=bucket, object="config.json", content="v41")
        act("put", bucket=bucket, object="config.json", content="v42")
        return {"bucket": bucket, "name": "config.json", "generation": made["generation"]}


class TestMergeUnit(Merge, Unit):
    pass


class TestMergeIntegration(Merge, Integration):
    pass


class TestCommentUnit(Comment, Unit):
    pass


class TestCommentIntegration(Comment, Integration):
    pass


class TestWriteUnit(Write, Unit):
    pass


class TestWriteIntegration(Write, Integration):
    pass


class TestRestoreUnit(Restore, Unit):
    pass


class TestRestoreIntegration(Restore, Integration):
    pass
