"""Google Cloud Storage behind a gate: objects that are written or restored at most once, by the official client.

::

    from interlock_tools import Gate
    from interlock_integrations.gcs import GcsToolkit

    gate = Gate("rollouts.db")
    toolkit = GcsToolkit(gate, client=storage.Client(project="p", credentials=credentials))
    gate.recover()
    agent = create_agent(model, toolkit.get_tools())

or, configured from the environment, ``create_agent(model, [WriteObject()])``.

LangChain is loaded when a tool or the toolkit is first asked for; a process
that only recovers declares the effects (``declare_write``, ``declare_restore``)
and does without.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .client import gated_client, storage_from_environment
from .objects import declare_restore, declare_write

if TYPE_CHECKING:
    from .toolkit import GcsToolkit
    from .tools import RestoreObject, WriteObject

__all__ = [
    "GcsToolkit",
    "RestoreObject",
    "WriteObject",
    "declare_restore",
    "declare_write",
    "gated_client",
    "storage_from_environment",
]

_LAZY = {"GcsToolkit": "toolkit", "RestoreObject": "tools", "WriteObject": "tools"}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(import_module(f".{_LAZY[name]}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
