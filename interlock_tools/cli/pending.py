"""``interlock pending``: what waits for a person, and what that person can do about it."""

from __future__ import annotations

import typer
from rich.console import Console
from rich.text import Text

from ..core.states import fold
from ..gate import Gate
from ..outcome import Outcome
from .advice import advice, plain_advice
from .common import JournalOption, JsonOption, opened, print_json, told
from .exits import ATTENTION
from .render import change_text, console, outcomes_table, pairs, status

DETAILS = 20
"""How many are told in full; the others are in the table."""


def pending(journal: JournalOption = None, as_json: JsonOption = False) -> None:
    """List what is ambiguous or waits for an approval, oldest first. Exits with 1 if there is any."""
    with told(as_json), opened(journal) as gate:
        found = gate.pending()
        if as_json:
            print_json({"pending": [{**one.to_json(), **_plain(gate, one)} for one in found]})
        elif not found:
            console().print("Nothing waits for a person.")
        else:
            screen = console()
            screen.print(outcomes_table(found))
            for outcome in found[:DETAILS]:
                _tell(screen, gate, outcome)
    if found:
        raise typer.Exit(ATTENTION)


def _plain(gate: Gate, outcome: Outcome) -> dict[str, object]:
    return plain_advice(outcome, fold(gate.history(outcome.effect_id)))


def _tell(screen: Console, gate: Gate, outcome: Outcome) -> None:
    state = fold(gate.history(outcome.effect_id))
    screen.print()
    screen.print(status(outcome), Text(f"effect {outcome.effect_id}"))
    screen.print(Text(outcome.message))
    pairs(screen, "Arguments", state.payload)
    pairs(screen, "Decided on", state.facts or {})
    pairs(screen, "Changed", {name: change_text(change) for name, change in sorted(outcome.changes.items())})
    for line in advice(outcome, state):
        screen.print(Text(line))
