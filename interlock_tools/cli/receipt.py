"""``interlock receipt``: the record of an effect as one file that can be mailed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..archive import receipt as archived_receipt
from ..errors import JournalUnusable
from ..signed import is_signed
from .common import SIGNING, EffectArgument, JournalOption, JsonOption, SigningOption, opened, print_json, told


def receipt(
    effect_id: EffectArgument,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="Write it here instead.")] = None,
    disclose: Annotated[
        list[str] | None, typer.Option("--disclose", metavar="PATH", help="A private value to show, like payload.to.")
    ] = None,
    archive: Annotated[
        Path | None, typer.Option("--archive", metavar="DIRECTORY", help="Take it from the archive, without a journal.")
    ] = None,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print the receipt of an effect. With --signing, a checkpoint that covers it is signed first."""
    with told(as_json):
        if archive is not None:
            content = archived_receipt(archive, effect_id, disclose or ())
        else:
            content = _from_journal(effect_id, disclose or (), journal, signing)
        if out is None:
            typer.echo(content.decode("utf-8"), nl=False)
            return
        out.write_bytes(content)
        if as_json:
            print_json({"effect_id": effect_id, "file": str(out), "bytes": len(content)})
        else:
            typer.echo(f"{out}: the receipt of effect {effect_id}, {len(content)} bytes")


def _from_journal(effect_id: str, disclose: Sequence[str], journal: str | None, signing: str | None) -> bytes:
    with opened(journal, signing) as gate:
        front = gate.records.front
        if front is None and is_signed(gate.journal):
            raise JournalUnusable(
                f"what is written to this journal is signed; give --signing DIRECTORY or set {SIGNING}"
            )
        if front is not None and front.log is not None:
            gate.records.flush()
        return gate.records.receipt(effect_id, disclose)
