"""With ``witness="before"``: a send that is recorded waits until witnesses have seen the record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .commands import Work
from .core.decide import Checks
from .core.ends import End, Ending
from .core.states import State
from .journal.protocol import Journal
from .reading import read_checks, under_approval

if TYPE_CHECKING:
    from .recording import Recorder, Steps


def waits_for_witnesses(journal: Journal) -> bool:
    """Whether a send waits for witnesses."""
    return journal.sealing is not None and journal.sealing.waits


def hold_back(flow: Recorder, state: State) -> Steps:
    """Wait for the witnesses, then read premises and grant once more, since time has passed.

    Returns None if it may be sent now. Else how the send ends, without a byte
    of it handed over: as not sent, where the witnesses cannot be had; as
    withheld, where what it rests on no longer holds, so that it is decided
    again from what is read then.
    """
    sealing = flow.journal.sealing
    assert sealing is not None
    why = yield Work(sealing.clear, (flow.effect_id,))
    if why is not None:
        return End(Ending.NOT_SENT, detail=f"nothing is sent before witnesses have seen its record: {why}")
    reading = yield from read_checks(
        flow.journal, flow.definition, flow.effect_id, state.payload, state.payload_digest, state.facts or {}
    )
    if under_approval(state, reading).checks is Checks.HOLD:
        return None
    return End(Ending.WITHHELD)
