"""Receipts checked against the services, each against its sandbox: strong and weak carriers, and what contradicts."""

from __future__ import annotations

import copy
import os
import sys
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest import mock

import stripe
from github import Auth, Github
from google.cloud import storage
from google.oauth2.credentials import Credentials
from googleapiclient.discovery import build

sys.path.insert(0, str(Path(__file__).resolve().parent))
from sealing_support import WitnessServer
from tool_support import ToolCase

from interlock_integrations.calendar import confirm as calendar_confirm
from interlock_integrations.calendar import declare_event, gated_service
from interlock_integrations.gcs import confirm as gcs_confirm
from interlock_integrations.gcs import declare_restore, declare_write
from interlock_integrations.gcs.client import gated_client as gated_storage
from interlock_integrations.github import confirm as github_confirm
from interlock_integrations.github import declare_comment, declare_merge
from interlock_integrations.github.client import gated_client as gated_github
from interlock_integrations.resend import confirm as resend_confirm
from interlock_integrations.resend import declare_mail
from interlock_integrations.resend.client import ResendClient
from interlock_integrations.stripe import confirm as stripe_confirm
from interlock_integrations.stripe import declare_credit, declare_refund, declare_transfer, gated_client
from interlock_tools import Gate, Outcome, parse_policy, verify
from interlock_tools.confirm import confirm
from interlock_tools.receipts import Answer, Report, Word
from interlock_tools.receipts.keys import verifier_key
from interlock_tools.receipts.report import Subject
from interlock_tools.sealing import Keys

Ask = Callable[[Subject], Any]


class ConfirmCase(ToolCase):
    """A gate that signs, a witness, and the service's sandbox."""

    ask: Ask

    def setUp(self) -> None:
        super().setUp()
        self.gate.close()
        keys = Keys.in_directory(self.folder / "keys", "shop.example")
        self.witness = WitnessServer(self.folder, "a")
        self.addCleanup(self.witness.close)
        self.witness.book.add_log(str(verifier_key(keys.logs[0])))
        self.policy = parse_policy(f"{keys.policy()}{self.witness.line}quorum a\n")
        self.gate: Gate = self.open_gate(signing=self.folder / "keys", witnesses=self.policy)

    def report(self, outcome: Outcome) -> Report:
        self.assertEqual(self.gate.records.flush(), {})
        report = verify(self.gate.receipt(outcome.effect_id), self.policy)
        self.assertEqual(report.word, Word.WITNESSED, str(report))
        return report

    def asked(self, outcome: Outcome, **changes: Any) -> Report:
        """The report after the service was asked; ``changes`` are what a forger who holds every key wrote instead."""
        report = self.report(outcome)
        assert report.subject is not None
        subject = replace(report.subject, **changes)
        return confirm(replace(report, subject=subject), self.ask)

    def assertConfirmed(self, outcome: Outcome, **changes: Any) -> Report:
        report = self.asked(outcome, **changes)
        self.assertEqual((report.word, report.exit_code), (Word.CONFIRMED_BY_SERVICE, 0), str(report))
        self.assertIn("strong carrier", report.line("service").vouched_by)
        return report

    def assertContradicted(self, outcome: Outcome, **changes: Any) -> Report:
        report = self.asked(outcome, **changes)
        self.assertEqual((report.word, report.exit_code), (Word.CONTRADICTED, 3), str(report))
        return report

    def assertWeak(self, outcome: Outcome, answer: Answer, **changes: Any) -> Report:
        """A weak carrier neither confirms nor contradicts."""
        report = self.asked(outcome, **changes)
        line = report.line("service")
        self.assertEqual((report.word, line.answer), (Word.WITNESSED, answer), str(report))
        self.assertIn("weak carrier", line.vouched_by)
        self.assertIn("can edit", line.not_checked)
        return report

    def assertCannotTell(self, outcome: Outcome, **changes: Any) -> Report:
        report = self.asked(outcome, **changes)
        self.assertEqual((report.word, report.exit_code), (Word.WITNESSED, 4), str(report))
        return report

    def payload(self, outcome: Outcome, **changes: Any) -> dict[str, Any]:
        subject = self.report(outcome).subject
        assert subject is not None
        return {**subject.payload, **changes}


