"""``interlock reconcile``: goes through the services after records were lost, and writes what it finds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadArguments
from .common import JournalOption, JsonOption, print_json, told
from .exits import ATTENTION
from .recover import import_gate


def reconcile(
    module: Annotated[
        str,
        typer.Option("--import", metavar="MODULE[:GATE]", help="The application's module that declares the effects."),
    ],
    by: Annotated[str, typer.Option("--by", metavar="WHO", help="Who has it done.")],
    requests: Annotated[
        Path | None,
        typer.Option("--requests", metavar="FILE", help='Requests that may be lost, a line each: ["effect", {…}].'),
    ] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Look up at the services what a restored journal has lost. Exits with 1 if something is left to do.

    A witness remembers more records than the journal holds, and nothing is sent
    until this is done. The journal, its keys and its witnesses are those of the
    application's gate.
    """
    with told(as_json):
        named = _requests(requests)
        gate = import_gate(module, journal)
        report = gate.reconcile(named, by=by)
        if as_json:
            print_json(report.to_json())
        else:
            _print(report.to_json())
    if not report.done:
        raise typer.Exit(ATTENTION)


def _requests(file: Path | None) -> list[tuple[str, dict[str, Any]]]:
    if file is None:
        return []
    try:
        lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise BadArguments(f"{file} cannot be read as one JSON value a line: {error}") from None
    for line in lines:
        if not (isinstance(line, list) and len(line) == 2 and isinstance(line[0], str) and isinstance(line[1], dict)):
            raise BadArguments(f'{file}: a line is ["effect name", {{"argument": "value"}}], not {str(line)[:80]}')
    return [(name, arguments) for name, arguments in lines]


def _print(report: dict[str, Any]) -> None:
    for name, words in (
        ("found", "had been done, and is recorded now"),
        ("not_found", "is not known to the service"),
        ("undecided", "cannot be looked up; it is ambiguous now, settle it with interlock resolve"),
    ):
        for effect_id in report[name]:
            typer.echo(f"effect {effect_id} {words}")
    for effect_id, why in report["unreadable"].items():
        typer.echo(f"effect {effect_id} could not be looked up: {why}")
    if report["done"]:
        typer.echo(f"Done. Effects may be sent again. The log goes on as {report['log']}; tell those who trust it.")
    elif report["wait_s"]:
        wait = f"{report['wait_s']:.0f} s"
        typer.echo(f"A lost request may still land. Run this again in {wait}; until then nothing is sent.")
    else:
        typer.echo("Something could not be looked up. Run this again when it can be; until then nothing is sent.")
