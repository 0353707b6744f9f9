"""Entry point of ``interlock``. Says what to install where the command line's own packages are missing."""

from __future__ import annotations

import contextlib
import sys
from importlib.util import find_spec

from ..errors import describe
from .exits import FAILED


def main() -> None:
    """Run the command line and exit with one of the codes in ``exits``. ``verify`` needs no further package."""
    if sys.argv[1:2] == ["verify"]:
        from .verify import main as verify

        sys.exit(verify(sys.argv[2:]))
    missing = [package for package in ("typer", "rich") if find_spec(package) is None]
    if missing:
        print(
            f"interlock: the command line needs {' and '.join(missing)}; pip install 'interlock-tools[cli]'",
            file=sys.stderr,
        )
        sys.exit(FAILED)
    from .app import app

    try:
        app(prog_name="interlock")
    except Exception as error:  # also where the answer cannot be printed: it must not look like an answer
        with contextlib.suppress(OSError):
            print(f"interlock: {describe(error)}", file=sys.stderr)
        sys.exit(FAILED)
