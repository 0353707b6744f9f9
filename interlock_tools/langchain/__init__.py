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
    from .recorded_review import RecordedReview
    from .reviewing import ApprovalMiddleware

_LAZY = {
    "ApprovalMiddleware": ".reviewing",
    "InterlockMiddleware": ".middleware",
    "RecordedReview": ".recorded_review",
}
"""Names that need LangChain itself, by the module that has them."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        from importlib import import_module

        return getattr(import_module(_LAZY[name], __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ApprovalMiddleware",
    "GatedTool",
    "GatedToolkit",
    "InterlockMiddleware",
    "RecordedReview",
    "Source",
    "effect_tool",
    "from_config",
    "from_thread_id",
    "wrap",
]
