"""``python -m scenarios.crash (--pairwise | --full | --only PART …)``: the crash suite."""

from __future__ import annotations

import argparse
import sys

from scenarios.crash.runner import choose, replay, run_cells


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen cells. 0 if every one is right, 1 if not, 2 if none was chosen."""
    parser = argparse.ArgumentParser(prog="python -m scenarios.crash", description=__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--pairwise", action="store_true", help="a selection in which all pairs occur (the default)")
    which.add_argument("--full", action="store_true", help="every cell")
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="cells whose name contains this")
    parser.add_argument("--seed", type=int, default=1, help="for the selection and for how late requests are")
    parser.add_argument("--jobs", type=int, default=4, help="how many cells at a time")
    parser.add_argument("--exec", action="store_true", help="each worker in a new interpreter, not a forked child")
    parser.add_argument("--list", action="store_true", help="print the names of the chosen cells and end")
    given = parser.parse_args(arguments)
    names = choose(full=given.full, only=given.only, seed=given.seed)
    if given.list or not names:
        print("\n".join(names))
        return 0 if names else 2

    def tell(done: int, found: dict[str, object]) -> None:
        if found["problems"]:
            print(f"FAILED {found['cell']}", *found["problems"], found.get("trace", ""), sep="\n  ")  # type: ignore[misc]
            print(f"  replay: {replay(str(found['cell']), given.seed, new_interpreter=given.exec)}", flush=True)
        elif done % 100 == 0:
            print(f"{done} of {len(names)}", flush=True)

    summary = run_cells(names, seed=given.seed, jobs=given.jobs, new_interpreter=given.exec, tell=tell)
    print(summary.words())
    return 1 if summary.failed or summary.cells < len(names) else 0


if __name__ == "__main__":
    sys.exit(main())
