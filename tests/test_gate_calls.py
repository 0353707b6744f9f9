"""Plain calls: what a decorated function does, what its readers are given, and that it happens once."""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import Budget, Evidence, Grant, OutcomeError, Reason, Status


class Whole(GateCase):
    """The decorator with everything it can be given."""

    def declare(self, seen: dict[str, Any]) -> Any:
        def premises(payment_intent: str, idempotency_key: str) -> dict[str, Any]:
            seen["premises"] = (payment_intent, idempotency_key)
            return {"refunded_by_others": 0, "chargebacks": []}

        def allowed(case: str) -> Grant:
            seen["allowed"] = case
            return Grant("approval-1", by="kim", max_amount=3000)

        def lookup(idempotency_key: str, **arguments: Any) -> Any:
            seen["lookup"] = (idempotency_key, arguments)
            return self.service.find(idempotency_key)

        @self.gate.effect(
            "stripe.refund",
            key=lambda case, **_: case,
            premises=premises,
            expect={"chargebacks": []},
            allowed=allowed,
            budget=lambda case, amount, **_: Budget(f"case:{case}", amount=amount, limit=30_00),
            dedupes=timedelta(hours=24),
            lookup=lookup,
            send_timeout=timedelta(seconds=90),
            watch=lambda evidence: None,
        )
        def refund(case: str, payment_intent: str, amount: int, *, idempotency_key: str, on_send: Any) -> Any:
            """Refund a payment."""
            on_send()
            return self.service.create(idempotency_key, payment_intent=payment_intent, amount=amount)

        return refund

    def test_it_is_done_once_and_recorded(self) -> None:
        seen: dict[str, Any] = {}
        refund = self.declare(seen)
        outcome = refund(case="4471", payment_intent="pi_1", amount=20_00)
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(outcome.result, {"id": "re_1", "payment_intent": "pi_1", "amount": 2000})
        self.assertEqual((outcome.via, outcome.by_us, outcome.reason), ("send", "yes", None))
        self.assertEqual((outcome.effect, outcome.request_key), ("stripe.refund", "4471"))
        self.assertTrue(outcome.committed and outcome.since is not None and not outcome.at_recovery)
        self.assertEqual(self.kinds(outcome), ["proposed", "authorized", "dispatched", "committed"])
        self.assertEqual(self.service.requests[0]["key"], outcome.effect_id)
        self.assertEqual(seen, {"premises": ("pi_1", outcome.effect_id), "allowed": "4471"})
        self.assertEqual(self.gate.budget("case:4471").used, 2000)
        self.assertEqual(self.body(outcome, "proposed")["facts"], {"refunded_by_others": 0, "chargebacks": []})
        self.assertEqual(self.body(outcome, "authorized")["grant"]["id"], "approval-1")

    def test_it_looks_like_the_function(self) -> None:
        refund = self.declare({})
        self.assertEqual(
            (refund.__name__, refund.__doc__, refund.name), ("refund", "Refund a payment.", "stripe.refund")
        )
        self.assertEqual(self.gate.effects, ("stripe.refund",))

    def test_a_second_call_tells_the_first_one_s_outcome(self) -> None:
        refund = self.declare({})
        first = refund(case="4471", payment_intent="pi_1", amount=20_00)
        second = refund("4471", "pi_1", 20_00)
        self.assertEqual(dataclasses.replace(first), second)
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual(self.gate.outcome(first.effect_id), first)

    def test_a_second_process_tells_it_too(self) -> None:
        first = self.declare({})("4471", "pi_1", 20_00)
        self.gate.close()
        self.gate = self.open()
        self.assertEqual(self.declare({})("4471", "pi_1", 20_00), first)
        self.assertEqual(len(self.service.requests), 1)

    def test_digest_and_effect_id_are_those_of_the_call(self) -> None:
        refund = self.declare({})
        outcome = refund("4471", "pi_1", 20_00)
        self.assertEqual(refund.effect_id("4471", "pi_1", 20_00), outcome.effect_id)
        self.assertRegex(refund.digest(amount=20_00, payment_intent="pi_1", case="4471"), "^[0-9a-f]{64}$")
        self.assertEqual(refund.digest("4471", "pi_1", 20_00), self.body(outcome, "proposed")["payload_digest"])
        self.assertNotEqual(refund.digest("4471", "pi_1", 20_01), refund.digest("4471", "pi_1", 20_00))

    def test_the_outcome_is_frozen_plain_and_raises_where_asked(self) -> None:
        refund = self.declare({})
        outcome = refund("4471", "pi_1", 20_00)
        with self.assertRaises(dataclasses.FrozenInstanceError):
            outcome.status = Status.REFUSED
        self.assertIs(outcome.raise_for_status(), outcome)
        refused = refund("4471", "pi_1", 20_01)
        with self.assertRaises(OutcomeError) as raised:
            refused.raise_for_status()
        self.assertIs(raised.exception.outcome, refused)
        plain = refused.to_json()
        self.assertEqual((plain["outcome"], plain["reason"]), ("REFUSED:conflicting_payload", "conflicting_payload"))
        self.assertEqual(plain["existing"]["result"]["id"], "re_1")


