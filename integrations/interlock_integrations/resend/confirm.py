"""Asks Resend whether it agrees with a receipt.

Strong: an email that Resend keeps, with its id, recipients, subject and time,
none of which the account can edit. It says that this email was accepted; that
this effect did it is shown only where Resend returns the email's tags. Emails
are kept for as long as the account's plan says, so that one is gone proves nothing.
"""

from __future__ import annotations

from resend.exceptions import ResendError

from interlock_tools.receipts.report import ServiceFinding, Subject

from ..confirming import CannotTell, evidence_id, finding, other
from .client import ResendClient, resend_from_environment
from .finding import EFFECT_ID, reachable


def confirm(subject: Subject, client: ResendClient | None = None) -> ServiceFinding:
    """Ask Resend about an email.

    Args:
        subject: what the receipt is about.
        client: by default configured by ``RESEND_API_KEY``, which must be one with full access.

    Raises:
        CannotTell, ResendError, ConnectionError: Resend cannot be asked, or does not tell.
    """
    client = client if client is not None else resend_from_environment()
    wanted = evidence_id(subject)
    if wanted is None:
        raise CannotTell("the receipt names no email")
    try:
        with reachable():
            email = client.email(wanted)
    except ResendError as error:
        if str(error.code) == "404":
            raise CannotTell(f"Resend does not show email {wanted}; it keeps emails for a limited time") from error
        raise
    payload = subject.payload
    to = email.get("to")
    recipients = sorted(str(one).lower() for one in (to if isinstance(to, list) else [to]))
    unlike = [
        name
        for name, ours, theirs in (
            ("recipient", [str(payload.get("to")).lower()], recipients),
            ("sender", payload.get("sender"), email.get("from")),
            ("subject", payload.get("subject"), email.get("subject")),
        )
        if ours != theirs and isinstance(payload.get({"recipient": "to"}.get(name, name)), str)
    ]
    if unlike:
        return other(f"Resend's email {wanted} has another {' and '.join(unlike)}.")
    tags = {str(tag.get("name")): str(tag.get("value")) for tag in email.get("tags") or [] if isinstance(tag, dict)}
    if tags.get(EFFECT_ID, subject.effect_id) != subject.effect_id:
        return other(f"Resend's email {wanted} carries the tag of another effect.")
    tagged = " and carries this effect's tag" if EFFECT_ID in tags else "; whose effect it is, it does not say"
    return finding(subject, True, f"Resend accepted email {wanted} at {email.get('created_at')}{tagged}.")
