"""What the offline tests of the scenarios share: every scenario is whole, and its judge and columns are right."""

from __future__ import annotations

import unittest
from collections.abc import Mapping
from typing import Any, ClassVar

from interlock_tools.testing.crash import CrashPoint
from scenarios.suite import judging
from scenarios.suite.catalogue import scenario
from scenarios.suite.lanes import cells_of
from scenarios.suite.model import Verdict, Work


class ScenarioCase(unittest.TestCase):
    """Subclass with ``key`` and what the services hold in each case. No process and no network."""

    key: ClassVar[str]
    arguments: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def setUpClass(cls) -> None:
        if cls is ScenarioCase:
            raise unittest.SkipTest("the base of the others")

    def setUp(self) -> None:
        self.scenario = scenario(self.key)

    def verdict(self, fault: str, ledger: Mapping[str, Any]) -> Verdict:
        work = Work(self.key, "interlock", fault, "case", "/nowhere", dict(self.arguments))
        return self.scenario.judge(ledger, work, self.scenario.faults[fault])

    def assert_held(self, fault: str, ledger: Mapping[str, Any]) -> None:
        self.assertTrue(self.verdict(fault, ledger).held, fault)

    def assert_broken(self, fault: str, ledger: Mapping[str, Any]) -> None:
        self.assertFalse(self.verdict(fault, ledger).held, fault)

    def test_it_is_whole(self) -> None:
        self.assertTrue(self.scenario.invariant and self.scenario.title and self.scenario.services)
        self.assertLessEqual({"no_check", "hand_check", "interlock"}, set(self.scenario.arms))
        points = {point.value for point in CrashPoint}
        for name, fault in self.scenario.faults.items():
            with self.subTest(name):
                self.assertIn(fault.die_at, {None, *points})
                self.assertGreaterEqual(fault.wanted, 0)
        self.assertLessEqual(set(self.scenario.reference), set(self.scenario.arms))

    def test_every_arm_says_why_it_is_as_it_is(self) -> None:
        for name, arm in self.scenario.arms.items():
            with self.subTest(name):
                self.assertGreater(len(arm.why), 40)
                self.assertIn(arm.kind, ("hand", "interlock", "peer"))
                self.assertLessEqual({*(arm.faults or ()), *arm.left_out}, set(self.scenario.faults))
                if arm.kind == "peer":
                    silent = [f for f in self.scenario.faults if not arm.plays(f) and not arm.left_out.get(f)]
                    self.assertEqual(silent, [], "a peer is played, or the page says why it is not")

    def test_every_fault_is_played_with_interlock_and_a_hand_written_arm(self) -> None:
        cells = cells_of([self.key], None, None, 1)
        for fault in self.scenario.faults:
            kinds = {self.scenario.arms[cell.arm].kind for cell in cells if cell.fault == fault}
            self.assertLessEqual({"hand", "interlock"}, kinds, fault)

    def test_what_an_answer_is_compared_with(self) -> None:
        landed, nothing = Verdict(True, "", ("x_1",)), Verdict(True, "", ())
        failed = Verdict(True, "", ("x_1",), failed=True)
        for claims, verdict, wanted in (
            (["landed"], failed, "contradicts"),
            (["landed"], landed, "matches"),
            (["not_landed"], nothing, "matches"),
            (["not_landed"], landed, "contradicts"),
            (["landed"], nothing, "contradicts"),
            (["unknown"], landed, "cannot know"),
            (["unknown", "landed"], landed, "matches"),
            (["landed", "not_landed"], landed, "contradicts"),
        ):
            with self.subTest(claims):
                answers = [{"words": "", "artifact": {"claim": claim}} for claim in claims]
                self.assertEqual(judging.answer([(said, verdict) for said in answers]), wanted)
        said = {"words": "It was made, and failed since.", "artifact": {"claim": "landed"}}
        self.assertEqual(judging.answer([(said, failed)]), "matches")
        self.assertEqual(judging.final_state([(said, failed)]), "told")

    def test_a_record_proves_no_more_than_it_says(self) -> None:
        verdict = Verdict(True, "", ("x_1",))
        facts = dict.fromkeys(self.scenario.premises, 0)
        whole = {"facts": facts, "by": list(self.scenario.authority), "id": "x_1"}
        self.assertTrue(judging.proof({"steps": [whole]}, self.scenario, verdict)["ok"])
        for name in ("facts", "by", "id"):
            if not whole[name]:
                continue
            without = {key: value for key, value in whole.items() if key != name}
            with self.subTest(name):
                self.assertFalse(judging.proof({"steps": [without]}, self.scenario, verdict)["ok"])
        self.assertFalse(judging.proof({"steps": []}, self.scenario, verdict)["ok"])
