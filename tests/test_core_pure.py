"""The core reads no clock, no file, no socket and no random number, and knows nothing of the packages above it."""

from __future__ import annotations

import ast
import subprocess
import sys
import unittest
from collections.abc import Iterator
from pathlib import Path

import interlock_tools.core

CORE = Path(interlock_tools.core.__file__).parent
MODULES = sorted(CORE.glob("*.py"))

ALLOWED = {"__future__", "collections.abc", "dataclasses", "enum", "hashlib", "json", "typing"}
"""Modules of values alone."""

EFFECTS = {"open", "input", "print", "exec", "eval", "compile", "__import__", "breakpoint", "globals", "id", "hash"}
"""Built-in functions that do something, or whose value differs from run to run."""


def imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every import: how many levels up it is relative to, and the module."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


class TestPure(unittest.TestCase):
    def test_it_imports_values_and_itself_alone(self) -> None:
        self.assertGreaterEqual(len(MODULES), 6)
        siblings = {path.stem for path in MODULES}
        for path in MODULES:
            for level, name in imports(ast.parse(path.read_text("utf-8"))):
                with self.subTest(module=path.name, imports="." * level + name):
                    if level:
                        self.assertEqual(level, 1)
                        self.assertIn(name, siblings)
                    else:
                        self.assertIn(name, ALLOWED)

    def test_it_calls_nothing_that_does_something(self) -> None:
        for path in MODULES:
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                with self.subTest(module=path.name, line=getattr(node, "lineno", 0)):
                    self.assertNotIsInstance(node, (ast.Global, ast.Nonlocal, ast.AsyncFunctionDef, ast.Await))
                    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                        self.assertNotIn(node.func.id, EFFECTS)

    def test_it_works_without_the_rest_of_the_package(self) -> None:
        """Loaded under a bare parent, it loads nothing of the package but itself."""
        code = (
            "import sys, types\n"
            "parent = sys.modules['interlock_tools'] = types.ModuleType('interlock_tools')\n"
            f"parent.__path__ = [{str(CORE.parent)!r}]\n"
            "import interlock_tools.core.decide, interlock_tools.core.ends, interlock_tools.core.canonical\n"
            "print(*(name for name in sys.modules if name.startswith('interlock_tools.')))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
        loaded = done.stdout.split()
        self.assertIn("interlock_tools.core.states", loaded)
        self.assertEqual([name for name in loaded if not name.startswith("interlock_tools.core")], [])


class TestServiceModel(unittest.TestCase):
    def test_the_explorers_service_shares_no_code_with_the_core(self) -> None:
        path = CORE.parent.parent / "scenarios" / "explorer" / "service.py"
        found = {(level, name) for level, name in imports(ast.parse(path.read_text("utf-8")))}
        self.assertEqual(found, {(0, "__future__"), (0, "collections.abc"), (0, "typing")})


if __name__ == "__main__":
    unittest.main()
