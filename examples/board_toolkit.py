"""A toolkit for a service of one's own, whole: a board on which notices are put up. See docs/writing-a-toolkit.md."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import requests
from pydantic import BaseModel, Field

from interlock_integrations.declaring import check_text, with_more
from interlock_integrations.transport import new_session, sending
from interlock_tools import DefiniteNo, Gate, InProgress, PreconditionFailed, RateLimited
from interlock_tools.effect import Effect
from interlock_tools.langchain import GatedTool, GatedToolkit, Source

BOARD = r"^[a-z][a-z0-9-]{0,40}$"
TEXT = r"^[^\x00]+$"


class PutUpNoticeArguments(BaseModel):
    """What a model gives for a notice. No key and no id: those are not the model's to choose."""

    board: str = Field(pattern=BOARD, description="The board's name.")
    text: str = Field(pattern=TEXT, max_length=300, description="What the notice says.")


def declare_notice(
    gate: Gate, url: str, *, approvals: Callable[..., Any] | None = None, premises: Callable[..., Any] | None = None
) -> Effect[Any]:
    """Declare the effect: what it rests on, how it is sent, how it is found again."""
    session = new_session()  # one journalled send is one request, marked right before its first byte

    def key(request: str, board: str, text: str) -> str:
        check_text("board", board, BOARD)
        check_text("text", text, TEXT)
        return f"{request}:{board}"

    def board_facts(request: str, board: str, text: str, idempotency_key: str) -> dict[str, Any]:
        answer = session.get(f"{url}/a/{board}/facts", params={"without": idempotency_key})
        answer.raise_for_status()  # what cannot be read neither holds nor refuses
        return {"owner": answer.json()["owner"]}

    def find_notice(board: str, idempotency_key: str) -> dict[str, Any] | None:
        answer = session.get(f"{url}/a/{board}/find", params={"key": idempotency_key})
        if answer.status_code == 404:
            return None
        answer.raise_for_status()
        return {"id": answer.json()["id"]}

    @gate.effect(
        "board.notice",
        key=key,
        premises=with_more(board_facts, premises),
        allowed=approvals,
        dedupes=True,  # this service never forgets a key
        lookup=find_notice,
        send_timeout=timedelta(seconds=60),
    )
    def put_up_notice(request: str, board: str, text: str, *, idempotency_key: str, on_send: Any) -> dict[str, Any]:
        with sending(on_send):
            headers = {"Idempotency-Key": idempotency_key}
            answer = session.post(f"{url}/a/{board}/do", json={"text": text}, headers=headers)
        raise_for(answer)
        return {"id": answer.json()["id"]}

    return put_up_notice


def raise_for(answer: requests.Response) -> None:
    """Say what an error proves. What proves nothing (a 5xx, a broken connection) is raised as it is."""
    words = f"the board answered {answer.status_code}"
    if answer.status_code == 409:
        raise InProgress(words)
    if answer.status_code == 412:
        raise PreconditionFailed(words)
    if answer.status_code == 429:
        raise RateLimited(words, retry_after=float(answer.headers.get("Retry-After", 1)))
    if answer.status_code in (400, 402, 404, 422):
        raise DefiniteNo(words, stored=answer.headers.get("Idempotent-Replayed") == "true")
    answer.raise_for_status()


class PutUpNotice(GatedTool):
    """``put_up_notice(board, text)``."""

    name: str = "put_up_notice"
    description: str = "Put up a notice on a board. For the request being worked on it is put up at most once."
    args_schema: type[BaseModel] = PutUpNoticeArguments
    request_argument: str = "request"


class BoardToolkit(GatedToolkit):
    """The board's tools behind one gate: ``create_agent(model, BoardToolkit(gate, url).get_tools())``."""

    def __init__(self, gate: Gate, url: str, *, request: Source | None = None, **declare: Any) -> None:
        super().__init__(gate, request=request)
        self.add(PutUpNotice(effect=declare_notice(gate, url, **declare), request=request))
