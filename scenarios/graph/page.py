"""The results for people: ``results/langgraph.md`` from ``results/langgraph.json``."""

from __future__ import annotations

from collections import Counter
from typing import Any

from scenarios.graph.cells import ARMS, CALLS, DURABILITIES, KILLS

Record = dict[str, Any]

INTRODUCTION = """# Killed under LangGraph

A `create_agent` agent asks for one or two refunds in one message and is killed by SIGKILL. A new process goes on, by
`invoke(None)` or with a new message of the user, to which the model answers by asking for the same refunds. With the
gate one more process is then asked for the same refunds once more. The service's ledger, read after every life, tells
how often each refund was made, and that the process died where the cell says. A figure says in how many cells each
refund was made exactly once.

| killed | durability | without the gate | most refunds of one payment | toolkit | middleware | `None` went on |
|---|---|---|---|---|---|---|"""

WORDS = {
    "in_tool": "in the tool, before the request",
    "after_effect": "in the tool, after the answer",
    "after_tool": "after the tool returned",
    "first_checkpoint": "at the first checkpoint",
    "interrupt": "paused for a person, then in the tool, after the answer",
}
NOTES = """
The tools run in threads of one process, Stripe's own SDK sends, and the place is the same in every arm: right before
the SDK sends a refund, or right after it has the answer. The last column counts the cells of all arms that were
resumed by `invoke(None)`: where there was no checkpoint it has nothing to go on with, and the user's first message was
given anew. Under `exit` the first checkpoint is also the only one, written after everything, when the refunds are made.

## Two calls in one message

The process dies in the first call while the second one stands at a known place: `waits` before its request, `done`
with its tool returned, `kept` with its answer kept by the checkpointer. Refunds made of the second payment, over the
deaths in the first call's tool after its answer, resumed by `invoke(None)`:

| the second call | without the gate | with the gate |
|---|---|---|"""
END = """
## With the gate

Of {gated} cells {wrong} had a problem. One is: a refund too many or too few, or of another amount; another effect id in
the journal after any life, or in any message; a message to the model that was not `COMMITTED` or did not name the
refund that the ledger has; two messages about one refund with different receipts, or a receipt that does not verify
against the published key. The model was told of each refund in {asked} messages. {errors} of {cells} cells could not be
played. Whether SqliteSaver or PostgresSaver kept the checkpoints {savers}.

Packages: {packages}. Played in {seconds} s by `{command}`.
"""


def page(found: Record) -> str:
    """The page of a results document."""
    cells = [one for one in found["cells"] if "error" not in one]
    gated = [one for one in cells if one["arm"] != "no_gate"]
    counts = [count for one in gated for count in Counter(said["request"] for said in one["told"]).values()]
    differ = savers_that_differ(cells)
    lines = [INTRODUCTION, *_by_kill(cells), NOTES, *_by_second_call(cells)]
    lines.append(
        END.format(
            gated=len(gated),
            wrong=sum(bool(one["problems"]) for one in gated),
            asked=" to ".join(str(count) for count in sorted({min(counts, default=0), max(counts, default=0)})),
            errors=len(found["cells"]) - len(cells),
            cells=len(found["cells"]),
            savers="made no difference to any count"
            if not differ
            else f"made a difference in {', '.join(f'`{one}`' for one in differ)}",
            packages=", ".join(f"{name} {text}" for name, text in found["packages"].items()),
            seconds=found["seconds"],
            command=found["command"],
        )
    )
    return "\n".join(lines)


def _by_kill(cells: list[Record]) -> list[str]:
    lines = []
    for kill in KILLS:
        for durability in DURABILITIES:
            row = [one for one in cells if one["kill"] == kill and one["durability"] == durability]
            if not row:
                continue
            by_arm = {arm: [one for one in row if one["arm"] == arm] for arm in ARMS}
            counts = {arm: f"{sum(one['once'] for one in some)} of {len(some)}" for arm, some in by_arm.items()}
            most = max((max(one["effects"]) for one in by_arm["no_gate"]), default=0)
            resumed = [one for one in row if one["resume"] == "none"]
            went_on = f"{sum(one['how'][0] != 'anew' for one in resumed)} of {len(resumed)}"
            columns = [counts["no_gate"], str(most), counts["toolkit"], counts["middleware"], went_on]
            lines.append(f"| {' | '.join([WORDS[kill], durability, *columns])} |")
    return lines


def _by_second_call(cells: list[Record]) -> list[str]:
    lines = []
    died = [one for one in cells if one["kill"] == "after_effect" and one["resume"] == "none"]
    for calls in CALLS:
        some = [one for one in died if one["calls"] == calls and len(one["effects"]) == 2]
        if not some:
            continue
        made = {
            gate: Counter(one["effects"][1] for one in some if (one["arm"] != "no_gate") == gate)
            for gate in (False, True)
        }
        words = [", ".join(f"{times} in {count} cells" for times, count in sorted(made[gate].items())) for gate in made]
        lines.append(f"| {calls.removeprefix('other_')} | {' | '.join(words)} |")
    return lines


def savers_that_differ(cells: list[Record]) -> list[str]:
    """Names of cells whose refunds were not made equally often with both checkpointers."""
    effects: dict[str, set[str]] = {}
    for one in cells:
        name = "/".join(str(one[part]) for part in ("arm", "durability", "kill", "resume", "calls"))
        effects.setdefault(name, set()).add(str(one["effects"]))
    return sorted(name for name, found in effects.items() if len(found) > 1)
