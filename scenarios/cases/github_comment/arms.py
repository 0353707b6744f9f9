"""The tool ``create_issue_comment``, made in three ways, at a service that neither dedupes nor enforces."""

from __future__ import annotations

from typing import Any

from github import GithubException
from langchain_core.tools import BaseTool

from interlock_integrations.github import GithubToolkit
from scenarios.suite import github_hand as hand
from scenarios.suite.gated import approvals, gate_of, options, recovered
from scenarios.suite.hand import Files, hand_tool, settled, with_retries
from scenarios.suite.model import Arm, Work
from scenarios.suite.peers import DBOS_LOADS, LANGGRAPH_LOADS, Act, checkpointed_tool, dbos_tool

Said = tuple[str, dict[str, Any]]


def no_check(work: Work) -> BaseTool:
    """Save the decision, comment, and comment again after a restart that did not save the result."""
    files = Files(work)

    def create_issue_comment(owner: str, repo: str, issue_number: int, body: str) -> Said:
        """Comment on an issue."""
        decided = files.decision(lambda: {"body": body})
        saved = files.result()
        if saved is not None:
            return files.again(saved)
        issue = hand.repository(owner, repo).get_issue(issue_number)

        def once() -> Said:
            try:
                made = hand.send(lambda: issue.create_comment(decided["body"]))
            except GithubException as error:
                return files.finish("not_landed", f"GitHub refused it: {error.status}")
            return files.finish("landed", f"Commented: {made.id}.", id=str(made.id))

        return settled(files, once, tries=5, first_s=0.5)

    return hand_tool("create_issue_comment", create_issue_comment)


def hand_check(work: Work) -> BaseTool:
    """Put a marker of the case into the comment; look for it on every page first, before every try; then send.

    There is no key and no precondition at this service, so to look is all that
    can be done without remembering when the last request was sent.
    """
    files = Files(work)

    def create_issue_comment(owner: str, repo: str, issue_number: int, body: str) -> Said:
        """Comment on an issue."""
        decided = files.decision(lambda: {"body": body, "approval": files.approval()})
        marker = f"<!-- case:{work.case} -->"
        issue = hand.repository(owner, repo).get_issue(issue_number)

        def once() -> Said:
            found = next((one for one in issue.get_comments() if marker in (one.body or "")), None)
            if found is not None:
                return files.finish("landed", f"The comment is there: {found.id}.", id=str(found.id))
            now = issue.repository.get_issue(issue_number)
            approval = files.approval()
            files.log("checked", state=now.state, locked=now.locked, approval=approval, found=False)
            if now.locked or approval is None:
                return files.finish("not_landed", "Not commented: the issue is locked or the approval is gone.")
            try:
                made = hand.send(lambda: issue.create_comment(f"{decided['body']}\n\n{marker}"))
            except GithubException as error:
                return files.finish("not_landed", f"GitHub refused it: {error.status}")
            return files.finish("landed", f"Commented: {made.id}.", id=str(made.id))

        return settled(files, once, tries=5, first_s=0.5)

    return hand_tool("create_issue_comment", create_issue_comment)


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with the application's approvals."""
    gate = gate_of(work)
    comments = {"approvals": approvals(work)}
    kit = GithubToolkit(gate, tools=["create_issue_comment"], comments=comments, **options(work))
    return recovered(gate, kit.get_tools())


def _peer(work: Work) -> tuple[Act, Act]:
    """What a peer's steps do. There is no key to give, so the send is what it is."""

    def issue(arguments: dict[str, Any]) -> Any:
        return hand.repository(arguments["owner"], arguments["repo"]).get_issue(arguments["issue_number"])

    def check(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"go": not issue(arguments).locked, "claim": "not_landed", "words": "Not commented: it is locked."}

    def send(arguments: dict[str, Any]) -> dict[str, Any]:
        try:
            found = issue(arguments)
            made = hand.send(lambda: found.create_comment(arguments["body"]))
        except GithubException as error:
            return {"claim": "not_landed", "words": f"GitHub refused it: {error.status}"}
        return {"claim": "landed", "words": f"Commented: {made.id}.", "id": str(made.id)}

    return check, send


def dbos(work: Work) -> BaseTool:
    """A DBOS workflow of two steps, the check and the send; a step that did not finish is run again."""
    return dbos_tool(work, "create_issue_comment", *_peer(work))


def langgraph(work: Work) -> BaseTool:
    """The agent has a checkpointer (SQLite, durability sync) and is resumed; a call without an answer is made again."""

    def send(arguments: dict[str, Any]) -> dict[str, Any]:
        done: dict[str, Any] = with_retries(lambda: _peer(work)[1](arguments))
        return done

    return checkpointed_tool(work, "create_issue_comment", _peer(work)[0], send)


ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
    "dbos": Arm(dbos, "peer", dbos.__doc__ or "", loads=DBOS_LOADS),
    "langgraph": Arm(langgraph, "peer", langgraph.__doc__ or "", checkpointed=True, loads=LANGGRAPH_LOADS),
}
