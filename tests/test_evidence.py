"""What counts as evidence, and how it is kept: anything that a service or its SDK may return, or a clear no."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import json
import unittest
import uuid
from collections import OrderedDict, UserDict
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools import Evidence
from interlock_tools.core.canonical import canonical
from interlock_tools.evidence import MAX_CHARACTERS, InvalidEvidence, keep


class State(enum.Enum):
    PENDING = "pending"


@dataclasses.dataclass
class Refund:
    id: str
    amount: int


class StripeLike:
    """An SDK object that is no mapping and says what it holds by ``to_dict``."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def to_dict(self) -> dict[str, Any]:
        return dict(self._fields)


class PydanticLike:
    def model_dump(self, mode: str) -> dict[str, Any]:
        return {"id": "m_1", "mode": mode}


class Kept(unittest.TestCase):
    def test_values(self) -> None:
        cases: list[tuple[Any, Any]] = [
            ("re_1", "re_1"),
            (7, 7),
            (2**60, str(2**60)),
            (0.5, "0.5"),
            (decimal.Decimal("1.50"), "1.50"),
            (b"re_1", "re_1"),
            (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
            (dt.datetime(2026, 1, 2, 3, 4, tzinfo=dt.timezone.utc), "2026-01-02T03:04:00+00:00"),
            (State.PENDING, "pending"),
            ({"id": 1, "ok": False, "none": None}, {"id": 1, "ok": False, "none": None}),
            (["a", ("b",)], ["a", ["b"]]),
            (OrderedDict(id="x"), {"id": "x"}),
            (UserDict(id="x"), {"id": "x"}),
            ({1: "a", "größe": 2, "a\nb": 3}, {"1": "a", "gr\\xf6\\xdfe": 2, "a\\nb": 3}),
            ("lone \ud800", "lone ?"),
            (Refund("re_1", 5), {"id": "re_1", "amount": 5}),
            (StripeLike({"id": "re_1", "sub": StripeLike({"a": 1})}), {"id": "re_1", "sub": {"a": 1}}),
            (PydanticLike(), {"id": "m_1", "mode": "json"}),
            ({"client_secret": "x", "token": None, "id": 1}, {"client_secret": "[secret]", "token": None, "id": 1}),
        ]
        for given_value, kept in cases:
            with self.subTest(given_value):
                self.assertEqual(keep(given_value), (kept, "yes"))

    def test_a_real_stripe_object(self) -> None:
        try:
            import stripe
        except ImportError:
            self.skipTest("stripe is not installed")
        refund = stripe.Refund.construct_from({"id": "re_1", "amount": 5, "metadata": {"größe": "1"}}, "sk_test_x")
        found, _ = keep(refund)
        self.assertEqual((found["id"], found["amount"]), ("re_1", 5))
        self.assertNotIn("sk_test", json.dumps(found))

    def test_whose_it_is(self) -> None:
        for by_us in ("yes", "no", "unknown"):
            self.assertEqual(keep(Evidence("x", by_us)), ("x", by_us))  # type: ignore[arg-type]
        with self.assertRaises(InvalidEvidence):
            keep(Evidence("x", "maybe"))  # type: ignore[arg-type]

    def test_of_a_huge_object_its_id_and_digest(self) -> None:
        found, _ = keep({"id": "x_1", "content": "y" * (MAX_CHARACTERS + 1)})
        self.assertEqual(found["id"], "x_1")
        self.assertRegex(found["sha256"], "^[0-9a-f]{64}$")
        self.assertLess(len(json.dumps(found)), 200)

    def test_what_proves_nothing(self) -> None:
        nothing: list[Any] = [None, True, False, 0, 0.0, decimal.Decimal(0), "", " \n", b"", {}, [], ()]
        nothing += [{"id": None}, {"data": [], "next": None}, [[]], [None], Evidence(None), Evidence(True)]
        for value in nothing:
            with self.subTest(value), self.assertRaises(InvalidEvidence):
                keep(value)

    def test_what_cannot_be_kept(self) -> None:
        class Raises:
            def to_dict(self) -> Any:
                raise RuntimeError("sk_test_abc")

        class Itself:
            def to_dict(self) -> Any:
                return self

        circle: list[Any] = ["x"]
        circle.append(circle)
        for value in (object(), object, Refund, {1, 2}, circle, Raises(), Itself(), {"a": object()}, lambda: None):
            with self.subTest(value), self.assertRaises(InvalidEvidence) as raised:
                keep(value)
            self.assertNotIn("sk_test_abc", str(raised.exception))

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.dates(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
            max_leaves=12,
        )
    )
    @settings(deadline=None, max_examples=150)
    def test_whatever_comes_is_kept_canonically_or_refused(self, value: Any) -> None:
        try:
            found, _ = keep(value)
        except InvalidEvidence:
            return
        self.assertEqual(json.loads(canonical(found)), found)
        self.assertEqual(keep(found), (found, "yes"))


if __name__ == "__main__":
    unittest.main()
