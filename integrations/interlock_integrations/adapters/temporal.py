"""The body of a Temporal activity that acts at most once. Needs ``temporalio``.

Temporal runs an activity at least once: when a worker dies in it, it is run
again. The gate makes that one effect, and re-checks before it acts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langchain_core.tools import BaseTool
from temporalio import activity  # pyright: ignore[reportMissingImports]
from temporalio.exceptions import ApplicationError  # pyright: ignore[reportMissingImports]

from interlock_tools import BadRequest, Effect

from .calling import Calling, durable, reference_of


def activity_body(
    tool: BaseTool | Effect[Any], *, request: Callable[[activity.Info], str] | None = None
) -> Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]:
    """Return an async function of the arguments, to be called in an activity::

        refund_body = activity_body(refund)

        @activity.defn
        async def refund_customer(arguments: dict) -> dict:
            return await refund_body(arguments)

    It returns ``{"content": sentence, "artifact": outcome and record}``, whatever the outcome.

    Args:
        tool: a gated tool or effect.
        request: activity info -> the request reference. By default the workflow's id, which is right where it
            names the approved request and the workflow does this once for each subject. Never the run's id or the
            attempt: those are other ones when it is run again.

    Raises:
        DefinitionError: ``tool`` is not gated.

    The body raises ``ApplicationError`` that is not retried where the call is no request (arguments, no reference),
    and ``NotRecorded`` where the journal failed: Temporal runs it again, which finds out what became of it.
    """
    calling = Calling(tool)
    source: Callable[[Any], Any] = request or (lambda info: info.workflow_id)

    async def body(arguments: dict[str, Any]) -> dict[str, Any]:
        info = activity.info()
        try:
            reference = reference_of(source, info, calling.name)
            return durable(await calling.acall(arguments, reference, info.activity_id, info))
        except BadRequest as error:
            raise ApplicationError(str(error), type=type(error).__name__, non_retryable=True) from error

    return body
