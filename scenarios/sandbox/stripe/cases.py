"""What tests against the Stripe sandbox have in common. Needs the official SDK."""

from __future__ import annotations

import inspect
import typing
from typing import Any

import stripe
from stripe import StripeClient

from scenarios.sandbox.cases import SandboxCase


class StripeCase(SandboxCase):
    """The official SDK, unmodified, with its retries off, against one sandbox."""

    services = ("stripe",)

    def setUp(self) -> None:
        super().setUp()
        self.client = self.connect("sk_test_x")
        self.v1 = self.client.v1

    def connect(self, key: str) -> StripeClient:
        return StripeClient(key, base_addresses={"api": self.sandbox.url}, max_network_retries=0)

    def pay(self, method: str = "pm_card_visa", amount: int = 10_000, **params: Any) -> Any:
        """A confirmed payment; ``params`` are further parameters of the payment intent."""
        given: Any = {"amount": amount, "currency": "usd", "payment_method": method, "confirm": True, **params}
        return self.v1.payment_intents.create(given)

    def refund(self, intent: Any, amount: int | None = None, key: str | None = None, **params: Any) -> Any:
        given: dict[str, Any] = {"payment_intent": intent.id, **params}
        if amount is not None:
            given["amount"] = amount
        options: Any = {"idempotency_key": key} if key else {}
        return self.v1.refunds.create(given, options)  # type: ignore[arg-type]

    def charge(self, intent: Any) -> Any:
        return self.v1.charges.retrieve(intent.latest_charge)

    def events(self, *types: str) -> list[Any]:
        """Up to a hundred events of these types (all without any), newest first."""
        return list(self.v1.events.list({"types": list(types), "limit": 100} if types else {"limit": 100}).data)

    def refused(self, kind: type[stripe.StripeError], status: int, call: Any) -> Any:
        """The SDK error that ``call`` raises, checked for class and status."""
        with self.assertRaises(kind) as caught:
            call()
        self.assertIs(type(caught.exception), kind)
        self.assertEqual(caught.exception.http_status, status)
        return caught.exception

    def no(self, call: Any, code: str | None = None) -> Any:
        """The 400 or 404 that ``call`` raises, with this code."""
        with self.assertRaises(stripe.InvalidRequestError) as caught:
            call()
        if code is not None:
            self.assertEqual(caught.exception.code, code)
        return caught.exception

    def check_shape(self, obj: Any) -> None:
        """The object has every field that the SDK's class says it always has."""
        required = required_fields(type(obj))
        self.assertTrue(required, f"nothing to check in {type(obj).__name__}")
        self.assertEqual(required - set(obj.to_dict()), set(), f"missing in {type(obj).__name__}")


def required_fields(model: type) -> set[str]:
    """Fields that an SDK class declares as never None."""
    return {
        name
        for name, annotation in inspect.get_annotations(model).items()
        if type(None) not in typing.get_args(annotation)
        and "ClassVar" not in str(annotation)
        and not name.startswith("_")
    }
