"""The refund story: an agent that is killed for real, and a judge that asks the service. A few of its acts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
from refund_story.acts import OUTAGES, POINTS, Act, acts
from refund_story.judge import verdict
from refund_story.world import BY_HAND, Live

from interlock_tools.testing import CrashPoint
from scenarios.sandbox import SandboxProcess

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "refund_agent.py"


class Story(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def tell(self, *options: str, **environment: str) -> tuple[int, str, dict[str, Any]]:
        """Run the example; its exit status, what it printed, and its results."""
        results = self.folder / "results.json"
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("STRIPE_", "INTERLOCK_"))}
        done = subprocess.run(
            [sys.executable, str(EXAMPLE), *options, "--json", str(results)],
            env={**kept, **environment},
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        told = json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}
        return done.returncode, done.stdout + done.stderr, told

    def test_it_landed_and_somebody_refunds_by_hand(self) -> None:
        code, printed, told = self.tell("--crash", "in_flight", "--outage", "hand_refund")
        self.assertEqual(code, 0, printed)
        (act,) = told["acts"]
        self.assertEqual(
            (act["outcome"], act["via"], act["holds"]), ("COMMITTED", "lookup", "-$20.00, -$20.00 by hand")
        )
        self.assertEqual(act["entries"], ["proposed", "authorized", "dispatched", "orphaned", "committed"])
        self.assertGreater(act["seconds"], 0)
        for words in ("SIGKILL", "meanwhile somebody refunds", "1 of 1 deaths ended right", "The agent said"):
            self.assertIn(words, printed)

    def test_it_never_left_and_the_approval_is_revoked_with_a_journal_of_ones_own(self) -> None:
        options = ("--outage", "approval_revoked", "--journal", str(self.folder / "mine.db"))
        for point in ("after_proposed", "before_mark"):
            code, printed, told = self.tell("--crash", point, *options)
            self.assertEqual(code, 0, printed)
            self.assertEqual(
                (told["acts"][0]["outcome"], told["acts"][0]["holds"]), ("REFUSED:not_allowed", "nothing refunded")
            )

    def test_without_the_gate_it_pays_twice(self) -> None:
        code, printed, told = self.tell("--without-gate", "--crash", "in_flight")
        self.assertEqual(code, 1, printed)
        self.assertEqual(told["acts"][0]["wrong"], ["refunded 2 times"])

    def test_stripe_itself(self) -> None:
        """Against the public API alone, which here is a sandbox's."""
        with SandboxProcess("stripe") as sandbox:
            code, printed, told = self.tell(
                "--live", "--crash", "after_response", STRIPE_API_KEY="sk_test_x", STRIPE_API_BASE=sandbox.url
            )
            self.assertEqual((code, told["acts"][0]["via"]), (0, "resend"), printed)
            self.assertEqual(len(sandbox.control.ledger()["refunds"]), 1)

    def test_what_it_refuses(self) -> None:
        for options, environment in (
            (["--live"], {"STRIPE_API_KEY": "sk_live_Secret"}),
            (["--live"], {}),
            (["--crash", "nowhere"], {}),
            (["--without-gate", "--crash", "after_committed"], {}),
        ):
            with self.subTest(options=options, environment=environment):
                code, printed, told = self.tell(*options, **environment)
                self.assertEqual((code, told), (2, {}), printed)
                self.assertNotIn("Secret", printed)


class Judge(unittest.TestCase):
    """The judge can say no."""

    def judge(self, act: Act, refunds: list[dict[str, Any]], **answer: Any) -> list[str]:
        class Held(Live):
            def refunds(self, payment: str) -> list[dict[str, Any]]:
                return refunds

            def requests(self, key: str) -> int | None:
                return 1

        told = {"status": "COMMITTED", "outcome": "COMMITTED", "effect_id": "e", "result": {"id": "re_1"}, **answer}
        return verdict(act, Held(), "pi_1", told, ["proposed", "authorized", "dispatched", "committed"])

    def test_verdicts(self) -> None:
        one = {"id": "re_1", "amount": 2000, "metadata": {"interlock_effect_id": "e"}}
        hand = {"id": "re_9", "amount": 2000, "metadata": BY_HAND}
        landed, lost = Act("in_flight", "hand_refund"), Act("before_mark", "hand_refund")
        self.assertEqual(self.judge(landed, [one, hand]), [])
        self.assertEqual(self.judge(landed, [one, {**one, "id": "re_2"}])[0], "refunded 2 times")
        self.assertIn("the approved refund was not made", self.judge(landed, [hand]))
        self.assertIn("refunded although hand_refund", self.judge(lost, [one, hand]))
        self.assertIn("the agent names another refund than Stripe holds", self.judge(landed, [{**one, "id": "re_2"}]))
        self.assertIn("refunded [1]", self.judge(landed, [{**one, "amount": 1}]))
        says = self.judge(landed, [one], status="REFUSED", outcome="REFUSED:rejected")
        self.assertIn("the agent says REFUSED:rejected, Stripe holds 1 refund(s)", says)
        self.assertTrue(self.judge(landed, [one], status="IN_FLIGHT", outcome="IN_FLIGHT:waiting"))

    def test_every_crash_point_has_its_act(self) -> None:
        self.assertEqual(list(POINTS), [point.value for point in CrashPoint])
        for outage in OUTAGES:
            self.assertEqual([act.point for act in acts(None, outage, gated=True)], list(POINTS))


if __name__ == "__main__":
    unittest.main()
