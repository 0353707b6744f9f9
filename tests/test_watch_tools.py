"""What becomes of what each tool made: every status of every service, and one look at each sandbox."""

from __future__ import annotations

import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import test_calendar_toolkit as calendar_tests
import test_gcs_toolkit as gcs_tests
import test_github_toolkit as github_tests
import test_resend_toolkit as resend_tests
from stripe_support import StripeToolCase

from interlock_integrations.calendar.slots import slot_of
from interlock_integrations.calendar.watch import event_settlement
from interlock_integrations.gcs.watch import object_settlement
from interlock_integrations.github.watch import merge_settlement
from interlock_integrations.resend.watch import ARRIVED, LOST, ON_ITS_WAY, mail_settlement
from interlock_integrations.stripe.watch import DISPUTABLE, refund_settlement
from interlock_tools.hooks import Notice

NEW, OLD = timedelta(minutes=1), timedelta(days=200)


class Statuses(unittest.TestCase):
    """Pure: every status that a service can return, and one that it cannot yet."""

    def refund(self, status: str, age: timedelta = NEW, *disputes: str, **fields: Any) -> tuple[str, str, int | None]:
        refund = {"status": status, "amount": 2000, "currency": "usd", **fields}
        found = [{"id": f"du_{n}", "amount": 10_000, "status": one} for n, one in enumerate(disputes)]
        settlement = refund_settlement(refund, found, age)
        return settlement.state, settlement.detail, settlement.exposure

    def test_refunds(self) -> None:
        self.assertEqual(self.refund("failed", failure_reason="declined"), ("failed", "declined", None))
        self.assertEqual(self.refund("canceled"), ("failed", "canceled", None))
        for status in ("pending", "requires_action"):
            self.assertEqual(self.refund(status), ("pending", status, None))
        self.assertEqual(self.refund("succeeded"), ("settled", "succeeded", None))
        self.assertEqual(self.refund("frozen")[:2], ("pending", "unknown status: frozen"))

    def test_disputes(self) -> None:
        for status in ("needs_response", "under_review", "lost", "new_status"):
            state, detail, exposure = self.refund("succeeded", NEW, status)
            self.assertEqual((state, exposure), ("at_risk", 12_000), detail)
        for status in ("won", "warning_closed", "prevented"):
            self.assertEqual(self.refund("succeeded", NEW, status)[0], "settled", status)
        for status in ("warning_needs_response", "warning_under_review"):
            state, detail, _ = self.refund("succeeded", NEW, status)
            self.assertEqual((state, "inquiry" in detail), ("settled", True))

    def test_how_long_a_refund_is_looked_at(self) -> None:
        made = {"status": "succeeded", "amount": 1}
        pauses = [refund_settlement(made, [], age).look_again for age in (NEW, timedelta(hours=8), DISPUTABLE * 0.9)]
        self.assertEqual(pauses, [timedelta(minutes=5), timedelta(hours=2), timedelta(days=1)])
        self.assertIsNone(refund_settlement(made, [], OLD).look_again)

    def test_mails(self) -> None:
        for states, wanted in ((ON_ITS_WAY, "pending"), (ARRIVED, "settled"), (LOST, "failed")):
            for event in states:
                self.assertEqual(mail_settlement(event).state, wanted, event)
        self.assertEqual(mail_settlement("complained").state, "at_risk")
        self.assertEqual(mail_settlement("read_aloud").detail, "unknown status: read_aloud")

    def test_events(self) -> None:
        slot = slot_of("2026-09-07T10:00:00", "2026-09-07T10:30:00", "UTC")
        before, after = datetime(2026, 9, 1, tzinfo=timezone.utc), datetime(2026, 10, 1, tzinfo=timezone.utc)
        event: dict[str, Any] = {"status": "confirmed", "start": {"dateTime": "2026-09-07T12:00:00+02:00"}}
        self.assertEqual(event_settlement(event, slot, before).detail, "confirmed")
        self.assertIsNone(event_settlement(event, slot, after).look_again)
        moved = {**event, "start": {"dateTime": "2026-09-07T11:00:00Z"}}
        self.assertIn("moved to", event_settlement(moved, slot, before).detail)
        self.assertEqual(event_settlement({**event, "status": "cancelled"}, slot, before).state, "reversed")
        self.assertEqual(event_settlement(None, slot, before).state, "reversed")
        self.assertIn("unknown status", event_settlement({**event, "status": "x"}, slot, before).detail)

    def test_objects_and_merges(self) -> None:
        self.assertEqual(
            [object_settlement(live, 5).state for live in (5, 6, None)], ["settled", "reversed", "reversed"]
        )
        self.assertEqual(merge_settlement("abc", [("d", "This reverts commit abc.")]).detail, "reverted by d")
        self.assertEqual(merge_settlement("abc", [("d", "More")]).state, "settled")


