"""``GithubToolkit``: the GitHub tools behind one gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from github import Github

from interlock_tools import DefinitionError, Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, gated_client, github_from_environment
from .tools import TOOLS


class GithubToolkit(GatedToolkit):
    """GitHub's gated tools: ``create_agent(model, GithubToolkit(gate, client=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        client: the application's PyGithub client; by default one configured by the environment. It is left as it
            is: the tools use its credentials and address on the gated transport, without retries.
        tools: names of the tools to make: ``merge_pull_request``, ``create_issue_comment``; by default both.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        merges, comments: further arguments of ``declare_merge`` and ``declare_comment``, such as ``approvals``,
            ``premises``, ``expect`` and ``budget``.
        send_timeout: longest time until a request has landed or never will.
        name: prefix of the effects' names; another one for each account at one journal.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        client: Github | None = None,
        tools: Iterable[str] = tuple(TOOLS),
        request: Source | None = None,
        wait: timedelta | float | None = None,
        merges: Mapping[str, Any] | None = None,
        comments: Mapping[str, Any] | None = None,
        send_timeout: timedelta = SEND_TIMEOUT,
        name: str = "github",
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        chosen = [tools] if isinstance(tools, str) else list(tools)
        unknown = sorted(set(chosen) - set(TOOLS))
        if unknown:
            raise DefinitionError(f"no GitHub tool {', '.join(unknown)}; there are {', '.join(TOOLS)}")
        requester = gated_client(client if client is not None else github_from_environment())
        parts = {"merge_pull_request": ("merge", merges), "create_issue_comment": ("comment", comments)}
        for tool in dict.fromkeys(chosen):
            part, further = parts[tool]
            effect = TOOLS[tool].declares(
                gate, requester, **{"name": f"{name}.{part}", "send_timeout": send_timeout, **(further or {})}
            )
            self.add(TOOLS[tool](effect, request=request, wait=wait))
