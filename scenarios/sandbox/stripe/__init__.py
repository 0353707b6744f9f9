"""Stripe in test mode: payments, refunds, disputes, billing, Connect, events, idempotency.

What each part reproduces, and where that is known from, stands in its module's docstring. Not reproduced: fees beyond
the standard ones, taxes, coupons, the search API, Stripe.js, acting for connected accounts, webhook delivery.
"""

from scenarios.sandbox.stripe import events as events  # registers its endpoints
from scenarios.sandbox.stripe.service import StripeService

SERVICE = StripeService

__all__ = ["SERVICE", "StripeService"]
