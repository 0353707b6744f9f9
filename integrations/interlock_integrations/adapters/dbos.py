"""The body of a DBOS step that acts at most once. Needs ``dbos``.

DBOS runs a step again when the process died in it. The gate makes that one
effect, and re-checks before it acts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dbos import DBOS  # pyright: ignore[reportMissingImports]
from langchain_core.tools import BaseTool

from interlock_tools import Effect

from .calling import Calling, durable, reference_of


def step_body(
    tool: BaseTool | Effect[Any], *, request: Callable[[str | None], str] | None = None
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function of the arguments, to be called in a step::

        refund_body = step_body(refund)

        @DBOS.step()
        def refund_customer(arguments: dict) -> dict:
            return refund_body(arguments)

    It returns ``{"content": sentence, "artifact": outcome and record}``, whatever the outcome.

    Args:
        tool: a gated tool or effect.
        request: the workflow's id -> the request reference. By default the workflow's id itself, which is right
            where the application sets it (``SetWorkflowID("case-4471")``) and the workflow does this once for each
            subject. A forked workflow has a new id: give ``request`` where workflows are forked.

    Raises:
        DefinitionError: ``tool`` is not gated.

    The body raises ``BadRequest`` where the call is no request (arguments, no reference), and ``NotRecorded`` where
    the journal failed: running the step again finds out what became of it.
    """
    calling = Calling(tool)
    source: Callable[[Any], Any] = request or (lambda workflow: workflow)

    def body(arguments: dict[str, Any]) -> dict[str, Any]:
        workflow = DBOS.workflow_id
        reference = reference_of(source, workflow, calling.name)
        return durable(calling.call(arguments, reference, workflow, workflow))

    return body
