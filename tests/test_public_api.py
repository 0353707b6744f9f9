"""The package's face: its names, what importing it costs and drags in, and how it looks to type checkers."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import types
import unittest
from pathlib import Path

import interlock_tools
from interlock_tools import InterlockError

ROOT = Path(__file__).resolve().parent.parent
TYPING = Path(__file__).resolve().parent / "typing"
HEAVY = (
    "langchain",
    "langchain_core",
    "langgraph",
    "pydantic",
    "requests",
    "httpx",
    "stripe",
    "typer",
    "rich",
    "cryptography",
    "rfc8785",
    "psycopg",
    "tenacity",
    "asyncio",
    "sqlite3",
    "opentelemetry",
)
"""What a program that only imports the package has no use for yet."""


def run_python(code: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    return done.stdout


class Names(unittest.TestCase):
    def test_all_is_sorted_and_equal_to_the_public_names(self) -> None:
        declared = interlock_tools.__all__
        self.assertEqual(declared, sorted(declared))
        public = {
            name
            for name, value in vars(interlock_tools).items()
            if not name.startswith("_") and not isinstance(value, types.ModuleType) and name != "annotations"
        }
        public -= {"TYPE_CHECKING", "Any"}
        self.assertEqual(set(declared), public | {"__version__", *interlock_tools._LAZY})

    def test_every_name_is_there_and_documented(self) -> None:
        for name in interlock_tools.__all__:
            with self.subTest(name):
                value = getattr(interlock_tools, name)
                if inspect.isclass(value):
                    self.assertTrue(inspect.getdoc(value))

    def test_every_public_method_is_documented(self) -> None:
        for name in interlock_tools.__all__:
            value = getattr(interlock_tools, name)
            if not inspect.isclass(value):
                continue
            for member, function in vars(value).items():
                if inspect.isfunction(function) and not member.startswith("_"):
                    with self.subTest(f"{name}.{member}"):
                        self.assertTrue(function.__doc__)

    def test_every_error_has_one_root_and_stands_in_the_tree(self) -> None:
        from interlock_tools import errors

        tree = errors.__doc__ or ""
        for name, value in vars(errors).items():
            if inspect.isclass(value) and value.__module__ == errors.__name__:
                with self.subTest(name):
                    self.assertTrue(issubclass(value, InterlockError))
                    self.assertRegex(tree, rf"\b{name}\b")
                    self.assertIs(getattr(interlock_tools, name), value)

    def test_the_version_is_the_project_s(self) -> None:
        text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
        self.assertIn(f'version = "{interlock_tools.__version__}"', text)

    def test_it_is_typed(self) -> None:
        self.assertTrue((ROOT / "interlock_tools" / "py.typed").exists())


class Importing(unittest.TestCase):
    def test_it_drags_nothing_heavy_in(self) -> None:
        loaded = json.loads(run_python("import interlock_tools, json, sys; print(json.dumps(sorted(sys.modules)))"))
        self.assertIn("interlock_tools.gate", loaded)
        self.assertEqual([name for name in HEAVY if name in loaded], [])

    def test_a_call_drags_no_framework_in(self) -> None:
        code = (
            "import json, sys, tempfile; from interlock_tools import Gate\n"
            "with tempfile.TemporaryDirectory() as folder:\n"
            "    gate = Gate(folder + '/journal.db')\n"
            "    effect = gate.effect('e', key=lambda case: case)(lambda case: 'done-1')\n"
            "    assert str(effect('1')) == 'COMMITTED'\n"
            "    gate.close()\n"
            "print(json.dumps(sorted(sys.modules)))"
        )
        loaded = json.loads(run_python(code))
        allowed = {"tenacity", "asyncio", "sqlite3"}
        self.assertEqual([name for name in HEAVY if name in loaded and name not in allowed], [])

    def test_it_is_not_slow(self) -> None:
        """Beside the start of a bare interpreter and the standard modules that it needs, whatever the machine."""
        bare = (
            "import dataclasses, datetime, enum, inspect, json, logging, re, threading, typing, hashlib, decimal, uuid"
        )
        ratios = []
        for _ in range(5):
            began = time.perf_counter()
            run_python(bare)
            between = time.perf_counter()
            run_python("import interlock_tools")
            ratios.append((time.perf_counter() - between) / (between - began))
        self.assertLess(statistics.median(ratios), 4.0, ratios)


class Typing(unittest.TestCase):
    """``tests/typing`` as mypy and pyright see it in strict mode."""

    maxDiff = None

    def complaints(self, command: list[str], pattern: str) -> dict[str, set[int]]:
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False)
        found: dict[str, set[int]] = {"correct.py": set(), "wrong.py": set()}
        for name, line in re.findall(pattern, done.stdout, re.MULTILINE):
            found[name].add(int(line))
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)
        if not found["wrong.py"]:
            self.fail(f"nothing was checked: {done.stdout}{done.stderr}")
        return found

    def assertComplaints(self, found: dict[str, set[int]]) -> None:
        lines = (TYPING / "wrong.py").read_text(encoding="utf-8").splitlines()
        expected = {number for number, line in enumerate(lines, 1) if line.endswith("# error")}
        self.assertEqual(found["correct.py"], set())
        self.assertEqual(sorted(found["wrong.py"]), sorted(expected))

    @unittest.skipUnless(
        importlib.util.find_spec("mypy"), "mypy is not installed: the public types are not checked by it"
    )
    def test_mypy(self) -> None:
        command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(TYPING)]
        self.assertComplaints(self.complaints(command, r"^\S*?(\w+\.py):(\d+): error:"))

    @unittest.skipUnless(
        importlib.util.find_spec("pyright"), "pyright is not installed: the public types are not checked by it"
    )
    def test_pyright(self) -> None:
        if not _pyright_starts():
            self.skipTest("pyright does not start here (it needs node): the public types are not checked by it")
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--project", str(TYPING)]
        self.assertComplaints(self.complaints(command, r"^\s*\S*?(\w+\.py):(\d+):\d+ - error:"))


def _pyright_starts() -> bool:
    command = [sys.executable, "-m", "pyright", "--version"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0 and shutil.which(sys.executable) is not None


if __name__ == "__main__":
    unittest.main()
