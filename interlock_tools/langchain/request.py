"""Where a tool's request reference comes from: the application, never the model.

The reference names the approved request ("case 4471"), and the same request
never takes effect twice, whatever the model, a retry or a restart does. So it
must be the same when the same request comes again, and another for another
request. A run id, a tool call's id or the time of day is neither.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from langchain_core.runnables import RunnableConfig

from ..errors import DefinitionError, MissingRequestKey, describe
from ..redaction import clean

Source: TypeAlias = Callable[..., Any]
"""A function of no argument, or of the run's configuration, that returns what the application fills in."""

REQUEST_ID = "request_id"
"""Where the reference is looked for in ``config["configurable"]`` unless the application says otherwise."""


def from_config(name: str) -> Source:
    """Return a source that reads ``config["configurable"][name]``."""

    def read(config: RunnableConfig) -> Any:
        return (config.get("configurable") or {}).get(name)

    return read


from_thread_id: Source = from_config("thread_id")
"""Takes the thread as the request. Only right where one thread never serves two requests and no request comes back in a
second thread: a new chat about the same case is a new thread, and would be done again."""


def ask(source: Source, config: RunnableConfig, what: str) -> Any:
    """Call a source, with the configuration if it takes one. Raises ``MissingRequestKey`` where it raises."""
    try:
        return source(config) if _takes_config(source) else source()
    except Exception as error:
        if bubbles_up(error):
            raise
        raise MissingRequestKey(
            f"{what} could not be had: its function raised {describe(error)}. Nothing was written or sent."
        ) from error


def reference(source: Source | None, config: RunnableConfig, tool: str) -> str:
    """Return the request reference of this run. Raises ``MissingRequestKey``."""
    found = ask(source if source is not None else from_config(REQUEST_ID), config, f"{tool}: the request reference")
    if isinstance(found, str) and found.strip():
        return found
    if found is None and source is None:
        raise MissingRequestKey(
            f"{tool}: no request reference. Run the agent with "
            "config={'configurable': {'request_id': 'case-4471'}}, or give the tool request=..., a function that "
            "returns it. A thread id is not one unless you say so (request=from_thread_id). "
            "Nothing was written or sent."
        )
    raise MissingRequestKey(
        f"{tool}: the request reference must be text that is not empty, not {clean(repr(found), 80)}. "
        "Nothing was written or sent."
    )


def bubbles_up(error: BaseException) -> bool:
    """Whether this is how LangGraph leaves a node (an interrupt), where LangGraph is there at all."""
    module = sys.modules.get("langgraph.errors")
    return module is not None and isinstance(error, module.GraphBubbleUp)


def check_source(name: str, source: Any) -> None:
    """Raises ``DefinitionError`` for what is not a function of nothing or of the configuration."""
    if not callable(source) or inspect.iscoroutinefunction(source):
        raise DefinitionError(
            f"{name} takes a plain function of the run's configuration, or of nothing, not {source!r}"
        )
    _takes_config(source)


def check_sources(sources: Mapping[str, Any]) -> None:
    for name, source in sources.items():
        check_source(f"hidden[{name!r}]", source)


def _takes_config(source: Source) -> bool:
    needed = [
        parameter
        for parameter in inspect.signature(source).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    required = [parameter for parameter in needed if parameter.default is parameter.empty]
    if len(required) > 1:
        raise DefinitionError(f"{source!r} wants {len(required)} arguments; it may take the configuration, or nothing")
    return bool(needed)
