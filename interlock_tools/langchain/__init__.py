"""Gated effects as LangChain tools. Needs ``langchain-core`` alone; LangGraph is used where it is there.

Nothing else in this package imports LangChain, so ``import interlock_tools`` does not either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .request import Source, from_config, from_thread_id
from .tool import GatedTool, effect_tool
from .toolkit import GatedToolkit
from .wrapping import wrap

if TYPE_CHECKING:
    from .middleware import InterlockMiddleware
    from .reviewing import ApprovalMiddleware


def __getattr__(name: str) -> Any:
    if name == "InterlockMiddleware":  # LangChain itself is needed for these two alone
        from .middleware import InterlockMiddleware

        return InterlockMiddleware
    if name == "ApprovalMiddleware":
        from .reviewing import ApprovalMiddleware

        return ApprovalMiddleware
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ApprovalMiddleware",
    "GatedTool",
    "GatedToolkit",
    "InterlockMiddleware",
    "Source",
    "effect_tool",
    "from_config",
    "from_thread_id",
    "wrap",
]
