"""Says in words what happened in a trace."""

from __future__ import annotations

from collections.abc import Sequence

from interlock_tools.core.decide import Step
from interlock_tools.core.entries import Kind
from interlock_tools.core.states import State

from .bridge import NOW, Bridge
from .world import Snapshot

Way = Sequence[tuple[tuple[object, ...], Snapshot]]


def tell(way: Way, bridge: Bridge) -> tuple[str, ...]:
    """One line for each move, and one for each change of the journal or of what the service holds."""
    lines = []
    before: Snapshot | None = None
    for count, (label, after) in enumerate(way, start=1):
        lines.append(f"{count:3}. {_move(label)}")
        if before is None or (before.journal != after.journal and label[0] != "tick"):
            lines.append(f"       journal: {_journal(bridge.states[after.journal])}")
        if before is not None and before.service.landed != after.service.landed:
            landed = ", ".join(str(number) for number in after.service.landed)
            lines.append(f"       the service holds {len(after.service.landed)} effect(s), by send {landed}")
        before = after
    return tuple(lines)


def _move(label: tuple[object, ...]) -> str:
    first, *rest = label
    if first == "tick":
        return "a tick passes"
    if first == "recovers":
        return f"worker on host {rest[0]}: " + ", ".join(_word(word) for word in rest[1:]) if rest else "a worker looks"
    if first == "fact":
        return str(rest[0])
    if first == "restarts":
        return f"host {rest[0]} restarts"
    if first == "service":
        return f"the service gets send {rest[0]}: {rest[1]}" + (f", answers {rest[2]}" if rest[2] else "")
    return f"send {rest[0]}: {first}" + "".join(f", {_word(word)}" for word in rest[1:])


def _word(word: object) -> str:
    if isinstance(word, Step):
        text = f"rule {word.rule}: {word.action.value}"
        text += f" ({word.reason})" if word.reason else ""
        return text + (f", sends {list(word.not_landed)} have not landed" if word.not_landed else "")
    if isinstance(word, Kind):
        return word.value.upper()
    if isinstance(word, tuple):
        return " and ".join(_word(part) for part in word)
    return str(word)


def _journal(state: State) -> str:
    words = [state.phase.value.upper()]
    for send in state.sends:
        since = f" since {NOW - send.since[-1].boottime_ms} ticks" if send.since else ""
        lease = f", lease {send.lease_ms}" if send.lease_ms else ""
        words.append(f"send {send.number} {send.status.value}{since}{lease}")
    return "; ".join(words)
