"""``python -m scenarios.explorer``: explore, walk, or kill mutants."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from . import setup as setups
from .model import Model
from .mutants import MUTANTS
from .search import MOST_STATES, Found, Trace, explore, walk
from .setup import Setup

Walk = tuple[Setup, int]


def explore_setup(setup: Setup, most_states: int = MOST_STATES) -> Found:
    """Explore one setup with the production core."""
    return explore(Model(setup), most_states)


def explore_mutant(name: str) -> Found:
    """Explore one mutant in its setup."""
    return explore(MUTANTS[name].model())


def walk_setup(which: Walk) -> Trace | None:
    """Walk once at random."""
    return walk(Model(which[0]), which[1])


def in_parallel(function: Callable[[Any], Any], items: Iterable[Any], processes: int) -> Iterator[Any]:
    """Apply ``function`` to each item, in so many processes, and yield the results in order."""
    if processes <= 1:
        yield from map(function, items)
        return
    with ProcessPoolExecutor(processes) as pool:
        yield from pool.map(function, items)


def main(arguments: list[str] | None = None) -> int:
    """Run, print, and return 0 if every run is clean and every mutant is killed."""
    options = _parser().parse_args(arguments)
    if options.list:
        for setup in setups.full() if options.full else setups.quick():
            print(setup.title)
        for mutant in MUTANTS.values():
            print(f"mutant {mutant.name}: {mutant.about}")
        return 0
    if options.mutant:
        return _kill(options.mutant, options.processes)
    if options.seed is not None:
        return _walk(options.seed, options.walks, _chosen(setups.roomy(), options), options.processes)
    return _explore(_chosen(setups.full() if options.full else setups.quick(), options), options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m scenarios.explorer", description=__doc__)
    parser.add_argument("--full", action="store_true", help="the large plan: two crashes, all faults, longer times")
    parser.add_argument("--contract", action="append", metavar="NAME", help="only this contract (repeatable)")
    parser.add_argument("--hosts", type=int, choices=(1, 2), help="only with so many hosts")
    parser.add_argument("--mutant", action="append", metavar="NAME", help="kill this mutant, or 'all' (repeatable)")
    parser.add_argument("--seed", type=int, metavar="N", help="walk at random instead, from this seed on")
    parser.add_argument("--walks", type=int, default=100, metavar="N", help="how many walks a setup (default 100)")
    parser.add_argument("--most-states", type=int, default=MOST_STATES, metavar="N", help="truncate (and fail) there")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    parser.add_argument("--list", action="store_true", help="list the plan and the mutants")
    return parser


def _chosen(plan: list[Setup], options: argparse.Namespace) -> list[Setup]:
    names = set(options.contract or ())
    chosen = [
        setup
        for setup in plan
        if (not names or setup.name.split("+strict")[0].split(" ")[0] in names or setup.name in names)
        and options.hosts in (None, setup.hosts)
    ]
    if not chosen:
        sys.exit(f"no such contract; there are: {', '.join(setups.CONTRACTS)}")
    return chosen


def _explore(plan: list[Setup], options: argparse.Namespace) -> int:
    states = transitions = failures = 0
    jobs = [(setup, options.most_states) for setup in plan]
    for found in in_parallel(_explore_job, jobs, options.processes):
        print(found, flush=True)
        states += found.states
        transitions += found.transitions
        failures += not found.clean
        if found.trace:
            print(found.trace, flush=True)
    print(f"{len(plan)} explorations, {states:,} states, {transitions:,} transitions, {failures} not clean")
    return 1 if failures else 0


def _explore_job(job: tuple[Setup, int]) -> Found:
    return explore_setup(*job)


def _kill(names: list[str], processes: int) -> int:
    chosen = list(MUTANTS) if "all" in names else names
    unknown = [name for name in chosen if name not in MUTANTS]
    if unknown:
        sys.exit(f"no such mutant: {', '.join(unknown)}; --list names them")
    survivors = 0
    for name, found in zip(chosen, in_parallel(explore_mutant, chosen, processes), strict=True):
        print(f"\n{name}: {MUTANTS[name].about}\n  in {found.title}, {found.states:,} states")
        print(found.trace if found.trace else "SURVIVED", flush=True)
        survivors += found.trace is None
    print(f"\n{len(chosen)} mutants, {survivors} survived")
    return 1 if survivors else 0


def _walk(seed: int, walks: int, plan: list[Setup], processes: int) -> int:
    failures = 0
    jobs = [(setup, number) for setup in plan for number in range(seed, seed + walks)]
    for (setup, number), trace in zip(jobs, in_parallel(walk_setup, jobs, processes), strict=True):
        if trace is not None:
            failures += 1
            print(f"{setup.title}\n{trace}")
            again = f"--contract {setup.name} --hosts {setup.hosts} --seed {number} --walks 1"
            print(f"replay: python -m scenarios.explorer {again}", flush=True)
    print(f"{len(jobs)} walks from seed {seed}, {failures} not clean")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
