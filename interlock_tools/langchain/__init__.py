"""Gated effects as LangChain tools. Needs ``langchain-core`` alone; LangGraph is used where it is there.

Nothing else in this package imports LangChain, so ``import interlock_tools`` does not either.
"""

from __future__ import annotations

from .request import Source, from_config, from_thread_id
from .tool import GatedTool, effect_tool
from .toolkit import GatedToolkit

__all__ = ["GatedTool", "GatedToolkit", "Source", "effect_tool", "from_config", "from_thread_id"]
