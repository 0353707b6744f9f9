"""The pages about receipts: the examples run, the example files are what a program makes, the tables are the code's.

UPDATE_GOLDEN=1 writes the example files and the report in the page anew.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from test_docs import Shop, python_blocks

from interlock_tools import Gate, parse_policy, verify
from interlock_tools.cli.verify import main
from interlock_tools.receipts import Word
from interlock_tools.receipts.claims import NAMES
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, verifier_key
from interlock_tools.testing.receipts import STORIES, Book

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
EXAMPLE = DOCS / "example"
WRITER = KeySigner("shop.example/writer", b"W" * 32)
LOG = KeySigner("shop.example/log", b"L" * 32)
WITNESS = KeySigner("witness.example.com/a", b"A" * 32)


def example() -> tuple[bytes, str]:
    """A receipt and a policy, made with keys that everybody knows."""
    book = Book(WRITER, LOG)
    book.write(STORIES["refused"])
    effect = book.write(STORIES["resent"])
    book.write(STORIES["settled"])
    book.checkpoint([WITNESS])
    policy = (
        "# For trying it out. These keys are published: trust nothing else that they sign.\n"
        f"writer {verifier_key(WRITER)}\nlog {verifier_key(LOG)}\n"
        f"witness a {verifier_key(WITNESS, COSIGNATURE)}\nquorum a\n"
    )
    return book.receipt(effect), policy


class Receipts(unittest.TestCase):
    def test_the_page_about_signing_runs(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            names: dict[str, Any] = {
                "shop": Shop(),
                "journal_path": str(Path(folder) / "shop.db"),
                "keys": str(Path(folder) / "keys"),
                "Gate": Gate,
                "parse_policy": parse_policy,
                "verify": verify,
            }
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile(python_blocks(DOCS / "receipts.md"), "receipts.md", "exec"), names)
            names["gate"].close()
        self.assertTrue(printed.getvalue().startswith("LOGGED"))


class Auditing(unittest.TestCase):
    page = DOCS / "auditing.md"

    def verify(self, *arguments: str) -> tuple[int, str]:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = main(arguments)
        return code, printed.getvalue()

    def test_the_example_is_what_a_program_makes_and_the_page_shows_its_report(self) -> None:
        receipt, policy = example()
        files = {EXAMPLE / "refund.receipt.json": receipt, EXAMPLE / "refund.policy": policy.encode()}
        text = self.page.read_text(encoding="utf-8")
        if os.environ.get("UPDATE_GOLDEN"):
            for file, content in files.items():
                file.write_bytes(content)
        for file, content in files.items():
            self.assertEqual(file.read_bytes(), content)
        (command,) = re.findall(r"interlock verify (docs/example/\S+) --policy (docs/example/\S+)", text)
        code, printed = self.verify(str(ROOT / command[0]), "--policy", str(ROOT / command[1]))
        self.assertEqual(code, 0)
        shown = re.findall(r"```text\n(.*?)```", text, re.DOTALL)[1]
        if os.environ.get("UPDATE_GOLDEN"):
            self.page.write_text(text.replace(shown, printed), encoding="utf-8")
            shown = printed
        self.assertEqual(shown, printed)

    def test_a_changed_example_is_invalid(self) -> None:
        receipt, policy = example()
        with tempfile.TemporaryDirectory() as folder:
            file, trusted = Path(folder) / "r.json", Path(folder) / "p"
            file.write_bytes(receipt.replace(b'"sig": "', b'"sig": "AAAA', 1))
            trusted.write_text(policy)
            code, printed = self.verify(str(file), "--policy", str(trusted))
        self.assertEqual((code, printed.split(":")[0]), (1, "INVALID"))

    def test_words_claims_and_codes_are_all_explained(self) -> None:
        text = self.page.read_text(encoding="utf-8")
        words = re.findall(r"^\| `([A-Z_]+)` \|", text, re.MULTILINE)
        self.assertEqual(words, [word.value for word in Word])
        claims = [name.replace("_", " ") for name in NAMES]
        rows = re.findall(r"^\| ([a-z ]+) \| ", text.partition("## 4.")[2].partition("## 5.")[0], re.MULTILINE)
        self.assertEqual(rows, ["claim", *claims])
        codes = re.findall(r"^\| ([0-9]) \| ", text, re.MULTILINE)
        self.assertEqual(codes, ["0", "1", "2", "3", "4"])

    def test_what_is_not_shown_is_said(self) -> None:
        text = self.page.read_text(encoding="utf-8").partition("## What a receipt does not show")[2]
        for words in ("nothing else happened", "premises were true", "decision was right", "one witness"):
            self.assertIn(words, text)


if __name__ == "__main__":
    unittest.main()
