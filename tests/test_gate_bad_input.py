"""Bad input: a clear typed error before anything is written or sent, or a truthful outcome; and nothing is lost."""

from __future__ import annotations

import asyncio
import decimal
import enum
import functools
import os
import resource
import signal
import sqlite3
import sys
import unittest
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import (
    BadArguments,
    BadRequest,
    DefinitionError,
    Gate,
    InterlockError,
    JournalError,
    JournalUnusable,
    MissingRequestKey,
    NotRecorded,
)
from interlock_tools.definition import MAX_PAYLOAD_CHARACTERS
from interlock_tools.testing import CrashPoint

if TYPE_CHECKING:
    from nowhere import OnlyForCheckers


class Arguments(GateCase):
    def tearDown(self) -> None:
        self.assertNothingRecorded()
        self.assertEqual(self.service.requests, [])

    def refused(self, effect: Any, *args: Any, **kwargs: Any) -> str:
        with self.assertRaises(BadArguments) as raised:
            effect(*args, **kwargs)
        return str(raised.exception)

    def test_money_is_a_whole_number_and_nothing_else(self) -> None:
        refund = self.refund()
        for amount in (19.99, 500.0, True, "500", "1_000", " 7 ", decimal.Decimal(5), None, [5], float("nan"), 5j):
            with self.subTest(amount):
                message = self.refused(refund, "1", amount)
                self.assertIn("amount must be a whole number", message)
                self.assertIn(type(amount).__name__, message)

    def test_optional_and_annotated_money_too(self) -> None:
        @self.gate.effect("optional", key=lambda case: case)
        def act(
            case: str,
            amount: Optional[int] = None,  # noqa: UP045  (what older code writes)
            fee: Annotated[int, "cents"] = 0,
            tip: int | None = None,
        ) -> str:
            return "done-1"

        for name in ("amount", "fee", "tip"):
            for value in (True, 5.0, "5"):
                with self.subTest(name, value=value):
                    self.assertIn(f"{name} must be a whole number", self.refused(act, "1", **{name: value}))

    def test_an_annotation_that_cannot_be_read_weakens_no_other(self) -> None:
        @self.gate.effect("checkers", key=lambda case: case)
        def act(case: str, amount: int, extra: OnlyForCheckers = None, *, on_send: OnlyForCheckers) -> str:
            return "done-1"

        self.assertIn("amount must be a whole number", self.refused(act, "1", True))

    def test_numbers_without_an_annotation_are_exact_as_well(self) -> None:
        @self.gate.effect("loose", key=lambda case: case)
        def act(case: str, items: Any) -> str:
            return "done-1"

        for value in (19.99, {"price": 0.5}, [1, [2.0]], 2**53, -(2**60), float("inf")):
            with self.subTest(value):
                self.refused(act, "1", value)
        self.assertIn("items[1].price", self.refused(act, "1", [{}, {"price": 0.5}]))

    def test_values_without_a_canonical_form(self) -> None:
        @self.gate.effect("loose", key=lambda case: case)
        def act(case: str, thing: Any) -> str:
            return "done-1"

        circle: list[Any] = []
        circle.append(circle)
        deep: Any = []
        for _ in range(50):
            deep = [deep]
        for value in (
            datetime.now(timezone.utc),
            decimal.Decimal("1.5"),
            b"bytes",
            {1, 2},
            (1, 2),
            object(),
            lambda: None,
            {1: "a"},
            {"größe": 1},
            {"a\x00": 1},
            circle,
            deep,
            "lone \ud800 surrogate",
            ["\udfff"],
        ):
            with self.subTest(type(value)):
                message = self.refused(act, "1", value)
                self.assertIn("thing", message)
                self.assertTrue(message.isprintable(), message)

    def test_unknown_missing_and_reserved_arguments(self) -> None:
        refund = self.refund()
        for args, kwargs in (
            ((), {}),
            (("1",), {"currency": "usd"}),
            (("1",), {"case": "2"}),
            (("1", 5, 6), {}),
            (("1",), {"idempotency_key": "mine"}),
            (("1",), {"on_send": print}),
        ):
            with self.subTest((args, kwargs)):
                self.assertTrue(self.refused(refund, *args, **kwargs).startswith("test.refund: "))

    def test_huge_payloads_are_refused_and_say_what_to_do(self) -> None:
        @self.gate.effect("content", key=lambda case: case)
        def act(case: str, content: str) -> str:
            return "done-1"

        message = self.refused(act, "1", "x" * (MAX_PAYLOAD_CHARACTERS + 1))
        self.assertIn("a path or an address and a digest", message)
        self.assertLess(len(message), 400)

    def test_an_error_shows_no_huge_value_and_no_secret(self) -> None:
        refund = self.refund()
        self.assertLess(len(self.refused(refund, "1", "9" * 100_000)), 300)
        self.assertNotIn("sk_test_abc", self.refused(refund, "1", "sk_test_abc"))

        class Hostile:
            def __repr__(self) -> str:
                raise RuntimeError("no")

        self.assertIn("Hostile", self.refused(refund, "1", Hostile()))

    def test_context_facts_and_names_are_checked_alike(self) -> None:
        refund = self.refund()
        for context in ({"x": 1.5}, {"x": object()}, [1], "x"):
            with self.subTest(context=context), self.assertRaises(BadArguments):
                refund.invoke(("1",), {}, context=context)
            with self.subTest(facts=context), self.assertRaises(BadArguments):
                refund.propose("1", facts=context)
        for by in ("", " ", 5, b"kim"):
            with self.subTest(by=by), self.assertRaises(BadArguments):
                refund.propose("1", by=by)

        async def call() -> Any:
            return await refund.ainvoke(("1",), {}, context={"x": 1.5})

        with self.assertRaises(BadArguments):
            asyncio.run(call())


