"""OpenTelemetry spans and metrics of a gate. Needs ``opentelemetry-api``: ``pip install 'interlock-tools[otel]'``.

Off unless asked for::

    from interlock_tools.telemetry import instrument

    telemetry = instrument(gate)

One span, ``effect <name>``, for each run over one effect: a call, a proposal, a
recovery. It is a child of the caller's span, and what the send function does is
a child of it. No payload, request key, fact, evidence, service's words or
exception text is ever an attribute: the effect's name and id, and words of
closed sets, are all there is.

Metrics:

- ``interlock.outcomes``: outcomes that were told, by effect, status, reason and whether this run brought
  it about (``interlock.new``), so that telling a model for the third time that it is done is not counted as done.
- ``interlock.settle.duration``: seconds from the decision to the end of the effect (or to AMBIGUOUS).
- ``interlock.effects.open``, ``interlock.effects.ambiguous``: how many there are in the journal now, by
  effect. Processes that share a journal report the same number: take the maximum, not the sum.
- ``interlock.notices``: what ``Telemetry.hook`` was told by ``gate.watch``, by effect and event.
"""

from __future__ import annotations

import logging
import threading
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from opentelemetry import context as otel_context
from opentelemetry import metrics, trace
from opentelemetry.metrics import CallbackOptions, Meter, MeterProvider, Observation
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider

from .core.states import Phase, State
from .errors import DefinitionError
from .hooks import Notice
from .outcome import Outcome
from .outcome import Status as OutcomeStatus
from .reporting import outcome_of

if TYPE_CHECKING:
    from .gate import Gate
    from .recording import Recorder, Steps

log = logging.getLogger("interlock_tools")

SCOPE = "interlock_tools"

BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400)
"""Bounds of the histogram of settle times: a call takes milliseconds, one that a person settles takes days."""


