"""What the documentation shows is run, and what it names exists."""

from __future__ import annotations

import contextlib
import io
import re
import tempfile
import unittest
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


class Shop:
    """A payment service in this process, for the guide's examples."""

    def __init__(self) -> None:
        self.refunds: dict[str, dict[str, Any]] = {}
        self.chargebacks: dict[str, list[str]] = {}
        self.next_answer: Exception | None = None

    @property
    def refunds_made(self) -> int:
        return len(self.refunds)

    def facts(self, payment: str, leave_out: str) -> dict[str, Any]:
        others = [r for key, r in self.refunds.items() if r["payment"] == payment and key != leave_out]
        return {
            "refunded_by_others": sum(r["amount"] for r in others),
            "chargebacks": list(self.chargebacks.get(payment, [])),
        }

    def find_refund(self, payment: str, key: str) -> dict[str, Any] | None:
        found = self.refunds.get(key)
        return found if found and found["payment"] == payment else None

    def refund(self, payment: str, amount: int, *, key: str, before_bytes: Any = None) -> dict[str, Any]:
        answer, self.next_answer = self.next_answer, None
        if before_bytes is not None and type(answer).__name__ != "NotSent":
            before_bytes()
        if answer is not None:
            raise answer
        made = {"id": f"re_{len(self.refunds) + 1}", "payment": payment, "amount": amount}
        return self.refunds.setdefault(key, made)


def python_blocks(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


class DocumentationTest(unittest.TestCase):
    def run_blocks(self, page: Path) -> dict[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            names: dict[str, Any] = {"shop": Shop(), "journal_path": str(Path(folder) / "guide.db")}
            code = python_blocks(page).replace('Gate("refunds.db")', "Gate(journal_path)")
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(code, str(page), "exec"), names)
            names["gate"].close()
        return names

    def test_the_guide_runs(self) -> None:
        names = self.run_blocks(ROOT / "docs" / "guide.md")
        self.assertEqual(names["shop"].refunds_made, 6)

    def test_the_readme_example_runs(self) -> None:
        names = self.run_blocks(ROOT / "README.md")
        self.assertEqual(names["shop"].refunds_made, 1)
        self.assertEqual(str(names["outcome"]), "COMMITTED")

    def test_links_between_pages_lead_somewhere(self) -> None:
        for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
            for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8")):
                with self.subTest(page=page.name, target=target):
                    self.assertTrue((page.parent / target).exists())

    def test_modules_named_in_the_architecture_exist(self) -> None:
        text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
        listing = re.search(r"```\ninterlock_tools/\n(.*?)```", text, re.DOTALL)
        assert listing is not None
        for name in re.findall(r"\b(\w+\.py)\b|\b(\w+/)", listing.group(1)):
            with self.subTest(name=name):
                self.assertTrue((ROOT / "interlock_tools" / (name[0] or name[1])).exists())


if __name__ == "__main__":
    unittest.main()
