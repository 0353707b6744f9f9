"""``create_refund`` against the Stripe sandbox over HTTP: what it rests on, how it recovers, what it refuses."""

from __future__ import annotations

import json
import os
import sys
import unittest
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import stripe
from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from stripe_support import KEY, StripeToolCase

from interlock_integrations.stripe import CreateRefund, StripeToolkit, gated_client, stripe_from_environment
from interlock_tools import BadArguments, Budget, DefinitionError, Gate, Grant, JournalUnusable
from interlock_tools.core.entries import Kind
from interlock_tools.receipts.file import open_receipt
from scenarios.sandbox import SandboxProcess

REFUNDS = "/v1/refunds"


class RefundCase(StripeToolCase):
    def setUp(self) -> None:
        super().setUp()
        self.payment = self.pay()

    def refund(self, gate: Gate | None = None, *, amount: int = 2000, **options: Any) -> ToolMessage:
        return self.call(self.tool("create_refund", gate, **options), payment_intent=self.payment, amount=amount)

    def by_hand(self, amount: int = 500, **params: Any) -> Any:
        return self.v1.refunds.create({"payment_intent": self.payment, "amount": amount, **params})  # type: ignore[typeddict-item]


class OneRefund(RefundCase):
    def test_it_is_made_once_and_found_again(self) -> None:
        tool = self.tool("create_refund")
        first = self.call(tool, payment_intent=self.payment, amount=2000, reason="duplicate")
        second = self.call(tool, payment_intent=self.payment, amount=2000, reason="duplicate")
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual(first.text, second.text)
        (made,) = self.refunds()
        self.assertEqual((made["amount"], made["reason"]), (2000, "duplicate"))
        effect_id = first.artifact["effect_id"]
        self.assertEqual((made["metadata"], made["idempotency_key"]), ({"interlock_effect_id": effect_id}, effect_id))
        result = first.artifact["result"]
        self.assertEqual((result["id"], result["status"], result["currency"]), (made["id"], "succeeded", "usd"))
        self.assert_every_request_was_journalled(REFUNDS)

    def test_one_send_is_one_request_whatever_the_client_s_retries(self) -> None:
        for retries in (None, 0, 5):
            with self.subTest(max_network_retries=retries):
                self.control.reset()
                self.payment = self.pay()
                self.control.fault("apply_then_status", "POST", REFUNDS, status=503)
                options = {} if retries is None else {"max_network_retries": retries}
                message = self.refund(self.open_gate(), client=self.client(**options), name=f"stripe{retries}")
                self.assert_outcome(message, "COMMITTED", "resend")
                self.assertEqual((self.control.count("POST", REFUNDS), len(self.refunds())), (2, 1))
                self.assert_every_request_was_journalled(REFUNDS)

    def test_the_application_s_client_is_left_as_it_is(self) -> None:
        client = self.client(max_network_retries=2, stripe_account="acct_1")
        ours = gated_client(client)
        self.assertEqual(client._requestor._options.max_network_retries, 2)
        self.assertEqual(ours._requestor._options.max_network_retries, 0)
        self.assertEqual(
            ours._requestor._options.to_dict() | {"max_network_retries": 2}, client._requestor._options.to_dict()
        )
        client.v1.refunds.create({"payment_intent": self.payment, "amount": 1}, {"stripe_account": ""})

    def test_two_approved_requests_about_one_payment(self) -> None:
        tool = self.tool("create_refund", request=None, other_refunds="allow")
        for case in ("1", "2", "1"):
            message = self.call(tool, {"configurable": {"request_id": case}}, payment_intent=self.payment, amount=2000)
            self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual(len(self.refunds()), 2)

    def test_another_amount_under_the_same_request(self) -> None:
        tool = self.tool("create_refund")
        self.call(tool, payment_intent=self.payment, amount=2000)
        message = self.call(tool, payment_intent=self.payment, amount=1000)
        self.assert_outcome(message, "REFUSED:already_done")
        self.assertTrue(message.text.startswith("Done"))

    def test_what_stripe_says_of_it_is_passed_on(self) -> None:
        self.payment = self.pay(payment_method="pm_card_pendingRefund")
        self.assertIn("Stripe's status of the refund: pending.", self.refund().text)

    def test_a_payment_that_is_not_there(self) -> None:
        self.payment = "pi_none"
        message = self.refund()
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("payment: is not found, must be found", message.text)
        self.assertEqual(self.control.count("POST", REFUNDS), 0)

    def test_arguments(self) -> None:
        tool = self.tool("create_refund")
        good = {"payment_intent": self.payment, "amount": 2000}
        for bad in (
            {"amount": 0},
            {"amount": 100_000_000},
            {"amount": 20.0},
            {"amount": "2000"},
            {"reason": "because"},
            {"payment_intent": "ch_1"},
            {"payment_intent": "pi_1:2"},
            {"payment_intent": "pi_1\n"},
            {"idempotency_key": "k"},
            {"currency": "usd"},
        ):
            with self.subTest(bad), self.assertRaises(BadArguments):
                tool.invoke({**good, **bad})
        self.assertEqual(self.control.requests(), [])