class Stripe(ConfirmCase):
    service = "stripe"

    def setUp(self) -> None:
        super().setUp()
        self.client = stripe.StripeClient("sk_test_x", base_addresses={"api": self.sandbox.url}, max_network_retries=0)
        self.ask = lambda subject: stripe_confirm.confirm(subject, self.client)
        self.payment = self.control.action("pay", amount=10_000)["id"]
        self.create = declare_refund(self.gate, gated_client(self.client))
        asked = {"payment_intent": self.payment, "amount": 2000, "reason": "requested_by_customer"}
        self.refund = self.create(request="case-1", **asked)
        self.assertEqual(str(self.refund), "COMMITTED")

    def test_the_event_s_idempotency_key_confirms(self) -> None:
        line = self.assertConfirmed(self.refund).line("service")
        self.assertIn("refund.created", line.says)
        self.assertIn("under this effect's key", line.says)

    def test_metadata_may_be_edited_and_changes_nothing_while_the_event_is_there(self) -> None:
        self.client.v1.refunds.update(self.refund.result["id"], {"metadata": {"interlock_effect_id": "0" * 32}})
        self.assertConfirmed(self.refund)

    def test_after_thirty_days_only_the_weak_carrier_is_left(self) -> None:
        self.later(31 * 86_400)
        self.assertWeak(self.refund, Answer.YES)
        self.client.v1.refunds.update(self.refund.result["id"], {"metadata": {"interlock_effect_id": "0" * 32}})
        self.assertWeak(self.refund, Answer.UNKNOWN)

    def test_another_id_amount_or_outcome_is_contradicted(self) -> None:
        self.assertContradicted(self.refund, evidence={"id": "re_made_up"})
        self.assertContradicted(self.refund, payload=self.payload(self.refund, amount=9000))
        self.assertContradicted(self.refund, phase="refused", evidence=None)

    def test_somebody_else_s_refund_is_not_this_effect_s(self) -> None:
        other = self.client.v1.refunds.create({"payment_intent": self.payment, "amount": 100})
        self.assertContradicted(self.refund, evidence={"id": other.id})

    def test_what_a_receipt_names_cannot_pass_for_the_report_s_own_lines(self) -> None:
        report = self.assertContradicted(self.refund, evidence={"id": "re_x\nCONFIRMED_BY_SERVICE: fine" + "x" * 500})
        self.assertNotIn("\nCONFIRMED_BY_SERVICE", str(report))

    def test_an_effect_that_was_never_sent(self) -> None:
        made_up = {"effect_id": "f" * 32, "evidence": {"id": "re_made_up"}}
        self.assertContradicted(self.refund, **made_up)
        self.assertWeak(self.refund, Answer.YES, effect_id="f" * 32, evidence=None, phase="refused")

    def test_what_cannot_be_asked_is_not_known(self) -> None:
        self.assertCannotTell(self.refund, payload=self.payload(self.refund, payment_intent="pi_elsewhere"))
        self.assertCannotTell(
            self.refund, payload=self.payload(self.refund, payment_intent={"private_sha256": "0" * 64})
        )
        self.assertCannotTell(self.refund, name="stripe.payout", service={})
        self.assertCannotTell(self.refund, phase="ambiguous")

    def test_a_transfer_and_a_credit(self) -> None:
        ours = gated_client(self.client)
        customer = self.client.v1.customers.create({"name": "Example"}).id
        credit = declare_credit(self.gate, ours)(
            request="case-2", customer=customer, amount=500, currency="usd", description="Late delivery"
        )
        self.assertEqual(str(credit), "COMMITTED")
        self.assertWeak(credit, Answer.YES)
        capabilities: Any = {"transfers": {"requested": True}}
        seller = self.client.v1.accounts.create({"type": "custom", "capabilities": capabilities}).id
        payment = self.control.action("pay", amount=9000)["id"]
        charge = str(self.client.v1.payment_intents.retrieve(payment).latest_charge)
        transfer = declare_transfer(self.gate, ours)(
            request="case-3", destination=seller, amount=100, currency="usd", source_transaction=charge
        )
        self.assertEqual(str(transfer), "COMMITTED", transfer.message)
        self.assertConfirmed(transfer)

    def test_an_effect_of_another_name_is_known_by_what_its_record_says(self) -> None:
        renamed = declare_refund(self.gate, gated_client(self.client), name="refunds in the EU", other_refunds="allow")
        asked = {"payment_intent": self.payment, "amount": 300, "reason": "duplicate"}
        outcome = renamed(request="case-9", **asked)
        self.assertEqual(str(outcome), "COMMITTED", outcome.message)
        self.assertConfirmed(outcome)

    def test_from_the_environment_by_the_integration_that_the_receipt_names(self) -> None:
        settings = {"STRIPE_API_KEY": "sk_test_x", "STRIPE_API_BASE": self.sandbox.url}
        with mock.patch.dict(os.environ, settings):
            report = confirm(self.report(self.refund))
        self.assertEqual(report.word, Word.CONFIRMED_BY_SERVICE, str(report))


