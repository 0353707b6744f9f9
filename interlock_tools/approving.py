"""Holds a decision back until a person has approved it, and says how that stands."""

from __future__ import annotations

import time

from .backoff import pause_s
from .commands import Sleep
from .core.approval import Standing, approval_digest, standing
from .core.entries import Kind
from .core.states import Phase, State, fold
from .outcome import APPROVAL, Reason
from .recording import Body, Steps
from .redaction import clean
from .sending import Sender


class Approving(Sender):
    """The part of a flow that waits for a person."""

    looks = 0

    def ask(self, state: State, bodies: list[Body]) -> list[Body]:
        """The entries with a request for approval after them, for the state before them."""
        now_ms = self.journal.now().wall_ms
        after = fold(self.entries(state, bodies), state)
        expires = now_ms + self.definition.approval_expires_ms
        return [*bodies, (Kind.APPROVAL_REQUESTED, {"digest": approval_digest(after), "expires_at_ms": expires})]

    def hold_for_approval(self, state: State, called: bool) -> Steps:
        """Ask, wait within what the caller allows, or go on.

        Returns None where a person's word, or none, is needed no more; the state
        to look at again; or an outcome.
        """
        if state.phase is not Phase.PROPOSED:
            return None
        if state.approval is None and not self.definition.needs_approval(state.payload):
            return None
        stands = standing(state, self.journal.now().wall_ms)
        if stands is Standing.APPROVED:
            return None
        if stands is Standing.AWAITING:
            return (yield from self._await_answer(state))
        if stands in (Standing.NOT_ASKED, Standing.EXPIRED):
            return (yield from self.append(state, self.ask(state, []))) if called else self.outcome(state)
        if stands is Standing.OTHER:
            detail = "what the approval was asked for is not what would be sent"
            body: Body = (Kind.REFUSED, self.closing({"reason": Reason.NOT_ALLOWED.value, "detail": detail}))
        else:
            assert state.approval is not None
            body = rejected(state.approval.by, state.approval.why)
        return (yield from self.append(state, [body]))

    def _await_answer(self, state: State) -> Steps:
        left = self.wait_until - time.monotonic()
        if left <= 0:
            return self.outcome(state)
        self.looks += 1
        yield Sleep(min(pause_s(self.looks, 0.05, 1.0), left), "somebody has yet to approve it")
        return (yield from self.load())


def rejected(by: str, why: str) -> Body:
    """The entry that refuses what a person has rejected."""
    return Kind.REFUSED, {"reason": Reason.REJECTED.value, "code": APPROVAL, "detail": clean(f"{by}: {why}", 300)}
