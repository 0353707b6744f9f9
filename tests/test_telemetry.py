"""Spans and metrics: what they say, whose children they are, and what never gets into them."""

from __future__ import annotations

import asyncio
import sys
import threading
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gate_support import GateCase, Lands
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from interlock_tools import DefiniteNo, DefinitionError, Gate, Settlement
from interlock_tools.journal.sqlite import SqliteJournal
from interlock_tools.telemetry import Telemetry, instrument
from interlock_tools.testing import CrashPoint


class Broken(SpanProcessor):
    """An application's span processor with a bug."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        raise RuntimeError("a bug in a processor")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("a bug in a processor")


class TelemetryCase(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.exporter = InMemorySpanExporter()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader])
        self.telemetry = self.instrument(self.gate)

    def instrument(self, gate: Gate) -> Telemetry:
        return instrument(gate, tracer_provider=self.tracers, meter_provider=self.meters)

    def spans(self, prefix: str = "effect ") -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name.startswith(prefix)]

    def attributes(self) -> dict[str, Any]:
        """The attributes of the last span of an effect, without the prefix of their names."""
        return {name.removeprefix("interlock."): value for name, value in (self.spans()[-1].attributes or {}).items()}

    def points(self, metric: str) -> dict[tuple[Any, ...], Any]:
        """A metric's values by the values of its attributes."""
        data = self.reader.get_metrics_data()
        found: dict[tuple[Any, ...], Any] = {}
        for resource in data.resource_metrics if data else []:
            for scope in resource.scope_metrics:
                for one in scope.metrics:
                    if one.name == metric:
                        for point in one.data.data_points:
                            key = tuple(value for _, value in sorted((point.attributes or {}).items()))
                            found[key] = point.value if hasattr(point, "value") else point.count
        return found


class Spans(TelemetryCase):
    def test_a_call_is_a_child_of_its_caller_and_the_send_a_child_of_the_call(self) -> None:
        tracer = self.tracers.get_tracer("application")

        def send(_: Any) -> dict[str, str]:
            with tracer.start_as_current_span("request"):
                return {"id": "re_1"}

        self.service.script = [send]
        with tracer.start_as_current_span("agent") as agent:
            outcome = self.refund()(case="4471")
        (span,), (request,) = self.spans(), self.spans("request")
        assert span.parent is not None and request.parent is not None
        self.assertEqual(span.parent.span_id, agent.get_span_context().span_id)
        self.assertEqual(request.parent.span_id, span.context.span_id)
        self.assertEqual(span.name, "effect test.refund")
        expected = {"effect": "test.refund", "effect_id": outcome.effect_id, "run": "call", "status": "COMMITTED"}
        self.assertEqual(
            self.attributes(), {**expected, "via": "send", "by_us": "yes", "at_recovery": False, "sends": 1}
        )
        self.assertEqual([event.name for event in span.events], ["dispatched", "committed"])
        self.assertIs(span.status.status_code, StatusCode.UNSET)

    def test_under_asyncio_each_call_has_its_own_parent(self) -> None:
        tracer = self.tracers.get_tracer("application")
        both = threading.Barrier(2)  # the two sends run at once, or not at all

        def send(request: dict[str, Any]) -> dict[str, str]:
            both.wait(30)
            with tracer.start_as_current_span(f"request {request['case']}"):
                return {"id": "re_1"}

        self.service.script = [send, send]
        refund = self.refund()

        async def agent(case: str) -> None:
            with tracer.start_as_current_span(f"agent {case}"):
                await refund.ainvoke((), {"case": case})

        async def main() -> None:
            await asyncio.gather(agent("1"), agent("2"))

        asyncio.run(main())
        by_id = {span.context.span_id: span for span in self.exporter.get_finished_spans()}
        for case in ("1", "2"):
            (request,) = self.spans(f"request {case}")
            assert request.parent is not None
            call = by_id[request.parent.span_id]
            assert call.parent is not None
            self.assertEqual((call.name, by_id[call.parent.span_id].name), ("effect test.refund", f"agent {case}"))

    def test_a_span_lasts_until_the_send_has_ended_though_its_caller_was_cancelled(self) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def send(_: Any) -> dict[str, str]:
            begun.set()
            go_on.wait(30)
            return {"id": "re_1"}

        self.service.script = [send]
        refund = self.refund()

        async def main() -> None:
            task = asyncio.ensure_future(refund.ainvoke((), {"case": "1"}))
            await asyncio.to_thread(begun.wait, 30)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(self.spans(), [])
            go_on.set()
            while not self.spans():
                await asyncio.sleep(0.001)

        asyncio.run(main())
        self.assertEqual(self.attributes()["status"], "COMMITTED")

    def test_recovery_after_a_death(self) -> None:
        self.dies_at(CrashPoint.AFTER_RESPONSE, lambda gate: self.looked_up(gate=gate)(case="1"))
        self.service.by_key[self.gate.open_effects()[0].effect_id] = {"id": "re_1"}
        self.looked_up()
        self.gate.recover()
        found = self.attributes()
        self.assertEqual((found["run"], found["status"], found["via"]), ("recover", "COMMITTED", "lookup"))
        self.assertEqual((found["at_recovery"], found["sends"]), (True, 0))

    def test_what_is_ambiguous_is_marked_as_an_error(self) -> None:
        self.service.script = [Lands(TimeoutError("no answer"))]
        outcome = self.refund()(case="1")
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        status = self.spans()[-1].status
        self.assertEqual((status.status_code, status.description), (StatusCode.ERROR, "AMBIGUOUS:no_evidence"))

    def test_nothing_secret_gets_in(self) -> None:
        def premises(case: str) -> dict[str, Any]:
            return {"mail": "facts-secret"}

        refund = self.refund(premises=premises, private=["payload.case"])
        self.service.script = [lambda _: {"id": "evidence-secret"}, DefiniteNo("detail-secret", code="code-secret")]
        for case in ("key-secret-1", "key-secret-2", "key-secret-3"):
            self.service.script.append(RuntimeError("error-secret"))
            refund(case=case)
        broken = self.refund("test.broken", lookup=self.service.find)
        self.gate.journal.append = self.fails  # type: ignore[method-assign]
        with self.assertRaises(RuntimeError):
            broken(case="key-secret-4")
        shown = "".join(span.to_json() for span in self.spans()) + str(self.reader.get_metrics_data().to_json())
        self.assertIn("RuntimeError", shown)
        self.assertGreaterEqual(len(self.spans()), 4)
        self.assertNotIn("secret", shown)

    def fails(self, *_: Any) -> None:
        raise RuntimeError("journal-secret")

    def test_what_fails_in_telemetry_harms_nothing(self) -> None:
        gate = self.open()
        broken = TracerProvider()
        broken.add_span_processor(Broken())
        instrument(gate, tracer_provider=broken, meter_provider=self.meters)
        with self.assertLogs("interlock_tools", "WARNING"):
            outcome = self.refund(gate=gate)(case="1")
        self.assertOutcome(outcome, "COMMITTED")