def instrument(
    gate: Gate, *, tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> Telemetry:
    """Switch spans and metrics on for a gate.

    Args:
        gate: the gate.
        tracer_provider, meter_provider: by default the global ones.

    Raises:
        DefinitionError: it is observed already.
    """
    if gate.observer is not None:
        raise DefinitionError("this gate is observed already; instrument a gate once")
    telemetry = Telemetry(gate, tracer_provider, meter_provider)
    gate.observer = telemetry
    return telemetry


class Telemetry:
    """What ``instrument`` returns. ``close()`` switches it off; closing the gate does too."""

    def __init__(
        self, gate: Gate, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
    ) -> None:
        self._gate = weakref.ref(gate)
        self._open = True
        self._tracer = trace.get_tracer(SCOPE, tracer_provider=tracer_provider)
        meter = metrics.get_meter(SCOPE, meter_provider=meter_provider)
        self._outcomes = meter.create_counter("interlock.outcomes", "{outcome}", "Outcomes that were told")
        self._durations = meter.create_histogram(
            "interlock.settle.duration",
            "s",
            "Time from the decision to the end of the effect",
            explicit_bucket_boundaries_advisory=BUCKETS_S,
        )
        self._notices = meter.create_counter("interlock.notices", "{notice}", "What the watch had to tell")
        _gauges_of(meter_provider, meter).telemetries.add(self)

    def close(self) -> None:
        """Switch it off for this gate."""
        gate = self._gate()
        if gate is not None and gate.observer is self:
            gate.observer = None
        self.closed()

    def hook(self, notice: Notice) -> None:
        """Count a notice; for ``gate.watch(hooks=[telemetry.hook, ...])``."""
        attributes = {"interlock.effect": notice.outcome.effect, "interlock.event": notice.event}
        self._quietly(lambda: self._notices.add(1, attributes))

    # -- what the gate tells (``observer.Observer``) -------------------------------------------------

    def observed(self, flow: Recorder, steps: Steps, run: str) -> Steps:
        """Carry the steps out inside a span that is current while they run."""
        one = _Run(self, flow, run)
        flow.observation = one
        self._quietly(one.start)
        try:
            outcome = yield from steps
        except BaseException as error:
            raised = type(error).__name__
            self._quietly(lambda: one.failed(raised))
            raise
        else:
            if isinstance(outcome, Outcome):
                self._quietly(lambda: one.told(outcome))
            return outcome
        finally:
            self._quietly(one.end)

    def decided(self, effect_id: str, before: State, after: State) -> None:
        """Count what a person brought about."""
        if after.phase is before.phase:
            return
        self._quietly(lambda: self._count(outcome_of(effect_id, after), "person", True))
        self._quietly(lambda: self._ended(after))

    def closed(self) -> None:
        """Read the journal no more."""
        self._open = False

    # -- metrics -------------------------------------------------------------------------------------

    def _count(self, outcome: Outcome, run: str, new: bool) -> None:
        self._outcomes.add(1, {**_words(outcome), "interlock.run": run, "interlock.new": new})

    def _ended(self, state: State) -> None:
        if state.decided is not None and state.closing is not None:
            took_s = max(0, state.closing.at_ms - state.decided.at_ms) / 1000
            self._durations.record(took_s, {"interlock.effect": state.name, "interlock.phase": state.phase.value})

    def rows(self) -> tuple[Any, list[tuple[str, str]]]:
        """The journal, and name and phase of what is open in it; effects of which none is open have no phase."""
        gate = self._gate()
        if gate is None or not self._open:
            return None, []
        try:
            rows = [(name, "") for name in gate.effects]
            return gate.journal.url, rows + [(row.name, row.phase) for row in gate.open_effects()]
        except Exception as error:
            log.warning("telemetry could not read the journal: %s", type(error).__name__)
            return None, []

    @staticmethod
    def _quietly(act: Callable[[], Any]) -> None:
        """Whatever goes wrong in telemetry, the effect goes on."""
        try:
            act()
        except Exception as error:
            log.warning("telemetry failed: %s", type(error).__name__)


class _Gauges:
    """The gauges of one meter provider, over all gates that report to it: a provider takes each gauge once."""

    def __init__(self, meter: Meter) -> None:
        self.telemetries: weakref.WeakSet[Telemetry] = weakref.WeakSet()
        for name, phase, words in (
            ("interlock.effects.open", None, "Effects that are not closed"),
            ("interlock.effects.ambiguous", Phase.AMBIGUOUS.value, "Effects that only a person can settle"),
        ):
            meter.create_observable_gauge(name, [self._counting(phase)], "{effect}", words)

    def _counting(self, phase: str | None) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observe(_: CallbackOptions) -> Iterable[Observation]:
            found: list[Observation] = []
            Telemetry._quietly(lambda: found.extend(self._observations(phase)))
            return found

        return observe

    def _observations(self, phase: str | None) -> list[Observation]:
        journals: dict[Any, list[tuple[str, str]]] = {}
        for telemetry in list(self.telemetries):
            journal, rows = telemetry.rows()
            journals.setdefault(journal, rows)  # two gates may share a journal
        counts: Counter[str] = Counter()
        for rows in journals.values():
            counts.update(dict.fromkeys((name for name, _ in rows), 0))
            counts.update(name for name, now in rows if now and phase in (None, now))
        return [Observation(count, {"interlock.effect": name}) for name, count in sorted(counts.items())]


_gauges: weakref.WeakKeyDictionary[Any, _Gauges] = weakref.WeakKeyDictionary()
_making = threading.Lock()


def _gauges_of(provider: MeterProvider | None, meter: Meter) -> _Gauges:
    """The gauges of a meter provider; the global one's stand under this module's own key."""
    with _making:
        key = provider if provider is not None else _Gauges
        if key not in _gauges:
            _gauges[key] = _Gauges(meter)
        return _gauges[key]


class _Run:
    """One run over one effect, and its span."""

    def __init__(self, telemetry: Telemetry, flow: Recorder, run: str) -> None:
        self.telemetry = telemetry
        self.flow = flow
        self.run = run
        self.span: Span = trace.INVALID_SPAN
        self.token: Any = None
        self.new = False

    def start(self) -> None:
        name = self.flow.definition.name
        attributes = {"interlock.effect": name, "interlock.run": self.run}
        self.span = self.telemetry._tracer.start_span(f"effect {name}", attributes=attributes)
        self.token = otel_context.attach(trace.set_span_in_context(self.span))

    def appended(self, before: State, after: State) -> None:
        """One event of the span for each entry's effect on the state; the end of the effect is a metric too."""
        self.telemetry._quietly(lambda: self._appended(before, after))

    def _appended(self, before: State, after: State) -> None:
        sends = len(after.sends)
        self.span.add_event(after.phase.value, {"interlock.seq": after.seq, "interlock.send": sends})
        if after.phase is not before.phase and not after.is_open:
            self.new = True
            self.telemetry._ended(after)

    def told(self, outcome: Outcome) -> None:
        self.span.set_attributes(_words(outcome))
        self.span.set_attribute("interlock.at_recovery", outcome.at_recovery)
        if outcome.via is not None:
            self.span.set_attribute("interlock.via", outcome.via)
        if outcome.by_us is not None:
            self.span.set_attribute("interlock.by_us", outcome.by_us)
        if outcome.status is OutcomeStatus.AMBIGUOUS:
            self.span.set_status(Status(StatusCode.ERROR, str(outcome)))
        self.telemetry._count(outcome, self.run, self.new)

    def failed(self, error_type: str) -> None:
        self.span.set_attribute("error.type", error_type)
        self.span.set_status(Status(StatusCode.ERROR))

    def end(self) -> None:
        self.span.set_attribute("interlock.effect_id", self.flow.effect_id)
        self.span.set_attribute("interlock.sends", getattr(self.flow, "sends", 0))
        self.span.end()
        if self.token is not None:
            otel_context.detach(self.token)


def _words(outcome: Outcome) -> dict[str, str]:
    words = {"interlock.effect": outcome.effect, "interlock.status": outcome.status.value}
    if outcome.reason is not None:
        words["interlock.reason"] = outcome.reason.value
    return words
