"""What the hand-written Stripe arms share: the official SDK, and the reads that a careful check makes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import stripe
import tenacity

from interlock_integrations.stripe import gated_client, stripe_from_environment
from interlock_integrations.transport import sending
from scenarios.suite.hand import Files, Instants, responded

CASE = "case"
"""Name of the metadata entry by which the hand-written arms find what they made."""

TRANSIENT = (stripe.APIConnectionError, stripe.APIError, stripe.RateLimitError)
"""What is worth another try under the same idempotency key."""


def client() -> stripe.StripeClient:
    """The official client. It is put on a transport that lets a test kill the process at an exact instant."""
    return gated_client(stripe_from_environment())


def create(call: Callable[[], Any]) -> dict[str, Any]:
    """Make one request that creates something; return the object."""
    with sending(Instants()):
        made = call()
    responded()
    found: dict[str, Any] = made.to_dict()
    return found


def with_retries(function: Callable[[], Any]) -> Any:
    """Try again what failed on the way, three times in all, as one does with an idempotency key."""
    again = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(TRANSIENT),
        stop=tenacity.stop_after_attempt(3),
        wait=tenacity.wait_exponential(0.2, max=2),
        reraise=True,
    )
    return again(function)


def refunds_of(v1: Any, payment: str) -> list[dict[str, Any]]:
    """Every refund of a payment, every page, every status."""
    listed = v1.refunds.list({"payment_intent": payment, "limit": 100})
    return [refund.to_dict() for refund in listed.auto_paging_iter()]


def chargebacks_of(v1: Any, **of: str) -> list[str]:
    """Disputes that took the money back; an inquiry does not."""
    listed = v1.disputes.list({**of, "limit": 100}).auto_paging_iter()
    found = [dispute.to_dict() for dispute in listed]
    return sorted(one["id"] for one in found if not one["status"].startswith("warning") and one["status"] != "won")


def refunded_by_others(refunds: list[dict[str, Any]], case: str) -> int:
    """What other refunds of the payment come to, in cents."""
    return sum(
        refund["amount"]
        for refund in refunds
        if refund["metadata"].get(CASE) != case and refund["status"] not in ("failed", "canceled")
    )


def own(objects: list[dict[str, Any]], case: str) -> dict[str, Any] | None:
    """What this case made, if anything."""
    return next((one for one in objects if one["metadata"].get(CASE) == case), None)


def told(kind: str, found: Mapping[str, Any]) -> str:
    """A sentence about an object that was made."""
    return f"{kind} {found['id']} over {found['amount']} is there; its status is {found.get('status', 'made')}."


def blindly(files: Files, kind: str, send: Callable[[], Any]) -> tuple[str, dict[str, Any]]:
    """Send, under a key, and again what failed on the way; say what Stripe said."""
    try:
        made = with_retries(lambda: create(send))
    except TRANSIENT as error:
        return files.finish("unknown", f"Stripe did not answer: {type(error).__name__}.")
    except stripe.StripeError as error:
        return files.finish("not_landed", f"Stripe refused it: {error.user_message}")
    return files.finish("landed", told(kind, made), id=made["id"])


def carefully(
    files: Files,
    kind: str,
    decided: Mapping[str, Any],
    find: Callable[[], dict[str, Any] | None],
    facts: Callable[[], dict[str, Any]],
    send: Callable[[], Any],
) -> tuple[str, dict[str, Any]]:
    """Look first; then check all that the decision saw; then send under a key. Each check is logged with its values.

    The order is what makes it right: what is there already is never sent again,
    whatever has changed since; what is not there is sent only while everything
    is as it was decided on; and the key closes the gap between the look and the send for a day.
    """

    def once() -> tuple[str, dict[str, Any]]:
        found = find()
        if found is not None:
            return files.finish("landed", told(kind, found), id=found["id"], status=found.get("status"))
        now = facts()
        files.log("checked", facts=now, as_decided=now == decided["facts"])
        if now["approval"] is None or now != decided["facts"]:
            return files.finish("not_landed", f"Not done: {now} is not what was decided on.")
        made = create(send)
        return files.finish("landed", told(kind, made), id=made["id"])

    try:
        done: tuple[str, dict[str, Any]] = with_retries(once)
    except TRANSIENT as error:
        return files.finish("unknown", f"Stripe did not answer: {type(error).__name__}.")
    except stripe.StripeError as error:
        return files.finish("not_landed", f"Stripe refused it: {error.user_message}")
    return done
