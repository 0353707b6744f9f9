"""``interlock pending``: what only a person can settle."""

from __future__ import annotations

import typer
from rich.text import Text

from .common import JournalOption, JsonOption, opened, print_json, told
from .exits import ATTENTION
from .render import console, outcomes_table


def pending(journal: JournalOption = None, as_json: JsonOption = False) -> None:
    """List the ambiguous effects, oldest first. Exits with 1 if there is any."""
    with told(as_json), opened(journal) as gate:
        found = gate.pending()
        if as_json:
            print_json({"pending": [outcome.to_json() for outcome in found]})
        elif not found:
            console().print("Nothing waits for a person.")
        else:
            screen = console()
            screen.print(outcomes_table(found))
            screen.print(
                Text("Look at the service, then: interlock resolve EFFECT_ID --landed|--not-landed --by WHO --why WHAT")
            )
    if found:
        raise typer.Exit(ATTENTION)
