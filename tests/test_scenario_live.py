"""``scenarios/run.py --live``: driven by Stripe's public API alone, here against the sandbox in its place."""

from __future__ import annotations

import contextlib
import io
import os
import unittest
from unittest import mock

from scenarios.sandbox import SandboxProcess
from scenarios.suite import live

STRIPE = {"STRIPE_API_KEY", "STRIPE_API_BASE"}


class LiveRuns(unittest.TestCase):
    def play(self, keys: list[str], arms: set[str], faults: set[str] | None, **environment: str) -> tuple[int, str]:
        kept = {name: value for name, value in os.environ.items() if name not in STRIPE}
        out = io.StringIO()
        with mock.patch.dict(os.environ, {**kept, **environment}, clear=True), contextlib.redirect_stdout(out):
            return live.main(keys, arms, faults), out.getvalue()

    def test_without_keys_every_row_says_which_is_missing(self) -> None:
        code, out = self.play(["stripe_dispute", "github_merge"], set(), None)
        self.assertEqual(code, 1)
        self.assertIn("BLOCKED: set STRIPE_API_KEY", out)
        self.assertIn("GITHUB_TOKEN", out)

    def test_a_live_mode_key_is_refused(self) -> None:
        faults = {"crash_before_send_chargeback_during_outage"}
        key = {"STRIPE_API_KEY": "sk_live_x", "STRIPE_API_BASE": "http://127.0.0.1:9"}
        code, out = self.play(["stripe_dispute"], {"interlock"}, faults, **key)
        self.assertEqual((code, "not one of test mode" in out, "sk_live_x" in out), (1, True, False))

    def test_the_dispute_by_the_public_api(self) -> None:
        with SandboxProcess("stripe", options={"stripe.escalation_s": "2.5"}) as sandbox:
            faults = {"crash_after_send_chargeback_during_outage"}
            code, out = self.play(["stripe_dispute"], {"interlock"}, faults, **sandbox.environment)
        self.assertEqual(code, 0, out)
        self.assertIn("held, 20.00 failed, answer matches", out)

    def test_a_platform_without_connect(self) -> None:
        with SandboxProcess("stripe", options={"stripe.connect": "off"}) as sandbox:
            code, out = self.play(["connect_payout"], {"interlock"}, {"crash_after_commit"}, **sandbox.environment)
        self.assertEqual(code, 1)
        self.assertIn("signed up for Connect", out)

    def test_each_of_the_others_by_its_public_api(self) -> None:
        """The sandboxes answer here as the services do; their control planes are not used."""
        everything = os.environ.get("INTERLOCK_LONG_TESTS")
        for service, key, fault, further in (
            ("github", "github_merge", "before_send", {"GITHUB_REPOSITORY": "acme/shop"}),
            ("github", "github_comment", "crash_after_send", {"GITHUB_REPOSITORY": "acme/shop"}),
            ("gcs", "gcp_resource", "crash_after_commit_redeploy", {"GOOGLE_STORAGE_BUCKET": "configs"}),
            ("calendar", "calendar", "after_commit/slot_busy", {}),
            ("resend", "email_tier3", "refused_after_send", {}),
        ):
            if key in ("github_merge", "calendar", "gcp_resource") and not everything:
                continue  # they are played like the others, and take longer
            with self.subTest(key), SandboxProcess(service) as sandbox:
                if service == "github":
                    sandbox.control.action("create_repo", full_name="acme/shop", files={"price.txt": "10\n"})
                if service == "gcs":
                    sandbox.control.action("create_bucket", bucket="configs", versioning=True)
                environment = {**sandbox.environment, "GOOGLE_STORAGE_TOKEN": "t", **further}
                arm = "interlock_full_access" if service == "resend" else "interlock"
                code, out = self.play([key], {arm}, {fault}, **environment)
                self.assertEqual(code, 0, out)
                self.assertIn("held", out)


if __name__ == "__main__":
    unittest.main()