class Premises(RefundCase):
    def test_an_earlier_refund_by_others(self) -> None:
        self.by_hand(500)
        message = self.refund()
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("refunded_by_others: is 500, must be 0", message.text)
        self.assert_outcome(self.refund(name="lenient", other_refunds="allow"), "COMMITTED", "send")

    def test_a_failed_refund_by_others_does_not_count(self) -> None:
        made = self.by_hand(500)
        self.control.action("refund_status", refund=made.id, status="failed")
        self.assert_outcome(self.refund(), "COMMITTED", "send")

    def test_a_refund_by_hand_after_the_decision(self) -> None:
        for other_refunds in ("refuse", "allow"):
            with self.subTest(other_refunds):
                self.payment = self.pay()
                tool = self.tool("create_refund", name=other_refunds, other_refunds=other_refunds)
                tool.effect.propose("case-1", self.payment, 2000, "requested_by_customer")
                self.by_hand(500)
                message = self.call(tool, payment_intent=self.payment, amount=2000)
                self.assert_outcome(message, "REFUSED:stale_premise")
                self.assertIn("refunded_by_others: was 0, now 500", message.text)
        self.assertEqual({refund["amount"] for refund in self.refunds()}, {500})

    def test_a_chargeback(self) -> None:
        self.control.action("chargeback", payment=self.payment)
        self.assert_outcome(self.refund(), "REFUSED:premise_not_met")
        self.control.action("close_dispute", payment=self.payment, won=True)
        self.assert_outcome(self.refund(name="later"), "COMMITTED", "send")

    def test_an_inquiry_is_no_chargeback(self) -> None:
        self.control.action("inquiry", payment=self.payment)
        self.assert_outcome(self.refund(), "COMMITTED", "send")

    def test_every_page_counts(self) -> None:
        for _ in range(120):
            self.by_hand(1)
        message = self.refund(other_refunds="allow")
        self.assert_outcome(message, "COMMITTED", "send")
        decided = open_receipt(message.artifact["receipt"]).records[0].entry.body
        self.assertEqual(decided["facts"]["refunded_by_others"], 120)

    def test_approvals(self) -> None:
        self.assert_outcome(self.refund(name="none", approvals=lambda payment_intent: None), "REFUSED:not_allowed")
        small = lambda amount, request: Grant(f"for {request}", max_amount=1000)  # noqa: E731
        self.assert_outcome(self.refund(name="small", approvals=small), "REFUSED:not_allowed")
        self.assert_outcome(self.refund(name="fits", approvals=small, amount=1000), "COMMITTED", "send")

    def test_an_approver_who_saw_something_else(self) -> None:
        saw = {"refunded_by_others": 0, "chargebacks": [], "payment": "found"}
        self.by_hand(500)
        message = self.refund(other_refunds="allow", approvals=lambda request: Grant("a", facts=saw))
        self.assert_outcome(message, "REFUSED:stale_premise")

    def test_the_application_s_own_facts(self) -> None:
        order = {"open": True}
        options: dict[str, Any] = {
            "premises": lambda request: {"order_open": order["open"]},
            "expect": {"order_open": True},
        }
        self.assert_outcome(self.refund(name="open", **options), "COMMITTED", "send")
        order["open"] = False
        self.payment = self.pay()
        self.assert_outcome(self.refund(name="closed", **options), "REFUSED:premise_not_met")
        self.assertRaises(DefinitionError, self.tool, "create_refund", name="x", premises=lambda colour: {})

    def test_a_budget(self) -> None:
        budget = lambda request, amount: Budget(request, amount, 3000)  # noqa: E731
        tool = self.tool("create_refund", budget=budget)
        self.call(tool, payment_intent=self.payment, amount=2000)
        message = self.call(tool, payment_intent=self.pay(), amount=2000)
        self.assert_outcome(message, "REFUSED:over_budget")

    def test_a_service_that_cannot_be_read(self) -> None:
        self.control.fault("answer", "GET", status=500, times=1)
        message = self.refund()
        self.assert_outcome(message, "IN_FLIGHT:unreadable")
        self.assertEqual(self.control.count("POST", REFUNDS), 0)
        self.assert_outcome(self.refund(name="again"), "COMMITTED", "send")


