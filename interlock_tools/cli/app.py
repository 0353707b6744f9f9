"""The commands, put together."""

from __future__ import annotations

import typer

from .approve import approve, reject
from .exits import TABLE
from .keys import keys
from .mcp_proxy import mcp_proxy
from .pending import pending
from .prune import prune
from .receipt import receipt
from .reconcile import reconcile
from .recover import recover
from .redecide import redecide
from .resolve import resolve
from .show import show
from .verify import main as run_verify
from .watch import watch
from .witness import witness

app = typer.Typer(
    name="interlock",
    help="Look at a journal of effects, recover what is open, settle what only a person can, and verify receipts.",
    epilog=TABLE,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (show, pending, approve, reject, resolve, redecide, recover, receipt, reconcile, watch, prune):
    app.command()(command)
app.command("mcp-proxy")(mcp_proxy)
app.add_typer(keys, name="keys")
app.add_typer(witness, name="witness")


@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
    options_metavar="FILE --policy P",
)
def verify(context: typer.Context) -> None:
    """Say what a receipt shows. Has exit codes of its own; see interlock verify --help."""
    raise typer.Exit(run_verify(context.args))
