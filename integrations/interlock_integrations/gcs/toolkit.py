"""``GcsToolkit``: the Cloud Storage tools behind one gate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from google.cloud import storage

from interlock_tools import DefinitionError, Gate
from interlock_tools.langchain import GatedToolkit, Source

from .client import SEND_TIMEOUT, gated_client, storage_from_environment
from .tools import TOOLS


class GcsToolkit(GatedToolkit):
    """Cloud Storage's gated tools: ``create_agent(model, GcsToolkit(gate, client=...).get_tools())``.

    Call ``gate.recover()`` once after making it.

    Args:
        gate: the gate.
        client: the application's ``google.cloud.storage.Client``; by default one configured by the environment. It
            is left as it is: the tools use its credentials and address on the gated transport, without retries.
        tools: names of the tools to make: ``write_object``, ``restore_object``; by default both.
        request: where the request reference comes from, see ``GatedToolkit``.
        wait: how long calls wait for what others have to finish (seconds or timedelta).
        writes, restores: further arguments of ``declare_write`` and ``declare_restore``, such as ``approvals``,
            ``premises``, ``expect``, ``budget`` and ``deletions``.
        send_timeout: longest time until a request has landed or never will.
        name: prefix of the effects' names; another one for each project at one journal.

    Raises:
        DefinitionError: something about it is wrong.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        client: storage.Client | None = None,
        tools: Iterable[str] = tuple(TOOLS),
        request: Source | None = None,
        wait: timedelta | float | None = None,
        writes: Mapping[str, Any] | None = None,
        restores: Mapping[str, Any] | None = None,
        send_timeout: timedelta = SEND_TIMEOUT,
        name: str = "gcs",
    ) -> None:
        super().__init__(gate, request=request, wait=wait)
        chosen = [tools] if isinstance(tools, str) else list(tools)
        unknown = sorted(set(chosen) - set(TOOLS))
        if unknown:
            raise DefinitionError(f"no Cloud Storage tool {', '.join(unknown)}; there are {', '.join(TOOLS)}")
        ours = gated_client(client if client is not None else storage_from_environment())
        parts = {"write_object": ("write", writes), "restore_object": ("restore", restores)}
        for tool in dict.fromkeys(chosen):
            part, further = parts[tool]
            effect = TOOLS[tool].declares(
                gate, ours, **{"name": f"{name}.{part}", "send_timeout": send_timeout, **(further or {})}
            )
            self.add(TOOLS[tool](effect, request=request, wait=wait))
