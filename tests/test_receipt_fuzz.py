"""Bounded fuzz of the verifier: whatever the bytes, a report or ``VerificationError``, and never a pass.

Seconds: INTERLOCK_FUZZ_SECONDS (default 2; 10 in CI; 600 for a long run).
Seed: INTERLOCK_FUZZ_SEED. A failure prints both, and the input in base64.
"""

from __future__ import annotations

import base64
import copy
import json
import os
import random
import time
import unittest
from collections.abc import Callable
from typing import Any

from interlock_tools.receipts import Word, parse_policy, verify
from interlock_tools.receipts.dsse import seal
from interlock_tools.receipts.errors import VerificationError
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, verifier_key
from interlock_tools.receipts.strict import format_base64
from interlock_tools.testing.receipts import STORIES, Book

SECONDS = float(os.environ.get("INTERLOCK_FUZZ_SECONDS", "2"))
SEED = int(os.environ.get("INTERLOCK_FUZZ_SEED", "0")) or random.SystemRandom().randrange(1, 2**31)
MOST = 10_000_000

WRITER = KeySigner("writer.example/1", b"w" * 32)
LOG = KeySigner("log.example/refunds", b"l" * 32)
WITNESS = KeySigner("witness.example/a", b"a" * 32)
POLICY_TEXT = (
    f"writer {verifier_key(WRITER)}\nlog {verifier_key(LOG)}\n"
    f"witness a {verifier_key(WITNESS, COSIGNATURE)}\ngroup g 1 a\nquorum g\n"
)
POLICY = parse_policy(POLICY_TEXT)
ODD = (
    None,
    True,
    False,
    0,
    -1,
    1,
    2**53,
    -(2**63),
    1.5,
    "",
    "x",
    "0",
    "042",
    "\ud800",
    "é",
    [],
    {},
    [[]],
    {"": {}},
    [None],
    "9" * 30,
    {"private_sha256": "0" * 64},
    {"boot": "b", "boottime_ms": 0, "wall_ms": 0},
    10**18,
    ["a"],
    "proposed",
)


def seeds() -> list[bytes]:
    private = (("payload", "payment_intent"), ("evidence", "id"))
    found = []
    for paths, shared in (((), False), ((), True), (private, False), (private, True)):
        book = Book(WRITER, LOG, paths, shared)
        effects = []
        for story in STORIES.values():
            effects.append(book.write(story[:3]))
        book.checkpoint([WITNESS])
        for effect, story in zip(effects, STORIES.values(), strict=True):
            book.go_on(effect, story[3:])
        book.checkpoint([WITNESS])
        found += [book.receipt(effect, disclosing=paths) for effect in effects]
    return found


