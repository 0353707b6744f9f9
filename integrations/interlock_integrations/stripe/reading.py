"""What the tools of this package share when they read Stripe."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from typing import Any

import stripe

from interlock_tools.errors import describe

from ..declaring import with_more as with_more
from ..transport import root_cause

EFFECT_ID = "interlock_effect_id"
"""Name of the metadata entry that holds the effect's id on everything that a gated tool makes."""

PAGE = 100
"""Largest page that Stripe gives (API reference, "Pagination")."""

MAX_OBJECTS = 10_000
"""Bound on one listing. Past it nothing can be said, and the reading fails."""


def every(listing: Callable[..., Any], **filters: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a listing, every page, newest first, as plain dicts.

    Raises:
        ConnectionError: Stripe cannot be reached.
        RuntimeError: there are more than ``MAX_OBJECTS``, or the answer is no list.
        stripe.StripeError: Stripe's answer is an error.
    """
    with reachable():
        yield from _every(listing, filters)


def _every(listing: Callable[..., Any], filters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    page = listing({**filters, "limit": PAGE})
    if getattr(page, "object", None) != "list":
        raise RuntimeError("Stripe's answer is not a list, so it does not say that something is absent")
    for count, item in enumerate(page.auto_paging_iter()):
        if count >= MAX_OBJECTS:
            raise RuntimeError(f"more than {MAX_OBJECTS} objects; what is not among them may still be there")
        yield item.to_dict()


@contextlib.contextmanager
def reachable() -> Generator[None, None, None]:
    """Say in plain words that Stripe cannot be reached. Raises ``ConnectionError`` for the SDK's own."""
    try:
        yield
    except stripe.APIConnectionError as error:
        raise ConnectionError(f"Stripe cannot be reached: {describe(root_cause(error))}") from error


def is_missing(error: stripe.InvalidRequestError) -> bool:
    """Whether Stripe says that the object which a reading is about does not exist."""
    return error.code == "resource_missing"


def chargebacks(disputes: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the ids of those disputes that stand for money that was taken back.

    An inquiry does not, nor what was won back. A status that Stripe adds one day does.
    """
    statuses = {str(dispute["id"]): str(dispute["status"]) for dispute in disputes}
    return sorted(name for name, status in statuses.items() if not status.startswith("warning_") and status != "won")


def effect_of(item: Mapping[str, Any]) -> str | None:
    """Return the id of the effect that made an object, or None if no gated tool did."""
    found = (item.get("metadata") or {}).get(EFFECT_ID)
    return found if isinstance(found, str) else None


def evidence(item: Mapping[str, Any], *names: str) -> dict[str, Any] | None:
    """Return those fields of an object that are kept as evidence; None if it has no id and so proves nothing."""
    if not item.get("id"):
        return None
    return {name: item[name] for name in ("id", "object", *names) if item.get(name) is not None}
