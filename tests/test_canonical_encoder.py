"""The prepared JSON encoder writes what the standard library's own ``encode`` writes."""

from __future__ import annotations

import json
import random
import unittest
from typing import Any

from interlock_tools.core import canonical

PLAIN = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False).encode


def value(chosen: random.Random, depth: int = 0) -> Any:
    kind = chosen.randrange(5 if depth > 3 else 7)
    if kind == 5:
        return [value(chosen, depth + 1) for _ in range(chosen.randrange(4))]
    if kind == 6:
        return {f"k{chosen.randrange(30)}": value(chosen, depth + 1) for _ in range(chosen.randrange(5))}
    text = "".join(chosen.choice('aé"\\\n\x00\x7f\u2028🙂/<') for _ in range(chosen.randrange(6)))
    return (None, True, False, chosen.randrange(-(2**53), 2**53), text)[kind]


class TestEncoder(unittest.TestCase):
    def test_random_values(self) -> None:
        chosen = random.Random(3)
        for _ in range(2000):
            sample = value(chosen)
            self.assertEqual(canonical.encode(sample), PLAIN(sample))

    def test_what_has_no_canonical_form_is_refused_here_too(self) -> None:
        for sample in (float("nan"), object(), {"a": {1, 2}}, {(1, 2): 3}):
            with self.subTest(sample=repr(sample)), self.assertRaises((TypeError, ValueError)):
                canonical.encode(sample)


if __name__ == "__main__":
    unittest.main()
