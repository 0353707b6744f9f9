"""GitHub behind a gate: merges and comments that happen at most once, by PyGithub.

::

    from interlock_tools import Gate
    from interlock_integrations.github import GithubToolkit

    gate = Gate("reviews.db")
    toolkit = GithubToolkit(gate, client=Github(auth=Auth.Token(token)))
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [MergePullRequest()])``.

LangChain is loaded when a tool or the toolkit is first asked for; a process
that only recovers declares the effects (``declare_merge``, ``declare_comment``)
and does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import gated_client, github_from_environment
from .comments import declare_comment
from .merges import declare_merge

if TYPE_CHECKING:
    from .toolkit import GithubToolkit
    from .tools import CreateIssueComment, MergePullRequest

__all__ = [
    "CreateIssueComment",
    "GithubToolkit",
    "MergePullRequest",
    "declare_comment",
    "declare_merge",
    "gated_client",
    "github_from_environment",
]

_LAZY = {"GithubToolkit": "toolkit", "CreateIssueComment": "tools", "MergePullRequest": "tools"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
