"""``interlock resolve``: a person has looked at the service and says what happened."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from .common import EffectArgument, JournalOption, JsonOption, SigningOption, opened, print_json, told
from .render import console, status


def resolve(
    effect_id: EffectArgument,
    landed: Annotated[bool, typer.Option("--landed/--not-landed", help="Whether it took effect at the service.")],
    by: Annotated[str, typer.Option("--by", metavar="WHO", help="Who says so.")],
    why: Annotated[str, typer.Option("--why", metavar="WHAT", help="What was seen at the service.")],
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Settle an ambiguous effect, after looking at the service. It cannot be taken back."""
    with told(as_json), opened(journal, signing) as gate:
        outcome = gate.resolve(effect_id, landed=landed, by=by, why=why)
        if as_json:
            print_json(outcome.to_json())
        else:
            screen = console()
            screen.print(status(outcome), Text(f"effect {effect_id}"))
            screen.print(Text(outcome.message))
