"""``RecordedReview``: LangChain's own ``HumanInTheLoopMiddleware``, whose answers stand as approvals in the journal."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any

from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config

from ..errors import DefinitionError
from .approvals import Question, UnusableAnswer, question, record
from .request import Source
from .tool import GatedTool

Asked = dict[str, Question]

_asked: ContextVar[Asked | None] = ContextVar("interlock_asked", default=None)
"""The calls that a person is being asked about, by their ids."""

EDITED = "hitl_edited_tool_calls"
"""Where ``HumanInTheLoopMiddleware`` keeps edits in the graph's state."""


class RecordedReview(AgentMiddleware[Any, Any, Any]):
    """For an agent that has ``HumanInTheLoopMiddleware``, in either mode: put this around it::

        review = HumanInTheLoopMiddleware({"refund": True}, interrupt_mode="per_call")
        agent = create_agent(model, tools, middleware=[RecordedReview(review, tools)], checkpointer=...)

    It asks as before. What it asks about a gated tool whose effect requires an approval is written down before, and so
    is the answer: an approval, an edit (a new decision), or a rejection (which an answer in the tool's place is too).
    After a crash it may ask again about something that is done; then the tool says so, and nothing is done twice.

    Args:
        review: the middleware, as it is.
        tools: the agent's tools; those that are not gated are reviewed as before.
        approver: who answers: a function of the run's configuration or of nothing. By default
            ``config["configurable"]["approver"]``.

    Raises:
        DefinitionError: ``review`` is something else, or reviews none of the gated tools.
    """

    def __init__(
        self, review: HumanInTheLoopMiddleware[Any, Any, Any], tools: Iterable[Any], *, approver: Source | None = None
    ) -> None:
        super().__init__()
        if not isinstance(review, HumanInTheLoopMiddleware):
            raise DefinitionError(f"RecordedReview takes a HumanInTheLoopMiddleware, not {review!r:.80}")
        self.review = review
        self.state_schema = review.state_schema
        self.approver = approver
        self.gated = {tool.name: tool for tool in tools if isinstance(tool, GatedTool)}
        reviewed = set(self.gated) & set(review.interrupt_on)
        if not reviewed:
            raise DefinitionError("the review asks about none of the gated tools")
        for name in reviewed:
            config = review.interrupt_on[name]
            review.interrupt_on[name] = {**config, "when": self._noting(name, config.get("when"))}

    def _noting(self, name: str, when: Callable[[ToolCallRequest], bool] | None) -> Callable[[ToolCallRequest], bool]:
        """The review's own predicate, which writes the question down where it says yes."""

        def asks(request: ToolCallRequest) -> bool:
            if when is not None and not when(request):
                return False
            asked, call = _asked.get(), request.tool_call
            if asked is not None and call["id"] is not None:
                found = question(self.gated[name], call["args"], request.runtime.config, call["id"])
                if found is not None:
                    asked[call["id"]] = found
            return True

        return asks

    # -- batched ------------------------------------------------------------------------------------

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Let the review ask about the model's calls, and write the answers down."""
        asked: Asked = {}
        token = _asked.set(asked)
        try:
            found = self.review.after_model(state, runtime)
        finally:
            _asked.reset(token)
        self._answered(asked, found, get_config())
        return found

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Let the review ask about the model's calls, and write the answers down."""
        asked: Asked = {}
        token = _asked.set(asked)
        try:
            found = await self.review.aafter_model(state, runtime)
        finally:
            _asked.reset(token)
        self._answered(asked, found, get_config())
        return found

    def _answered(self, asked: Asked, found: dict[str, Any] | None, config: RunnableConfig) -> None:
        if not found:
            return
        answers = {one.tool_call_id: one for one in found.get("messages", ()) if isinstance(one, ToolMessage)}
        edits = found.get(EDITED) or {}
        for call_id, one in asked.items():
            if call_id in answers:
                self._record(one, {"type": "reject", "message": answers[call_id].text}, config)
            elif call_id in edits:
                self._record(one, {"type": "edit", "edited_action": edits[call_id]}, config)
            else:
                self._record(one, {"type": "approve"}, config)

    # -- per call -----------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Let the review ask about this call, and write the answer down before the tool runs."""
        asked: Asked = {}
        ran: list[bool] = []

        def approved(reviewed: ToolCallRequest) -> Any:
            ran.append(True)
            self._approved(asked, request, reviewed)
            return handler(reviewed)

        token = _asked.set(asked)
        try:
            answer = self.review.wrap_tool_call(request, approved)
        finally:
            _asked.reset(token)
        return self._ended(asked, request, answer, bool(ran))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Let the review ask about this call, and write the answer down before the tool runs."""
        asked: Asked = {}
        ran: list[bool] = []

        async def approved(reviewed: ToolCallRequest) -> Any:
            ran.append(True)
            self._approved(asked, request, reviewed)
            return await handler(reviewed)

        token = _asked.set(asked)
        try:
            answer = await self.review.awrap_tool_call(request, approved)
        finally:
            _asked.reset(token)
        return self._ended(asked, request, answer, bool(ran))

    def _approved(self, asked: Asked, request: ToolCallRequest, reviewed: ToolCallRequest) -> None:
        config = request.runtime.config
        for one in asked.values():
            if reviewed.tool_call["name"] != request.tool_call["name"]:
                words = f"a person chose {reviewed.tool_call['name']} instead"
                self._record(one, {"type": "reject", "message": words}, config)
            elif reviewed.tool_call["args"] != request.tool_call["args"]:
                edited = {"args": reviewed.tool_call["args"]}
                self._record(one, {"type": "edit", "edited_action": edited}, config)
            else:
                self._record(one, {"type": "approve"}, config)

    def _ended(self, asked: Asked, request: ToolCallRequest, answer: Any, ran: bool) -> Any:
        if not ran:
            words = answer.text if isinstance(answer, ToolMessage) else "not run"
            for one in asked.values():
                self._record(one, {"type": "reject", "message": words}, request.runtime.config)
        return answer

    def _record(self, one: Question, decision: dict[str, Any], config: RunnableConfig) -> None:
        """Write an answer down. One that cannot be used is a rejection that says why."""
        try:
            record(one, decision, self.approver, config)
        except UnusableAnswer as error:
            record(one, {"type": "reject", "message": str(error)}, self.approver, config)
