"""The toolkit of the how-to: it passes the integration kit and LangChain's own ideas of a tool."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from kit_support import SandboxKit

from examples.board_toolkit import BoardToolkit, declare_notice
from interlock_tools import BadArguments, Gate
from interlock_tools.effect import Effect
from interlock_tools.testing.integration_kit import SENDING

ROOT = Path(__file__).resolve().parents[1]


class Notice(SandboxKit, unittest.TestCase):
    service = "generic"
    sends = ("POST", "/a/[^/]+/do")
    rate_limit: ClassVar[dict[str, Any]] = {"status": 429, "headers": {"Retry-After": "0"}}

    def setUp(self) -> None:
        super().setUp()
        for number in range(1, len(SENDING) + 1):
            self.control.action("open", account=f"board-{number}", dedupes_s=-1, timeout_s=60)

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_notice(gate, self.sandbox.url)

    def arguments(self, number: int) -> dict[str, Any]:
        return {"request": f"case-{number}", "board": f"board-{number}", "text": "Closed on Monday."}

    def landed(self, number: int) -> int:
        return len(self.control.ledger()[f"board-{number}"]["effects"])

    def disturb(self, number: int) -> None:
        self.control.action("change", account=f"board-{number}", owner="somebody else")

    def crowd(self, number: int) -> None:
        self.skipTest("a notice is found by its key, which has no pages")

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"board": "../x"}, {"board": 5}, {"text": ""}, {"text": "x" * 301}, {"colour": "red"})


class Toolkit(unittest.TestCase):
    def test_a_model_s_call_is_checked_before_anything_is_sent(self) -> None:
        with tempfile.TemporaryDirectory() as folder, contextlib.closing(Gate(Path(folder) / "j.db")) as gate:
            (tool,) = BoardToolkit(gate, "http://127.0.0.1:9", request=lambda: "case-1").get_tools()
            self.assertEqual(tool.name, "put_up_notice")
            for bad in ({"board": "../x", "text": "x"}, {"board": "lobby", "text": "x", "key": "k"}):
                with self.subTest(bad), self.assertRaises(BadArguments):
                    tool.invoke(bad)
            message = tool.invoke({"board": "lobby", "text": "Closed."})
            self.assertIn("could not be read", message)

    def test_the_page_shows_it_whole(self) -> None:
        code = (ROOT / "examples" / "board_toolkit.py").read_text(encoding="utf-8")
        page = (ROOT / "docs" / "writing-a-toolkit.md").read_text(encoding="utf-8")
        self.assertIn(f"```python\n{code}```", page)
        self.assertLess(len(code.splitlines()), 100)


if __name__ == "__main__":
    unittest.main()