class Stripe(StripeToolCase):
    def refund(self, payment: str) -> str:
        tool = self.tool("create_refund")
        message = self.call(tool, payment_intent=payment, amount=2000)
        self.assert_outcome(message, "COMMITTED", "send")
        return str(message.artifact["effect_id"])

    def test_a_chargeback_after_a_refund_that_succeeded(self) -> None:
        """The merchant is out 120 dollars on a payment of 100."""
        payment = self.pay()
        effect_id = self.refund(payment)
        self.gate.watch()
        self.control.advance(300)
        self.control.action("chargeback", payment=payment)
        told: list[Notice] = []
        outcome = self.gate.look(effect_id, hooks=[told.append])
        settlement = outcome.settlement or {}
        self.assertEqual(
            (settlement["state"], settlement["exposure"], settlement["currency"]), ("at_risk", 12_000, "usd")
        )
        self.assertEqual([one.event for one in told], ["at_risk"])
        self.assertIn("at_risk", self.gate.look(effect_id).message)

    def test_a_chargeback_right_after_a_refund_fails_it(self) -> None:
        payment = self.pay()
        effect_id = self.refund(payment)
        self.control.action("chargeback", payment=payment)
        (changed,) = self.gate.watch().changed
        self.assertEqual(changed.effect_id, effect_id)
        self.assertIn("failed (charge_for_pending_refund_disputed)", changed.message)

    def test_a_hundred_refunds_take_two_requests(self) -> None:
        tool = self.tool("create_refund", request=None)
        for number in range(30):
            self.call(tool, {"configurable": {"request_id": str(number)}}, payment_intent=self.pay(), amount=100)
        before = self.control.count("GET")
        report = self.gate.watch()
        self.assertEqual((report.looked, len(report.changed)), (30, 30))
        self.assertEqual(self.control.count("GET") - before, 2)

    def test_credits_and_transfers(self) -> None:
        customer = self.v1.customers.create({"email": "a@example.com"}).id
        given = {"customer": customer, "amount": 1000, "currency": "usd", "description": "Sorry"}
        self.call(self.tool("create_credit"), **given)
        capabilities: Any = {"transfers": {"requested": True}}
        seller = self.v1.accounts.create({"type": "custom", "capabilities": capabilities}).id
        charge = str(self.v1.payment_intents.retrieve(self.pay()).latest_charge)
        share = {"destination": seller, "amount": 2000, "currency": "usd", "source_transaction": charge}
        message = self.call(self.tool("create_transfer"), **share)
        self.assertEqual([(one.settlement or {})["state"] for one in self.gate.watch().changed], ["settled", "settled"])
        self.v1.transfers.reversals.create(message.artifact["result"]["id"])
        outcome = self.gate.look(message.artifact["effect_id"])
        self.assertEqual((outcome.settlement or {})["state"], "reversed")


class GitHub(github_tests.MergeCase):
    def test_a_merge_that_is_reverted(self) -> None:
        message = self.merge()
        effect_id = message.artifact["effect_id"]
        self.assertEqual([(one.settlement or {})["state"] for one in self.gate.watch().changed], ["settled"])
        words = f'Revert "Fix the price"\n\nThis reverts commit {message.artifact["result"]["id"]}.'
        self.act("commit", repo=github_tests.REPO, branch="main", files={"price.txt": "10\n"}, message=words)
        self.assertEqual((self.gate.look(effect_id).settlement or {})["state"], "reversed")


class Comment(github_tests.GithubToolCase):
    tool_name = "create_issue_comment"
    sends = ("POST", "/repos/.*/comments")

    def test_a_comment_that_is_deleted(self) -> None:
        given = {"owner": "acme", "repo": "shop", "issue_number": self.number, "body": "Done."}
        message = self.call(self.tool(), **given)
        self.assertEqual([(one.settlement or {})["state"] for one in self.gate.watch().changed], ["settled"])
        self.act("delete_comment", repo=github_tests.REPO, id=int(message.artifact["result"]["id"]))
        outcome = self.gate.look(message.artifact["effect_id"])
        self.assertEqual((outcome.settlement or {})["detail"], "the comment was deleted")


class Gcs(gcs_tests.GcsToolCase):
    def test_an_object_that_is_written_over(self) -> None:
        message = self.write()
        self.assertEqual([(one.settlement or {})["state"] for one in self.gate.watch().changed], ["settled"])
        self.put("theirs")
        self.assertEqual((self.gate.look(message.artifact["effect_id"]).settlement or {})["state"], "reversed")


class Calendar(calendar_tests.CalendarToolCase):
    def test_an_event_that_is_deleted(self) -> None:
        message = self.book()
        self.gate.watch()
        self.control.action("delete", event=message.artifact["result"]["id"])
        self.assertEqual((self.gate.look(message.artifact["effect_id"]).settlement or {})["detail"], "cancelled")


class Resend(resend_tests.ResendToolCase):
    def test_a_mail_that_bounces(self) -> None:
        message = self.mail(self.tool(full_access=True))
        self.assertEqual([(one.settlement or {})["state"] for one in self.gate.watch().changed], ["pending"])
        self.control.action("event", mail=message.artifact["result"]["id"], what="bounced")
        outcome = self.gate.look(message.artifact["effect_id"])
        self.assertEqual((outcome.settlement or {})["state"], "failed")

    def test_a_key_that_only_sends_is_not_asked(self) -> None:
        self.mail(self.tool(api_key=resend_tests.SENDING))
        self.assertEqual(self.gate.watch().looked, 0)


if __name__ == "__main__":
    unittest.main()
