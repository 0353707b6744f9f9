"""``interlock show``: everything about one effect, or about every decision of one request."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..core.states import fold
from ..errors import NotDecidable
from ..gate import Gate
from .advice import advice
from .common import JournalOption, JsonOption, fail, opened, print_json, told
from .exits import USAGE
from .render import change_text, console, entries_table, pairs, status

PAGE = 500


def show(
    effect_id: Annotated[str | None, typer.Argument(metavar="EFFECT_ID", help="The effect, 32 hex digits.")] = None,
    request: Annotated[
        str | None, typer.Option("--request", metavar="KEY", help="Every decision of this request instead.")
    ] = None,
    journal: JournalOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show an effect: its outcome, arguments, facts and entries."""
    if (effect_id is None) == (request is None):
        fail("give either an EFFECT_ID or --request KEY", USAGE, as_json)
    with told(as_json), opened(journal) as gate:
        ids = [effect_id] if effect_id is not None else _of_request(gate, request or "")
        if as_json:
            print_json({"effects": [_plain(gate, found) for found in ids]})
            return
        screen = console()
        for number, found in enumerate(ids):
            if number:
                screen.print()
            _print(screen, gate, found)


def _of_request(gate: Gate, key: str) -> list[str]:
    """Every effect of a request key, in order. Raises ``NotDecidable`` if there is none."""
    found: list[str] = []
    after = 0
    while True:
        rows = gate.journal.effects(after, PAGE)
        found.extend(row.effect_id for row in rows if row.request_key == key)
        if len(rows) < PAGE:
            break
        after = rows[-1].position
    if not found:
        raise NotDecidable(f"there is no request {key} in this journal")
    return found


def _plain(gate: Gate, effect_id: str) -> dict[str, Any]:
    outcome = gate.outcome(effect_id)
    return {
        "effect_id": effect_id,
        "outcome": outcome.to_json(),
        "entries": [
            {"seq": entry.seq, "kind": entry.kind.value, "at_ms": entry.at_ms, "body": entry.body}
            for entry in gate.history(effect_id)
        ],
    }


def _print(screen: Console, gate: Gate, effect_id: str) -> None:
    outcome = gate.outcome(effect_id)
    entries = gate.history(effect_id)
    state = fold(entries)
    screen.print(status(outcome), Text(f"effect {effect_id}"))
    screen.print(Text(outcome.message))
    pairs(screen, "Arguments", state.payload)
    pairs(screen, "Decided on", state.facts or {})
    pairs(screen, "Changed", {name: change_text(change) for name, change in sorted(outcome.changes.items())})
    named = {item["budget"] for entry in entries for item in entry.body.get("budgets") or ()}
    uses = [gate.budget(name) for name in sorted(named)]
    pairs(screen, "Budgets now", {use.name: f"{use.used} of {use.limit} is taken" for use in uses})
    screen.print(Text("Entries", style="bold"))
    screen.print(entries_table(gate, entries))
    for line in advice(outcome, state):
        screen.print(Text(line))
