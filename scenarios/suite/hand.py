"""What the hand-written arms share: a saved decision, a saved result, a log, and the instants at which a test kills.

This is what an engineer keeps beside a tool that must survive a restart: small
JSON files that are replaced as a whole, and a log of lines. Nobody would write
less; whoever writes more is on the way to a library.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import tenacity
from langchain_core.tools import BaseTool, StructuredTool

from interlock_tools.testing.crash import CrashPoint, reach
from scenarios.suite.model import Work

Claim = Literal["landed", "not_landed", "unknown"]


class Again(Exception):
    """It is worth another try, after another look."""


def with_retries(function: Callable[[], Any], tries: int = 3, first_s: float = 0.2) -> Any:
    """Run ``function`` again, with a pause, as long as it raises ``Again``; a few times in all."""
    again = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(Again),
        stop=tenacity.stop_after_attempt(tries),
        wait=tenacity.wait_exponential(first_s, max=3),
        reraise=True,
    )
    return again(function)


def settled(files: Files, once: Callable[[], tuple[str, dict[str, Any]]], **tries: Any) -> tuple[str, dict[str, Any]]:
    """Run ``once`` with retries; what it still cannot say after them is not known, and said so."""
    try:
        done: tuple[str, dict[str, Any]] = with_retries(once, **tries)
    except Again as error:
        return files.finish("unknown", f"Not known: {error}.")
    return done


class Instants:
    """The hook of the HTTP transport, for tools without a gate: it lets a test kill the process around a request."""

    def __call__(self) -> None:
        reach(CrashPoint.BEFORE_MARK)
        reach(CrashPoint.BEFORE_BYTES)

    def written(self) -> None:
        reach(CrashPoint.IN_FLIGHT)


class Files:
    """The decision, the result and the log of one case, in the application's folder."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._decision = work.path / f"decision-{work.worker}.json"
        self._result = work.path / f"result-{work.worker}.json"
        self._log = work.path / f"log-{work.worker}.jsonl"

    def decision(self, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The saved decision; a new one is made and saved if there is none."""
        if self._decision.exists():
            return dict(json.loads(self._decision.read_text(encoding="utf-8")))
        made = make()
        _replace(self._decision, made)
        self.log("decided", **made)
        return made

    def result(self) -> dict[str, Any] | None:
        """The saved result."""
        return json.loads(self._result.read_text(encoding="utf-8")) if self._result.exists() else None

    def finish(self, claim: Claim, words: str, **fields: Any) -> tuple[str, dict[str, Any]]:
        """Save the result and return what the tool returns."""
        result = {"claim": claim, "words": words, **fields}
        if claim != "unknown":
            _replace(self._result, result)
        self.log("finished", **result)
        saved()
        return words, result

    def again(self, result: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return a saved result as the tool returns it."""
        return str(result["words"]), result

    def log(self, event: str, **fields: Any) -> None:
        """Append a line to the log."""
        line = json.dumps({"at": round(time.time(), 3), "event": event, **fields}, sort_keys=True, default=str)
        with self._log.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
            file.flush()
            os.fsync(file.fileno())

    def approval(self) -> dict[str, Any] | None:
        """The case's approval, read now."""
        path = self.work.path / "approvals.json"
        found = json.loads(path.read_text(encoding="utf-8")).get(self.work.case) if path.exists() else None
        return found if isinstance(found, dict) else None


def _replace(path: Path, value: dict[str, Any]) -> None:
    draft = path.with_suffix(f".{os.getpid()}")
    with draft.open("w", encoding="utf-8") as file:
        json.dump(value, file, default=str)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def responded() -> None:
    """The service has answered, and nothing of that is saved."""
    reach(CrashPoint.AFTER_RESPONSE)


def saved() -> None:
    """The answer is saved, and the caller has not been told."""
    reach(CrashPoint.AFTER_COMMITTED)


def hand_tool(name: str, function: Callable[..., tuple[str, dict[str, Any]]]) -> BaseTool:
    """A LangChain tool from a function that returns content and artifact."""
    return StructuredTool.from_function(
        function, name=name, description=function.__doc__ or name, response_format="content_and_artifact"
    )
