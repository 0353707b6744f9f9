"""``interlock mcp-proxy``: stands between an MCP client and an MCP server, with some of its tools behind the gate."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import DefinitionError
from .common import told


def mcp_proxy(
    command: Annotated[list[str], typer.Argument(metavar="-- COMMAND...", help="The server, and its arguments.")],
    config: Annotated[Path, typer.Option("--config", metavar="FILE", help="Which tools are gated, and how (TOML).")],
) -> None:
    """Run an MCP server with some of its tools behind the gate, on standard input and output.

    Put it in the place of the server's command in the client's configuration.
    What an earlier proxy left open is recovered as soon as the server can be asked.
    """
    from ..gate import Gate
    from ..mcp.config import load
    from ..mcp.proxy import serve

    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="interlock: %(message)s")
    with told(False):
        settings = load(config)
        gate = Gate(settings.journal, signing=settings.signing)
        try:
            code = serve(gate, settings, command)
        except OSError as error:
            raise DefinitionError(f"the server cannot be started: {error}") from None
        finally:
            gate.close()
    raise typer.Exit(code)