class Merges(ConfirmCase):
    service = "github"

    def setUp(self) -> None:
        super().setUp()
        act = self.control.action
        act("create_repo", full_name="acme/shop", files={"price.txt": "10\n"})
        self.head = act("commit", repo="acme/shop", branch="fix", files={"price.txt": "12\n"})["sha"]
        self.number = act("open_pull", repo="acme/shop", head="fix", title="Fix the price")["number"]
        self.control.advance(10)
        options: dict[str, Any] = {"seconds_between_requests": 0, "seconds_between_writes": 0}
        self.api = Github(base_url=self.sandbox.url, auth=Auth.Token("ghp_alice"), **options)
        self.ask = lambda subject: github_confirm.confirm(subject, self.api)

    def merge(self, method: str = "merge") -> Outcome:
        effect = declare_merge(self.gate, gated_github(self.api))
        asked = {"owner": "acme", "repo": "shop", "pull_number": self.number, "merge_method": method, "sha": self.head}
        outcome: Outcome = effect(request="case-1", **asked)
        self.assertEqual(str(outcome), "COMMITTED")
        return outcome

    def test_the_commit_confirms(self) -> None:
        outcome = self.merge()
        self.assertIn("names this effect", self.assertConfirmed(outcome).line("service").says)
        self.assertContradicted(outcome, evidence={"id": "0" * 40})
        self.assertContradicted(outcome, phase="refused", evidence=None)

    def test_a_rebase_confirms_the_merge_and_not_whose_it_was(self) -> None:
        says = self.assertConfirmed(self.merge("rebase")).line("service").says
        self.assertIn("does not name this effect", says)

    def test_one_that_is_not_merged_contradicts(self) -> None:
        outcome = self.merge()
        act = self.control.action
        act("commit", repo="acme/shop", branch="more", files={"name.txt": "x\n"})
        open_ = act("open_pull", repo="acme/shop", head="more", title="More")["number"]
        self.control.advance(10)
        self.assertContradicted(outcome, payload=self.payload(outcome, pull_number=open_))

    def test_a_comment_is_weak(self) -> None:
        effect = declare_comment(self.gate, gated_github(self.api))
        asked = {"owner": "acme", "repo": "shop", "issue_number": self.number, "body": "Refunded."}
        outcome: Outcome = effect(request="case-2", **asked)
        self.assertEqual(str(outcome), "COMMITTED")
        self.assertWeak(outcome, Answer.YES)
        comment = self.api.get_repo("acme/shop").get_issue(self.number).get_comment(int(outcome.result["id"]))
        comment.edit("Something else")
        self.assertWeak(outcome, Answer.UNKNOWN)


class Objects(ConfirmCase):
    service = "gcs"

    def setUp(self) -> None:
        super().setUp()
        self.control.action("create_bucket", bucket="configs", versioning=True)
        credentials: Any = Credentials(token="ya29.x")  # type: ignore[no-untyped-call]
        options = {"api_endpoint": self.sandbox.url}
        self.client = storage.Client(project="p", credentials=credentials, client_options=options)
        self.ask = lambda subject: gcs_confirm.confirm(subject, self.client)
        self.write = declare_write(self.gate, gated_storage(self.client))
        self.outcome = self.write(request="case-1", bucket="configs", name="prod.json", content="new")
        self.assertEqual(str(self.outcome), "COMMITTED")

    def test_generation_hash_and_untouched_metadata_confirm(self) -> None:
        self.assertConfirmed(self.outcome)
        self.write(request="case-2", bucket="configs", name="prod.json", content="newer")
        self.assertConfirmed(self.outcome)

    def test_metadata_that_was_edited_is_weak(self) -> None:
        generation = self.outcome.result["generation"]
        blob = self.client.bucket("configs").blob("prod.json", generation=generation)
        blob.reload()
        blob.metadata = {**(blob.metadata or {}), "note": "seen"}
        blob.patch()
        self.assertWeak(self.outcome, Answer.YES)
        blob.metadata = {"interlock_effect_id": "0" * 32}
        blob.patch()
        self.assertWeak(self.outcome, Answer.UNKNOWN)

    def test_other_content_contradicts(self) -> None:
        evidence = copy.deepcopy(dict(self.outcome.result))
        self.assertContradicted(self.outcome, evidence={**evidence, "crc32c": "AAAAAA=="})
        self.assertContradicted(self.outcome, payload=self.payload(self.outcome, content="something else"))
        self.assertContradicted(self.outcome, effect_id="f" * 32)
        self.assertContradicted(self.outcome, phase="refused", evidence=None)

    def test_a_generation_that_is_gone_says_nothing(self) -> None:
        evidence = {**self.outcome.result, "generation": 1}
        self.assertCannotTell(self.outcome, evidence=evidence)
        self.assertWeak(self.outcome, Answer.YES, phase="refused", evidence=None, effect_id="f" * 32)

    def test_a_restored_object(self) -> None:
        generation = self.outcome.result["generation"]
        self.write(request="case-2", bucket="configs", name="prod.json", content="newer")
        restore = declare_restore(self.gate, gated_storage(self.client))
        outcome = restore(request="case-3", bucket="configs", name="prod.json", generation=generation)
        self.assertEqual(str(outcome), "COMMITTED")
        self.assertConfirmed(outcome)


