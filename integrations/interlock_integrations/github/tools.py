"""The tools that a model is given: names, arguments, descriptions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from github import Github
from pydantic import BaseModel, Field

from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, Source

from ..declaring import gate_from_environment
from .client import gated_client, github_from_environment
from .comments import MAX_BODY, declare_comment
from .merges import Method, declare_merge
from .reading import MAX_NUMBER, OWNER, REPO, SHA

MERGE_DESCRIPTION = (
    "Merge a GitHub pull request at the commit that was reviewed. For the request being worked on it is merged at most "
    "once, and not at all if its head has moved, it was closed, or it goes to another branch now. The answer says what "
    "became of it and whether asking again makes sense."
)
COMMENT_DESCRIPTION = (
    "Comment on a GitHub issue or pull request. For the request being worked on the comment is made at most once, and "
    "not at all if the issue was closed, opened again or locked since that was decided. The answer says what became of "
    "it and whether asking again makes sense."
)


class MergePullRequestArguments(BaseModel):
    """What a model gives for a merge."""

    owner: str = Field(pattern=OWNER, description="Who owns the repository: octocat in github.com/octocat/hello.")
    repo: str = Field(pattern=REPO, description="The repository's name: hello in github.com/octocat/hello.")
    pull_number: int = Field(ge=1, le=MAX_NUMBER, description="The pull request's number.")
    merge_method: Method = Field(description="How: a merge commit, one squashed commit, or its commits rebased.")
    sha: str = Field(pattern=SHA, description="The head commit that was reviewed: all 40 hexadecimal digits.")


class CreateIssueCommentArguments(BaseModel):
    """What a model gives for a comment."""

    owner: str = Field(pattern=OWNER, description="Who owns the repository: octocat in github.com/octocat/hello.")
    repo: str = Field(pattern=REPO, description="The repository's name: hello in github.com/octocat/hello.")
    issue_number: int = Field(ge=1, le=MAX_NUMBER, description="The issue's or pull request's number.")
    body: str = Field(min_length=1, max_length=MAX_BODY, description="The comment, in GitHub's Markdown.")


class GithubTool(GatedTool):
    """What the GitHub tools share: each makes itself from the environment, or from an effect that is there.

    ``GITHUB_TOKEN``, ``GITHUB_API_URL`` where it is not github.com's, and
    ``INTERLOCK_JOURNAL``, a file that outlives the process. Making it so
    recovers what an earlier process left open.

    Args:
        effect: an effect that was declared already; the arguments below are then not used.
        gate: the gate; by default one on the journal of ``INTERLOCK_JOURNAL``.
        client: the PyGithub client; by default one with the token of ``GITHUB_TOKEN``.
        recover: bring to an end what an earlier process left open, now.
        declare: further arguments of ``declare_merge`` or ``declare_comment``, such as ``approvals``.
        fields: fields of ``GatedTool``, such as ``request`` and ``wait``.

    Raises:
        DefinitionError: configuration is missing or wrong.
        JournalUnusable: the journal cannot be opened.
    """

    declares: ClassVar[Callable[..., Effect[Any]]]
    request_argument: str = "request"

    def __init__(
        self,
        effect: Effect[Any] | None = None,
        *,
        gate: Gate | None = None,
        client: Github | None = None,
        recover: bool = True,
        declare: Mapping[str, Any] | None = None,
        request: Source | None = None,
        **fields: Any,
    ) -> None:
        if effect is None:
            requester = gated_client(client if client is not None else github_from_environment())
            gate = gate if gate is not None else gate_from_environment()
            effect = type(self).declares(gate, requester, **(declare or {}))
            if recover:
                gate.recover()
        super().__init__(**{"effect": effect, "request": request, **fields})


class MergePullRequest(GithubTool):
    """``merge_pull_request(owner, repo, pull_number, merge_method, sha)``."""

    declares = staticmethod(declare_merge)
    name: str = "merge_pull_request"
    description: str = MERGE_DESCRIPTION
    args_schema: type[BaseModel] = MergePullRequestArguments


class CreateIssueComment(GithubTool):
    """``create_issue_comment(owner, repo, issue_number, body)``."""

    declares = staticmethod(declare_comment)
    name: str = "create_issue_comment"
    description: str = COMMENT_DESCRIPTION
    args_schema: type[BaseModel] = CreateIssueCommentArguments


TOOLS: dict[str, type[GithubTool]] = {
    "merge_pull_request": MergePullRequest,
    "create_issue_comment": CreateIssueComment,
}
"""Tools by name."""
