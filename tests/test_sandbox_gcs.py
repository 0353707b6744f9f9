"""The Cloud Storage sandbox, driven by the official client over HTTP."""

from __future__ import annotations

import os
import unittest
from typing import Any, ClassVar

from scenarios.sandbox import SandboxProcess

try:
    from google.api_core.exceptions import NotFound, PreconditionFailed
    from google.auth.credentials import AnonymousCredentials
    from google.cloud import storage
except ImportError as error:
    raise unittest.SkipTest("google-cloud-storage is not installed") from error


class CloudStorageSandboxTest(unittest.TestCase):
    sandbox: ClassVar[SandboxProcess]
    client: ClassVar[Any]

    @classmethod
    def setUpClass(cls) -> None:
        os.environ.setdefault("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        cls.sandbox = SandboxProcess("gcs")
        cls.sandbox.__enter__()
        cls.addClassCleanup(cls.sandbox.__exit__, None, None, None)
        cls.client = storage.Client(
            project="p", credentials=AnonymousCredentials(), client_options={"api_endpoint": cls.sandbox.url}
        )

    def setUp(self) -> None:
        self.sandbox.control.reset()

    def bucket(self, versioning: bool) -> Any:
        bucket = self.client.bucket("config")
        bucket.versioning_enabled = versioning
        return self.client.create_bucket(bucket)

    def write(self, bucket: Any, content: str, **conditions: Any) -> int:
        blob = bucket.blob("app.json")
        blob.metadata = {"written-by": content}
        blob.upload_from_string(content, retry=None, **conditions)
        return int(blob.generation)

    def test_a_write_is_held_to_the_generation_that_it_replaces(self) -> None:
        bucket = self.bucket(versioning=False)
        first = self.write(bucket, "v1", if_generation_match=0)
        second = self.write(bucket, "v2", if_generation_match=first)
        self.assertGreater(second, first)
        for stale in (0, first):
            with self.subTest(stale=stale), self.assertRaises(PreconditionFailed):
                self.write(bucket, "v3", if_generation_match=stale)
        self.assertEqual(bucket.blob("app.json").download_as_bytes(), b"v2")

    def test_metadata_travels_with_each_generation(self) -> None:
        bucket = self.bucket(versioning=True)
        generations = [self.write(bucket, f"v{number}") for number in range(3)]
        listed = {blob.generation: blob.metadata for blob in self.client.list_blobs("config", versions=True)}
        self.assertEqual(sorted(listed), generations)
        self.assertEqual(listed[generations[0]], {"written-by": "v0"})
        old = bucket.blob("app.json", generation=generations[0])
        self.assertEqual(old.download_as_bytes(), b"v0")

    def test_without_versioning_a_replaced_write_leaves_no_trace(self) -> None:
        bucket = self.bucket(versioning=False)
        first = self.write(bucket, "v1")
        self.write(bucket, "v2")
        self.assertEqual(len(list(self.client.list_blobs("config", versions=True))), 1)
        with self.assertRaises(NotFound):
            bucket.blob("app.json", generation=first).download_as_bytes()

    def test_a_cut_connection_after_the_write_leaves_the_write(self) -> None:
        bucket = self.bucket(versioning=False)
        self.sandbox.control.fault("apply_then_cut", method="POST", path="/upload/.*")
        with self.assertRaises(Exception):  # noqa: B017 - whatever the transport says
            self.write(bucket, "v1")
        objects = self.sandbox.control.ledger()["buckets"]["config"]["objects"]
        self.assertEqual([found["content"] for found in objects["app.json"]["generations"]], ["v1"])


if __name__ == "__main__":
    unittest.main()