class Keys(GateCase):
    def missing(self, key: Any) -> str:
        self.gate = self.open()
        with self.assertRaises(MissingRequestKey) as raised:
            self.refund(key=key)("1")
        self.assertIsInstance(raised.exception, BadRequest)
        self.assertNothingRecorded()
        self.assertEqual(self.service.requests, [])
        return str(raised.exception)

    def test_a_key_function_that_raises(self) -> None:
        def key(case: str) -> str:
            raise KeyError("request_id")

        self.assertIn("KeyError", self.missing(key))

    def test_a_key_function_that_returns_no_name(self) -> None:
        for value in ("", " \n", None, 5, True, b"key", ["1"], "x" * 1001, "\ud800"):
            with self.subTest(value):
                self.assertLess(len(self.missing(lambda case, value=value: value)), 300)

    def test_a_key_function_that_turns_out_to_be_async(self) -> None:
        async def later() -> str:
            return "1"

        self.assertIn("must return text", self.missing(lambda case: later()))

    def test_an_application_s_own_error_passes_through(self) -> None:
        def key(case: str) -> str:
            raise MissingRequestKey("set request_id in the config")

        self.assertEqual(self.missing(key), "set request_id in the config")

    def test_odd_characters_name_requests_as_well_as_others(self) -> None:
        odd = [
            "a\x00b",
            "line\nline",
            "ключ-🔑",
            "' OR 1=1 --",
            "%s{}",
            "a\u202eb",
            "x" * 1000,
            "\u202e",
            "é",
            "e\u0301",
        ]
        refund = self.refund()
        ids = set()
        for key in odd:
            with self.subTest(key):
                outcome = refund(key)
                self.assertOutcome(outcome, "COMMITTED")
                self.assertEqual(outcome.request_key, key)
                self.assertEqual(refund(key), outcome)
                self.assertTrue(outcome.message.isprintable(), outcome.message)
                ids.add(outcome.effect_id)
        self.assertEqual((len(ids), len(self.service.created)), (len(odd), len(odd)))
        self.assertEqual({row.request_key for row in self.gate.journal.effects()}, set(odd))

    def test_odd_characters_in_arguments_reach_the_service_as_they_are(self) -> None:
        text = "NUL \x00, quote ', newline \n, \u2028, 🔑, \ufeff"

        @self.gate.effect("odd", key=lambda case, **_: case)
        def act(case: str, text: str, more: list[Any]) -> Any:
            return {"text": text, "more": more}

        outcome = act("1", text, [{"k": text}])
        self.assertEqual(outcome.result, {"text": text, "more": [{"k": text}]})
        self.assertEqual(self.body(outcome, "proposed")["payload"]["text"], text)

    def test_an_enumeration_of_texts_is_text(self) -> None:
        class Reason(str, enum.Enum):
            FRAUD = "fraudulent"

        @self.gate.effect("enum", key=lambda reason: reason)
        def act(reason: str) -> str:
            return "done-1"

        outcome = act(Reason.FRAUD)
        self.assertEqual((outcome.request_key, act("fraudulent")), ("fraudulent", outcome))

    def test_a_large_payload_that_fits(self) -> None:
        @self.gate.effect("content", key=lambda case, **_: case)
        def act(case: str, content: str) -> str:
            return f"{len(content)} bytes"

        self.assertEqual(act("1", "x" * 1_000_000).result, "1000000 bytes")


