"""What Stripe takes as arguments, checked before anything is recorded: by the tools' schemas and by the effects.

An effect can be called without its tool, so it checks for itself.
"""

from __future__ import annotations

from interlock_tools import BadArguments

MAX_AMOUNT = 99_999_999
"""Largest amount that Stripe takes, in the smallest unit (API reference: up to eight digits)."""

PAYMENT_INTENT = r"^pi_[A-Za-z0-9]{1,200}$"
CUSTOMER = r"^cus_[A-Za-z0-9]{1,200}$"
ACCOUNT = r"^acct_[A-Za-z0-9]{1,200}$"
CHARGE = r"^(ch|py)_[A-Za-z0-9]{1,200}$"
CURRENCY = r"^[a-z]{3}$"

REASONS = ("duplicate", "fraudulent", "requested_by_customer")
"""Why a refund is made, as Stripe records it (API reference, create a refund)."""

MAX_DESCRIPTION = 350
"""Longest description of a balance transaction, in characters (API reference)."""


def check_amount(amount: int) -> None:
    """Raise ``BadArguments`` for what is no amount that moves money, in the currency's smallest unit."""
    if type(amount) is not int or not 1 <= amount <= MAX_AMOUNT:
        raise BadArguments(
            f"amount must be a whole number from 1 to {MAX_AMOUNT:,}, in the currency's smallest unit, not {amount!r}"
        )


def check_reason(reason: str) -> None:
    """Raise ``BadArguments`` for a reason that Stripe does not know."""
    if reason not in REASONS:
        raise BadArguments(f"reason must be one of {', '.join(REASONS)}, not {reason!r:.80}")


def check_description(description: str) -> None:
    """Raise ``BadArguments`` for a description that is longer than Stripe takes."""
    if not isinstance(description, str) or len(description) > MAX_DESCRIPTION:
        raise BadArguments(f"description must be text of at most {MAX_DESCRIPTION} characters")
