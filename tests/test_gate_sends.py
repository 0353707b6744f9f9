"""What the end of a send proves, and no more: every way a send function can end, alone and after others."""

from __future__ import annotations

import asyncio
import sys
import threading
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase, Lands

from interlock_tools import (
    DefiniteNo,
    InProgress,
    NotSent,
    PreconditionFailed,
    RateLimited,
    SendError,
    SendRevoked,
    Status,
    StoredError,
)
from interlock_tools.core.entries import Kind


class OnlySend(GateCase):
    """The first and only send of an effect."""

    def end(self, *script: Any, **options: Any) -> Any:
        self.service.script = list(script)
        return self.refund(**options)("1")

    def test_a_definite_no_refuses(self) -> None:
        outcome = self.end(DefiniteNo("Your card was declined.", code="card_declined"))
        self.assertOutcome(outcome, "REFUSED:rejected")
        self.assertEqual((outcome.code, outcome.detail), ("card_declined", "Your card was declined."))
        self.assertEqual(self.kinds(outcome), ["proposed", "authorized", "dispatched", "not_landed", "refused"])

    def test_a_failed_precondition_refuses(self) -> None:
        self.assertOutcome(self.end(PreconditionFailed("head moved")), "REFUSED:precondition_failed")

    def test_not_sent_is_unreachable_and_a_plain_call_tries_again(self) -> None:
        refund = self.refund()
        self.service.script = [NotSent("could not resolve host")]
        outcome = refund("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.assertEqual([str(found) for found in self.gate.recover()], [])
        again = refund("1")
        self.assertOutcome(again, "COMMITTED")
        self.assertEqual(again.effect_id, outcome.effect_id)
        self.assertEqual(len(self.service.created), 1)

    def test_unreachable_again_stays_unreachable(self) -> None:
        refund = self.refund()
        self.service.script = [NotSent("down"), NotSent("still down")]
        refund("1")
        outcome = refund("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.assertIn("still down", outcome.message)

    def test_unreachable_is_tried_again_only_if_everything_still_holds(self) -> None:
        self.facts = {"open": True}
        refund = self.refund(premises=lambda: self.facts)
        self.service.script = [NotSent("down")]
        refund("1")
        self.facts = {"open": False}
        self.assertOutcome(refund("1"), "REFUSED:stale_premise")
        self.facts = {"open": True}
        self.assertOutcome(refund("1"), "REFUSED:stale_premise")
        self.assertEqual(len(self.service.requests), 1)

    def test_unreachable_with_unreadable_premises_stays_unreachable(self) -> None:
        self.facts = {"open": True}
        refund = self.refund(premises=lambda: self.facts)
        self.service.script = [NotSent("down")]
        refund("1")
        self.facts = None  # type: ignore[assignment]
        self.assertOutcome(refund("1"), "REFUSED:unreachable")
        self.facts = {"open": True}
        self.assertOutcome(refund("1"), "COMMITTED")

    def test_an_error_before_on_send_is_not_sent(self) -> None:
        @self.gate.effect("early", key=lambda case: case)
        def act(case: str, *, on_send: Any) -> str:
            raise TypeError("cannot build the request")

        outcome = act("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.assertIn("cannot build the request", outcome.message)

    def test_the_same_error_without_on_send_may_have_happened(self) -> None:
        @self.gate.effect("early", key=lambda case: case)
        def act(case: str) -> str:
            raise TypeError("cannot build the request")

        self.assertOutcome(act("1"), "AMBIGUOUS:no_evidence")

    def test_the_same_error_where_marks_cannot_be_trusted_may_have_happened(self) -> None:
        @self.gate.effect("early", key=lambda case: case, marks=False)
        def act(case: str, *, on_send: Any) -> str:
            raise TypeError("cannot build the request")

        outcome = act("1")
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertIs(self.body(outcome, "dispatched")["mark"]["maybe"], True)

    def test_anything_unclassified_may_have_happened(self) -> None:
        for number, error in enumerate(
            (
                TimeoutError("read timed out"),
                ConnectionResetError(),
                ValueError("500"),
                SendError("odd"),
                RuntimeError(),
            )
        ):
            with self.subTest(error):
                outcome = self.end(error, name=f"effect.{number}")
                self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
                self.assertEqual(self.body(outcome, "unknown")["cause"], type(error).__name__)
                self.assertIn(outcome.effect_id, outcome.message)

    def test_a_second_on_send_is_one_request_too_many(self) -> None:
        @self.gate.effect("twice", key=lambda case: case)
        def act(case: str, *, on_send: Any) -> str:
            on_send()
            on_send()
            return "done-1"

        outcome = act("1")
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertIn("switch the client's own retries off", outcome.message)

    def test_what_counts_as_no_evidence(self) -> None:
        nothing: list[Any] = [None, True, False, 0, 0.0, "", "  ", {}, [], {"id": None}, {"data": []}, object(), object]
        for number, result in enumerate(nothing):
            with self.subTest(result):
                outcome = self.end(lambda request, result=result: result, name=f"effect.{number}")
                self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
                self.assertEqual(self.body(outcome, "unknown")["cause"], "no_evidence")
                self.assertRegex(outcome.message, "proves nothing|cannot be kept")

    def test_no_evidence_is_not_asked_for_again_and_again_in_one_call(self) -> None:
        self.gate.retry_s = 30.0
        outcome = self.end(lambda request: None, dedupes=True)
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertLessEqual(len(self.service.requests), 2)
        self.assertIn("proves nothing", outcome.message)

    def test_no_evidence_is_settled_by_a_lookup(self) -> None:
        def lands_without_an_answer(request: dict[str, Any]) -> None:
            self.service.by_key[request["key"]] = {"id": "re_9"}

        outcome = self.end(lands_without_an_answer, lookup=self.service.find)
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, outcome.result), ("lookup", {"id": "re_9"}))


class UnderTheSameKey(GateCase):
    """Answers that are waited out: the same key, the same payload, bounded."""

    def test_rate_limits_are_waited_out(self) -> None:
        self.service.script = [RateLimited("slow down", retry_after=0.01)] * 3
        outcome = self.refund()("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(len(self.service.requests), 4)
        self.assertEqual(len({request["key"] for request in self.service.requests}), 1)
        self.assertEqual(self.kinds(outcome).count("dispatched"), 4)

    def test_but_not_for_ever_and_recovery_goes_on(self) -> None:
        self.service.script = [RateLimited("slow down", retry_after=60)]
        refund = self.refund()
        outcome = refund("1")
        self.assertOutcome(outcome, "IN_FLIGHT:rate_limited")
        self.assertEqual(outcome.retry_after_s, 60)
        self.assertIn("60 s", outcome.message)
        self.assertEqual(len(self.service.requests), 1)
        self.assertEqual([str(found) for found in self.gate.recover()], ["COMMITTED"])

    def test_a_service_that_never_stops_is_bounded_in_sends(self) -> None:
        self.gate.retry_s = 30.0
        self.service.script = [RateLimited(retry_after=0)] * 100
        self.assertOutcome(self.refund()("1"), "IN_FLIGHT:rate_limited")
        self.assertLessEqual(len(self.service.requests), 8)

    def test_nonsense_about_when_to_come_again_is_ignored(self) -> None:
        self.gate.retry_s = 0.0
        for number, asked in enumerate((float("nan"), float("inf"), -5, "soon", True, [1], "0.01.1", 10**400)):
            with self.subTest(asked):
                self.service.script = [RateLimited("slow down", retry_after=asked)]  # type: ignore[arg-type]
                outcome = self.refund(f"effect.{number}")("1")
                self.assertOutcome(outcome, "IN_FLIGHT:rate_limited")
                self.assertIsNone(outcome.retry_after_s)

    def test_in_progress_answers_are_waited_out(self) -> None:
        self.gate.retry_s = 5.0
        self.service.script = [Lands(TimeoutError()), InProgress("key in use", code="idempotency_key_in_use")]
        outcome = self.refund(dedupes=True)("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, len(self.service.created)), ("resend", 1))
        self.assertEqual(self.body(outcome, "unknown")["cause"], "in_progress")

    def test_in_progress_for_longer_than_the_call_allows_stays_open(self) -> None:
        self.gate.retry_s = 0.0
        self.service.script = [InProgress("key in use", code="idempotency_key_in_use")]
        outcome = self.refund(dedupes=True)("1")
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertIn("key in use", outcome.message)

    def test_a_time_out_is_resent_where_the_service_dedupes(self) -> None:
        self.service.script = [Lands(TimeoutError())]
        outcome = self.refund(dedupes=timedelta(hours=24))("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.via, len(self.service.created), len(self.service.requests)), ("resend", 1, 2))
        self.assertTrue(self.body(outcome, "dispatched")["resend"])

    def test_nothing_is_resent_once_the_service_may_have_forgotten_the_key(self) -> None:
        self.service.script = [TimeoutError()]
        self.gate.retry_s = 0.0
        refund = self.refund(dedupes=timedelta(hours=24))
        self.assertOutcome(refund("1"), "IN_FLIGHT:waiting")
        self.clock.advance(24 * 3600)
        self.assertOutcome(refund("1"), "AMBIGUOUS:no_evidence")
        self.assertEqual(len(self.service.requests), 1)

    def test_on_send_stops_a_send_whose_key_has_expired_meanwhile(self) -> None:
        def dawdle() -> dict[str, Any]:
            return {}

        @self.gate.effect("slow", key=lambda case: case, premises=dawdle, dedupes=timedelta(minutes=5))
        def act(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            self.clock.advance(600)
            on_send()
            return self.service.create(idempotency_key, case=case)

        outcome = act("1")
        self.assertOutcome(outcome, "REFUSED:unreachable")
        self.assertEqual(self.service.requests, [])

    def test_enforced_premises_allow_a_resend(self) -> None:
        self.service.script = [Lands(TimeoutError())]
        outcome = self.refund(enforces=("head",), premises=lambda: {"head": "abc"})("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(len(self.service.requests), 2)

    def test_a_rate_limit_of_a_resend_does_not_say_that_nothing_happened(self) -> None:
        self.service.script = [Lands(TimeoutError()), RateLimited("slow down", retry_after=60)]
        outcome = self.refund(dedupes=True)("1")
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertNotIn("Not done", outcome.message)


class AfterAnotherSend(GateCase):
    """A no, where an earlier send may have landed, ends that send alone."""

    def setUp(self) -> None:
        super().setUp()
        self.gate.retry_s = 1.0

    def test_a_definite_no_does_not_close_what_an_earlier_send_did(self) -> None:
        self.service.script = [Lands(TimeoutError()), DefiniteNo("charge already refunded")]
        outcome = self.refund(dedupes=True)("1")
        self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
        self.assertEqual(len(self.service.requests), 2)

    def test_with_a_lookup_the_truth_is_found(self) -> None:
        self.service.script = [Lands(TimeoutError()), DefiniteNo("charge already refunded")]
        outcome = self.looked_up(dedupes=True)("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(outcome.via, "lookup")

    def test_after_a_definite_no_nothing_is_resent_on_the_word_of_the_contract(self) -> None:
        self.service.script = [TimeoutError(), DefiniteNo("no")]
        refund = self.looked_up(dedupes=True)
        outcome = refund("1")
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.assertEqual(len(self.service.requests), 2)
        self.clock.advance(91)
        self.assertOutcome(refund("1"), "COMMITTED")  # "not found" counts by now, and the checks hold
        self.assertEqual(len(self.service.requests), 3)
        self.assertIn("not_landed", self.kinds(outcome))

    def test_a_definite_no_of_all_sends_refuses_in_the_end(self) -> None:
        self.service.script = [TimeoutError(), DefiniteNo("no"), DefiniteNo("no, for good")]
        refund = self.looked_up(dedupes=True)
        refund("1")
        self.clock.advance(91)
        self.assertOutcome(refund("1"), "REFUSED:rejected")

    def test_the_stored_answer_to_the_key_closes_it(self) -> None:
        self.service.script = [TimeoutError(), DefiniteNo("declined", code="card_declined", stored=True)]
        outcome = self.refund(dedupes=True)("1")
        self.assertOutcome(outcome, "REFUSED:rejected")
        self.assertEqual(self.body(outcome, "not_landed")["sends"], [1, 2])

    def test_a_failed_precondition_may_be_our_own_write(self) -> None:
        self.service.script = [Lands(TimeoutError()), PreconditionFailed("head moved")]
        options: dict[str, Any] = {"enforces": ("head",), "premises": lambda: {"head": "abc"}}
        self.assertOutcome(self.looked_up(**options)("1"), "COMMITTED")
        self.service.script = [Lands(TimeoutError()), PreconditionFailed("head moved")]
        self.assertOutcome(self.refund("blind", **options)("1"), "AMBIGUOUS:no_evidence")

    def test_not_sent_after_another_send_says_nothing_about_that_one(self) -> None:
        self.gate.retry_s = 0.0
        self.service.script = [Lands(TimeoutError()), NotSent("down")]
        refund = self.refund(dedupes=True)
        self.assertOutcome(refund("1"), "IN_FLIGHT:waiting")
        self.assertOutcome(refund("1"), "IN_FLIGHT:waiting")
        self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 1)

    def test_a_stored_error_is_never_retried_for_ever(self) -> None:
        self.service.script = [StoredError("stored 500")] * 9
        refund = self.refund(dedupes=True)
        outcome = refund("1")
        self.assertOutcome(outcome, "AMBIGUOUS:stored_error")
        self.assertOutcome(refund("1"), "AMBIGUOUS:stored_error")
        self.assertEqual(len(self.service.requests), 1)

    def test_a_stored_error_with_a_lookup(self) -> None:
        self.service.script = [Lands(StoredError("stored 500")), StoredError("stored 500")]
        refund = self.looked_up(dedupes=True)
        self.assertOutcome(refund("1"), "COMMITTED")
        outcome = refund("2")
        self.assertOutcome(outcome, "IN_FLIGHT:waiting")
        self.clock.advance(91)
        outcome = refund("2")
        self.assertOutcome(outcome, "AMBIGUOUS:stored_error")
        self.assertEqual(len(self.service.requests), 2)

    def test_a_later_lookup_settles_what_was_ambiguous(self) -> None:
        self.service.script = [StoredError("stored 500")]
        refund = self.looked_up(dedupes=True)
        refund("1")
        self.clock.advance(91)
        outcome = refund("1")
        self.assertOutcome(outcome, "AMBIGUOUS:stored_error")
        self.service.by_key[outcome.effect_id] = {"id": "re_late"}
        self.assertEqual([str(found) for found in self.gate.recover()], ["COMMITTED"])


class Interrupted(GateCase):
    """KeyboardInterrupt, SystemExit and the like pass through, and what they leave behind is recorded."""

    def test_before_the_bytes_it_was_not_sent(self) -> None:
        for number, error in enumerate((KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError())):
            with self.subTest(error):

                @self.gate.effect(f"early.{number}", key=lambda case: case)
                def act(case: str, *, on_send: Any, error: Any = None) -> str:
                    raise self.error

                self.error = error
                with self.assertRaises(type(error)):
                    act("1")
                self.assertOutcome(self.gate.outcome(act.effect_id("1")), "REFUSED:unreachable")

    def test_after_them_it_may_have_happened(self) -> None:
        for number, error in enumerate((KeyboardInterrupt(), SystemExit(3), GeneratorExit(), asyncio.CancelledError())):
            with self.subTest(error):
                refund = self.refund(f"late.{number}", dedupes=True)
                self.service.script = [Lands(error)]
                with self.assertRaises(type(error)):
                    refund("1")
                self.assertEqual(self.kinds(refund.effect_id("1"))[:3], ["proposed", "authorized", "dispatched"])
                self.assertIs(self.gate.outcome(refund.effect_id("1")).status, Status.IN_FLIGHT)
                self.assertOutcome(refund("1"), "COMMITTED")
        self.assertEqual(len(self.service.created), 4)

    def test_a_revoked_send_that_swallows_it_sends_nothing_we_could_prove_but_says_so(self) -> None:
        """``SendRevoked`` passes through a send function like any other exception."""

        @self.gate.effect("revoked", key=lambda case: case, dedupes=timedelta(minutes=5))
        def act(case: str, *, idempotency_key: str, on_send: Any) -> Any:
            self.clock.advance(600)
            try:
                on_send()
            except SendRevoked as error:
                raise RuntimeError("transport failed") from error
            return self.service.create(idempotency_key, case=case)

        self.assertOutcome(act("1"), "REFUSED:unreachable")


class Late(GateCase):
    """A result that comes when the effect is closed is recorded; after a refusal it alarms."""

    def closed_meanwhile(self, *bodies: tuple[Kind, dict[str, Any]], end: Any = None, **options: Any) -> Any:
        refund = self.refund(**options)

        def answer(request: dict[str, Any]) -> Any:
            self.append_elsewhere(request["key"], *bodies)
            if isinstance(end, BaseException):
                raise end
            return {"id": "re_1"}

        self.service.script = [answer]
        return refund, refund("1")

    REFUSED = (
        (Kind.NOT_LANDED, {"sends": [1], "proof": "lookup"}),
        (Kind.REFUSED, {"reason": "stale_premise", "changes": {"open": {"was": True, "now": False}}}),
    )

    def test_evidence_after_a_refusal_alarms_and_is_not_hidden(self) -> None:
        with self.assertLogs("interlock_tools", "ERROR") as logs:
            refund, outcome = self.closed_meanwhile(*self.REFUSED)
        self.assertIn("a later answer shows that it happened", logs.output[0])
        self.assertOutcome(outcome, "AMBIGUOUS:unverifiable")
        self.assertEqual(self.kinds(outcome)[-1], "late")
        self.assertEqual(self.body(outcome, "late")["result"]["evidence"], {"id": "re_1"})
        self.assertOutcome(refund("1"), "AMBIGUOUS:unverifiable")
        self.assertEqual(len(self.service.requests), 1)
        (waits,) = self.gate.pending()
        self.assertEqual((waits.effect_id, str(waits)), (outcome.effect_id, "AMBIGUOUS:unverifiable"))
        told: list[str] = []
        for _ in range(2):
            self.clock.advance(24 * 3600)
            self.gate.watch(hooks=[lambda notice: told.append(f"{notice.event} {notice.outcome.effect_id}")])
        self.assertEqual(told, [f"ambiguous {outcome.effect_id}"] * 2, "told again until a person has settled it")
        self.gate.resolve(outcome.effect_id, landed=True, by="ann", why="seen in the ledger")
        self.assertEqual(self.gate.pending(), [])

    def test_it_is_never_decided_again_and_a_person_settles_it(self) -> None:
        from interlock_tools import NotDecidable

        refund, outcome = self.closed_meanwhile(*self.REFUSED)
        with self.assertRaises(NotDecidable):
            refund.redecide(outcome.effect_id, by="kim")
        settled = self.gate.resolve(outcome.effect_id, landed=True, by="kim", why="re_1 in the dashboard")
        self.assertOutcome(settled, "COMMITTED")
        with self.assertRaises(NotDecidable):
            refund.redecide(outcome.effect_id, by="kim")

    def test_what_was_unreachable_and_then_answered_is_not_tried_again(self) -> None:
        bodies = ((Kind.NOT_LANDED, {"sends": [1], "proof": "not_sent"}), (Kind.REFUSED, {"reason": "unreachable"}))
        refund, outcome = self.closed_meanwhile(*bodies)
        self.assertOutcome(outcome, "AMBIGUOUS:unverifiable")
        self.assertOutcome(refund("1"), "AMBIGUOUS:unverifiable")
        self.assertEqual(len(self.service.requests), 1)

    def test_a_no_after_a_refusal_agrees_with_it(self) -> None:
        _, outcome = self.closed_meanwhile(*self.REFUSED, end=DefiniteNo("no"))
        self.assertOutcome(outcome, "REFUSED:stale_premise")
        self.assertEqual(self.kinds(outcome)[-1], "late")

    def test_an_answer_after_the_commit(self) -> None:
        found = {"evidence": {"id": "re_0"}, "by_us": "yes", "via": "lookup"}
        _, outcome = self.closed_meanwhile((Kind.COMMITTED, found))
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual((outcome.result, self.kinds(outcome)[-1]), ({"id": "re_0"}, "late"))

    def test_evidence_while_it_is_ambiguous_commits(self) -> None:
        orphaned = (Kind.ORPHANED, {"send": 1, "clock": self.clock.now().to_json()})
        _, outcome = self.closed_meanwhile(orphaned, (Kind.AMBIGUOUS, {"reason": "no_evidence"}))
        self.assertOutcome(outcome, "COMMITTED")

    def test_a_late_no_of_an_old_send_does_not_close_a_newer_one(self) -> None:
        """Another recovery took the effect over and sent again; the first send's no comes after that."""
        clock = self.clock.now().to_json()
        orphaned = (Kind.ORPHANED, {"send": 1, "clock": clock})
        dispatched = (Kind.DISPATCHED, {"send": 2, "session": "f" * 32, "mark": None, "clock": clock, "resend": True})
        _, outcome = self.closed_meanwhile(orphaned, dispatched, end=DefiniteNo("no"), dedupes=True)
        self.assertNotEqual(outcome.status, Status.REFUSED)
        self.assertEqual(self.kinds(outcome)[:5], ["proposed", "authorized", "dispatched", "orphaned", "dispatched"])
        self.assertIn("not_landed", self.kinds(outcome))

    def test_a_thread_that_is_sending_is_reported_and_never_taken_over(self) -> None:
        """I6: the holder is the running send."""
        handed_over, answer = threading.Event(), threading.Event()

        def slow(request: dict[str, Any]) -> Any:
            handed_over.set()
            answer.wait(30)
            return {"id": "re_1"}

        self.service.script = [slow]
        refund = self.refund(dedupes=True)
        first: list[Any] = []
        thread = threading.Thread(target=lambda: first.append(refund("1")))
        thread.start()
        handed_over.wait(30)
        outcome = refund("1")
        self.assertOutcome(outcome, "IN_FLIGHT:sending")
        self.assertIsNotNone(outcome.holder)
        self.assertEqual([str(found) for found in self.gate.recover()], ["IN_FLIGHT:sending"])
        answer.set()
        self.assertOutcome(refund.invoke(("1",), {}, wait=30), "COMMITTED")
        thread.join()
        self.assertOutcome(first[0], "COMMITTED")
        self.assertEqual(len(self.service.requests), 1)


if __name__ == "__main__":
    unittest.main()
