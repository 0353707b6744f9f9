"""``interlock watch``: keeps looking at what becomes of effects after the commit."""

from __future__ import annotations

import shlex
import signal
import threading
import time
from types import FrameType
from typing import Annotated, Any

import typer
from rich.text import Text

from ..backoff import pause_s
from ..errors import BadArguments, JournalError, describe
from ..hooks import Hook, command_hook, url_hook
from ..watching import WatchReport
from .common import JournalOption, JsonOption, print_json, told
from .exits import ATTENTION
from .recover import import_gate
from .render import console

LONGEST_PAUSE_S = 60.0
"""So that what another process committed is seen within a minute, whatever is due when."""


def watch(
    module: Annotated[
        str,
        typer.Option("--import", metavar="MODULE[:GATE]", help="The application's module that declares the effects."),
    ],
    once: Annotated[bool, typer.Option("--once", help="One pass, and end.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Effects in one pass at most.")] = 1000,
    hook_command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Run for each notice, with JSON on its standard input.")
    ] = None,
    hook_url: Annotated[str | None, typer.Option(metavar="URL", help="POST each notice to it, as JSON.")] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look at what becomes of effects that were committed, again and again, until SIGTERM or SIGINT.

    Where it stopped it goes on: what is due when is in the journal. Any number
    of these may run. With --once it exits with 1 if anything failed, was
    reversed, is at risk, or could not be read.
    """
    with told(as_json):
        hooks: list[Hook] = []
        try:
            if hook_command:
                hooks.append(command_hook(shlex.split(hook_command)))
            if hook_url:
                hooks.append(url_hook(hook_url))
        except ValueError as error:
            raise BadArguments(f"this hook cannot be used: {error}") from None
        gate = import_gate(module, journal)
        if once:
            report = gate.watch(limit=limit, hooks=hooks)
            _show(report, as_json)
            if report.unreadable or report.untold or any(_bad(outcome) for outcome in report.changed):
                raise typer.Exit(ATTENTION)
            return
        _keep_watching(gate, limit, hooks, as_json)


def _keep_watching(gate: Any, limit: int, hooks: list[Hook], as_json: bool) -> None:
    stop = threading.Event()

    def ask_to_stop(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, ask_to_stop)
    failures = 0
    while not stop.is_set():
        try:
            report = gate.watch(limit=limit, hooks=hooks)
        except JournalError as error:
            failures += 1
            typer.echo(f"interlock: {describe(error)}", err=True)
            stop.wait(pause_s(failures, first_s=1.0, most_s=300.0))
            continue
        failures = 0
        if report.looked:
            _show(report, as_json)
        due_s = report.next_look_s
        stop.wait(0.0 if report.left else min(LONGEST_PAUSE_S, due_s if due_s is not None else LONGEST_PAUSE_S) + 0.05)


def _bad(outcome: Any) -> bool:
    return (outcome.settlement or {}).get("state") in ("failed", "reversed", "at_risk")


def _show(report: WatchReport, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "looked": report.looked,
                "changed": [outcome.to_json() for outcome in report.changed],
                "unreadable": report.unreadable,
                "untold": report.untold,
                "left": report.left,
                "next_look_s": report.next_look_s,
            }
        )
        return
    screen = console()
    moment = time.strftime("%H:%M:%S")
    words = f"{moment} looked at {report.looked}: {len(report.changed)} changed, {len(report.unreadable)} not readable"
    screen.print(Text(words))
    for outcome in report.changed:
        if _bad(outcome):
            screen.print(Text(f"  {outcome.effect_id} {outcome.message}"))
    for effect_id, why in report.unreadable.items():
        screen.print(Text(f"  {effect_id} could not be read: {why}"))
