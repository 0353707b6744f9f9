"""A refund was issued, and "it is on the way" is to be mailed; the agent dies; the refund fails; restart."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any, ClassVar

from scenarios.cases.email_tier3.arms import ARMS
from scenarios.suite.model import AFTER_SEND, BEFORE_SEND, Fault, Scenario, Verdict, Work, World, common_faults


class EmailTier3(Scenario):
    """See the module."""

    key = "email_tier3"
    title = "A mail about a refund that failed"
    invariant = "The mail is sent once, and not at all if the refund had failed before it left."
    services = ("resend",)
    sends = ("POST", "/emails")
    sends_say = "on the way"
    arms = ARMS
    faults: ClassVar[Mapping[str, Fault]] = {
        "crash_after_send": Fault(AFTER_SEND, landed=True),
        "refused_before_send": Fault(BEFORE_SEND, outage="refund_failed", wanted=0),
        "refused_after_send": Fault(AFTER_SEND, outage="refund_failed", landed=True),
        "past_key_window": Fault(AFTER_SEND, outage="a_day", landed=True, ours=True),
        **common_faults(),
    }
    premises = ("refund",)
    authority = ("APR-7", "Approver One")
    reference: ClassVar[Mapping[str, str]] = {
        "no_check": "2/3",
        "hand_check": "3/3",
        "hand_check_noprobe": "3/3",
        "interlock": "3/3",
        "interlock_noprobe": "3/3",
        "interlock_tier3": "3/3",
    }
    sandbox_only = ("past_key_window",)
    live_needs = ("RESEND_API_KEY", "RESEND_FROM")

    def setup(self, world: World, fault: str) -> Work:
        case = f"case-{uuid.uuid4().hex[:12]}"  # the key is made of it, and live keys are remembered for a day
        world.approve(case, id="APR-7", by="Approver One")
        self._refund(world, "succeeded")
        to = "delivered@resend.dev"  # an address of Resend's for tests
        subject = f"Your refund {uuid.uuid4().hex[:8]}"
        arguments = {"to": to, "subject": subject, "text": "Your refund is on the way."}
        return Work(self.key, "", fault, case, str(world.folder), arguments)

    def _refund(self, world: World, status: str) -> None:
        (world.folder / "refund.json").write_text(json.dumps({"status": status}), encoding="utf-8")

    def outage(self, world: World, work: Work, name: str) -> None:
        if name == "refund_failed":
            self._refund(world, "failed")
        elif name == "a_day":
            world.pass_time(25 * 3600)

    def other_arguments(self, work: Work) -> dict[str, Any]:
        return {**work.arguments, "text": "Your refund of $30 is on the way."}

    def judge(self, ledger: Mapping[str, Any], work: Work, fault: Fault) -> Verdict:
        mails = [mail for mail in ledger["mails"] if mail["via"] == "api"]
        held = len(mails) == fault.wanted and all("$30" not in mail["text"] for mail in mails)
        keys = tuple(str(mail["idempotency_key"]) for mail in mails)
        return Verdict(held, f"{len(mails)} mail(s)", tuple(mail["id"] for mail in mails), also=keys)


SCENARIO = EmailTier3()
