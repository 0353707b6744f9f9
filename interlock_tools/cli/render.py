"""Puts outcomes and entries on a screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..core.canonical import encode
from ..core.decide import Sender
from ..core.entries import Entry, Kind
from ..core.states import SendStatus, State, fold
from ..errors import JournalError
from ..gate import Gate
from ..messages import shown_key
from ..outcome import Outcome, Status
from ..redaction import clean

_STYLE = {
    Status.COMMITTED: "bold green",
    Status.REFUSED: "bold yellow",
    Status.AMBIGUOUS: "bold red",
    Status.IN_FLIGHT: "bold cyan",
}
_PIPE_WIDTH = 120


def console() -> Console:
    """The screen; where the output goes to a file or a pipe, a fixed width unless COLUMNS says another."""
    screen = Console(highlight=False)
    if not screen.is_terminal and "COLUMNS" not in os.environ:
        screen.width = _PIPE_WIDTH
    return screen


def when(at_ms: int) -> str:
    """A time as people read it, UTC."""
    moment = datetime.fromtimestamp(at_ms / 1000, timezone.utc)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def value(found: Any, most: int = 200) -> str:
    """A fact or an argument on one line: text bare where that is plain, everything else as JSON."""
    plain = isinstance(found, str) and found != "" and found.isprintable() and found == found.strip()
    return clean(found if plain else encode(found), most)


def status(outcome: Outcome) -> Text:
    return Text(str(outcome), style=_STYLE[outcome.status])


def outcomes_table(outcomes: Sequence[Outcome]) -> Table:
    """One row an outcome: what, how it stands, and its effect id."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("effect", "request", "outcome", "effect id"):
        table.add_column(name, overflow="fold")
    for outcome in outcomes:
        table.add_row(clean(outcome.effect, 80), shown_key(outcome.request_key), status(outcome), outcome.effect_id)
    return table


def pairs(screen: Console, title: str, values: dict[str, Any]) -> None:
    """A title and one line a value."""
    if not values:
        return
    screen.print(Text(title, style="bold"))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    for name, found in values.items():
        table.add_row(clean(name, 80), Text(value(found, 400)))
    screen.print(table)


def entries_table(gate: Gate, entries: Sequence[Entry]) -> Table:
    """The entries of one effect: when, what, and by whom."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("#", "time (UTC)", "entry", "what", "held by"):
        table.add_column(name, overflow="fold")
    state = fold(entries)
    for entry in entries:
        table.add_row(
            str(entry.seq),
            when(entry.at_ms),
            entry.kind.value,
            Text(_about(entry, state.facts)),
            Text(_holder(gate, state, entry)),
        )
    return table


def _holder(gate: Gate, state: State, entry: Entry) -> str:
    """Who makes the send of a DISPATCHED entry, as far as its session still tells."""
    if entry.kind is not Kind.DISPATCHED:
        return ""
    send = state.send(entry.body["send"])
    assert send is not None
    try:
        sighting, holder = gate.journal.sight(send)
    except JournalError:
        sighting, holder = None, None
    if holder is None:
        return f"session {send.session[:8]}"
    alive = ""
    if sighting is not None and send.status is SendStatus.RUNNING:
        alive = {Sender.LIVE: ", alive", Sender.DEAD: ", dead"}.get(sighting.sender, "")
    return f"process {holder.pid} on {clean(holder.host, 80)}{alive}"


def _about(entry: Entry, decided: dict[str, Any] | None) -> str:
    body = dict(entry.body)
    if entry.kind is not Kind.PROPOSED and "facts" in body and body["facts"] == decided:
        body["facts"] = "as decided"
    if str(body.get("detail", "")).startswith(str(body.get("cause", "\0"))):
        del body["cause"]  # the words say it again
    if "changes" in body:
        body.pop("facts", None)
    parts = [part for name, describe in _PARTS if name in body and (part := describe(body[name]))]
    return "; ".join(parts)


def _budgets(budgets: list[dict[str, Any]]) -> str:
    return ", ".join(f"takes {b['amount']} of budget {clean(b['budget'], 80)} ({b['limit']})" for b in budgets)


def _grant(grant: dict[str, Any] | None) -> str:
    if grant is None:
        return ""
    by = f" by {clean(grant['by'], 80)}" if "by" in grant else ""
    return f"approval {clean(grant['id'], 80)}{by}"


def change_text(change: dict[str, Any]) -> str:
    """What one premise was, is and must be."""
    words = (("was", "was"), ("now", "now" if "was" in change else "is"), ("expected", "must be"))
    return ", ".join(f"{word} {value(change[name], 80)}" for name, word in words if name in change)


def _changes(changes: dict[str, Any]) -> str:
    return "; ".join(f"{clean(name, 80)}: {change_text(change)}" for name, change in changes.items())


def _context(context: dict[str, Any]) -> str:
    return ", ".join(f"{clean(name, 80)} {value(found, 80)}" for name, found in context.items())


_PARTS: tuple[tuple[str, Any], ...] = (
    ("decision", lambda number: f"decision {number}"),
    ("decided_by", lambda how: f"decided by {how}"),
    ("context", _context),
    ("sends", lambda numbers: f"send {', '.join(map(str, numbers))}"),
    ("send", lambda number: f"send {number}"),
    ("resend", lambda _: "the same key again"),
    ("proof", lambda proof: f"proved by {proof}"),
    ("grant", _grant),
    ("budgets", _budgets),
    ("cause", lambda cause: clean(str(cause), 80)),
    ("reason", lambda reason: reason),
    ("facts", lambda facts: f"facts {value(facts)}" if facts else ""),
    ("changes", _changes),
    ("code", lambda code: clean(code, 80)),
    ("detail", lambda detail: value(detail)),
    ("via", lambda via: f"known by {via}"),
    ("by_us", lambda by_us: {"yes": "", "no": "somebody else's action"}.get(by_us, "whose action is not known")),
    ("evidence", lambda evidence: f"evidence {value(evidence)}"),
    ("digest", lambda digest: f"of digest {value(str(digest)[:12])}"),
    ("expires_at_ms", lambda at_ms: f"good until {when(at_ms)}"),
    ("landed", lambda landed: "it landed" if landed else "it did not land"),
    ("by", lambda by: f"by {value(by)}"),
    ("why", lambda why: value(why)),
    ("state", lambda state: value(state)),
    ("effect_id", lambda effect_id: f"decided again as {effect_id}"),
    ("result", lambda result: value(result)),
    ("at_recovery", lambda _: "at recovery"),
)
"""What is said about an entry, by the names in its body, in this order."""
