"""The Cloud Storage sandbox, driven by the official client over real HTTP."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import unittest
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import quote

import googleapiclient
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from scenarios.sandbox import SandboxProcess
from scenarios.sandbox.gcs.crc32c import crc32c, slow_crc32c

BUCKET = "configs"
NAME = "config/prod.json"


class GcsCase(unittest.TestCase):
    """One sandbox for the class, reset for each test: a bucket with versioning and one without."""

    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("gcs").start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        self.control = self.sandbox.control
        self.control.reset()
        self.control.action("create_bucket", bucket=BUCKET, versioning=True)
        self.control.action("create_bucket", bucket="plain")
        self.client = storage.Client(
            project="p",
            credentials=AnonymousCredentials(),  # type: ignore[no-untyped-call]
            client_options={"api_endpoint": self.sandbox.url},
        )
        self.client._bucket_metadata_cache = None
        self.bucket = self.client.bucket(BUCKET)

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def write(self, content: str = "x", name: str = NAME, bucket: str = BUCKET, **options: Any) -> storage.Blob:
        blob = self.client.bucket(bucket).blob(name)
        blob.metadata = options.pop("metadata", None)
        options.setdefault("retry", None)
        blob.upload_from_string(content, **options)
        return blob

    def rows(self, bucket: str = BUCKET, name: str = NAME) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.control.ledger()["buckets"][bucket]["objects"][name]["generations"]
        return rows

    def refused(self, status: int, call: Any) -> exceptions.GoogleAPICallError:
        with self.assertRaises(exceptions.GoogleAPICallError) as caught:
            call()
        self.assertEqual(caught.exception.code, status, caught.exception)
        return caught.exception


class Writes(GcsCase):
    def test_a_write_and_what_it_reads_as(self) -> None:
        made = self.write('{"a": 1}', content_type="application/json", metadata={"by": "me"})
        found = self.bucket.get_blob(NAME)
        assert found is not None
        self.assertEqual((found.generation, found.metageneration), (made.generation, 1))
        self.assertEqual((found.content_type, found.metadata, found.size), ("application/json", {"by": "me"}, 8))
        self.assertEqual(found.md5_hash, base64.b64encode(hashlib.md5(b'{"a": 1}').digest()).decode())
        self.assertEqual(found.download_as_bytes(), b'{"a": 1}')
        self.assertEqual(found.download_as_bytes(start=2, end=4), b'a":')
        self.assertEqual(self.rows()[0]["via"], "multipart")

    def test_generations_grow(self) -> None:
        numbers = [self.write(str(number)).generation for number in range(5)]
        self.assertEqual(numbers, sorted(set(numbers)))
        self.control.set_clock(1_000_000_000)
        self.assertGreater(self.write().generation, numbers[-1])

    def test_if_generation_match_compares_and_swaps(self) -> None:
        first = self.write("1")
        second = self.write("2", if_generation_match=first.generation)
        error = self.refused(412, lambda: self.write("3", if_generation_match=first.generation))
        self.assertIn("conditionNotMet", str(error))
        self.write("4", if_generation_match=second.generation, if_metageneration_match=1)
        self.refused(412, lambda: self.write("5", if_metageneration_match=9))
        self.refused(412, lambda: self.write("6", if_generation_not_match=self.rows()[-1]["generation"]))
        self.assertEqual([row["content"] for row in self.rows()], ["1", "2", "4"])

    def test_generation_zero_is_create_only_and_becomes_true_again(self) -> None:
        self.write("1", if_generation_match=0)
        self.refused(412, lambda: self.write("2", if_generation_match=0))
        self.bucket.blob(NAME).delete(retry=None)
        self.write("3", if_generation_match=0)
        self.assertEqual([row["content"] for row in self.rows()], ["1", "3"])

    def test_checksums_are_checked(self) -> None:
        blob = self.bucket.blob(NAME)
        blob.crc32c = "AAAAAA=="
        self.refused(400, lambda: blob.upload_from_string("x", checksum=None, retry=None))
        blob = self.bucket.blob(NAME)
        blob.md5_hash = "AAAAAAAAAAAAAAAAAAAAAA=="
        self.refused(400, lambda: blob.upload_from_string("x", checksum=None, retry=None))
        for checksum in ("md5", "crc32c", "auto"):
            self.write(checksum=checksum)
        self.assertEqual(slow_crc32c(b"123456789"), 0xE3069283)
        self.assertEqual(crc32c(b"123456789"), 0xE3069283)

    def test_a_resumable_upload_is_one_generation(self) -> None:
        blob = self.bucket.blob(NAME, chunk_size=256 * 1024)
        content = bytes(range(256)) * 2500
        blob.upload_from_file(io.BytesIO(content), if_generation_match=0)
        self.assertEqual(blob.download_as_bytes(), content)
        (row,) = self.rows()
        self.assertEqual((row["via"], row["size"]), ("resumable", len(content)))
        self.assertEqual(self.control.count("PUT"), 3)
        again = self.bucket.blob(NAME, chunk_size=256 * 1024)
        self.refused(412, lambda: again.upload_from_file(io.BytesIO(content), if_generation_match=0))

    def test_a_media_upload(self) -> None:
        url = f"{self.sandbox.url}/upload/storage/v1/b/{BUCKET}/o?uploadType=media&name={quote(NAME, safe='')}"
        with urllib.request.urlopen(urllib.request.Request(url, b"hello", {"Content-Type": "text/plain"})) as answer:
            made = json.load(answer)
        self.assertEqual((made["name"], made["contentType"], self.rows()[0]["via"]), (NAME, "text/plain", "media"))

    def test_the_client_s_own_retry_meets_its_own_write(self) -> None:
        """Measured with the client as it comes: a 412 that its own first attempt caused, or a second generation."""
        path = f"/upload/storage/v1/b/{BUCKET}/o"
        self.control.fault("apply_then_status", "POST", path, status=503)
        blob = self.bucket.blob("a")
        self.refused(412, lambda: blob.upload_from_string("x", if_generation_match=0))
        self.assertEqual(len(self.rows(name="a")), 1)
        self.control.fault("apply_then_status", "POST", path, status=503)
        self.bucket.blob("b").upload_from_string("x")
        self.assertEqual(len(self.rows(name="b")), 2)


class Versions(GcsCase):
    def test_older_generations_stay_where_the_bucket_keeps_them(self) -> None:
        first, second = self.write("1"), self.write("2")
        older = self.bucket.get_blob(NAME, generation=first.generation)
        assert older is not None
        self.assertEqual(older.download_as_bytes(), b"1")
        self.assertIsNotNone(older.time_deleted)
        listed = list(self.client.list_blobs(BUCKET, versions=True))
        self.assertEqual([blob.generation for blob in listed], [first.generation, second.generation])
        self.assertEqual(len(list(self.client.list_blobs(BUCKET))), 1)

    def test_without_versioning_a_replaced_write_leaves_no_trace(self) -> None:
        first = self.write("1", bucket="plain")
        self.write("2", bucket="plain")
        plain = self.client.bucket("plain")
        self.assertIsNone(plain.get_blob(NAME, generation=first.generation))
        self.assertEqual(len(list(self.client.list_blobs("plain", versions=True))), 1)
        self.assertEqual([row["gone"] for row in self.rows("plain")], [True, False])
        plain.blob(NAME).delete()
        self.assertIsNone(plain.get_blob(NAME))

    def test_every_page(self) -> None:
        self.control.action("put", bucket=BUCKET, object=NAME, content="x", count=2105)
        listed = list(self.client.list_blobs(BUCKET, prefix=NAME, versions=True))
        self.assertEqual(len({blob.generation for blob in listed}), 2105)
        self.assertEqual(self.control.count("GET", f"/storage/v1/b/{BUCKET}/o"), 3)
        self.control.action("limit", max_page=1000)
        few = list(self.client.list_blobs(BUCKET, versions=True, page_size=10, max_results=25))
        self.assertEqual(len(few), 25)

    def test_prefixes_offsets_and_names(self) -> None:
        for name in ("a", "a b", "a/1", "a/2/3", "b", "ü?#%"):
            self.write(name, name)
        listed = [blob.name for blob in self.client.list_blobs(BUCKET, prefix="a", start_offset="a", end_offset="a ")]
        self.assertEqual(listed, ["a"])
        folded = self.client.list_blobs(BUCKET, prefix="a/", delimiter="/")
        self.assertEqual(([blob.name for blob in folded], folded.prefixes), (["a/1"], {"a/2/"}))
        self.assertEqual(self.bucket.blob("ü?#%").download_as_bytes().decode(), "ü?#%")

    def test_deletes(self) -> None:
        first = self.write("1")
        self.write("2")
        self.refused(412, lambda: self.bucket.blob(NAME).delete(if_generation_match=first.generation))
        self.bucket.blob(NAME).delete()
        self.assertIsNone(self.bucket.get_blob(NAME))
        self.refused(404, lambda: self.bucket.blob(NAME).delete())
        self.assertEqual(len(list(self.client.list_blobs(BUCKET, versions=True))), 2)
        self.bucket.blob(NAME, generation=first.generation).delete()
        self.assertEqual(len(list(self.client.list_blobs(BUCKET, versions=True))), 1)
        self.assertEqual(len(self.rows()), 2, "the ledger forgets nothing")

    def test_restoring_by_rewrite_and_by_copy(self) -> None:
        old = self.write("v41", metadata={"version": "41"}, content_type="application/json")
        live = self.write("v42")
        copied = self.bucket.copy_blob(
            self.bucket.blob(NAME), self.bucket, NAME, source_generation=old.generation,
            if_generation_match=live.generation,
        )  # fmt: skip
        self.assertEqual((copied.metadata, copied.content_type), ({"version": "41"}, "application/json"))
        again = self.bucket.blob(NAME)
        again.metadata = {"restored": "yes"}
        source = self.bucket.blob(NAME, generation=old.generation)
        self.refused(412, lambda: again.rewrite(source, if_generation_match=live.generation))
        token, done, size = again.rewrite(source, if_generation_match=copied.generation)
        self.assertEqual((token, done, size, again.metadata), (None, 3, 3, {"restored": "yes"}))
        self.assertEqual([row["content"] for row in self.rows()], ["v41", "v42", "v41", "v41"])
        missing = self.bucket.blob(NAME, generation=5)
        self.refused(404, lambda: again.rewrite(missing))

    def test_a_large_rewrite_takes_several_calls_and_writes_at_the_last(self) -> None:
        self.write("0123456789")
        self.control.action("limit", rewrite_bytes=4)
        target = self.bucket.blob("copy")
        source = self.bucket.blob(NAME)
        token, done, _ = target.rewrite(source)
        self.assertEqual((done, target.exists()), (4, False))
        token, done, _ = target.rewrite(source, token=token)
        token, done, _ = target.rewrite(source, token=token)
        self.assertEqual((token, done, target.download_as_bytes()), (None, 10, b"0123456789"))

    def test_metadata_changes_the_metageneration_alone(self) -> None:
        blob = self.write(metadata={"a": "1"})
        generation = blob.generation
        blob.metadata = {"b": "2", "a": None}
        blob.patch(if_metageneration_match=1)
        self.assertEqual((blob.generation, blob.metageneration, blob.metadata), (generation, 2, {"b": "2"}))
        self.refused(412, lambda: blob.patch(if_metageneration_match=1))


class Buckets(GcsCase):
    def test_buckets(self) -> None:
        made = self.client.create_bucket("another")
        self.assertFalse(made.versioning_enabled)
        made.versioning_enabled = True
        made.patch()
        self.assertTrue(self.client.get_bucket("another").versioning_enabled)
        self.refused(409, lambda: self.client.create_bucket("another"))
        self.assertEqual({bucket.name for bucket in self.client.list_buckets()}, {"another", BUCKET, "plain"})
        made.delete()
        self.refused(404, lambda: self.client.get_bucket("another"))

    def test_errors(self) -> None:
        self.refused(404, lambda: self.write(bucket="missing"))
        self.refused(404, lambda: self.bucket.blob("missing").reload())
        self.control.action("deny", bucket=BUCKET, permissions=["storage.objects.list", "storage.objects.delete"])
        self.refused(403, lambda: list(self.client.list_blobs(BUCKET)))
        self.write("1")
        self.refused(403, lambda: self.write("2"))
        for status in (403, 429, 500, 503):
            self.control.fault("answer", "GET", f"/storage/v1/b/{BUCKET}/o/.*", status=status)
            self.refused(status, lambda: self.bucket.blob(NAME).reload(retry=None))

    def test_shapes_are_those_of_the_published_description(self) -> None:
        path = Path(googleapiclient.__file__).parent / "discovery_cache" / "documents" / "storage.v1.json"
        schemas = json.loads(path.read_text(encoding="utf-8"))["schemas"]
        self.write("1", metadata={"a": "b"})
        self.write("2")
        base = f"{self.sandbox.url}/storage/v1/b/{BUCKET}"
        shown: dict[str, tuple[str, Any]] = {
            "Object": (f"{base}/o/{quote(NAME, safe='')}", None),
            "Objects": (f"{base}/o?versions=true", None),
            "Bucket": (base, None),
            "Buckets": (f"{self.sandbox.url}/storage/v1/b", None),
            "RewriteResponse": (f"{base}/o/{quote(NAME, safe='')}/rewriteTo/b/{BUCKET}/o/copy", b""),
        }
        for kind, (url, body) in shown.items():
            with urllib.request.urlopen(urllib.request.Request(url, body)) as answer:
                self.check(json.load(answer), schemas[kind], schemas, kind)

    def check(self, value: Any, schema: dict[str, Any], schemas: dict[str, Any], where: str) -> None:
        """``value`` has the type that the description gives, and no field that it does not know."""
        schema = schemas[schema["$ref"]] if "$ref" in schema else schema
        types = {"string": str, "boolean": bool, "integer": int, "object": dict, "array": list}
        self.assertIsInstance(value, types[schema["type"]], where)
        for index, item in enumerate(value if isinstance(value, list) else ()):
            self.check(item, schema["items"], schemas, f"{where}[{index}]")
        known = schema.get("properties", {})
        for name, item in value.items() if isinstance(value, dict) else ():
            inner = known.get(name, schema.get("additionalProperties"))
            self.assertIsNotNone(inner, f"{where}.{name} is not in the description")
            self.check(item, inner, schemas, f"{where}.{name}")


if __name__ == "__main__":
    unittest.main()
