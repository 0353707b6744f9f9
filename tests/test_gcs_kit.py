"""The integration kit, run whole by ``write_object`` (over an object, as a new one) and ``restore_object``."""

from __future__ import annotations

import sys
import unittest
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

sys.path.insert(0, str(Path(__file__).resolve().parent))

from google.cloud import storage
from google.oauth2.credentials import Credentials
from kit_support import SandboxKit

from interlock_integrations.gcs import declare_restore, declare_write, gated_client
from interlock_tools import Gate
from interlock_tools.effect import Effect
from interlock_tools.testing.integration_kit import LANDED, SENDING

BUCKET = "configs"
TOKEN = "ya29.NotToBeSeenAnywhere"
NUMBERS = range(1, len(SENDING) + 1)


class GcsKit(SandboxKit):
    service = "gcs"
    sends = ("POST", f"/upload/storage/v1/b/{BUCKET}/o")
    versioning: ClassVar[bool] = True
    rate_limit: ClassVar[dict[str, Any]] = {"status": 429, "headers": {"Retry-After": "0"}}

    def setUp(self) -> None:
        super().setUp()
        self.control.action("create_bucket", bucket=BUCKET, versioning=self.versioning)

    def client(self) -> storage.Client:
        options = {"api_endpoint": self.sandbox.url}
        credentials: Any = Credentials(token=TOKEN)  # type: ignore[no-untyped-call]
        return gated_client(storage.Client(project="p", credentials=credentials, client_options=options))

    def name(self, number: int) -> str:
        return f"config/{number}.json"

    def put(self, number: int, content: str, count: int = 1) -> int:
        made = self.control.action("put", bucket=BUCKET, object=self.name(number), content=content, count=count)
        return int(made["generation"])

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_write(gate, self.client())

    def arguments(self, number: int) -> dict[str, Any]:
        content = f'{{"version": {number}}}'
        return {"request": f"case-{number}", "bucket": BUCKET, "name": self.name(number), "content": content}

    def landed(self, number: int) -> int:
        objects = self.control.ledger()["buckets"][BUCKET]["objects"]
        written = objects.get(self.name(number), {"generations": []})["generations"]
        return sum(generation["via"] != "person" for generation in written)

    def disturb(self, number: int) -> None:
        self.put(number, "somebody else's")

    def crowd(self, number: int) -> None:
        self.control.action("limit", max_page=2)
        self.put(number, "somebody else's", count=5)

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from ({"bucket": "gs://configs"}, {"bucket": "a/b"}, {"bucket": "configs\n"}, {"bucket": ""})
        yield from ({"name": ""}, {"name": ".."}, {"name": "a\nb"}, {"name": "é" * 600}, {"if_generation_match": 0})

    def secrets(self) -> Iterable[str]:
        return (TOKEN,)


class Write(GcsKit, unittest.TestCase):
    """Over an object that is there."""

    def setUp(self) -> None:
        super().setUp()
        for number in NUMBERS:
            self.put(number, "old")

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from super().bad_arguments()
        yield from ({"content": "x" * 1_000_001}, {"content": b"x"}, {"content": 5})


class Create(GcsKit, unittest.TestCase):
    """Where there is none: that can become true again, so the service does not enforce it for good."""


class Restore(GcsKit, unittest.TestCase):
    sends = ("POST", f"/storage/v1/b/{BUCKET}/o/.*/rewriteTo/.*")

    def setUp(self) -> None:
        super().setUp()
        self.older = {}
        for number in NUMBERS:
            self.older[number] = self.put(number, "v41")
            self.put(number, "v42")

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_restore(gate, self.client())

    def arguments(self, number: int) -> dict[str, Any]:
        generation = self.older[number]
        return {"request": f"case-{number}", "bucket": BUCKET, "name": self.name(number), "generation": generation}

    def bad_arguments(self) -> Iterable[dict[str, Any]]:
        yield from super().bad_arguments()
        yield from ({"generation": 0}, {"generation": "41"}, {"generation": True}, {"generation": 2**63})


class Unversioned(GcsKit, unittest.TestCase):
    """Over an object, in a bucket that keeps nothing of what is replaced."""

    versioning = False

    def setUp(self) -> None:
        super().setUp()
        for number in NUMBERS:
            self.put(number, "old")

    def crowd(self, number: int) -> None:
        self.skipTest("one generation is no second page")

    def test_kit_the_world_moves_after_it_landed(self) -> None:
        """Ours was there and was replaced: no trace of it is left, and nobody can know."""
        for number, point in enumerate(LANDED, 1):
            self._die_calling(point, number)
            self.disturb(number)
        gate, effect = self._open()
        for number, point in enumerate(LANDED, 1):
            with self.subTest(point.value):
                outcome = self._settled(gate, effect, number)
                self._is(outcome, "AMBIGUOUS", number, 1)
                self.assertIn("left no trace", outcome.message)
        self.assertEqual(self.requests(), len(LANDED), "nothing was sent again")


class CreateUnversioned(GcsKit, unittest.TestCase):
    """As a new object, in a bucket that keeps nothing of what is replaced, where nobody deletes."""

    versioning = False

    def declare(self, gate: Gate) -> Effect[Any]:
        return declare_write(gate, self.client(), deletions="never")

    def crowd(self, number: int) -> None:
        self.skipTest("one generation is no second page")

    def test_kit_the_world_moves_after_it_landed(self) -> None:
        self._die_calling(LANDED[0], 1)
        self.disturb(1)
        gate, effect = self._open()
        self._is(self._settled(gate, effect, 1), "AMBIGUOUS", 1, 1)


if __name__ == "__main__":
    unittest.main()
