"""Runs a module as if on another host: with another boot id. Used as a prefix: ``python postgres_host.py python -m …``.

The boot id is the content of the file that ``INTERLOCK_TEST_BOOT`` names.
"""

from __future__ import annotations

import os
import runpy
import socket
import sys
from pathlib import Path

from interlock_tools.journal import clock
from interlock_tools.journal.pg import lease


def main() -> None:
    boot = Path(os.environ["INTERLOCK_TEST_BOOT"])
    clock.BOOT_ID = boot
    socket.gethostname = lambda: boot.stem  # type: ignore[assignment]
    lease.machine = lambda: boot.stem  # type: ignore[assignment]
    _, _, module, *arguments = sys.argv[1:]  # python -m module arguments
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