class Declarations(GateCase):
    def wrong(self, function: Any = None, name: Any = "wrong", **options: Any) -> str:
        def send(case: str, amount: int = 1, *, idempotency_key: str = "", on_send: Any = None) -> str:
            return "done-1"

        options.setdefault("key", lambda case: case)
        with self.assertRaises(DefinitionError) as raised:
            self.gate.effect(name, **options)(function or send)
        self.assertEqual(self.gate.effects, ())
        return str(raised.exception)

    def test_two_effects_of_one_name(self) -> None:
        first = self.refund()
        with self.assertRaises(DefinitionError) as raised:
            self.refund()
        self.assertIn("'test.refund' is declared already", str(raised.exception))
        self.assertOutcome(first("1"), "COMMITTED")
        self.refund(gate=self.open())  # another gate is another registry

    def test_names(self) -> None:
        for name in ("", " ", None, 5, "größe", "a\nb", "\x00"):
            with self.subTest(name):
                self.wrong(name=name)

    def test_functions_that_cannot_be_called_by_name(self) -> None:
        def positional(case: str, /) -> str:
            return case

        def star(*case: str) -> str:
            return ""

        def stars(**case: str) -> str:
            return ""

        for function in (positional, star, stars, dict, functools.partial(star)):
            with self.subTest(function):
                self.wrong(function)

    def test_readers(self) -> None:
        async def later(case: str) -> str:
            return case

        self.assertIn("'currency', which is not an argument", self.wrong(premises=lambda currency: {}))
        for role in ("key", "amount", "budget"):
            self.assertIn("not async", self.wrong(**{role: later}))
        for role in ("premises", "allowed", "budget", "lookup", "amount", "key"):
            with self.subTest(role):
                self.assertIn("takes a function", self.wrong(**{role: "x"}))
        self.assertIn("cannot take it", self.wrong(key=lambda idempotency_key: "1"))
        self.assertIn("natural_key=True", self.wrong(lookup=lambda case: None))

    def test_expected_values(self) -> None:
        for expect in ([("a", 1)], 5, {"a": 1.5}, {"a": object()}, {1: 2}):
            with self.subTest(expect):
                self.wrong(expect=expect)

    def test_contracts(self) -> None:
        options: list[dict[str, Any]] = [
            {"dedupes": 3600},
            {"dedupes": timedelta(0)},
            {"dedupes": timedelta(hours=-1)},
            {"send_timeout": timedelta(0)},
            {"send_timeout": 90},
            {"lookup_lag": timedelta(seconds=-1)},
            {"lookup_lag": 5},
            {"clock_skew": None},
            {"enforces": "head"},
            {"enforces": (1,)},
            {"never_true_again": ("head",)},
        ]
        for option in options:
            with self.subTest(option):
                self.wrong(**option)

    def test_a_service_that_dedupes_needs_the_key(self) -> None:
        def send(case: str) -> str:
            return "done-1"

        self.assertIn("must take idempotency_key", self.wrong(send, dedupes=True))

    def test_a_send_that_can_never_return_evidence(self) -> None:
        def none(case: str) -> None: ...

        async def true(case: str) -> bool:
            return True

        for function in (none, true):
            self.assertIn("evidence", self.wrong(function))
        self.gate.effect("found", key=lambda case: case, lookup=lambda idempotency_key: {"id": 1})(none)