class Async(GateCase):
    def declare(self, **options: Any) -> Any:
        @self.gate.effect("async.refund", key=lambda case: case, **options)
        async def refund(case: str, amount: int = 2000, *, idempotency_key: str, on_send: Any) -> Any:
            await asyncio.sleep(0)
            on_send()
            await asyncio.sleep(0)
            return self.service.create(idempotency_key, case=case, amount=amount)

        return refund

    def test_async_function_with_async_readers(self) -> None:
        async def premises(case: str) -> dict[str, Any]:
            await asyncio.sleep(0)
            return {"case": case}

        async def expected(case: str) -> dict[str, Any]:
            return {"case": case}

        async def allowed() -> Grant:
            return Grant("g")

        refund = self.declare(premises=premises, expect=expected, allowed=allowed)
        outcome = asyncio.run(refund("1"))
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(self.body(outcome, "proposed")["facts"], {"case": "1"})

    def test_async_function_with_plain_readers(self) -> None:
        outcome = asyncio.run(self.declare(premises=lambda case: {"case": case})("1"))
        self.assertOutcome(outcome, "COMMITTED")

    def test_plain_function_with_async_readers_inside_and_outside_a_loop(self) -> None:
        async def premises() -> dict[str, Any]:
            await asyncio.sleep(0)
            return {}

        refund = self.refund(premises=premises)
        self.assertOutcome(refund("1"), "COMMITTED")

        async def inside() -> Any:
            return refund("2")

        self.assertOutcome(asyncio.run(inside()), "COMMITTED")

    def test_many_at_once_of_one_request_send_once(self) -> None:
        refund = self.declare(dedupes=True)

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(refund.ainvoke(("1",), {}, wait=30) for _ in range(8)))

        outcomes = asyncio.run(all_at_once())
        self.assertEqual({str(outcome) for outcome in outcomes}, {"COMMITTED"})
        self.assertEqual(len(self.service.requests), 1)

    def test_many_requests_at_once(self) -> None:
        refund = self.declare()

        async def all_at_once() -> list[Any]:
            return await asyncio.gather(*(refund(str(number)) for number in range(12)))

        self.assertEqual({str(outcome) for outcome in asyncio.run(all_at_once())}, {"COMMITTED"})
        self.assertEqual(len(self.service.created), 12)

    def test_a_send_survives_the_cancellation_of_its_caller(self) -> None:
        handed_over = threading.Event()
        answer = threading.Event()

        @self.gate.effect("slow.refund", key=lambda case: case)
        async def refund(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            on_send()
            handed_over.set()
            await asyncio.to_thread(answer.wait, 30)
            return self.service.create(idempotency_key, case=case)

        async def cancelled() -> Any:
            task = asyncio.ensure_future(refund("1"))
            await asyncio.to_thread(handed_over.wait, 30)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertOutcome(await refund("1"), "IN_FLIGHT:sending")
            answer.set()
            return await refund.ainvoke(("1",), {}, wait=30)

        self.assertOutcome(asyncio.run(cancelled()), "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)

    def test_what_was_cancelled_before_it_was_sent_is_not_sent(self) -> None:
        started = threading.Event()
        go_on = threading.Event()

        @self.gate.effect("slow.refund", key=lambda case: case)
        async def refund(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            started.set()
            await asyncio.to_thread(go_on.wait, 30)
            on_send()
            return self.service.create(idempotency_key, case=case)

        async def cancelled() -> Any:
            task = asyncio.ensure_future(refund("1"))
            await asyncio.to_thread(started.wait, 30)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            go_on.set()
            for _ in range(2000):
                outcome = self.gate.outcome(refund.effect_id("1"))
                if outcome.status is not Status.IN_FLIGHT:
                    return outcome
                await asyncio.sleep(0.005)
            raise AssertionError("the cancelled call never ended")

        self.assertOutcome(asyncio.run(cancelled()), "REFUSED:unreachable")
        self.assertEqual(self.service.requests, [])
        self.assertOutcome(asyncio.run(refund("1")), "COMMITTED")  # it may be asked for again


class Functions(GateCase):
    """Every kind of function can be an effect, and gets exactly what it names."""

    def test_without_the_reserved_arguments(self) -> None:
        @self.gate.effect("plain", key=lambda case: case)
        def act(case: str) -> str:
            self.service.create("none", case=case)
            return "done-1"

        outcome = act("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(outcome.result, "done-1")

    def test_defaults_are_part_of_the_payload(self) -> None:
        refund = self.refund()
        outcome = refund("1")
        self.assertEqual(self.body(outcome, "proposed")["payload"], {"case": "1", "amount": 2000})
        self.assertEqual(refund("1", amount=2000), outcome)

    def test_methods_partials_and_wrapped_functions(self) -> None:
        service = self.service

        class Client:
            def send(self, case: str, *, idempotency_key: str) -> Any:
                return service.create(idempotency_key, case=case)

        def traced(function: Any) -> Any:
            @functools.wraps(function)
            def inner(*args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

            return inner

        def send(prefix: str, case: str, *, idempotency_key: str) -> Any:
            return service.create(idempotency_key, case=prefix + case)

        for name, function in (
            ("method", Client().send),
            ("wrapped", traced(Client().send)),
            ("partial", functools.partial(send, "p-")),
        ):
            with self.subTest(name):
                effect = self.gate.effect(name, key=lambda case: case)(function)
                self.assertOutcome(effect("1"), "COMMITTED")
                self.assertEqual(service.requests[-1]["key"], effect.effect_id("1"))

    def test_a_function_may_change_its_arguments_without_changing_the_record(self) -> None:
        def spoil(items: list[Any]) -> dict[str, Any]:
            items.clear()
            return {}

        @self.gate.effect("spoil", key=lambda case, **_: case, premises=spoil)
        def act(case: str, items: list[dict[str, int]]) -> Any:
            items[0]["n"] = 99
            items.append({})
            return "done-1"

        given = [{"n": 1}]
        outcome = act("1", given)
        self.assertEqual(self.body(outcome, "proposed")["payload"]["items"], [{"n": 1}])
        self.assertEqual(given, [{"n": 1}])

    def test_evidence_may_say_that_someone_else_did_it(self) -> None:
        self.service.script = [lambda request: Evidence({"sha": "abc"}, by_us="no")]
        outcome = self.refund()("1")
        self.assertEqual((outcome.by_us, outcome.result), ("no", {"sha": "abc"}))

    def test_names_of_effects_with_the_same_request_do_not_collide(self) -> None:
        self.assertOutcome(self.refund("one")("1"), "COMMITTED")
        self.assertOutcome(self.refund("two")("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 2)

    def test_context_is_recorded_and_is_not_identity(self) -> None:
        refund = self.refund()
        first = refund.invoke(("1",), {}, context={"tool_call_id": "call_1"})
        second = refund.invoke(("1",), {}, context={"tool_call_id": "call_2"})
        self.assertEqual(first, second)
        self.assertEqual(self.body(first, "proposed")["context"], {"tool_call_id": "call_1"})

    def test_threads_with_one_request_send_once(self) -> None:
        refund = self.refund(dedupes=True)
        barrier = threading.Barrier(8)
        outcomes: list[Any] = []

        def call() -> None:
            barrier.wait()
            outcomes.append(refund.invoke(("1",), {}, wait=30))

        threads = [threading.Thread(target=call) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual({str(outcome) for outcome in outcomes}, {"COMMITTED"})
        self.assertEqual(len(self.service.requests), 1)


class ConflictingPayload(GateCase):
    """I4: the first recorded payload of a decision is the only one that is ever sent under it."""

    def test_after_the_commit(self) -> None:
        refund = self.refund()
        first = refund("1", 2000)
        other = refund("1", 2500)
        self.assertOutcome(other, "REFUSED:conflicting_payload")
        self.assertEqual(other.existing, first)
        self.assertTrue(other.message.startswith(first.message), other.message)
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual(self.kinds(first), ["proposed", "authorized", "dispatched", "committed"])

    def test_before_the_commit_it_recovers_the_recorded_one_and_tells(self) -> None:
        refund = self.refund(dedupes=True)
        self.gate.retry_s = 0.0
        self.service.script = [Lands(TimeoutError("read timed out"))]
        first = refund("1", 2000)
        self.assertOutcome(first, "IN_FLIGHT:waiting")
        other = refund("1", 2500)
        self.assertOutcome(other, "REFUSED:conflicting_payload")
        self.assertOutcome(other.existing, "COMMITTED")
        self.assertEqual({request["amount"] for request in self.service.requests}, {2000})

    def test_of_a_proposal(self) -> None:
        refund = self.refund()
        refund.propose("1", 2000)
        other = refund("1", 2500)
        self.assertOutcome(other, "REFUSED:conflicting_payload")
        self.assertOutcome(other.existing, "IN_FLIGHT:waiting")
        self.assertOutcome(refund.propose("1", 2500), "REFUSED:conflicting_payload")
        self.assertEqual(self.service.requests, [])

    def test_of_a_refusal(self) -> None:
        refund = self.refund(expect={"open": True}, premises=lambda: {"open": False})
        self.assertOutcome(refund("1", 2000), "REFUSED:premise_not_met")
        other = refund("1", 2500)
        self.assertOutcome(other, "REFUSED:conflicting_payload")
        self.assertIs(other.existing.reason, Reason.PREMISE_NOT_MET)

    def test_true_is_not_one(self) -> None:
        @self.gate.effect("flag", key=lambda case, **_: case)
        def act(case: str, flag: Any) -> str:
            return "done-1"

        self.assertOutcome(act("1", True), "COMMITTED")
        self.assertOutcome(act("1", 1), "REFUSED:conflicting_payload")


if __name__ == "__main__":
    unittest.main()
