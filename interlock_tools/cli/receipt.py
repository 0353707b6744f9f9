"""``interlock receipt``: the record of an effect as one file that can be mailed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import JournalUnusable
from ..signed import is_signed
from .common import SIGNING, EffectArgument, JournalOption, JsonOption, SigningOption, opened, print_json, told


def receipt(
    effect_id: EffectArgument,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it here instead.")] = None,
    disclose: Annotated[
        list[str] | None, typer.Option("--disclose", metavar="PATH", help="A private value to show, like payload.to.")
    ] = None,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the receipt of an effect. With --signing, a checkpoint that covers it is signed first."""
    with told(as_json), opened(journal, signing) as gate:
        front = gate.records.front
        if front is None and is_signed(gate.journal):
            raise JournalUnusable(
                f"what is written to this journal is signed; give --signing DIRECTORY or set {SIGNING}"
            )
        if front is not None and front.log is not None:
            gate.records.flush()
        content = gate.records.receipt(effect_id, disclose or ())
        if out is None:
            typer.echo(content.decode("utf-8"), nl=False)
            return
        out.write_bytes(content)
        if as_json:
            print_json({"effect_id": effect_id, "file": str(out), "bytes": len(content)})
        else:
            typer.echo(f"{out}: the receipt of effect {effect_id}, {len(content)} bytes")
