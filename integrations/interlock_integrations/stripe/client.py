"""The Stripe client that gated tools use: the official one, on this package's transport, without retries."""

from __future__ import annotations

import os
from datetime import timedelta

import stripe

from interlock_tools import DefinitionError

from ..declaring import gate_from_environment as gate_from_environment
from ..transport import CONNECT_TIMEOUT_S, READ_TIMEOUT_S, TCP_USER_TIMEOUT_S, new_session

SEND_TIMEOUT = timedelta(seconds=TCP_USER_TIMEOUT_S + 90)
"""Longest time from hand-over until a request has landed at Stripe or never will: what the kernel may still deliver of
a dead process's request, and 90 s for Stripe itself (its SDK gives a request 80 s). Proxies that hold requests come on
top."""

DEDUPES = timedelta(hours=24)
"""How long Stripe remembers an idempotency key (API reference, "Idempotent requests")."""

TEST_KEYS = ("sk_test_", "rk_test_")


def gated_client(client: stripe.StripeClient, *, live: bool = False) -> stripe.StripeClient:
    """Return a client with the same key, account, version and addresses on the gated transport, without retries.

    The given client is left as it is. Its HTTP client's proxy and certificate
    check are taken over; a session or another HTTP library of its own is not.

    Args:
        client: the application's client.
        live: the application says explicitly that real money may move.

    Raises:
        DefinitionError: the key is not one of test mode, and ``live`` is not True.
    """
    options = client._requestor._options
    check_key(options.api_key, live)
    theirs = client._requestor._client
    http_client = stripe.RequestsClient(
        timeout=(CONNECT_TIMEOUT_S, READ_TIMEOUT_S),
        session=new_session(),
        verify_ssl_certs=getattr(theirs, "_verify_ssl_certs", True),
        proxy=getattr(theirs, "_proxy", None),
    )
    return stripe.StripeClient(
        options.api_key or "",
        stripe_account=options.stripe_account,
        stripe_context=options.stripe_context,
        stripe_version=options.stripe_version,
        base_addresses=options.base_addresses,
        max_network_retries=0,
        http_client=http_client,
    )


def check_key(key: str | None, live: bool) -> None:
    """Raise ``DefinitionError`` unless it is a key of test mode, or ``live`` is True. The key is not repeated."""
    if live is True or (key or "").startswith(TEST_KEYS):
        return
    raise DefinitionError(
        "this Stripe key is not one of test mode (sk_test_… or rk_test_…); say live=True where real money may move"
    )


def stripe_from_environment(*, live: bool = False) -> stripe.StripeClient:
    """Return a client configured by ``STRIPE_API_KEY`` and, for a sandbox, ``STRIPE_API_BASE``.

    Raises:
        DefinitionError: the key is missing, or is not one of test mode while ``live`` is not True.
    """
    key = os.environ.get("STRIPE_API_KEY")
    if not key:
        raise DefinitionError("set STRIPE_API_KEY, or pass client=stripe.StripeClient(...)")
    check_key(key, live)
    base = os.environ.get("STRIPE_API_BASE")
    return stripe.StripeClient(key, base_addresses={"api": base} if base else None, max_network_retries=0)