class Events(ConfirmCase):
    service = "calendar"

    def setUp(self) -> None:
        super().setUp()
        credentials: Any = Credentials(token="ya29.x")  # type: ignore[no-untyped-call]
        options = {"api_endpoint": f"{self.sandbox.url}/calendar/v3/"}
        self.api = build("calendar", "v3", credentials=credentials, client_options=options, static_discovery=True)
        self.ask = lambda subject: calendar_confirm.confirm(subject, self.api)
        when = {"start_datetime": "2026-09-07T10:00:00", "end_datetime": "2026-09-07T10:30:00", "timezone": "UTC"}
        effect = declare_event(self.gate, gated_service(self.api))
        self.outcome = effect(request="case-1", summary="Call", calendar_id="primary", **when)
        self.assertEqual(str(self.outcome), "COMMITTED", self.outcome.message)

    def test_the_event_s_id_confirms_also_when_it_was_edited_or_deleted(self) -> None:
        self.assertConfirmed(self.outcome)
        moved = {"start": "2026-09-08T10:00:00Z", "end": "2026-09-08T10:30:00Z"}
        self.control.action("move", event=self.outcome.effect_id, **moved)
        self.assertConfirmed(self.outcome)
        self.api.events().delete(calendarId="primary", eventId=self.outcome.effect_id).execute()
        self.assertIn("deleted since", self.assertConfirmed(self.outcome).line("service").says)

    def test_an_event_that_never_was_contradicts(self) -> None:
        self.assertContradicted(self.outcome, effect_id="f" * 32, evidence={"id": "f" * 32})
        self.assertContradicted(self.outcome, evidence={"id": "somethingelse"})
        self.assertContradicted(self.outcome, phase="refused", evidence=None)
        self.assertConfirmed(self.outcome, effect_id="f" * 32, phase="refused", evidence=None)

    def test_a_calendar_that_cannot_be_seen_says_nothing(self) -> None:
        self.assertCannotTell(self.outcome, payload=self.payload(self.outcome, calendar_id="nobody@example.com"))


class Mails(ConfirmCase):
    service = "resend"

    def setUp(self) -> None:
        super().setUp()
        self.client = ResendClient("re_full_1", self.sandbox.url)
        self.ask = lambda subject: resend_confirm.confirm(subject, self.client)
        effect = declare_mail(self.gate, self.client, full_access=True)
        mail = {"to": "customer@example.com", "subject": "Your refund", "text": "It is on its way.", "html": None}
        self.outcome = effect(request="case-1", sender="Shop <shop@example.com>", **mail)
        self.assertEqual(str(self.outcome), "COMMITTED", self.outcome.message)

    def test_id_recipients_and_subject_confirm(self) -> None:
        self.assertIn("Resend accepted email", self.assertConfirmed(self.outcome).line("service").says)

    def test_another_recipient_or_subject_contradicts(self) -> None:
        for change in ({"to": "other@example.com"}, {"subject": "Other"}, {"sender": "x@example.com"}):
            with self.subTest(change):
                self.assertContradicted(self.outcome, payload=self.payload(self.outcome, **change))
        self.assertContradicted(self.outcome, phase="refused")

    def test_what_resend_does_not_keep_or_show_is_not_known(self) -> None:
        missing = {"id": "00000000-0000-4000-8000-000000000000"}
        self.assertCannotTell(self.outcome, evidence=missing)
        self.assertCannotTell(self.outcome, evidence=None)


if __name__ == "__main__":
    unittest.main()
