"""A secret in an exception, an answer or a person's words reaches no journal, no message and no log."""

from __future__ import annotations

import json
import logging
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import DefiniteNo, InterlockError, NotSent, PreconditionFailed, RateLimited, SendError, StoredError
from interlock_tools.outcome import Outcome
from interlock_tools.receipts.file import open_receipt

SECRET = "4eC39HqLyjWDarjtT1zdp7dc"
WORDS = [
    f"Invalid API Key provided: sk_test_{SECRET}",
    f"401 for headers {{'Authorization': 'Bearer {SECRET}'}}",
    f"Authorization: Basic {SECRET}",
    f"could not connect to postgresql://agent:{SECRET}@db/refunds",
    f"GET https://api.example.com/?access_token={SECRET}&x=1 failed",
    f"first line\npassword: '{SECRET}\nsecond half {SECRET}'",
    f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
    f"token ghp_{SECRET}",
]


class Nowhere(GateCase):
    def setUp(self) -> None:
        super().setUp()
        self.logged: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.logged.append(logging.Formatter().format(record))  # type: ignore[method-assign]
        logger = logging.getLogger("interlock_tools")
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)

    def assertNowhere(self, outcomes: list[Outcome]) -> None:
        told = json.dumps([outcome.to_json() for outcome in outcomes])
        told += "".join(outcome.message for outcome in outcomes) + "".join(self.logged)
        receipts = [self.gate.receipt(row.effect_id) for row in self.gate.journal.effects(limit=1000)]
        read = "".join(str(record) for receipt in receipts for record in open_receipt(receipt).records)
        for where, text in (("outcome", told), ("receipt", json.dumps(receipts) + read)):
            self.assertNotIn(SECRET, text, where)
        self.assertNotIn(SECRET.encode(), self.everything_written())

    def test_what_a_send_function_raises(self) -> None:
        kinds: list[Any] = [DefiniteNo, PreconditionFailed, NotSent, StoredError, SendError, TimeoutError, ValueError]
        outcomes = []
        for number, words in enumerate(WORDS):
            for kind in kinds:
                self.service.script = [kind(words)]
                outcomes.append(self.refund(f"effect.{kind.__name__}.{number}")("1"))
            self.service.script = [RateLimited(words, retry_after=60)]
            outcomes.append(self.refund(f"effect.limited.{number}")("1"))
        self.assertNowhere(outcomes)

    def test_the_code_of_an_error(self) -> None:
        self.service.script = [DefiniteNo("no", code=f"sk_live_{SECRET}")]
        self.assertNowhere([self.refund()("1")])

    def test_what_readers_raise(self) -> None:
        def raises(words: str) -> Any:
            def reader() -> Any:
                raise PermissionError(words)

            return reader

        outcomes = []
        for number, words in enumerate(WORDS):
            for role in ("premises", "allowed", "expect"):
                options = {"premises": lambda: {"open": True}, role: raises(words)}
                outcomes.append(self.refund(f"{role}.{number}", **options)("1"))
            self.service.script = [TimeoutError()]
            refund = self.refund(f"lookup.{number}", lookup=lambda idempotency_key, words=words: raises(words)())
            outcomes.append(refund("1"))
        self.assertEqual({str(outcome) for outcome in outcomes}, {"IN_FLIGHT:unreadable"})
        self.assertNotEqual(self.logged, [])
        self.assertNowhere(outcomes)

    def test_what_the_key_and_the_budget_function_raise(self) -> None:
        def raises(**arguments: Any) -> Any:
            raise ValueError(WORDS[0])

        for number, role in enumerate(("key", "budget")):
            with self.assertRaises(InterlockError) as raised:
                self.refund(f"effect.{number}", **{role: raises})("1")
            self.assertNotIn(SECRET, str(raised.exception))
        self.assertNowhere([])

    def test_fields_of_an_answer_that_are_named_like_one(self) -> None:
        self.service.script = [
            lambda request: {
                "id": "pi_1",
                "client_secret": f"pi_1_secret_{SECRET}",
                "request": {"headers": {"Authorization": f"Bearer {SECRET}", "X-Api-Key": SECRET}},
                "links": [{"access_token": SECRET}],
            }
        ]
        outcome = self.refund()("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(outcome.result["id"], "pi_1")
        self.assertNowhere([outcome])

    def test_a_person_s_words(self) -> None:
        self.service.script = [TimeoutError()]
        refund = self.refund()
        outcome = refund("1")
        settled = self.gate.resolve(
            outcome.effect_id,
            landed=False,
            by=f"kim (sk_test_{SECRET})",
            why=f"curl -H 'Authorization: Bearer {SECRET}'",
        )
        decided = refund.redecide(outcome.effect_id, by=f"password={SECRET}")
        self.assertNowhere([outcome, settled, decided])


class HostileErrors(GateCase):
    """An exception whose words cannot be had, or are no words, loses nothing."""

    def test_of_a_send(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        class Bare(DefiniteNo):
            def __init__(self) -> None:
                pass

        hostile: list[Any] = [
            Mute(),
            ValueError("lone \ud800 surrogate"),
            ValueError("NUL \x00 and \x1b[31m colour"),
            ValueError("x" * 1_000_000),
            ValueError({"a": object()}),
            ValueError(),
            ValueError("\n\n"),
            UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
            SendError({"no": "text"}),  # type: ignore[arg-type]
            SendError(None, code=object()),  # type: ignore[arg-type]
        ]
        for number, error in enumerate(hostile):
            with self.subTest(number):
                self.service.script = [error]
                outcome = self.refund(f"effect.{number}")("1")
                self.assertOutcome(outcome, "AMBIGUOUS:no_evidence")
                self.assertTrue(outcome.message.isprintable())
                self.assertLess(len(outcome.message), 800)
        refusals: list[Any] = [
            Bare(),
            DefiniteNo(object()),  # type: ignore[arg-type]
            DefiniteNo("no", code=402),  # type: ignore[arg-type]
            DefiniteNo(ValueError("declined \ud800")),  # type: ignore[arg-type]
            DefiniteNo("no", stored="yes"),  # type: ignore[arg-type]
        ]
        for number, error in enumerate(refusals):
            with self.subTest(number):
                self.service.script = [error]
                self.assertOutcome(self.refund(f"refusal.{number}")("1"), "REFUSED:rejected")

    def test_of_a_reader(self) -> None:
        class Mute(Exception):
            def __str__(self) -> str:
                raise RuntimeError("no words")

        def premises() -> Any:
            raise Mute

        self.assertOutcome(self.refund(premises=premises)("1"), "IN_FLIGHT:unreadable")


if __name__ == "__main__":
    unittest.main()
