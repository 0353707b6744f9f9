"""Approvals by a LangGraph interrupt. The interrupt only carries the question and the answer; both are in the journal.

The values are those of ``HumanInTheLoopMiddleware``, so what shows its
interrupts to people shows these too: ``batched`` asks once for all calls of a
message, ``per_call`` once for each. Each question also names the effect, what
it rests on and its digest; an answer may also say ``by`` and ``why``.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.runnables import RunnableConfig

from ..deciding import ApprovalRequest
from ..errors import BadRequest, NotDecidable, describe
from ..outcome import Outcome, Reason
from ..redaction import clean
from .request import Source, ask

if TYPE_CHECKING:
    from .tool import GatedTool

log = logging.getLogger("interlock_tools")

DECISIONS = ("approve", "edit", "reject")
APPROVER = "approver"
"""Where the name of whoever answers is looked for in ``config["configurable"]``, if the answer does not say."""

MAX_QUESTIONS = 10
"""How often one call asks again after an answer that cannot be used."""


class UnusableAnswer(ValueError):
    """What was resumed with is not an answer to the question."""


@dataclass(frozen=True)
class Question:
    """One call of one tool that waits for a person.

    Attributes:
        tool: the gated tool.
        call_id: the model's tool call, where there is one.
        arguments: what the model gave.
        asked: what is in the journal about it.
    """

    tool: GatedTool
    call_id: str | None
    arguments: dict[str, Any]
    asked: ApprovalRequest

    def to_json(self) -> dict[str, Any]:
        """Return it as what a person is shown: the call, what it rests on, and until when an answer counts."""
        about = {
            name: value for name, value in self.asked.to_json().items() if name in ("effect_id", "digest", "facts")
        }
        until = self.asked.to_json()["expires_at"]
        return {
            "name": self.tool.name,
            "args": self.arguments,
            "description": f"{self.tool.name} needs a person's approval, until {until}.",
            **about,
            "expires_at": until,
        }


def question(
    tool: GatedTool, arguments: Mapping[str, Any], config: RunnableConfig, call_id: str | None
) -> Question | None:
    """Record what the call asks for, and return the question; None where no person has to be asked.

    A call that cannot be asked about (bad arguments, something unreadable) is left to the tool, which says why.
    """
    try:
        outcome = tool.propose(dict(arguments), config)
    except BadRequest:
        return None
    return question_of(tool, dict(arguments), call_id, outcome) if outcome is not None else None


def question_of(tool: GatedTool, arguments: dict[str, Any], call_id: str | None, outcome: Outcome) -> Question | None:
    """Return the question about an outcome; None unless it waits for a person, or is about another call."""
    if outcome.reason is not Reason.AWAITING_APPROVAL:
        return None
    asked = tool.effect._gate.approval(outcome.effect_id)
    return Question(tool, call_id, arguments, asked) if asked is not None and not asked.answer else None


def batched(questions: Sequence[Question], problem: str = "") -> dict[str, Any]:
    """The value of one interrupt about several calls."""
    value: dict[str, Any] = {
        "action_requests": [one.to_json() for one in questions],
        "review_configs": [{"action_name": one.tool.name, "allowed_decisions": list(DECISIONS)} for one in questions],
    }
    return {**value, "problem": problem} if problem else value


def per_call(one: Question, problem: str = "") -> dict[str, Any]:
    """The value of an interrupt about one call."""
    value = {"type": "tool_approval", "tool_call_id": one.call_id, **one.to_json(), "allowed_decisions": DECISIONS}
    return {**value, "problem": problem} if problem else value


def decisions_of(answer: Any) -> list[Any]:
    """The decisions in what a graph was resumed with. Raises ``UnusableAnswer``."""
    if isinstance(answer, Mapping) and isinstance(answer.get("decisions"), (list, tuple)):
        return list(answer["decisions"])
    if isinstance(answer, Mapping) and answer.get("type") in DECISIONS:
        return [answer]
    raise UnusableAnswer(
        f"an answer is {{'type': 'approve'}} or {{'decisions': [...]}}, not {clean(repr(answer), 120)}"
    )


def matched(waiting: Sequence[Question], answer: Any) -> list[tuple[Question, Any]]:
    """Pair decisions with the calls that wait: by effect id where they say it, else by position.

    Raises:
        UnusableAnswer: it cannot be told which decision is about which call.
    """
    decisions = decisions_of(answer)
    if decisions and all(isinstance(one, Mapping) and "effect_id" in one for one in decisions):
        by_id = {one.asked.effect_id: one for one in waiting}
        return [(by_id[one["effect_id"]], one) for one in decisions if one["effect_id"] in by_id]
    if len(waiting) == len(decisions):
        return list(zip(waiting, decisions, strict=True))
    raise UnusableAnswer(f"{len(decisions)} decisions for {len(waiting)} calls; give one each, or say effect_id")


def record(one: Question, decision: Any, approver: Source | None, config: RunnableConfig) -> None:
    """Write a person's answer to the journal. What was answered elsewhere meanwhile stands.

    Raises:
        UnusableAnswer: it is no decision, or an edit with arguments that are not accepted.
    """
    kind = decision.get("type") if isinstance(decision, Mapping) else None
    if kind not in DECISIONS:
        raise UnusableAnswer(f"a decision's type is one of {', '.join(DECISIONS)}, not {clean(repr(kind), 40)}")
    by = _who(decision, approver, config)
    why = str(decision.get("why") or decision.get("message") or f"{kind} (interrupt)")
    gate, effect_id = one.tool.effect._gate, one.asked.effect_id
    try:
        if kind == "approve":
            gate.approve(effect_id, by=by, why=why, digest=one.asked.digest)
        elif kind == "reject":
            gate.reject(effect_id, by=by, why=why, digest=one.asked.digest)
        else:
            edited = decision.get("edited_action") or {}
            if not isinstance(edited, Mapping) or edited.get("name", one.tool.name) != one.tool.name:
                raise UnusableAnswer(f"an edit changes the arguments of {one.tool.name}, and no other tool")
            gate.approve(effect_id, by=by, why=why, arguments=one.tool.checked(dict(edited.get("args") or {})))
    except NotDecidable as error:
        log.warning("%s: an answer was not used: %s", one.tool.name, describe(error))
    except BadRequest as error:
        raise UnusableAnswer(str(error)) from error


def _who(decision: Mapping[str, Any], approver: Source | None, config: RunnableConfig) -> str:
    by = decision.get("by")
    if by is None and approver is not None:
        by = ask(approver, config, "the approver's name")
    if by is None:
        by = (config.get("configurable") or {}).get(APPROVER)
    return by if isinstance(by, str) and by.strip() else "a person who is not named"


def in_a_graph() -> bool:
    """Whether this runs in a node of a LangGraph graph, where an interrupt can be raised."""
    if "langgraph" not in sys.modules:
        return False
    from langgraph.config import get_config

    try:
        configurable = get_config().get("configurable") or {}
    except RuntimeError:
        return False
    return "__pregel_scratchpad" in configurable


def interrupted(one: Question, approver: Source | None, config: RunnableConfig) -> None:
    """Ask about one call by an interrupt, and write the answer down. Leaves the node where there is none yet."""
    from langgraph.types import interrupt

    problem = ""
    for _ in range(MAX_QUESTIONS):
        answer = interrupt(per_call(one, problem))
        try:
            for question_, decision in matched([one], answer):
                record(question_, decision, approver, config)
            return
        except UnusableAnswer as error:
            problem = str(error)
    raise UnusableAnswer(f"{MAX_QUESTIONS} answers could not be used; the last one: {problem}")
