"""``interlock approve`` and ``interlock reject``: a person's answer to a request for approval."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.text import Text

from ..errors import NotDecidable
from ..gate import Gate
from ..outcome import Outcome
from .common import EffectArgument, JournalOption, JsonOption, SigningOption, fail, opened, print_json, told
from .exits import USAGE
from .recover import import_gate
from .render import console, status

ByOption = Annotated[str, typer.Option("--by", metavar="WHO", help="Who decides.")]
DigestOption = Annotated[
    str | None,
    typer.Option("--digest", metavar="HEX", help="Of what was seen; its first digits will do. Anything else is not."),
]
MIN_DIGEST = 8


def approve(
    effect_id: EffectArgument,
    by: ByOption,
    why: Annotated[str, typer.Option("--why", metavar="WHY", help="The reason, for the record.")] = "approved",
    digest: DigestOption = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Approve it with another argument (JSON, or text)."),
    ] = None,
    module: Annotated[
        str | None,
        typer.Option("--import", metavar="MODULE[:GATE]", help="With --set: the module that declares the effect."),
    ] = None,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Approve what waits for a person. It is sent by its next call, or by the application's next recovery."""
    arguments = _arguments(changes or [], as_json)
    if arguments and not module:
        fail("--set needs --import MODULE, the application's code that declares the effect", USAGE, as_json)
    with told(as_json):
        if arguments and module:
            gate = import_gate(module, journal)
            _check_digest(gate, effect_id, digest)
            _tell(gate.approve(effect_id, by=by, why=why, arguments=arguments), as_json)
            return
        with opened(journal, signing) as gate:
            _tell(gate.approve(effect_id, by=by, why=why, digest=_check_digest(gate, effect_id, digest)), as_json)


def reject(
    effect_id: EffectArgument,
    by: ByOption,
    why: Annotated[str, typer.Option("--why", metavar="WHY", help="The reason, for the record.")],
    digest: DigestOption = None,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Reject what waits for a person, or what was approved and has not been sent."""
    with told(as_json), opened(journal, signing) as gate:
        _tell(gate.reject(effect_id, by=by, why=why, digest=_check_digest(gate, effect_id, digest)), as_json)


def _arguments(changes: list[str], as_json: bool) -> dict[str, Any]:
    """The arguments to change: each value as JSON where it is that, else as text."""
    arguments: dict[str, Any] = {}
    for change in changes:
        name, equals, text = change.partition("=")
        if not equals or not name:
            fail(f"--set takes NAME=VALUE, not {change}", USAGE, as_json)
        try:
            arguments[name] = json.loads(text)
        except ValueError:
            arguments[name] = text
    return arguments


def _check_digest(gate: Gate, effect_id: str, seen: str | None) -> str | None:
    """The whole digest that its first digits stand for. Raises ``NotDecidable`` if they are another's."""
    if seen is None:
        return None
    request = gate.approval(effect_id)
    if request is None or len(seen) < MIN_DIGEST or not request.digest.startswith(seen.lower()):
        raise NotDecidable(
            f"effect {effect_id} is not what was seen; look at it again (--digest {seen!r:.80}: the first digits of "
            f"what was seen, at least {MIN_DIGEST})"
        )
    return request.digest


def _tell(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        print_json(outcome.to_json())
        return
    screen = console()
    screen.print(status(outcome), Text(f"effect {outcome.effect_id}"))
    screen.print(Text(outcome.message))
