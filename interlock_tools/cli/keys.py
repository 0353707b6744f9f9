"""``interlock keys``: the public keys of a journal, for policies, and changing them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import JournalUnusable
from .common import SIGNING, JournalOption, JsonOption, SigningOption, opened, print_json, told

keys = typer.Typer(help="Show the public keys of a journal for a policy, or change keys.", no_args_is_help=True)


@keys.command()
def show(signing: SigningOption = None, as_json: JsonOption = False) -> None:
    """Print the lines that a policy needs to trust these keys. Makes the keys on first use."""
    with told(as_json):
        if not signing:
            raise JournalUnusable(f"which keys? Give --signing DIRECTORY or set {SIGNING}.")
        from ..sealing.signing import Keys

        if not Path(signing).is_dir():
            typer.echo(f"interlock: there were no keys in {signing}; these are new ones", err=True)
        lines = Keys.in_directory(signing).policy()
        if as_json:
            print_json({"policy": lines.splitlines()})
        else:
            typer.echo(lines, nl=False)


@keys.command()
def rotate(
    log: Annotated[bool, typer.Option("--log", help="The log's key instead of the writer's.")] = False,
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a new key sign from now on. Stop the processes of the journal first, and start them again afterwards."""
    with told(as_json), opened(journal, signing) as gate:
        file = gate.records.move_log() if log else gate.records.rotate_writer()
        gate.records.flush()
        if as_json:
            print_json({"file": str(file)})
        else:
            typer.echo(f"{file} signs from now on. Policies that trust the old key go on working.")


@keys.command()
def retire(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The writer's key, as it stands in a policy.")],
    journal: JournalOption = None,
    signing: SigningOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say that what a writer's key signs from now on does not count. What it signed before stays good."""
    with told(as_json), opened(journal, signing) as gate:
        gate.records.retire_writer(key)
        gate.records.flush()
        if as_json:
            print_json({"retired": key})
        else:
            typer.echo("From here on in the log, that key does not count.")
