"""The command line of the story."""

from __future__ import annotations

import argparse
import json
import os
import secrets
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from interlock_tools import DefinitionError

from .acts import OUTAGES, POINTS, WITHOUT_GATE, Act, acts
from .play import Result, Stage, play
from .show import Timeline, closing_table
from .world import Live, Sandbox

AT_ONCE = 3
"""How many acts are played at the same time where each has a journal of its own."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    made = argparse.ArgumentParser(
        prog="refund_agent.py",
        description="An agent that is killed in the middle of a refund, restarted, and judged by what Stripe holds.",
    )
    made.add_argument("--crash", choices=list(POINTS), metavar="POINT", help=f"one of {', '.join(POINTS)}; default all")
    made.add_argument(
        "--outage", choices=list(OUTAGES), default="none", help="what happens while the agent is dead; default none"
    )
    made.add_argument("--journal", metavar="URL", help="a journal to use, by path or URL; default a file for each act")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    made.add_argument("--live", action="store_true", help="Stripe's test mode, with the key of STRIPE_API_KEY")
    made.add_argument("--without-gate", action="store_true", help="the same tool and the same story without the gate")
    return made


def main(agent: Path) -> int:
    """Tell the story; 0 if every invariant held, 1 if not, 2 if it could not be told."""
    try:
        from rich.console import Console
    except ImportError:
        print("This example needs a few packages: pip install -e '.[examples]'")
        return 2
    options = parser().parse_args()
    gated = not options.without_gate
    if options.crash and not gated and options.crash not in WITHOUT_GATE:
        parser().error(f"without the gate there are only {', '.join(WITHOUT_GATE)}")
    wide = None if os.isatty(1) else 160
    console = Console(width=wide)
    world = Live() if options.live else Sandbox()
    began = time.monotonic()
    try:
        world.start()
    except DefinitionError as error:
        console.print(f"[red]{error}[/red]")
        return 2
    try:
        with tempfile.TemporaryDirectory(prefix="refund-agent-") as folder:
            case = f"case-4471-{secrets.token_hex(3)}" if options.journal else "case-4471"
            stage = Stage(world, agent, Path(folder), options.journal, case)
            results = _tell(acts(options.crash, options.outage, gated), stage, console)
    finally:
        world.stop()
    console.print(closing_table(results, gated))
    right = sum(not result.wrong for result in results)
    took = time.monotonic() - began
    colour = "green" if right == len(results) else "red"
    console.print(
        f"[bold {colour}]{right} of {len(results)} deaths ended right[/bold {colour}] at {world.name}, in {took:.0f} s."
        + ("" if gated else " This was without the gate.")
    )
    if options.json is not None:
        told = {"right": right, "of": len(results), "gated": gated, "acts": [result.to_json() for result in results]}
        options.json.write_text(json.dumps(told, indent=2) + "\n", encoding="utf-8")
    return 0 if results and right == len(results) else 1


def _tell(chosen: list[Act], stage: Stage, console: object) -> list[Result]:
    """Play the acts: side by side, or one after another where they share a journal."""
    from rich.console import Console

    assert isinstance(console, Console)
    at_once = 1 if stage.journal else min(AT_ONCE, len(chosen))
    with Timeline(console, chosen) as timeline, ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda act: play(act, stage, lambda words: timeline.add(act, words)), chosen))
