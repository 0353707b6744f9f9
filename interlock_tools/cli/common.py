"""What the commands share: their options, opening the journal, and saying what went wrong in one line."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import unquote

import typer

from ..errors import BadRequest, InterlockError, JournalUnusable, NotDecidable
from ..gate import Gate
from ..journal.open import open_journal
from ..redaction import clean
from ..signed import is_signed
from .exits import FAILED, NOT_POSSIBLE, USAGE

VARIABLE = "INTERLOCK_JOURNAL"
SIGNING = "INTERLOCK_SIGNING"

JournalOption = Annotated[
    str | None,
    typer.Option("--journal", metavar="URL", envvar=VARIABLE, help="Path or URL of the journal."),
]
SigningOption = Annotated[
    str | None,
    typer.Option("--signing", metavar="DIRECTORY", envvar=SIGNING, help="Directory of the keys that sign."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]
EffectArgument = Annotated[str, typer.Argument(metavar="EFFECT_ID", help="The effect, 32 hex digits.")]


@contextmanager
def told(as_json: bool) -> Iterator[None]:
    """Turn our errors into one clear line and an exit code."""
    try:
        yield
    except InterlockError as error:
        codes = ((NotDecidable, NOT_POSSIBLE), (BadRequest, USAGE))
        code = next((code for kind, code in codes if isinstance(error, kind)), FAILED)
        fail(str(error), code, as_json)
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # whoever reads what is printed has gone
            raise
        fail(describe_file(error), FAILED, as_json)


def describe_file(error: OSError) -> str:
    """What is wrong with which file, without the number of the error."""
    words = error.strerror or str(error)
    return f"{error.filename}: {words}" if error.filename is not None else words


def fail(words: str, code: int, as_json: bool) -> None:
    """Print one line (or a JSON object) about what went wrong, and exit."""
    line = clean(words, 1000)
    if as_json:
        print_json({"error": line, "exit_code": code})
    else:
        typer.echo(f"interlock: {line}", err=True)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, sort_keys=False))


@contextmanager
def opened(journal: str | None, signing: str | None = None) -> Iterator[Gate]:
    """Open an existing journal, with the keys of a directory if one is named.

    Raises:
        JournalUnusable: none is named, there is none, it cannot be opened, or it is not signed and keys are named:
            what a journal is signed with is for its application to say, and never for whoever looks at it.
    """
    if not journal:
        raise JournalUnusable(f"which journal? Give --journal URL or set {VARIABLE}.")
    check_exists(journal)
    if signing and not Path(signing).is_dir():
        raise JournalUnusable(f"{signing}: there is no such directory of keys; the application that signs makes it")
    with contextlib.closing(open_journal(journal)) as store:
        if signing and not is_signed(store):
            raise JournalUnusable(
                f"what is written to this journal is not signed; leave out --signing, and unset {SIGNING}. Signing "
                "begins where the application that writes it opens it with signing=…"
            )
        yield Gate(store, signing=signing or None)


def check_exists(journal: str) -> None:
    """Raise ``JournalUnusable`` if a SQLite journal is not there, in place of making an empty one."""
    path = path_of(journal)
    if path is not None and not path.exists():
        raise JournalUnusable(f"{path}: there is no journal. Check the path; the application that writes it makes it.")


def path_of(journal: str) -> Path | None:
    """The file of a SQLite journal; None for any other."""
    scheme, separator, rest = journal.partition("://")
    if not separator:
        return Path(journal)
    return Path(unquote(rest)) if scheme == "sqlite" else None


def same_journal(one: str, other: str) -> bool:
    first, second = path_of(one), path_of(other)
    if first is None or second is None:
        return one == other or _shown(one) == _shown(other)
    return os.path.realpath(first) == os.path.realpath(second)


def _shown(url: str) -> str:
    """Return a journal's URL as its journal shows it: without password."""
    if url.startswith(("postgresql://", "postgres://")):
        from ..journal.pg.target import parse

        return parse(url).url
    return url