class UnknownEnds(RefundCase):
    """A send came back without an answer, or with one that says nothing."""

    def revoked_after_the_send(self) -> Any:
        """Approvals that are in force until the first request has left."""
        return lambda request: None if self.control.count("POST", REFUNDS) else Grant("a")

    def test_the_own_refund_is_no_premise(self) -> None:
        self.control.fault("apply_then_cut", "POST", REFUNDS)
        self.assert_outcome(self.refund(), "COMMITTED", "resend")
        self.assertEqual(len(self.refunds()), 1)
        self.assert_every_request_was_journalled(REFUNDS)

    def test_what_never_arrived_is_sent_again_under_the_same_key(self) -> None:
        self.control.fault("cut_before", "POST", REFUNDS)
        self.assert_outcome(self.refund(), "COMMITTED", "resend")
        self.assertEqual(len(self.refunds()), 1)
        self.assert_every_request_was_journalled(REFUNDS)

    def test_it_landed_and_the_approval_is_gone(self) -> None:
        self.control.fault("apply_then_cut", "POST", REFUNDS)
        self.assert_outcome(self.refund(approvals=self.revoked_after_the_send()), "COMMITTED", "lookup")
        self.assertEqual(self.control.count("POST", REFUNDS), 1)

    def test_it_landed_and_failed_since(self) -> None:
        self.payment = self.pay(payment_method="pm_card_refundFail")
        self.control.fault("apply_then_cut", "POST", REFUNDS)

        def gone(request: str) -> Grant | None:
            if not self.control.count("POST", REFUNDS):
                return Grant("a")
            self.control.advance(10)
            return None

        message = self.refund(approvals=gone)
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertIn("status of the refund: failed", message.text)

    def test_it_never_arrived_and_the_approval_is_gone(self) -> None:
        self.control.fault("cut_before", "POST", REFUNDS)
        options: dict[str, Any] = {"approvals": self.revoked_after_the_send(), "send_timeout": timedelta(seconds=0.4)}
        tool = self.tool("create_refund", **options)
        message = self.call(tool, payment_intent=self.payment, amount=2000)
        self.assert_outcome(message, "IN_FLIGHT:waiting")
        self.assertIsNotNone(message.artifact["retry_after_ms"])
        outcome = self.gate.settle(message.artifact["effect_id"], wait=20)
        self.assertEqual(str(outcome), "REFUSED:not_allowed")
        self.assertEqual(self.refunds(), [])

    def test_it_is_found_behind_the_first_page(self) -> None:
        self.control.fault("apply_then_cut", "POST", REFUNDS)

        def gone(request: str) -> Grant | None:
            if not self.control.count("POST", REFUNDS):
                return Grant("a")
            if len(self.refunds()) == 1:
                for _ in range(130):
                    self.by_hand(1)
            return None

        message = self.refund(approvals=gone)
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual(message.artifact["result"]["amount"], 2000)

    def test_a_full_refund_by_hand_after_ours_was_lost(self) -> None:
        """Stripe says "already refunded" to nobody but us: the gate does not even ask."""
        self.control.fault("cut_before", "POST", REFUNDS)
        hand = self.between(lambda: self.v1.refunds.create({"payment_intent": self.payment}))
        message = self.refund(premises=hand, send_timeout=timedelta(seconds=0.2), wait=20)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertEqual([refund["amount"] for refund in self.refunds()], [10_000])

    def test_a_stored_refusal_closes_it(self) -> None:
        self.control.fault("apply_then_cut", "POST", REFUNDS)
        message = self.refund(amount=20_000)
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertIn("greater than unrefunded amount", message.text)
        self.assertEqual(self.control.count("POST", REFUNDS), 2)

    def test_a_stored_500_that_took_effect(self) -> None:
        self.control.fault("apply_then_status", "POST", REFUNDS, status=500, stored=True)
        self.assert_outcome(self.refund(), "COMMITTED", "lookup")
        self.assertEqual(self.control.count("POST", REFUNDS), 2, "asked twice, and never again")

    def test_a_stored_500_that_did_not(self) -> None:
        told = {"error": {"type": "api_error", "message": "An unknown error occurred."}}
        replayed = {"Idempotent-Replayed": "true"}
        self.control.fault("answer", "POST", REFUNDS, status=500, answer=told, headers=replayed, times=None)
        message = self.refund(send_timeout=timedelta(seconds=0.2), wait=20)
        self.assert_outcome(message, "AMBIGUOUS:stored_error")
        self.assertEqual(self.control.count("POST", REFUNDS), 1)
        self.assertEqual([outcome.effect_id for outcome in self.gate.pending()], [message.artifact["effect_id"]])

    def test_a_key_that_is_in_use(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=409, times=2)
        self.assert_outcome(self.refund(), "COMMITTED", "resend")
        self.assertEqual((self.control.count("POST", REFUNDS), len(self.refunds())), (3, 1))

    def test_a_rate_limit(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=429, times=2)
        message = self.refund()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual(self.control.count("POST", REFUNDS), 3)
        self.assert_every_request_was_journalled(REFUNDS)

    def test_a_rate_limit_that_lasts(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=429, headers={"Retry-After": "600"}, times=None)
        message = self.refund()
        self.assert_outcome(message, "IN_FLIGHT:rate_limited")
        self.assertEqual(message.artifact["retry_after_ms"], 600_000)
        self.control.clear_faults()
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.refunds())), ("COMMITTED", 1))

    def test_a_key_that_an_older_version_used_with_another_body(self) -> None:
        tool = self.tool("create_refund", send_timeout=timedelta(seconds=0.2), wait=20)
        effect_id = tool.effect.effect_id("case-1", self.payment, 2000, "requested_by_customer")
        self.by_hand(1, metadata={"older": "version"})
        theirs = {"payment_intent": self.payment, "amount": 2000, "metadata": {"interlock_effect_id": effect_id}}
        self.v1.refunds.create(theirs, {"idempotency_key": effect_id})  # type: ignore[arg-type]
        lenient = self.tool("create_refund", name="stripe2", other_refunds="allow")
        self.assertNotEqual(lenient.effect.effect_id("case-1", self.payment, 2000, "duplicate"), effect_id)
        with mock.patch.dict(tool.effect.definition.expect, {"refunded_by_others": 1}):  # type: ignore[arg-type]
            message = self.call(tool, payment_intent=self.payment, amount=2000)
        self.assert_outcome(message, "COMMITTED", "lookup")

    def test_a_refused_connection_is_tried_again_on_the_next_call(self) -> None:
        sandbox = SandboxProcess("stripe").start()
        self.addCleanup(sandbox.stop)
        payment = sandbox.control.action("pay")["id"]
        client = stripe.StripeClient(KEY, base_addresses={"api": sandbox.url})
        tool = self.tool("create_refund", client=client)
        tool.effect.propose("case-1", payment, 2000, "requested_by_customer")
        sandbox.stop()
        message = self.call(tool, payment_intent=payment, amount=2000)
        self.assert_outcome(message, "IN_FLIGHT:unreadable")
        self.assertNotIn(Kind.DISPATCHED, [entry.kind for entry in self.gate.history(message.artifact["effect_id"])])


