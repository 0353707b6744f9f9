"""``interlock verify``: what a receipt shows. Needs nothing but this package, so it has no typer in it."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from ..errors import InterlockError

CANNOT_TELL = 4
MOST_BYTES = 1 << 24

CODES = """exit codes: 0 the policy is met; 1 a check failed, do not rely on it; 2 sound, but below what the policy asks
for; 3 the service says otherwise; 4 cannot tell: the policy, the file or the service could not be read."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(CANNOT_TELL, f"{self.format_usage()}interlock verify: {message}\n")


def parser() -> argparse.ArgumentParser:
    """Return the command's own parser."""
    made = _Parser(
        prog="interlock verify",
        description="Say what a receipt shows: one line per claim, who vouches for it, and what was not checked. "
        "Works offline; trust comes from the policy alone.",
        epilog=CODES,
    )
    made.add_argument("file", metavar="FILE", help="the receipt, or - for standard input")
    made.add_argument("--policy", required=True, metavar="P", help="whom you trust; never the operator's word for it")
    made.add_argument("--check-service", action="store_true", help="also ask the service, with your own access to it")
    made.add_argument("--json", action="store_true", dest="as_json", help="print JSON and nothing else")
    return made


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code."""
    try:
        options = parser().parse_args(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else CANNOT_TELL
    try:
        return run(options.file, options.policy, options.check_service, options.as_json)
    except (InterlockError, OSError, UnicodeError) as error:  # also where the report cannot be printed
        if options.as_json:
            print(json.dumps({"error": str(error), "exit_code": CANNOT_TELL}, indent=2, ensure_ascii=False))
        else:
            print(f"interlock verify: cannot tell: {error}", file=sys.stderr)
        return CANNOT_TELL


def run(file: str, policy_file: str, check_service: bool, as_json: bool) -> int:
    """Verify, print the report, and return the exit code.

    Raises:
        VerificationError, OSError: nothing can be said.
    """
    from ..receipts import parse_policy, verify

    policy = parse_policy(Path(policy_file).read_bytes())
    receipt = sys.stdin.buffer.read(MOST_BYTES + 1) if file == "-" else _read(file)
    report = verify(receipt, policy)
    if check_service:
        from ..confirm import confirm

        report = confirm(report)
    if as_json:
        print(json.dumps(report.to_json(), indent=2, ensure_ascii=False))
    else:
        print(report, end="")
    return report.exit_code


def _read(file: str) -> bytes:
    with Path(file).open("rb") as opened:
        return opened.read(MOST_BYTES + 1)
