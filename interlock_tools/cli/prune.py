"""``interlock prune``: moves finished effects out of a journal into an archive."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Annotated, Any

import typer

from ..errors import BadArguments
from ..retention import prune as prune_journal
from .common import JournalOption, JsonOption, SigningOption, opened, print_json, told
from .exits import ATTENTION

_AGE = re.compile(r"([0-9]{1,5})([hdw])", re.ASCII)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def prune(
    before: Annotated[str, typer.Option("--before", metavar="WHEN", help="A date (UTC) or an age: 2026-01-31, 90d.")],
    archive: Annotated[Path, typer.Option("--archive", metavar="DIRECTORY", help="Where archive files are kept.")],
    keep_keys: Annotated[
        str | None,
        typer.Option("--keep-keys", metavar="AGE", help="How long requests stay known as done; for ever by default."),
    ] = None,
    free_budgets: Annotated[
        bool, typer.Option("--free-budgets", help="Give back what they take of budgets; it counts on by default.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move effects that ended before WHEN into a new archive file. Exits with 1 if some could not be archived.

    The file is written, forced to disk and read back before anything leaves the
    journal. What is open, watched or for a person to settle stays.
    """
    with told(as_json):
        when, keep = _instant(before), None if keep_keys is None else _age(keep_keys)
        with opened(journal, signing) as gate:
            report = prune_journal(
                gate, when, archive, keep_keys=keep, free_budgets=free_budgets, dry_run=dry_run
            ).to_json()
    if as_json:
        print_json({"dry_run": dry_run, **report})
    else:
        _print(report, dry_run)
    if report["failed"]:
        raise typer.Exit(ATTENTION)


def _instant(text: str) -> datetime | timedelta:
    if _AGE.fullmatch(text):
        return _age(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise BadArguments(f"{text!r} is neither a date such as 2026-01-31 nor an age such as 90d") from None
    return found if found.tzinfo is not None else found.replace(tzinfo=timezone.utc)


def _age(text: str) -> timedelta:
    found = _AGE.fullmatch(text)
    if found is None:
        raise BadArguments(f"{text!r} is no age; write 12h, 90d or 52w")
    return timedelta(**{_UNITS[found[2]]: int(found[1])})


def _print(report: dict[str, Any], dry_run: bool) -> None:
    total = sum(report["archived"].values())
    names = ", ".join(f"{count} {name}" for name, count in report["archived"].items())
    listed = f": {names}" if names else ""
    if dry_run:
        typer.echo(f"{total} effects would be archived{listed}")
    elif report["file"] is None:
        typer.echo("Nothing to archive.")
    else:
        typer.echo(f"{report['file']}: {total} effects archived{listed}")
    for why, count in report["kept"].items():
        typer.echo(f"{count} requests stay: {why}")
    for effect_id, why in report["failed"].items():
        typer.echo(f"effect {effect_id} could not be archived: {why}")
    if report["forgotten"]:
        words = "would be" if dry_run else "are"
        typer.echo(f"{report['forgotten']} tombstones {words} removed; what they stood for can be done again")
