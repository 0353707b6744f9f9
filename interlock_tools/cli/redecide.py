"""``interlock redecide``: a person decides a refused request again."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from .common import EffectArgument, JournalOption, JsonOption, SigningOption, fail, opened, print_json, told
from .exits import USAGE
from .render import console, status, value


def redecide(
    effect_id: EffectArgument,
    by: Annotated[str, typer.Option("--by", metavar="WHO", help="Who decides.")],
    facts: Annotated[
        str | None,
        typer.Option("--facts", metavar="JSON", help="What was seen. By default what was read when it was refused."),
    ] = None,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Decide a refused request again, with the same arguments. Its next call sends it if the facts still hold."""
    seen: dict[str, Any] | None = None
    if facts is not None:
        try:
            seen = json.loads(facts)
        except ValueError:
            seen = None
        if not isinstance(seen, dict):
            fail("--facts takes a JSON object, such as '{\"refunded_by_others\": 500}'", USAGE, as_json)
    with told(as_json), opened(journal, signing) as gate:
        outcome = gate.redecide(effect_id, by=by, facts=seen)
        if as_json:
            print_json(outcome.to_json())
            return
        screen = console()
        screen.print(status(outcome), Text(f"effect {outcome.effect_id}"))
        rests = gate.history(outcome.effect_id)[0].body["facts"]
        screen.print(Text(f"Decided again on {value(rests)}. {outcome.message}"))
