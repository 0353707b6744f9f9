"""``conclude``: what the end of a send proves, and no more."""

from __future__ import annotations

import unittest
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools.core.ends import End, Ending, conclude
from interlock_tools.core.entries import Kind
from interlock_tools.core.states import Phase, SendStatus, State
from tests import core_support as core
from tests.core_support import at, state_of, then

NOW = at(77)
EVIDENCE = End(Ending.EVIDENCE, evidence="re_1")
NO = End(Ending.DEFINITE_NO, code="declined", detail="do not honour")
CLOSING = {
    Ending.DEFINITE_NO: "rejected",
    Ending.PRECONDITION_FAILED: "precondition_failed",
    Ending.NOT_SENT: "unreachable",
}

ONE = core.IN_PHASE[Phase.DISPATCHED]
EARLIER = state_of(*core.SENT, core.orphaned(), core.dispatched(2))
"""The second of two sends ends; the first may still land."""
NEWER = state_of(*core.SENT, core.sender_lost(), core.dispatched(2))
"""The first of two sends comes back from a lost session; the second is running."""
PROVEN = state_of(*core.SENT, core.not_landed(1), core.dispatched(2))
"""The second of two sends ends; the first is proven not to have landed."""


def kinds(state: State, number: int, end: End) -> list[Kind]:
    bodies = conclude(state, number, end, NOW)
    then(state, *bodies)  # whatever it says can be recorded
    return [kind for kind, _ in bodies]


class TestEvidence(unittest.TestCase):
    def test_evidence_commits_an_open_or_ambiguous_effect(self) -> None:
        for state, number in ((ONE, 1), (EARLIER, 2), (EARLIER, 1), (NEWER, 1), (core.IN_PHASE[Phase.AMBIGUOUS], 1)):
            self.assertEqual(kinds(state, number, EVIDENCE), [Kind.COMMITTED])

    def test_i8_evidence_after_a_counted_not_found_is_believed(self) -> None:
        wrong = state_of(*core.SENT, core.sender_lost(), core.not_landed(1, proof="lookup"), core.dispatched(2))
        self.assertEqual(kinds(wrong, 1, EVIDENCE), [Kind.COMMITTED])

    def test_what_is_recorded_of_it(self) -> None:
        ((_, body),) = conclude(ONE, 1, End(Ending.EVIDENCE, evidence={"id": "m"}, by_us="no"), NOW)
        self.assertEqual(body, {"evidence": {"id": "m"}, "by_us": "no", "via": "send", "send": 1})
        resent = state_of(*core.SENT, core.orphaned(), core.dispatched(2, resend=True))
        for number, via in ((2, "resend"), (1, "send")):
            ((_, body),) = conclude(resent, number, EVIDENCE, NOW)
            self.assertEqual(body["via"], via)


class TestRefusals(unittest.TestCase):
    """A definite no, a failed precondition, and what did not leave."""

    def test_of_the_only_send_they_close_the_effect(self) -> None:
        for ending, reason in CLOSING.items():
            for state, number in ((ONE, 1), (PROVEN, 2)):
                with self.subTest(ending=ending.value, number=number):
                    bodies = conclude(state, number, End(ending), NOW)
                    proof = (Kind.NOT_LANDED, {"sends": [number], "proof": ending.value})
                    self.assertEqual(bodies, [proof, (Kind.REFUSED, {"reason": reason})])
                    self.assertIs(then(state, *bodies).phase, Phase.REFUSED)

    def test_i8_while_another_send_may_have_landed_they_end_that_send_alone(self) -> None:
        """Earlier ones and later ones alike."""
        for ending in CLOSING:
            for state, number, other in ((EARLIER, 2, 1), (NEWER, 1, 2)):
                with self.subTest(ending=ending.value, number=number):
                    self.assertEqual(kinds(state, number, End(ending)), [Kind.NOT_LANDED])
                    after = then(state, *conclude(state, number, End(ending), NOW))
                    self.assertEqual([send.number for send in after.maybe_landed], [other])
                    self.assertIs(after.phase, Phase.DISPATCHED)

    def test_the_answer_that_the_service_stored_for_the_key_speaks_for_every_send(self) -> None:
        for ending in (Ending.DEFINITE_NO, Ending.PRECONDITION_FAILED):
            for state, number in ((EARLIER, 2), (NEWER, 1)):
                bodies = conclude(state, number, End(ending, stored=True), NOW)
                self.assertEqual(bodies[0][1]["sends"], [1, 2])
                self.assertIs(then(state, *bodies).phase, Phase.REFUSED)

    def test_which_of_them_end_the_shortcuts(self) -> None:
        for ending in CLOSING:
            after = then(EARLIER, *conclude(EARLIER, 2, End(ending), NOW))
            self.assertIs(after.shortcuts_off, ending is not Ending.NOT_SENT)

    def test_a_rate_limit_closes_nothing(self) -> None:
        for state, number in ((ONE, 1), (EARLIER, 2)):
            self.assertEqual(kinds(state, number, End(Ending.RATE_LIMITED)), [Kind.NOT_LANDED])

    def test_the_services_words_are_kept(self) -> None:
        for _, body in conclude(ONE, 1, NO, NOW):
            self.assertEqual((body["code"], body["detail"]), ("declined", "do not honour"))


