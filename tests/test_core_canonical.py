"""One value, one byte form: that of RFC 8785. Whatever has none is refused, and told where it sits."""

from __future__ import annotations

import decimal
import enum
import hashlib
import json
import unittest
from collections import OrderedDict, UserDict, defaultdict
from datetime import date
from typing import Any, NamedTuple

import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock_tools.core.canonical import (
    MAX_DEPTH,
    MAX_INTEGER,
    CanonicalError,
    canonical,
    digest,
    effect_id,
    encode,
    normalise,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
KEYS = st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), max_size=8)
PLAIN = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-MAX_INTEGER, MAX_INTEGER), TEXT),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEYS, inner, max_size=4)),
    max_leaves=20,
)


class Colour(str, enum.Enum):
    RED = "red"


class Count(enum.IntEnum):
    TWO = 2


class Shouting(str):
    """A text that shows itself otherwise than it is."""

    def __str__(self) -> str:
        return self.upper()


class Pair(NamedTuple):
    left: int
    right: int


class TestForm(unittest.TestCase):
    @settings(max_examples=500, derandomize=True, deadline=None, database=None)
    @given(PLAIN)
    def test_equals_rfc_8785(self, value: Any) -> None:
        self.assertEqual(canonical(value).encode("utf-8"), rfc8785.dumps(value))

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(PLAIN)
    def test_reads_back_as_the_same_and_is_its_own_form(self, value: Any) -> None:
        text = canonical(value)
        self.assertEqual(json.loads(text), value)
        self.assertEqual(canonical(json.loads(text)), text)
        self.assertEqual(encode(normalise(value)), text)

    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(st.dictionaries(KEYS, st.integers(0, 9), max_size=6), st.randoms(use_true_random=False))
    def test_the_order_of_keys_says_nothing(self, value: dict[str, int], dice: Any) -> None:
        items = list(value.items())
        dice.shuffle(items)
        self.assertEqual(canonical(dict(items)), canonical(value))

    def test_by_hand(self) -> None:
        cases: list[tuple[Any, str]] = [
            ({"b": 1, "a": [True, None, "é"]}, '{"a":[true,null,"é"],"b":1}'),
            ({"a": {}, "A": []}, '{"A":[],"a":{}}'),
            ('\u2028 < / \\ " \x00 \x1f \x7f 🙂', '"\u2028 < / \\\\ \\" \\u0000 \\u001f \x7f 🙂"'),
            (-MAX_INTEGER, "-9007199254740991"),
            (False, "false"),
            (0, "0"),
        ]
        for value, text in cases:
            with self.subTest(value=value):
                self.assertEqual(canonical(value), text)

    def test_true_and_one_differ(self) -> None:
        self.assertNotEqual(canonical({"a": True}), canonical({"a": 1}))

    def test_enumerations_are_their_values(self) -> None:
        self.assertEqual(canonical([Colour.RED, Count.TWO, {"a": Colour.RED}]), '["red",2,{"a":"red"}]')
        self.assertIs(type(normalise(Colour.RED)), str)
        self.assertIs(type(normalise(Count.TWO)), int)

    def test_a_copy_shares_nothing(self) -> None:
        value = {"a": [{"b": 1}]}
        copy = normalise(value)
        value["a"][0]["b"] = 2
        self.assertEqual(copy, {"a": [{"b": 1}]})


class TestRefused(unittest.TestCase):
    def assert_refused(self, value: Any, path: str | None = None) -> None:
        with self.assertRaises(CanonicalError) as caught:
            canonical(value)
        self.assertTrue(caught.exception.why)
        if path is not None:
            self.assertEqual(caught.exception.path, path)

    def test_types_without_a_form(self) -> None:
        refused = [
            1.0, 0.1, float("nan"), float("inf"), -0.0, 1e300, complex(1, 2),
            decimal.Decimal("1.00"), b"bytes", bytearray(b"x"), date(2026, 1, 1),
            (1, 2), Pair(1, 2), {1, 2}, frozenset({1}), range(3), iter([1]), object(), int, len, ...,
            OrderedDict(a=1), defaultdict(int, a=1), UserDict(a=1),
        ]  # fmt: skip
        for value in refused:
            with self.subTest(value=repr(value)):
                self.assert_refused(value, "")
                self.assert_refused({"a": [0, value]}, "a[1]")

    def test_integers_that_a_double_does_not_hold(self) -> None:
        for value in (MAX_INTEGER + 1, -MAX_INTEGER - 1, 2**64, 10**400):
            with self.subTest(value=value):
                self.assert_refused({"amount": value}, "amount")

    def test_keys(self) -> None:
        keys: tuple[Any, ...] = (1, True, None, 1.5, (1,), b"a", "é", "\n", "\x00", "\x7f", "a\u2028")
        for key in keys:
            with self.subTest(key=repr(key)):
                self.assert_refused({"outer": {key: 1}}, "outer")

    @settings(max_examples=100, derandomize=True, deadline=None, database=None)
    @given(st.text(max_size=5), st.integers(0xD800, 0xDFFF), st.text(max_size=5))
    def test_lone_surrogates(self, before: str, surrogate: int, after: str) -> None:
        self.assert_refused({"a": before + chr(surrogate) + after})

    def test_depth(self) -> None:
        value: Any = 1
        for _ in range(MAX_DEPTH):
            value = [value]
        self.assertEqual(canonical(value), "[" * MAX_DEPTH + "1" + "]" * MAX_DEPTH)
        self.assert_refused([value])
        endless: list[Any] = []
        endless.append(endless)
        self.assert_refused(endless)

    def test_subclasses_do_not_slip_through_in_disguise(self) -> None:
        """What a subclass shows of itself is not what is recorded."""
        self.assertEqual(canonical(Shouting("quiet")), '"quiet"')

        class Sneaky(dict[str, Any]):
            def items(self) -> Any:
                return {"amount": 9}.items()

        self.assert_refused(Sneaky(amount=1))

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(PLAIN, st.floats())
    def test_a_float_anywhere(self, value: Any, number: float) -> None:
        self.assert_refused([value, {"deep": [number]}], "[1].deep[0]")


class TestDigests(unittest.TestCase):
    def test_digest_is_sha_256_of_utf_8(self) -> None:
        self.assertEqual(digest("é"), hashlib.sha256("é".encode()).hexdigest())

    def test_effect_id(self) -> None:
        """``printf '["stripe.refund","4471",1]' | sha256sum | cut -c1-32``. No version may ever change it."""
        self.assertEqual(effect_id("stripe.refund", "4471", 1), "f6aa8fb7f37b445323c24c06fc0b39e1")

    @settings(max_examples=200, derandomize=True, deadline=None, database=None)
    @given(TEXT, TEXT, st.integers(1, 9), TEXT, TEXT, st.integers(1, 9))
    def test_i2_effect_ids_differ_where_the_request_does(
        self, name: str, key: str, decision: int, other: str, other_key: str, other_decision: int
    ) -> None:
        """Name, request key and decision number are told apart wherever one ends and the next begins."""
        first, second = (name, key, decision), (other, other_key, other_decision)
        self.assertEqual(effect_id(*first) == effect_id(*second), first == second)
        self.assertRegex(effect_id(*first), r"\A[0-9a-f]{32}\Z")

    def test_parts_do_not_run_together(self) -> None:
        self.assertNotEqual(effect_id("a", "b:1", 1), effect_id("a:b", "1", 1))
        self.assertNotEqual(effect_id("a", '","b', 1), effect_id('a","', "b", 1))


if __name__ == "__main__":
    unittest.main()
