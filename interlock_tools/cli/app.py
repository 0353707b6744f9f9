"""The commands, put together."""

from __future__ import annotations

import typer

from .exits import TABLE
from .pending import pending
from .recover import recover
from .resolve import resolve
from .show import show

app = typer.Typer(
    name="interlock",
    help="Look at a journal of effects, recover what is open, and settle what only a person can.",
    epilog=TABLE,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (show, pending, recover, resolve):
    app.command()(command)
