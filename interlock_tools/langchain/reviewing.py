"""``ApprovalMiddleware``: an agent pauses while a person decides, in the way of ``HumanInTheLoopMiddleware``."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain.agents.middleware.types import ToolCallRequest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.config import get_config
from langgraph.types import interrupt

from ..errors import DefinitionError
from .approvals import MAX_QUESTIONS, Question, UnusableAnswer, batched, interrupted, matched, question, record
from .request import Source
from .tool import GatedTool


class ApprovalMiddleware(AgentMiddleware[Any, Any, Any]):
    """Asks a person, by a LangGraph interrupt, about calls of gated tools whose effect requires an approval::

        agent = create_agent(model, tools, middleware=[ApprovalMiddleware(tools)], checkpointer=...)
        agent.invoke(..., config)                                         # pauses with an interrupt
        agent.invoke(Command(resume={"decisions": [{"type": "approve", "by": "ann"}]}), config)

    It asks and is answered as ``HumanInTheLoopMiddleware`` does, and writes question and answer to the journal.
    So an answer is used once, is for exactly what was shown, ends, may as well come from ``interlock approve``, and
    is asked for again neither after a crash nor about something that is done. Premises are read again after it.

    Args:
        tools: the agent's tools; those that are not gated are left alone.
        interrupt_mode: ``batched``, one interrupt for all calls of a message, answered with ``decisions``; or
            ``per_call``, one for each, answered with one decision.
        approver: who answers, if the answer does not say ``by``: a function of the run's configuration or of nothing.
            By default ``config["configurable"]["approver"]``.

    Raises:
        DefinitionError: none of the tools is gated, or the mode is unknown.
    """

    def __init__(
        self,
        tools: Iterable[Any],
        *,
        interrupt_mode: Literal["batched", "per_call"] = "batched",
        approver: Source | None = None,
    ) -> None:
        super().__init__()
        self.gated = {tool.name: tool for tool in tools if isinstance(tool, GatedTool)}
        if not self.gated or interrupt_mode not in ("batched", "per_call"):
            raise DefinitionError("ApprovalMiddleware takes gated tools, and the mode 'batched' or 'per_call'")
        self.interrupt_mode = interrupt_mode
        self.approver = approver

    # -- batched ------------------------------------------------------------------------------------

    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls of the model's message, in one interrupt."""
        config = get_config()
        questions, problem = self._questions(state, config), ""
        for _ in range(MAX_QUESTIONS):
            waiting = _waiting(questions)
            if not waiting:
                return None
            problem = self._answered(waiting, interrupt(batched(waiting, problem)), config)
        raise UnusableAnswer(f"{MAX_QUESTIONS} answers could not be used; the last one: {problem}")

    async def aafter_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Ask about the calls of the model's message, in one interrupt."""
        config = get_config()
        questions, problem = await asyncio.to_thread(self._questions, state, config), ""
        for _ in range(MAX_QUESTIONS):
            waiting = await asyncio.to_thread(_waiting, questions)
            if not waiting:
                return None
            answer = interrupt(batched(waiting, problem))
            problem = await asyncio.to_thread(self._answered, waiting, answer, config)
        raise UnusableAnswer(f"{MAX_QUESTIONS} answers could not be used; the last one: {problem}")

    def _questions(self, state: Any, config: RunnableConfig) -> list[Question]:
        if self.interrupt_mode != "batched" or not state["messages"]:
            return []
        last = state["messages"][-1]
        calls = last.tool_calls if isinstance(last, AIMessage) else []
        asked = [
            question(self.gated[call["name"]], call["args"], config, call["id"])
            for call in calls
            if call["name"] in self.gated
        ]
        return [one for one in asked if one is not None]

    def _answered(self, waiting: list[Question], answer: Any, config: RunnableConfig) -> str:
        """Write the answer down. Returns what is wrong with it, or nothing."""
        try:
            for one, decision in matched(waiting, answer):
                record(one, decision, self.approver, config)
        except UnusableAnswer as error:
            return str(error)
        return ""

    # -- per call -----------------------------------------------------------------------------------

    def wrap_tool_call(self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Any]) -> Any:
        """Ask about this call, then pass it on."""
        asked = self._question(request)
        if asked is not None:
            interrupted(asked, self.approver, request.runtime.config)
        return handler(request)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Any]]
    ) -> Any:
        """Ask about this call, then pass it on."""
        asked = await asyncio.to_thread(self._question, request)
        if asked is not None:
            await asyncio.to_thread(interrupted, asked, self.approver, request.runtime.config)
        return await handler(request)

    def _question(self, request: ToolCallRequest) -> Question | None:
        call = request.tool_call
        tool = self.gated.get(call["name"])
        if self.interrupt_mode != "per_call" or tool is None:
            return None
        return question(tool, call["args"], request.runtime.config, call["id"])


def _waiting(questions: list[Question]) -> list[Question]:
    """Those that nobody has answered yet, here or elsewhere."""
    return [one for one in questions if not _answered_by_now(one)]


def _answered_by_now(one: Question) -> bool:
    asked = one.tool.effect._gate.approval(one.asked.effect_id)
    return asked is None or bool(asked.answer)
