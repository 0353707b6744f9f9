"""Stripe in test mode: payments, refunds, disputes, billing, Connect, events, idempotency.

What each part reproduces, and where that is known from, stands in its module's docstring. Not reproduced: fees beyond
the standard ones, taxes, coupons, trials, the search API, Stripe.js, acting for connected accounts, webhook delivery.
"""

from scenarios.sandbox.stripe import (  # importing a part registers its endpoints
    connect as connect,
)
from scenarios.sandbox.stripe import (
    credit_notes as credit_notes,
)
from scenarios.sandbox.stripe import (
    events as events,
)
from scenarios.sandbox.stripe import (
    invoice_api as invoice_api,
)
from scenarios.sandbox.stripe import (
    subscriptions as subscriptions,
)
from scenarios.sandbox.stripe import (
    testclocks as testclocks,
)
from scenarios.sandbox.stripe.service import StripeService

SERVICE = StripeService

__all__ = ["SERVICE", "StripeService"]
