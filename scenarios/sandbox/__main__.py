"""``python -m scenarios.sandbox [SERVICE …]``: run sandboxes on loopback until interrupted."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from scenarios.sandbox.registry import available


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scenarios.sandbox", description=__doc__)
    parser.add_argument("services", nargs="*", metavar="SERVICE", help=f"any of {', '.join(available())}; default all")
    parser.add_argument(
        "--port", action="append", type=int, default=[], help="port of the first service, repeat for the next; 0 is any"
    )
    parser.add_argument("--ready-file", type=Path, help="written (atomically) with the --json line once all accept")
    parser.add_argument("--json", action="store_true", help="print one JSON line instead of lines to export")
    parser.add_argument(
        "--set", action="append", default=[], metavar="SERVICE.OPTION=VALUE", help="for example stripe.connect=off"
    )
    parser.add_argument("--parent-pid", type=int, help="end when this process, the parent, has ended")
    return parser


def _options(given: list[str]) -> dict[str, dict[str, str]]:
    options: dict[str, dict[str, str]] = {}
    for item in given:
        where, equals, value = item.partition("=")
        service, dot, name = where.partition(".")
        if not (equals and dot and service and name):
            raise ValueError(f"--set takes SERVICE.OPTION=VALUE, not {item!r}")
        options.setdefault(service, {})[name] = value
    return options


def _announce(description: dict[str, Any], as_json: bool, ready_file: Path | None) -> None:
    line = json.dumps(description)
    if ready_file is not None:
        partial = ready_file.with_name(ready_file.name + ".partial")
        partial.write_text(line + "\n", encoding="utf-8")
        partial.replace(ready_file)
    if as_json:
        print(line, flush=True)
        return
    for name, service in description["services"].items():
        print(f"# {name}: {service['url']}, ledger for people at {service['url']}/_control")
        for variable, value in service["environment"].items():
            print(f"export {variable}={shlex.quote(value)}")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Run until interrupted; 0 then, 2 if a service or option is not known or a port is taken."""
    parser = _parser()
    given = parser.parse_args(arguments)
    names = list(dict.fromkeys(given.services)) or available()
    if given.parent_pid is not None and os.getppid() != given.parent_pid:
        return 0
    from scenarios.sandbox.server import serve  # slow to import; --help and a typo do not need it

    try:
        options = _options(given.set)
        asyncio.run(
            serve(
                names,
                given.port,
                options,
                lambda description: _announce(description, given.json, given.ready_file),
                given.parent_pid,
            )
        )
    except (ValueError, OSError) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
