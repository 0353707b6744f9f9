"""``interlock witness``: a small witness that anyone outside can run."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from ..errors import InterlockError
from .common import JsonOption, print_json, told

witness = typer.Typer(
    help="Run a witness: it remembers the last head of a log, so that none is rewritten unseen.", no_args_is_help=True
)

DatabaseOption = Annotated[Path, typer.Option("--database", metavar="FILE", help="What it remembers, one SQLite file.")]
KeyOption = Annotated[Path, typer.Option("--key", metavar="FILE", help="Its key.")]


class WitnessNotInstalled(InterlockError):
    """The packages of the witness's server are missing."""


def _require() -> None:
    missing = [package for package in ("starlette", "uvicorn") if find_spec(package) is None]
    if missing:
        names = " and ".join(missing)
        raise WitnessNotInstalled(f"a witness needs {names}; pip install 'interlock-tools[cli,witness]'")


@witness.command()
def init(
    database: DatabaseOption,
    key: KeyOption,
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="Its name, such as witness.example.com/a.")],
    as_json: JsonOption = False,
) -> None:
    """Make a new witness. Its key and its database belong together for ever: one that lost either is retired."""
    with told(as_json):
        _require()
        from ..witness.server import initialise

        verifier = initialise(database, key, name)
        if as_json:
            print_json({"key": verifier})
        else:
            typer.echo(f"For policies: witness NAME {verifier} URL")


@witness.command()
def serve(
    database: DatabaseOption,
    key: KeyOption,
    log: Annotated[
        list[str] | None, typer.Option("--log", metavar="KEY", help="The verifier key of a log to know; repeat it.")
    ] = None,
    host: Annotated[str, typer.Option(metavar="ADDRESS", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any free one.")] = 0,
) -> None:
    """Cosign checkpoints of the logs that it knows, until it is told to stop. Put a TLS proxy in front."""
    with told(False):
        _require()
        from ..witness.server import open_witness
        from ..witness.server import serve as run

        run(open_witness(database, key), host, port, ready=_ready, logs=log or ())


def _ready(url: str) -> None:
    print(url, flush=True)
