"""The tool ``send_email``, made in seven ways."""

from __future__ import annotations

import json
import os
from typing import Any

import requests
from langchain_core.tools import BaseTool
from resend.exceptions import ResendError

from interlock_integrations.resend import ResendClient, ResendToolkit
from interlock_integrations.resend.client import ADDRESS
from interlock_integrations.transport import sending
from interlock_tools import Gate
from interlock_tools.langchain import effect_tool
from scenarios.suite.gated import SEND_TIMEOUT, approvals, gate_of, options, recovered
from scenarios.suite.hand import Again, Files, Instants, hand_tool, responded, with_retries
from scenarios.suite.model import Arm, Work

Said = tuple[str, dict[str, Any]]
SENDER = os.environ.get("RESEND_FROM", "Support <support@example.com>")
SENDING_KEY, FULL_KEY = "re_sending_0123456789abcdef", "re_full_0123456789abcdef"
"""Keys of the sandbox; live ones come from RESEND_API_KEY."""

PROBE_FROM = "probe@unverified.invalid"


def refund_status(work: Work) -> str:
    """What has become of the refund that the mail announces, in the application's own books."""
    return str(json.loads((work.path / "refund.json").read_text(encoding="utf-8"))["status"])


def client(key: str) -> ResendClient:
    """The official client's requests, on a transport that lets a test kill the process at an instant."""
    base = os.environ.get("RESEND_API_URL")
    return ResendClient(key if base else os.environ["RESEND_API_KEY"], base or ADDRESS)


def mail_of(to: str, subject: str, text: str) -> dict[str, Any]:
    return {"from": SENDER, "to": [to], "subject": subject, "text": text}


def deliver(account: ResendClient, mail: dict[str, Any], key: str) -> str:
    """Send once; the email's id. Raises ``ResendError``, and ``Again`` for what says nothing."""
    try:
        with sending(Instants()):
            made = account.send(mail, key)
    except ResendError as error:
        if int(error.code) >= 500 or error.error_type == "concurrent_idempotent_requests":
            raise Again(f"Resend answered {error.code}") from error
        raise
    except (requests.RequestException, ConnectionError) as error:
        raise Again(f"Resend did not answer: {type(error).__name__}") from error
    responded()
    return str(made["id"])


def no_check(work: Work) -> BaseTool:
    """Save the decision and send it with an idempotency key made of the case, after a restart again."""
    files, account = Files(work), client(SENDING_KEY)

    def send_email(to: str, subject: str, text: str) -> Said:
        """Send an email."""
        decided = files.decision(lambda: {"to": to, "subject": subject, "text": text})
        mail = mail_of(decided["to"], decided["subject"], decided["text"])
        return _sent(files, account, mail, work)

    return hand_tool("send_email", send_email)


def _sent(files: Files, account: ResendClient, mail: dict[str, Any], work: Work) -> Said:
    try:
        name = with_retries(lambda: deliver(account, mail, f"mail:{work.case}"), tries=5)
    except ResendError as error:
        return files.finish("not_landed", f"Resend refused it: {error.code} {error.error_type}")
    except Again as error:
        return files.finish("unknown", f"Not known: {error}.")
    return files.finish("landed", f"Sent: {name}.", id=name)


def _used(account: ResendClient, key: str) -> bool:
    """Ask about the key by a request that Resend refuses: 409 for a used one, 403 for a fresh one. Else ``Again``."""
    body = {"from": PROBE_FROM, "to": ["delivered@resend.dev"], "subject": "Probe", "text": "Probe"}
    try:
        account.probe(body, key)
    except ResendError as error:
        if error.error_type == "invalid_idempotent_request":
            return True
        if int(error.code) == 403:
            return False
        raise Again(f"the probe was answered {error.code}") from error
    except (requests.RequestException, ConnectionError) as error:
        raise Again(f"Resend did not answer: {type(error).__name__}") from error
    raise Again("the probe was accepted")