class Journals(GateCase):
    """A journal that cannot be opened, written or believed."""

    def unusable(self, path: Any) -> str:
        with self.assertRaises(JournalUnusable) as raised:
            Gate(path)
        message = str(raised.exception)
        self.assertIn(str(path).rpartition("/")[2], message)
        return message

    def test_a_corrupt_file(self) -> None:
        path = self.folder / "corrupt.db"
        path.write_bytes(b"this is not a database, whatever its name says" * 100)
        self.unusable(path)
        self.assertTrue(path.read_bytes().startswith(b"this is not"))

    def test_a_file_that_was_overwritten_in_the_middle(self) -> None:
        outcome = self.refund()("1")
        self.gate.close()
        content = bytearray(self.path.read_bytes())
        content[4096:] = b"\xff" * (len(content) - 4096)
        self.path.write_bytes(content)
        with self.assertRaises(JournalError):
            gate = self.open()
            self.refund(gate=gate)("1")
            gate.history(outcome.effect_id)
        self.assertEqual(len(self.service.requests), 1)

    def test_a_directory_a_missing_folder_and_a_wrong_url(self) -> None:
        self.unusable(self.folder)
        self.unusable(self.folder / "missing" / "journal.db")
        for url in ("mysql://localhost/x", "sqlite://relative.db"):
            with self.subTest(url), self.assertRaises(JournalUnusable):
                Gate(url)

    def test_a_read_only_directory(self) -> None:
        folder = self.folder / "read-only"
        folder.mkdir()
        self.folder.chmod(0o755)
        folder.chmod(0o555)
        self.addCleanup(folder.chmod, 0o755)
        with _unprivileged():
            self.unusable(folder / "journal.db")
        self.assertEqual(list(folder.iterdir()), [])

    def test_a_journal_that_turned_read_only_sends_nothing(self) -> None:
        refund = self.refund()
        refund("1")
        self.gate.close()
        self.folder.chmod(0o755)
        for path in sorted(self.folder.rglob("*")):
            path.chmod(0o444 if path.is_file() else 0o555)
        self.folder.chmod(0o555)
        self.addCleanup(self.folder.chmod, 0o755)
        sent = len(self.service.requests)
        with _unprivileged(), self.assertRaises(JournalError):
            gate = Gate(self.path)
            self.addCleanup(gate.close)
            self.refund(gate=gate)("2")
        self.assertEqual(len(self.service.requests), sent)

    def test_an_end_that_cannot_be_written_says_so_and_recovery_finds_out(self) -> None:
        """The disk is full after the send: the file may not grow any more."""
        refund = self.refund(dedupes=True)

        def answer(request: dict[str, Any]) -> Any:
            self.service.by_key[request["key"]] = {"id": "re_1"}
            self.addCleanup(_let_files_grow)
            _let_files_grow(False)
            return {"id": "re_1"}

        self.service.script = [answer]
        with self.assertRaises(NotRecorded) as raised:
            refund("1")
        self.assertIn("may have happened", str(raised.exception))
        self.assertEqual(raised.exception.effect_id, refund.effect_id("1"))
        _let_files_grow()
        outcome = refund("1")
        self.assertOutcome(outcome, "COMMITTED")
        self.assertEqual(outcome.result, {"id": "re_1"})

    def test_a_disk_that_is_full_before_the_send_sends_nothing(self) -> None:
        refund = self.refund()
        refund("1")
        self.addCleanup(_let_files_grow)
        _let_files_grow(False)
        with self.assertRaises(JournalError):
            for number in range(2, 500):  # a log that was used before is written into first
                refund(str(number))
        sent = len(self.service.requests)
        _let_files_grow()
        self.assertLessEqual(len(self.gate.open_effects()), 1)
        self.gate.recover()
        self.assertEqual(len(self.service.created), len(self.service.requests))
        self.assertLessEqual(len(self.service.requests) - sent, 1)

    def test_one_effect_whose_entries_make_no_sense_does_not_stop_the_others(self) -> None:
        for case in ("1", "2"):
            self.dies_at(CrashPoint.BEFORE_BYTES, lambda gate, case=case: self.refund(gate=gate, dedupes=True)(case))
        refund = self.refund(dedupes=True)
        broken = refund.effect_id("1")
        self.gate.close()
        database = sqlite3.connect(self.path)
        database.execute("DROP TRIGGER entries_keep")
        database.execute("UPDATE entries SET body = replace(body, '\"send\":1', '\"send\":7')")
        database.execute(
            "UPDATE entries SET body = replace(body, '\"send\":7', '\"send\":1') WHERE id >> 20 <> "
            "(SELECT id >> 20 FROM entries WHERE effect_id = ?)",
            (broken,),
        )
        database.commit()
        database.close()
        gate = self.open()
        refund = self.refund(gate=gate, dedupes=True)
        with self.assertLogs("interlock_tools", "ERROR"):
            report = gate.recover()
        self.assertEqual([str(outcome) for outcome in report], ["AMBIGUOUS:unverifiable", "COMMITTED"])
        with self.assertRaises(JournalError) as raised:
            refund("1")
        self.assertIn("contradict each other", str(raised.exception))
        self.assertEqual(len(self.service.requests), 1)

    def test_every_error_is_one_of_ours(self) -> None:
        for error in (BadArguments, MissingRequestKey, DefinitionError, JournalUnusable, NotRecorded):
            self.assertTrue(issubclass(error, InterlockError))


def _let_files_grow(may: bool = True) -> None:
    """Make every write that lengthens a file of this process fail, or let it succeed again."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if may else 0, hard))


class _unprivileged:
    """Files' permissions count inside, also where the tests are run by root."""

    def __enter__(self) -> None:
        if os.getuid() == 0:
            os.seteuid(65534)

    def __exit__(self, *_: Any) -> None:
        if os.getuid() == 0:
            os.seteuid(0)


if __name__ == "__main__":
    unittest.main()