class TestUnknown(unittest.TestCase):
    def test_anything_else_is_unknown_from_now_on(self) -> None:
        bodies = conclude(EARLIER, 2, End(Ending.UNKNOWN, cause="in_progress"), NOW)
        self.assertEqual(bodies, [(Kind.UNKNOWN, {"send": 2, "cause": "in_progress", "clock": NOW.to_json()})])
        self.assertEqual(then(EARLIER, *bodies).sends[1].since, (NOW,))
        ((_, body),) = conclude(ONE, 1, End(Ending.UNKNOWN), NOW)
        self.assertEqual(body["cause"], "unknown")

    def test_a_replayed_error_is_unknown_and_stored(self) -> None:
        bodies = conclude(ONE, 1, End(Ending.STORED_ERROR), NOW)
        self.assertEqual([kind for kind, _ in bodies], [Kind.UNKNOWN])
        after = then(ONE, *bodies)
        self.assertTrue(after.stored_error and after.shortcuts_off)
        self.assertIs(after.sends[0].status, SendStatus.UNKNOWN)


class TestLate(unittest.TestCase):
    def test_whatever_comes_after_the_end_is_late(self) -> None:
        ended = (Phase.COMMITTED, Phase.REFUSED, Phase.RESOLVED, Phase.REPLACED)
        for phase in ended:
            for ending in Ending:
                with self.subTest(phase=phase.value, ending=ending.value):
                    self.assertEqual(kinds(core.IN_PHASE[phase], 1, End(ending, evidence="x")), [Kind.LATE])

    def test_what_it_says_is_kept(self) -> None:
        ((_, body),) = conclude(core.IN_PHASE[Phase.REFUSED], 1, End(Ending.EVIDENCE, evidence="re_1"), NOW)
        self.assertEqual(body, {"send": 1, "result": {"ending": "evidence", "evidence": "re_1", "by_us": "yes"}})
        ((_, body),) = conclude(core.IN_PHASE[Phase.COMMITTED], 1, NO, NOW)
        words = {"ending": "definite_no", "code": "declined", "detail": "do not honour"}
        self.assertEqual(body, {"send": 1, "result": words})

    def test_evidence_after_a_refusal_contradicts_it_for_good(self) -> None:
        refused = core.IN_PHASE[Phase.REFUSED]
        late = then(refused, *conclude(refused, 1, EVIDENCE, NOW))
        self.assertTrue(late.contradicted)
        self.assertTrue(then(late, *conclude(late, 1, NO, NOW)).contradicted)

    def test_the_end_of_a_send_that_is_proven_not_to_have_landed_adds_nothing(self) -> None:
        for ending in Ending:
            if ending is not Ending.EVIDENCE:
                self.assertEqual(conclude(PROVEN, 1, End(ending), NOW), [])
                self.assertEqual(conclude(ONE, 7, End(ending), NOW), [])


ENDS = st.builds(End, st.sampled_from(Ending), evidence=st.just("re_1"), stored=st.booleans(), cause=st.just("timeout"))
FIRST = st.sampled_from(
    (
        (core.orphaned(),),
        (core.unknown(),),
        (core.unknown(stored=True),),
        (core.sender_lost(),),
        (core.not_landed(1),),
        (core.not_landed(1, proof="definite_no"),),
    )
)
LAST = st.sampled_from(
    (
        (),
        (core.orphaned(2),),
        (core.committed(2),),
        (core.orphaned(2), core.ambiguous()),
        (core.orphaned(2), core.ambiguous(), core.resolved(False)),
    )
)


class TestWhateverComes(unittest.TestCase):
    @settings(max_examples=300, derandomize=True, deadline=None, database=None)
    @given(FIRST, LAST, st.integers(0, 3), ENDS)
    def test_total_recordable_and_true(self, first: Any, last: Any, number: int, end: End) -> None:
        """Whatever ends whenever: it can be recorded, and it claims nothing about another send without proof."""
        state = state_of(*core.SENT, *first, core.dispatched(2), *last)
        bodies = conclude(state, number, end, NOW)
        after = then(state, *bodies)
        for before, now in zip(state.sends, after.sends, strict=True):
            if before.number != number and not end.stored:
                self.assertEqual(now, before)
        if after.phase is Phase.REFUSED and state.phase is Phase.DISPATCHED:
            self.assertEqual(after.maybe_landed, ())
        if after.phase is Phase.COMMITTED and state.phase is not Phase.COMMITTED:
            self.assertIs(end.ending, Ending.EVIDENCE)
        if state.shortcuts_off:
            self.assertTrue(after.shortcuts_off)


if __name__ == "__main__":
    unittest.main()
