"""Every pause that a gate makes is in its log, with its length and its reason."""

from __future__ import annotations

import asyncio
import tempfile
import unittest
from pathlib import Path
from typing import Any

from interlock_tools import Gate
from interlock_tools.commands import Sleep, arun


class Pauses(unittest.TestCase):
    def test_a_pause_before_another_send_is_logged_with_what_it_is_for(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            gate = Gate(Path(folder) / "journal.db", retry=5)
            self.addCleanup(gate.close)
            tries: list[str] = []

            @gate.effect("note.add", key=lambda request: request, dedupes=True)
            def add(request: str, *, idempotency_key: str, on_send: Any) -> dict[str, Any]:
                tries.append(idempotency_key)
                on_send()
                if len(tries) == 1:
                    raise TimeoutError("no answer")
                return {"id": "1"}

            with self.assertLogs("interlock_tools", "DEBUG") as logs:
                self.assertTrue(add("r-1").committed)
        (pause,) = [record for record in logs.records if hasattr(record, "pause_s")]
        self.assertGreater(pause.pause_s, 0)
        self.assertEqual(pause.why, "before another send of it")

    def test_under_asyncio_too(self) -> None:
        def flow() -> Any:
            yield Sleep(0.0, "rule 7: an earlier send of it may still land")
            return "done"

        with self.assertLogs("interlock_tools", "DEBUG") as logs:
            self.assertEqual(asyncio.run(arun(flow())), "done")
        self.assertIn("rule 7", logs.output[0])


if __name__ == "__main__":
    unittest.main()
