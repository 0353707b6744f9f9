"""``interlock recover``: brings every open effect to an end, with the application's own code."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from ..errors import InterlockError, describe
from ..gate import Gate
from ..outcome import Status
from ..recovery import Report
from .common import VARIABLE, JournalOption, JsonOption, check_exists, print_json, same_journal, told
from .exits import ATTENTION
from .render import console, outcomes_table


class NotImportable(InterlockError):
    """The application's module cannot be imported, or has no gate."""


def recover(
    module: Annotated[
        str,
        typer.Option("--import", metavar="MODULE[:GATE]", help="The application's module that declares the effects."),
    ],
    wait: Annotated[float, typer.Option(min=0, metavar="SECONDS", help="Wait this long for what is blocked.")] = 0.0,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring every open effect to an end, or say what keeps it open. Exits with 1 if any stays open.

    The journal is that of the application's gate. --journal is handed to the
    application as INTERLOCK_JOURNAL, and must then be the one that it uses.
    """
    with told(as_json):
        gate = import_gate(module, journal)
        report = gate.recover(wait=wait)
        if as_json:
            print_json(_plain(report))
        else:
            _print(report)
    left = [outcome for outcome in report if outcome.status in (Status.IN_FLIGHT, Status.AMBIGUOUS)]
    if left or report.unregistered:
        raise typer.Exit(ATTENTION)


def import_gate(target: str, journal: str | None) -> Gate:
    """Import the application and return its gate. Raises ``NotImportable``."""
    name, _, attribute = target.partition(":")
    if journal:
        check_exists(journal)
        os.environ[VARIABLE] = journal
    sys.path.insert(0, str(Path.cwd()))  # as python -m does
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:
        raise NotImportable(f"{name or 'an empty name'} cannot be imported: {describe(error)}") from error
    found = getattr(module, attribute or "gate", None)
    if not attribute and not isinstance(found, Gate):
        gates = [value for value in vars(module).values() if isinstance(value, Gate)]
        found = gates[0] if len(gates) == 1 else None
    if not isinstance(found, Gate):
        raise NotImportable(
            f"{name} has no gate {attribute!r}" if attribute else f"{name} has no single gate; say which: {name}:NAME"
        )
    if journal and not same_journal(journal, found.journal.url):
        raise NotImportable(f"the gate in {name} uses {found.journal.url}, not {journal}; name that one, or none")
    return found


def _plain(report: Report) -> dict[str, object]:
    return {
        "outcomes": [outcome.to_json() for outcome in report],
        "unregistered": [
            {"effect_id": row.effect_id, "effect": row.name, "request_key": row.request_key, "phase": row.phase}
            for row in report.unregistered
        ],
    }


def _print(report: Report) -> None:
    screen = console()
    if not report.outcomes and not report.unregistered:
        screen.print("Nothing was open.")
    if report.outcomes:
        screen.print(outcomes_table(report.outcomes))
    for outcome in report:
        if outcome.status in (Status.IN_FLIGHT, Status.AMBIGUOUS):
            screen.print(Text(outcome.message))
    for row in report.unregistered:
        screen.print(
            Text(f"{row.name} for request {row.request_key} is open ({row.phase}), and {row.name} is not declared by ")
            + Text("the imported module; import the code that declares it.")
        )
