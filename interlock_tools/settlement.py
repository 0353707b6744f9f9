"""``Settlement``: what became of an effect after it was committed, as a watch function tells it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, get_args

from .redaction import clean

State = Literal["pending", "settled", "failed", "reversed", "at_risk"]

STATES: tuple[str, ...] = get_args(State)

FREEING = ("failed", "reversed")
"""States in which the effect is undone, so that its budgets are free again."""


@dataclass(frozen=True)
class Settlement:
    """What a service says of an effect that was accepted.

    Attributes:
        state: ``pending`` (not final yet, or in a way that is not known), ``settled`` (final and as wanted),
            ``failed`` (accepted, and then not carried out), ``reversed`` (carried out and undone since), ``at_risk``
            (carried out, and more may be lost than it was over).
        detail: the service's own words for it, such as ``charge_for_pending_refund_disputed``.
        exposure: what may be lost in all, in the currency's smallest unit; for ``at_risk``.
        currency: of the exposure, such as ``usd``.
        look_again: when to look next; None: never, unless somebody asks (for ``pending``: the gate chooses).

    Raises:
        ValueError: a state that is not one of these, or an exposure that is not a whole number.
    """

    state: State
    detail: str = ""
    exposure: int | None = None
    currency: str | None = None
    look_again: timedelta | None = None

    def __post_init__(self) -> None:
        if self.state not in STATES:
            raise ValueError(f"a settlement's state is one of {', '.join(STATES)}, not {self.state!r}")
        if self.exposure is not None and type(self.exposure) is not int:
            raise ValueError("exposure is a whole number of the currency's smallest unit")
        if self.look_again is not None and self.look_again <= timedelta(0):
            raise ValueError("look_again is a time from now")

    def body(self) -> dict[str, Any]:
        """What is recorded of it."""
        body: dict[str, Any] = {"state": self.state}
        if self.detail:
            body["detail"] = clean(self.detail)
        if self.exposure is not None:
            body["exposure"] = self.exposure
        if self.currency is not None:
            body["currency"] = clean(self.currency, 8)
        return body