def hand_check(work: Work) -> BaseTool:
    """Ask about the key first: used means sent. If not, the refund must still be good; then send under the key.

    With a key that only sends there is no other way to look; this one is not
    documented, and careful people use it all the same.
    """
    files, account = Files(work), client(SENDING_KEY)

    def send_email(to: str, subject: str, text: str) -> Said:
        """Send an email."""
        decided = files.decision(lambda: {"to": to, "subject": subject, "text": text, "approval": files.approval()})
        mail, key = mail_of(decided["to"], decided["subject"], decided["text"]), f"mail:{work.case}"
        try:
            used = with_retries(lambda: _used(account, key), tries=5)
        except Again as error:
            return files.finish("unknown", f"Not known: {error}.")
        status = refund_status(work)
        files.log("checked", refund=status, key_used=used, approval=files.approval())
        if used:
            return files.finish("landed", "Sent already: its key is used.", id=key)
        if status != "succeeded":
            return files.finish("not_landed", f"Not sent: the refund is {status}.")
        return _sent(files, account, mail, work)

    return hand_tool("send_email", send_email)


def hand_check_noprobe(work: Work) -> BaseTool:
    """The refund must still be good; then send under the key. Whether it was sent before cannot be asked."""
    files, account = Files(work), client(SENDING_KEY)

    def send_email(to: str, subject: str, text: str) -> Said:
        """Send an email."""
        decided = files.decision(lambda: {"to": to, "subject": subject, "text": text, "approval": files.approval()})
        status = refund_status(work)
        files.log("checked", refund=status, approval=files.approval())
        if status != "succeeded":
            return files.finish("not_landed", f"Skipped: the refund is {status}.")
        return _sent(files, account, mail_of(decided["to"], decided["subject"], decided["text"]), work)

    return hand_tool("send_email", send_email)


def _gated(work: Work, key: str, **lookup: Any) -> BaseTool:
    gate = gate_of(work)
    kit = ResendToolkit(
        gate,
        client=client(key),
        sender=SENDER,
        approvals=approvals(work),
        premises=lambda request: {"refund": refund_status(work)},
        expect={"refund": "succeeded"},
        **lookup,
        **options(work),
    )
    return recovered(gate, kit.get_tools())


def interlock(work: Work) -> BaseTool:
    """The toolkit as shipped, with a key that only sends, and the key probe switched on."""
    return _gated(work, SENDING_KEY, probe=True)


def interlock_full_access(work: Work) -> BaseTool:
    """The toolkit as shipped, with a key that may also read, so that emails are listed and read."""
    return _gated(work, FULL_KEY, full_access=True)


def interlock_noprobe(work: Work) -> BaseTool:
    """The toolkit as shipped, with a key that only sends and nothing to look with."""
    return _gated(work, SENDING_KEY)


def interlock_tier3(work: Work) -> BaseTool:
    """The gate over a plain function, declared as a service that offers nothing: neither keys nor a lookup."""
    gate, account = gate_of(work), client(SENDING_KEY)
    tool = effect_tool(_bare(gate, account, work), request_argument="request", name="send_email", wait=16.0)
    return recovered(gate, [tool])


def _bare(gate: Gate, account: ResendClient, work: Work) -> Any:
    @gate.effect(
        "mail.bare",
        key=lambda request, to: f"{request}:{to}",
        premises=lambda request: {"refund": refund_status(work)},
        expect={"refund": "succeeded"},
        allowed=approvals(work),
        send_timeout=SEND_TIMEOUT,
    )
    def send_email(request: str, to: str, subject: str, text: str, *, on_send: Any) -> dict[str, Any]:
        """Send an email."""
        with sending(on_send):
            made = account.send(mail_of(to, subject, text), f"bare:{work.case}")
        return {"id": made["id"]}

    return send_email


REFERENCE = ("crash_after_send", "refused_before_send", "refused_after_send", "past_key_window")

ARMS = {
    "no_check": Arm(no_check, "hand", no_check.__doc__ or ""),
    "hand_check": Arm(hand_check, "hand", hand_check.__doc__ or ""),
    "hand_check_noprobe": Arm(hand_check_noprobe, "hand", hand_check_noprobe.__doc__ or "", REFERENCE),
    "interlock": Arm(interlock, "interlock", interlock.__doc__ or ""),
    "interlock_full_access": Arm(interlock_full_access, "interlock", interlock_full_access.__doc__ or "", REFERENCE),
    "interlock_noprobe": Arm(interlock_noprobe, "interlock", interlock_noprobe.__doc__ or "", REFERENCE),
    "interlock_tier3": Arm(interlock_tier3, "interlock", interlock_tier3.__doc__ or "", REFERENCE),
}
