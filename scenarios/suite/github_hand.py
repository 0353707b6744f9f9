"""What the hand-written GitHub arms share: PyGithub, and one request that a test can kill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import requests
from github import Github, GithubException
from github.Repository import Repository

from interlock_integrations.github import gated_client
from interlock_integrations.github.client import github_from_environment
from interlock_integrations.transport import sending
from scenarios.suite.hand import Again, Instants, responded


def repository(owner: str, repo: str) -> Repository:
    """A repository of the official client. It is put on a transport that lets a test kill the process at an instant."""
    client = Github()
    client._Github__requester = gated_client(github_from_environment())  # type: ignore[attr-defined]
    return client.get_repo(f"{owner}/{repo}")


def send(call: Callable[[], Any]) -> Any:
    """Make one request that changes something; its answer. Raises ``Again`` for what says nothing."""
    try:
        with sending(Instants()):
            answer = call()
    except GithubException as error:
        if error.status >= 500:
            raise Again(f"GitHub answered {error.status}") from error
        raise
    except (requests.RequestException, ConnectionError) as error:
        raise Again(f"GitHub did not answer: {type(error).__name__}") from error
    responded()
    return answer