class Configuration(RefundCase):
    def environment(self, **changes: str | None) -> Any:
        wanted: dict[str, str | None] = {
            "STRIPE_API_KEY": KEY,
            "STRIPE_API_BASE": self.sandbox.url,
            "INTERLOCK_JOURNAL": str(self.folder / "environment.db"),
            **changes,
        }
        kept = {name: value for name, value in os.environ.items() if name not in wanted}
        return mock.patch.dict(os.environ, {**kept, **{n: v for n, v in wanted.items() if v is not None}}, clear=True)

    def test_a_tool_from_the_environment_recovers_what_was_left_open(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=429, headers={"Retry-After": "600"}, times=1)
        with self.environment():
            first = CreateRefund(request=lambda: "case-1")
            message = self.call(first, payment_intent=self.payment, amount=2000)
            self.assert_outcome(message, "IN_FLIGHT:rate_limited")
            first.effect._gate.close()
            idle = CreateRefund(recover=False)
            self.addCleanup(idle.effect._gate.close)
            self.assertEqual(self.refunds(), [])
            second = CreateRefund()
            self.addCleanup(second.effect._gate.close)
        self.assertEqual(len(self.refunds()), 1)

    def test_what_is_missing(self) -> None:
        for name in ("STRIPE_API_KEY", "INTERLOCK_JOURNAL"):
            with self.environment(**{name: None}), self.assertRaisesRegex(DefinitionError, name):
                CreateRefund()
        with self.environment(INTERLOCK_JOURNAL="mysql://x"), self.assertRaises(JournalUnusable):
            CreateRefund()

    def test_keys_of_live_mode_are_refused(self) -> None:
        for key in ("sk_live_Secret123", "rk_live_Secret123", "sk_org_live_Secret123", "something_else", ""):
            with self.subTest(key):
                client = stripe.StripeClient(key, base_addresses={"api": self.sandbox.url})
                with self.assertRaises(DefinitionError) as caught:
                    StripeToolkit(self.gate, client=client)
                self.assertNotIn("Secret", str(caught.exception))
                with self.environment(STRIPE_API_KEY=key), self.assertRaises(DefinitionError):
                    stripe_from_environment()
        self.assertEqual(self.gate.effects, ())
        live = stripe.StripeClient("sk_live_Secret123", base_addresses={"api": self.sandbox.url})
        self.assertEqual(len(StripeToolkit(self.gate, client=live, live=True).get_tools()), 3)
        self.assertRaises(DefinitionError, gated_client, live, live="yes")  # type: ignore[arg-type]

    def test_the_key_is_nowhere(self) -> None:
        self.control.fault("answer", "POST", REFUNDS, status=401, answer={"error": {"type": "x", "message": KEY}})
        toolkit = self.toolkit(tools="create_refund")
        (tool,) = toolkit.get_tools()
        message = self.call(tool, payment_intent=self.payment, amount=2000)  # type: ignore[arg-type]
        self.assertTrue(message.text)
        seen = [message.text, json.dumps(message.artifact), repr(tool), repr(toolkit), str(tool)]
        seen += [json.dumps(tool.to_json()), repr(tool.tool_call_schema.model_json_schema())]  # type: ignore[union-attr]
        seen += [path.read_bytes().decode("latin-1") for path in self.folder.rglob("*") if path.is_file()]
        self.assert_outcome(message, "REFUSED:rejected")
        for text in seen:
            self.assertNotIn("NotToBeSeen", text)

    def test_a_second_toolkit_on_one_gate_needs_another_name(self) -> None:
        self.toolkit()
        self.assertRaises(DefinitionError, self.toolkit)
        self.toolkit(name="stripe.other_account", tools=["create_refund", "create_refund"])
        wanted = ("stripe.refund", "stripe.credit", "stripe.transfer", "stripe.other_account.refund")
        self.assertEqual(self.gate.effects, wanted)

    def test_tools_that_are_not_there(self) -> None:
        self.assertRaises(DefinitionError, self.toolkit, tools=["create_refunds"])
        self.assertRaises(DefinitionError, self.toolkit, approvals={"refund": lambda: None})
        with self.assertRaisesRegex(DefinitionError, "payment_intent"):
            self.toolkit(name="x", approvals=lambda payment_intent: None)
        self.assertEqual(len(self.toolkit(name="y", approvals={"create_refund": lambda payment_intent: None}).tools), 3)


if __name__ == "__main__":
    unittest.main()