class Metrics(TelemetryCase):
    def test_an_outcome_that_is_told_again_is_not_new(self) -> None:
        refund = self.refund()
        for _ in range(3):
            refund(case="1")
        refund(case="1", amount=3)
        told = self.points("interlock.outcomes")
        committed = ("test.refund", True, "call", "COMMITTED")
        self.assertEqual(told[committed], 1)
        self.assertEqual(told[("test.refund", False, "call", "COMMITTED")], 2)
        self.assertEqual(told[("test.refund", False, "conflicting_payload", "call", "REFUSED")], 0 + 1)
        self.assertEqual(self.points("interlock.settle.duration"), {("test.refund", "committed"): 1})

    def test_ambiguous_effects_are_counted_until_a_person_settles_them(self) -> None:
        self.service.script = [Lands(TimeoutError()), Lands(TimeoutError())]
        refund = self.refund()
        first, _ = refund(case="1"), refund(case="2")
        self.refund("test.other").propose(case="3")
        self.assertEqual(self.points("interlock.effects.ambiguous"), {("test.other",): 0, ("test.refund",): 2})
        self.assertEqual(self.points("interlock.effects.open"), {("test.other",): 1, ("test.refund",): 2})
        self.gate.resolve(first.effect_id, landed=True, by="example person", why="seen")
        self.assertEqual(self.points("interlock.effects.ambiguous")[("test.refund",)], 1)
        self.assertEqual(self.points("interlock.outcomes")[("test.refund", True, "person", "COMMITTED")], 1)
        self.assertEqual(self.points("interlock.settle.duration")[("test.refund", "resolved")], 1)

    def test_gates_of_one_process_are_counted_together_and_a_shared_journal_once(self) -> None:
        self.refund("test.one").propose(case="1")
        same = self.open()
        other = Gate(SqliteJournal(self.folder / "other.db", self.clock))
        self.addCleanup(other.close)
        for gate in (same, other):
            self.instrument(gate)
        self.refund("test.one", gate=other).propose(case="1")
        self.refund("test.two", gate=other).propose(case="1")
        self.assertEqual(self.points("interlock.effects.open"), {("test.one",): 2, ("test.two",): 1})

    def test_the_watch_tells_it_too(self) -> None:
        self.refund(watch=lambda case: Settlement("failed", "bounced"))(case="1")
        self.gate.watch(hooks=[self.telemetry.hook])
        self.assertEqual(self.points("interlock.notices"), {("test.refund", "failed"): 1})


class Switch(TelemetryCase):
    def test_it_is_switched_on_once_and_off_again(self) -> None:
        with self.assertRaises(DefinitionError):
            self.instrument(self.gate)
        self.telemetry.close()
        self.assertOutcome(self.refund()(case="1"), "COMMITTED")
        self.assertEqual((self.spans(), self.points("interlock.effects.open")), ([], {}))
        self.instrument(self.gate)

    def test_a_closed_gate_is_not_read_any_more(self) -> None:
        self.refund()(case="1")
        self.gate.close()
        self.assertEqual(self.points("interlock.effects.open"), {})


if __name__ == "__main__":
    unittest.main()
