"""Webhooks: verified, harmless when they are repeated or disordered, and only ever a reason to look."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from interlock_integrations.webhooks import TOLERANCE_S, application
from interlock_tools import Gate, Settlement
from interlock_tools.hooks import Notice

STRIPE, GITHUB = "whsec_stripe_test", "github-secret"
RESEND = "whsec_" + base64.b64encode(b"0" * 24).decode()


class Webhooks(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.gate = Gate(Path(folder.name) / "j.db")
        self.addCleanup(self.gate.close)
        self.state = Settlement("settled", "succeeded")
        self.looks = 0

        def watch(case: str) -> Settlement:
            self.looks += 1
            return self.state

        @self.gate.effect("made", key=lambda case, payment: case, watch=watch)
        def made(case: str, payment: str, *, idempotency_key: str) -> dict[str, Any]:
            return {"id": f"id_{case}", "charge": f"ch_{case}"}

        self.effect_id = made("1", "pi_1").effect_id
        self.now = time.time()
        self.told: list[Notice] = []
        app = application(
            self.gate,
            stripe_secret=STRIPE,
            github_secret=GITHUB,
            resend_secret=RESEND,
            hooks=[self.told.append],
            now=lambda: self.now,
        )
        self.client = TestClient(app)

    def stripe(self, event: Any, secret: str = STRIPE, at: float | None = None, body: bytes | None = None) -> Any:
        body = body if body is not None else json.dumps(event).encode()
        moment = int(at if at is not None else self.now)
        signed = hmac.new(secret.encode(), f"{moment}.".encode() + body, hashlib.sha256).hexdigest()
        return self.client.post("/stripe", content=body, headers={"Stripe-Signature": f"t={moment},v1={signed}"})

    def github(self, event: Any, kind: str, secret: str = GITHUB) -> Any:
        body = json.dumps(event).encode()
        signed = "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        headers = {"X-Hub-Signature-256": signed, "X-GitHub-Event": kind}
        return self.client.post("/github", content=body, headers=headers)

    def resend(self, event: Any, secret: str = RESEND, at: float | None = None) -> Any:
        body = json.dumps(event).encode()
        moment = str(int(at if at is not None else self.now))
        key = base64.b64decode(secret.removeprefix("whsec_"))
        signed = base64.b64encode(hmac.new(key, f"msg_1.{moment}.".encode() + body, hashlib.sha256).digest()).decode()
        headers = {"svix-id": "msg_1", "svix-timestamp": moment, "svix-signature": f"v1,xxx v1,{signed}"}
        return self.client.post("/resend", content=body, headers=headers)

    def of_refund(self) -> dict[str, Any]:
        return {"type": "refund.failed", "data": {"object": {"metadata": {"interlock_effect_id": self.effect_id}}}}

    def assert_looked(self, answer: Any, *effect_ids: str) -> None:
        self.assertEqual((answer.status_code, answer.json()), (200, {"looked_at": list(effect_ids)}))

    def test_what_it_says_is_not_believed_but_looked_at(self) -> None:
        self.assert_looked(self.stripe(self.of_refund()), self.effect_id)
        self.assertEqual((self.gate.look(self.effect_id).settlement or {})["state"], "settled")

    def test_a_dispute_is_found_by_the_payment_that_it_is_about(self) -> None:
        self.state = Settlement("at_risk", "du_1", 12_000, "usd")
        event = {"type": "charge.dispute.created", "data": {"object": {"id": "du_1", "payment_intent": "pi_1"}}}
        self.assert_looked(self.stripe(event), self.effect_id)
        self.assertEqual([one.event for one in self.told], ["at_risk"])

    def test_one_that_comes_twice_or_out_of_order_changes_nothing(self) -> None:
        for _ in range(3):
            self.assert_looked(self.stripe(self.of_refund()), self.effect_id)
        kinds = [entry.kind.value for entry in self.gate.history(self.effect_id)]
        self.assertEqual((kinds.count("settled"), self.looks), (1, 3))

    def test_a_comment_and_a_revert_on_github(self) -> None:
        marked = {"action": "deleted", "comment": {"body": f"x\n\n<!-- interlock-effect: {self.effect_id} -->"}}
        self.assert_looked(self.github(marked, "issue_comment"), self.effect_id)
        self.assert_looked(self.github({"commits": [{"message": f"This reverts commit {'a' * 40}."}]}, "push"))

    def test_a_mail_by_its_tag_and_by_its_id(self) -> None:
        tag = {"name": "interlock_effect_id", "value": self.effect_id}
        self.assert_looked(self.resend({"type": "email.bounced", "data": {"tags": [tag]}}), self.effect_id)
        self.gate.journal.look_at(self.effect_id, 1)
        self.assert_looked(self.resend({"type": "email.bounced", "data": {"email_id": "id_1"}}), self.effect_id)

    def test_what_is_not_known_is_ignored(self) -> None:
        for event in ({}, {"type": "x"}, {"data": 5}, {"data": {"object": {"metadata": {"interlock_effect_id": 5}}}}):
            self.assert_looked(self.stripe(event))
        other = {"data": {"object": {"metadata": {"interlock_effect_id": "f" * 32}}}}
        self.assert_looked(self.stripe(other))
        self.assert_looked(self.github({"zen": "x"}, "ping"))
        self.assert_looked(self.resend({"type": "domain.created", "data": {}}))
        self.assertEqual(self.looks, 0)

    def test_a_bad_signature_is_a_400_and_nothing_is_looked_at(self) -> None:
        good = self.of_refund()
        late = self.now - TOLERANCE_S - 5
        answers = [
            self.stripe(good, secret="whsec_other"),
            self.stripe(good, at=late),
            self.client.post("/stripe", json=good),
            self.github({"comment": {}}, "issue_comment", secret="other"),
            self.client.post("/github", json={}),
            self.resend({}, secret="whsec_" + base64.b64encode(b"1" * 24).decode()),
            self.resend({}, at=late),
            self.client.post("/resend", json={}),
        ]
        for answer in answers:
            self.assertEqual(answer.status_code, 400, answer.text)
            self.assertIn("error", answer.json())
        self.assertEqual(self.looks, 0)

    def test_a_signed_body_that_is_no_object_is_a_400(self) -> None:
        for body in (b"", b"[]", b"{", b"\xff"):
            self.assertEqual(self.stripe(None, body=body).status_code, 400)

    def test_only_services_with_a_secret_have_a_path(self) -> None:
        client = TestClient(application(self.gate, github_secret=GITHUB))
        self.assertEqual((client.post("/stripe").status_code, client.post("/github").status_code), (404, 400))

    def test_a_service_that_is_down_is_asked_again_by_the_next_pass(self) -> None:
        self.state = None  # type: ignore[assignment]
        self.assert_looked(self.stripe(self.of_refund()), self.effect_id)
        self.assertEqual(self.gate.journal.next_look()[1], 1)


if __name__ == "__main__":
    unittest.main()
