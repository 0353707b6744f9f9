"""A chat model that follows a script, for tests and examples of agents.

The fake models that LangChain ships cannot be given tools (``bind_tools``), so
``create_agent`` does not take them.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables import Runnable
from pydantic import SkipValidation

Step = Callable[[list[BaseMessage]], AIMessage]
"""Given the conversation so far, what the model says next."""


def calls(tool: str, **arguments: Any) -> Step:
    """A step that calls one tool. The call's id is a fresh one each time, as a real model's is."""

    def step(messages: list[BaseMessage]) -> AIMessage:
        call = {"name": tool, "args": dict(arguments), "id": f"call_{uuid.uuid4().hex[:12]}", "type": "tool_call"}
        return AIMessage(content="", tool_calls=[call])

    return step


def says(words: str) -> Step:
    """A step that says something and ends the turn."""
    return lambda messages: AIMessage(content=words)


def repeats_the_tool(messages: list[BaseMessage]) -> AIMessage:
    """A step that ends the turn with what the last tool answered."""
    return AIMessage(content=messages[-1].text)


class ScriptedModel(BaseChatModel):
    """Takes the steps of ``script`` one after another within each turn of the user.

    It keeps no state: where it stands is read from the conversation, so a
    restarted agent that begins its turn again begins the script again.
    """

    script: SkipValidation[Sequence[Step]]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Runnable[Any, AIMessage]:
        """Take any tools; the script knows which it calls."""
        return self

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        said = 0
        for message in reversed(messages):
            if isinstance(message, HumanMessage):
                break
            said += isinstance(message, AIMessage)
        if said >= len(self.script):
            raise IndexError(f"the script has {len(self.script)} steps and is over")
        return ChatResult(generations=[ChatGeneration(message=self.script[said](messages))])