class Fuzz(unittest.TestCase):
    def setUp(self) -> None:
        self.chance = random.Random(SEED)
        self.ends = time.monotonic() + SECONDS / 2

    def _rounds(self) -> Any:
        for number in range(MOST):
            if number > 20 and time.monotonic() > self.ends:
                return
            yield number

    def _feed(self, data: bytes, may_pass: bool = False) -> None:
        try:
            report = verify(data, POLICY)
        except VerificationError as error:
            report = None
            cause: BaseException | None = error.__cause__
        except BaseException as error:
            report, cause = None, error
        if report is None:
            self.fail(f"seed {SEED}: the verifier failed with {cause!r} on {base64.b64encode(data).decode()}")
        str(report), report.to_json(), report.exit_code
        if not may_pass and report.exit_code == 0:
            self.fail(f"seed {SEED}: this passed: {base64.b64encode(data).decode()}")

    def test_receipts(self) -> None:
        corpus = seeds()
        for data in corpus:
            self.assertEqual(verify(data, POLICY).exit_code, 0)
        ways: list[Callable[[bytes], tuple[bytes, bool]]] = [self._flip, self._splice, self._reshape, self._resigned]
        for _ in self._rounds():
            data, may_pass = self.chance.choice(ways)(self.chance.choice(corpus))
            self._feed(data, may_pass)

    def _flip(self, data: bytes) -> tuple[bytes, bool]:
        """Change some bytes. What differs in layout or in a key id alone may pass."""
        raw = bytearray(data)
        for _ in range(self.chance.choice((1, 1, 2, 8))):
            raw[self.chance.randrange(len(raw))] = self.chance.choice(
                (0, 10, 32, 34, 44, 48, 92, 123, 125, 255, 65, 97)
            )
        return bytes(raw), self._harmless(data, bytes(raw))

    def _splice(self, data: bytes) -> tuple[bytes, bool]:
        start, end = sorted(self.chance.randrange(len(data)) for _ in range(2))
        cut = data[:start] + data[start : start + self.chance.randrange(50)] + data[end:]
        return cut, self._harmless(data, cut)

    @staticmethod
    def _harmless(before: bytes, after: bytes) -> bool:
        """Whether two files say the same but for key ids and repeated signatures, which decide nothing."""

        def core(data: bytes) -> Any:
            document = json.loads(data)
            for envelope in (*document["records"], document["head"]):
                envelope["signatures"] = sorted({signature["sig"] for signature in envelope["signatures"]})
            return document

        try:
            return bool(core(before) == core(after)) or Fuzz._only_less(json.loads(before), json.loads(after))
        except (ValueError, KeyError, TypeError, AttributeError):
            return False

    def _reshape(self, data: bytes) -> tuple[bytes, bool]:
        """Replace a value somewhere in the file by an odd one, or drop it."""
        document = json.loads(data)
        self._change(document)
        changed = json.dumps(document).encode()
        return changed, self._harmless(data, changed)

    @staticmethod
    def _only_less(before: Any, after: Any) -> bool:
        """Whether only disclosures are missing: such a receipt is as genuine."""
        if not isinstance(after, dict) or "disclosures" not in before:
            return False
        kept = after.get("disclosures", [])
        rest = {name: value for name, value in after.items() if name != "disclosures"}
        same = rest == {name: value for name, value in before.items() if name != "disclosures"}
        return same and isinstance(kept, list) and all(item in before["disclosures"] for item in kept)

    def _resigned(self, data: bytes) -> tuple[bytes, bool]:
        """Change a record as the writer itself could and sign it: for what lies behind the signature."""
        document = json.loads(data)
        document.pop("proofs", None)
        document.pop("consistency", None)
        envelopes = [*document["records"], document["head"]]
        envelope = self.chance.choice(envelopes)
        statement = json.loads(base64.b64decode(envelope["payload"]))
        self._change(statement)
        raw = json.dumps(statement, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
            "utf-8", "replace"
        )
        envelope.update(seal(raw, WRITER).to_json())
        if self.chance.random() < 0.5:
            envelope["payload"] = format_base64(raw)
        return json.dumps(document).encode(), False

    def _change(self, value: Any) -> None:
        """Walk down at random and change what is there."""
        for _ in range(12):
            keys = list(value) if isinstance(value, dict) else list(range(len(value)))
            if not keys:
                return
            key = self.chance.choice(keys)
            inner = value[key]
            if isinstance(inner, (dict, list)) and inner and self.chance.random() < 0.8:
                value = inner
                continue
            action = self.chance.randrange(4)
            if action == 0:
                del value[key]
            elif action == 1 and isinstance(inner, str) and inner:
                at = self.chance.randrange(len(inner))
                value[key] = inner[:at] + self.chance.choice(["", "0", "\n", "=", "é", "\n\n"]) + inner[at + 1 :]
            elif action == 2 and isinstance(value, list):
                value.insert(self.chance.randrange(len(value) + 1), copy.deepcopy(inner))
            else:
                value[key] = self.chance.choice(ODD)
            return

    def test_policies(self) -> None:
        """A policy of any bytes is a policy or a ``VerificationError``; what is loaded prints and reads back."""
        for _ in self._rounds():
            raw = bytearray(POLICY_TEXT.encode())
            for _ in range(self.chance.choice((1, 2, 5, 40))):
                raw[self.chance.randrange(len(raw))] = self.chance.choice((0, 10, 32, 9, 35, 43, 48, 49, 65, 195, 255))
            try:
                policy = parse_policy(bytes(raw))
            except VerificationError:
                continue
            except BaseException as error:
                self.fail(f"seed {SEED}: {error!r} on {base64.b64encode(bytes(raw)).decode()}")
            self.assertEqual(parse_policy(str(policy)), policy)
            verify(b"{}", policy)

    def test_words_of_forged_records_stay_low(self) -> None:
        """Without the logs' signatures nothing is ever more than signed."""
        corpus = seeds()
        for _ in range(20):
            data, _ = self._resigned(self.chance.choice(corpus))
            self.assertIn(verify(data, POLICY).word, (Word.INVALID, Word.CONSISTENT, Word.SIGNED))


if __name__ == "__main__":
    unittest.main()
