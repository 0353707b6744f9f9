"""The Cloud Storage tools against the sandbox: what they rest on, how they recover, what nobody can know."""

from __future__ import annotations

import json
import os
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from google.cloud import storage
from google.oauth2.credentials import Credentials
from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.gcs import GcsToolkit, WriteObject, storage_from_environment
from interlock_tools import BadArguments, DefinitionError, Gate, Grant, MissingRequestKey
from interlock_tools.langchain import GatedTool

BUCKET, PLAIN, NAME = "configs", "plain", "config/prod.json"
UPLOADS = "/upload/storage/v1/b/[^/]+/o"
REWRITES = "/storage/v1/b/.*/rewriteTo/.*"
TOKEN = "ya29.NotToBeSeenAnywhere"


class GcsToolCase(ToolCase):
    service = "gcs"
    sends = ("POST", f"{UPLOADS}|{REWRITES}")
    tool_name = "write_object"

    def setUp(self) -> None:
        super().setUp()
        self.act = self.control.action
        self.act("create_bucket", bucket=BUCKET, versioning=True)
        self.act("create_bucket", bucket=PLAIN)
        self.pending: list[Any] = []

    def api(self, token: str = TOKEN) -> storage.Client:
        credentials: Any = Credentials(token=token)  # type: ignore[no-untyped-call]
        return storage.Client(project="p", credentials=credentials, client_options={"api_endpoint": self.sandbox.url})

    def toolkit(self, gate: Gate | None = None, **options: Any) -> GcsToolkit:
        options.setdefault("client", self.api())
        options.setdefault("request", lambda: "case-1")
        return GcsToolkit(gate or self.gate, **options)

    def tool(self, gate: Gate | None = None, **options: Any) -> GatedTool:
        (tool,) = self.toolkit(gate, tools=self.tool_name, **options).get_tools()
        assert isinstance(tool, GatedTool)
        return tool

    def write(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        return self.call(tool or self.tool(), **{"bucket": BUCKET, "name": NAME, "content": "new", **changes})

    def put(self, content: str = "old", bucket: str = BUCKET, **fields: Any) -> int:
        """A person writes the object."""
        made = self.act("put", bucket=bucket, object=NAME, content=content, **fields)
        return int(made["generation"])

    def rows(self, bucket: str = BUCKET) -> list[dict[str, Any]]:
        objects = self.control.ledger()["buckets"][bucket]["objects"]
        rows: list[dict[str, Any]] = objects.get(NAME, {"generations": []})["generations"]
        return rows

    def ours(self, bucket: str = BUCKET) -> list[dict[str, Any]]:
        return [row for row in self.rows(bucket) if row["via"] != "person"]

    def live(self, bucket: str = BUCKET) -> str | None:
        return next((str(row["content"]) for row in self.rows(bucket) if row["live"]), None)

    def lost(self) -> None:
        self.control.fault("apply_then_cut", *self.sends)

    def vanishes(self) -> None:
        self.control.fault("cut_before", *self.sends)

    def then(self, *happens: Any) -> dict[str, Any]:
        """Premises that let something happen once a request has left."""
        self.pending = list(happens)

        def premises() -> dict[str, Any]:
            while self.count() and self.pending:
                self.pending.pop(0)()
            return {}

        return {"premises": premises}


class OneWrite(GcsToolCase):
    def test_over_an_object_that_is_there(self) -> None:
        before = self.put(content_type="application/json")
        tool = self.tool()
        first, second = self.write(tool), self.write(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual(first.text, second.text)
        (made,) = self.ours()
        effect_id = first.artifact["effect_id"]
        self.assertEqual(made["metadata"], {"interlock_effect_id": effect_id})
        self.assertEqual(first.artifact["result"]["generation"], made["generation"])
        self.assertEqual((self.count(), self.dispatched(self.gate, effect_id)), (1, 1))
        self.assertIn(f"ifGenerationMatch={before}", self.control.requests(*self.sends)[0]["query"])
        found = self.api().bucket(BUCKET).get_blob(NAME)
        assert found is not None
        self.assertEqual((found.download_as_text(), found.content_type), ("new", "application/json"))

    def test_as_a_new_object(self) -> None:
        self.assert_outcome(self.write(), "COMMITTED", "send")
        self.assertIn("ifGenerationMatch=0", self.control.requests(*self.sends)[0]["query"])
        found = self.api().bucket(BUCKET).get_blob(NAME)
        assert found is not None
        self.assertEqual(found.content_type, "text/plain; charset=utf-8")

    def test_text_arrives_byte_for_byte(self) -> None:
        for number, text in enumerate(("", "ü\r\n--x\r\n\r\n", "\x00\u2028", "--===")):
            tool = self.tool(name=f"e{number}")
            self.assert_outcome(self.write(tool, name=f"{number}", content=text), "COMMITTED", "send")
            self.assertEqual(self.api().bucket(BUCKET).blob(f"{number}").download_as_bytes(), text.encode())

    def test_another_content_under_the_same_request(self) -> None:
        tool = self.tool()
        self.write(tool)
        self.assert_outcome(self.write(tool, content="newer"), "REFUSED:already_done")
        self.assertEqual(len(self.ours()), 1)

    def test_arguments(self) -> None:
        tool = self.tool()
        bad: list[dict[str, Any]] = [{"bucket": "gs://configs"}, {"bucket": "a/b"}, {"name": ""}, {"name": "a\nb"}]
        bad += [{"content": 5}, {"content": "x" * 1_000_001}, {"content": "é" * 600_000}, {"generation": 0}]
        for change in bad:
            with self.subTest(list(change)), self.assertRaises(BadArguments):
                tool.invoke({"bucket": BUCKET, "name": NAME, "content": "x", **change})
        self.assertEqual((self.control.requests(), self.gate.journal.effects()), ([], []))
        with self.assertRaises(MissingRequestKey):
            self.tool(request=None, name="other").invoke({"bucket": BUCKET, "name": NAME, "content": "x"})

    def test_a_bucket_that_is_not_there(self) -> None:
        self.assert_outcome(self.write(bucket="missing"), "REFUSED:rejected")


class Premises(GcsToolCase):
    def test_somebody_else_wrote_it_after_the_decision(self) -> None:
        self.put()
        tool = self.tool()
        tool.effect.propose("case-1", BUCKET, NAME, "new")
        self.put("theirs")
        message = self.write(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertIn("generation: was", message.text)
        self.assertEqual((self.live(), self.count()), ("theirs", 0))

    def test_somebody_else_writes_between_the_reading_and_the_send(self) -> None:
        self.put()
        writes = {"premises": lambda: {"seen": self.put("theirs") > 0}}
        message = self.write(self.tool(writes=writes))
        self.assert_outcome(message, "REFUSED:precondition_failed")
        self.assertEqual((self.live(), self.count()), ("theirs", 1))

    def test_new_objects_only(self) -> None:
        self.put()
        tool = self.tool(writes={"expect": {"generation": 0}})
        self.assert_outcome(self.write(tool), "REFUSED:premise_not_met")

    def test_approvals(self) -> None:
        self.assert_outcome(self.write(self.tool(name="a", writes={"approvals": lambda: None})), "REFUSED:not_allowed")
        granted = self.tool(name="b", writes={"approvals": lambda: Grant("change-1")})
        self.assert_outcome(self.write(granted), "COMMITTED", "send")

    def test_what_cannot_be_read(self) -> None:
        for number, answer in enumerate(({"status": 503}, {"status": 403}, {"status": 200, "answer": {}})):
            self.control.fault("answer", "GET", ".*", **answer)
            self.assert_outcome(self.write(self.tool(name=f"e{number}")), "IN_FLIGHT:unreadable")
        self.assertEqual(self.count(), 0)


class LostAnswers(GcsToolCase):
    def test_over_an_object_it_is_sent_again_at_once(self) -> None:
        self.put()
        self.vanishes()
        message = self.write()
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assertEqual((len(self.ours()), self.count()), (1, 2))

    def test_a_new_object_is_looked_for_first(self) -> None:
        """Deleted meanwhile, "there is none" is true again: sending again on the service's word would write twice."""
        self.lost()
        deletes = self.then(lambda: self.act("delete", bucket=BUCKET, object=NAME))
        message = self.write(self.tool(writes=deletes))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual((len(self.ours()), self.count(), self.live()), (1, 1, None))

    def test_a_new_object_that_never_arrived(self) -> None:
        self.vanishes()
        tool = self.tool()
        self.assert_outcome(self.write(tool), "IN_FLIGHT:waiting")
        self.clock.advance(121)
        self.assert_outcome(self.write(tool), "COMMITTED", "send")
        self.assertEqual((len(self.ours()), self.count()), (1, 2))

    def test_it_landed_and_was_replaced(self) -> None:
        self.put()
        self.lost()
        message = self.write(self.tool(writes=self.then(lambda: self.put("theirs"))))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual((len(self.ours()), self.live()), (1, "theirs"))

    def test_it_never_arrived_and_somebody_else_wrote(self) -> None:
        self.put()
        self.vanishes()
        tool = self.tool(writes=self.then(lambda: self.put("theirs")), wait=5)
        message = self.write(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")  # at once: the generation is never live again
        self.assertEqual((self.ours(), self.live(), self.count()), ([], "theirs", 1))

    def test_a_412_that_is_our_own_write(self) -> None:
        """Something on the way repeats the upload, and the answer is that of the second."""
        for before in (True, False):
            with self.subTest(before):
                self.setUp()
                if before:
                    self.put()
                self.control.fault("hold", *self.sends, seconds=0, applications=2)
                self.assert_outcome(self.write(), "COMMITTED", "send")
                self.assertEqual((len(self.ours()), self.count()), (1, 1))

    def test_a_412_whose_cause_cannot_be_read_is_unknown(self) -> None:
        self.put()
        self.control.fault("hold", *self.sends, seconds=0, applications=2)
        self.control.fault("answer", "GET", f"/storage/v1/b/{BUCKET}/o", status=503)
        message = self.write()
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual((len(self.ours()), self.count()), (1, 1))

    def test_the_sdk_s_own_retries_are_off(self) -> None:
        self.put()
        for status in (503, 429):
            self.control.fault("answer", *self.sends, status=status, headers={"Retry-After": "1"})
        message = self.write()
        self.assertEqual(message.artifact["outcome"], "COMMITTED")
        effect_id = message.artifact["effect_id"]
        self.assertEqual((self.count(), self.dispatched(self.gate, effect_id)), (3, 3))

    def test_a_token_is_not_refreshed_within_a_send(self) -> None:
        self.put()
        self.control.fault("answer", *self.sends, status=401)
        self.assert_outcome(self.write(), "REFUSED:rejected")
        self.assertEqual(self.count(), 1)


class WhatNobodyCanKnow(GcsToolCase):
    """A bucket that keeps nothing of what is replaced or deleted."""

    def unknown(self, tool: GatedTool, words: str) -> None:
        self.write(tool, bucket=PLAIN)
        self.clock.advance(121)
        message = self.write(tool, bucket=PLAIN)
        self.assert_outcome(message, "AMBIGUOUS:no_evidence")
        self.assertIn(words, message.text)
        self.assertEqual(self.count(), 1, "nothing is sent again")

    def test_it_landed_and_was_replaced(self) -> None:
        self.put(bucket=PLAIN)
        self.lost()
        self.unknown(self.tool(writes=self.then(lambda: self.put("theirs", PLAIN))), "would have left no trace")
        self.assertEqual((len(self.ours(PLAIN)), self.live(PLAIN)), (1, "theirs"))

    def test_it_never_arrived_and_somebody_else_wrote(self) -> None:
        """The service looks exactly as in the test above."""
        self.put(bucket=PLAIN)
        self.vanishes()
        self.unknown(self.tool(writes=self.then(lambda: self.put("theirs", PLAIN))), "would have left no trace")
        self.assertEqual(self.ours(PLAIN), [])

    def test_a_new_object_that_is_not_there(self) -> None:
        self.vanishes()
        self.unknown(self.tool(), "deleted since would have left no trace")

    def test_where_nobody_deletes_absence_is_proof(self) -> None:
        self.vanishes()
        tool = self.tool(writes={"deletions": "never"})
        self.write(tool, bucket=PLAIN)
        self.clock.advance(121)
        self.assert_outcome(self.write(tool, bucket=PLAIN), "COMMITTED", "send")

    def test_what_is_still_there_is_found(self) -> None:
        self.put(bucket=PLAIN)
        self.lost()
        self.assert_outcome(self.write(bucket=PLAIN), "COMMITTED", "lookup")

    def test_what_was_not_replaced_is_sent_again(self) -> None:
        self.put(bucket=PLAIN)
        self.vanishes()
        self.assert_outcome(self.write(bucket=PLAIN), "COMMITTED", "resend")

    def test_a_person_settles_it(self) -> None:
        self.test_it_landed_and_was_replaced()
        (outcome,) = self.gate.pending()
        settled = self.gate.resolve(outcome.effect_id, landed=True, by="eve", why="the audit log shows it")
        self.assertEqual(str(settled), "COMMITTED")

    def test_generations_that_somebody_deleted(self) -> None:
        before = self.put()

        def prune() -> None:
            self.put("theirs")
            for row in self.rows()[:-1]:
                self.act("delete", bucket=BUCKET, object=NAME, generation=row["generation"])

        self.lost()
        tool = self.tool(writes=self.then(prune), wait=5)
        message = self.write(tool)
        self.assert_outcome(message, "AMBIGUOUS:no_evidence")
        self.assertIn(f"generation {before} is gone", message.text)

    def test_a_bucket_that_may_not_be_read_counts_as_one_without_versioning(self) -> None:
        self.act("deny", bucket=BUCKET, permissions=["storage.buckets.get"])
        self.vanishes()
        tool = self.tool()
        self.write(tool)
        self.clock.advance(121)
        self.assert_outcome(self.write(tool), "AMBIGUOUS:no_evidence")

    def test_a_list_that_may_not_be_read_is_no_answer(self) -> None:
        self.act("deny", bucket=BUCKET, permissions=["storage.objects.list"])
        self.lost()
        tool = self.tool()
        self.assert_outcome(self.write(tool), "IN_FLIGHT:unreadable")
        self.act("deny", bucket=BUCKET, permissions=[])
        self.assert_outcome(self.write(tool), "COMMITTED", "lookup")


class Restores(GcsToolCase):
    tool_name = "restore_object"

    def setUp(self) -> None:
        super().setUp()
        self.v41 = self.put("v41", content_type="application/json", metadata={"version": "41"})
        self.v42 = self.put("v42")

    def restore(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        return self.call(tool or self.tool(), **{"bucket": BUCKET, "name": NAME, "generation": self.v41, **changes})

    def test_it_is_restored_once_with_its_metadata(self) -> None:
        tool = self.tool()
        first, second = self.restore(tool), self.restore(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual((first.text, self.count()), (second.text, 1))
        found = self.api().bucket(BUCKET).get_blob(NAME)
        assert found is not None
        effect_id = first.artifact["effect_id"]
        self.assertEqual(found.metadata, {"version": "41", "interlock_effect_id": effect_id})
        self.assertEqual((found.content_type, found.download_as_text()), ("application/json", "v41"))

    def test_a_restored_write_does_not_pass_for_the_write(self) -> None:
        """The copy must not carry the id of the effect that wrote what is copied."""
        self.tool_name = "write_object"
        written = self.write(self.tool(name="w")).artifact
        self.put("v44")
        self.tool_name = "restore_object"
        message = self.restore(generation=written["result"]["generation"])
        self.assert_outcome(message, "COMMITTED", "send")
        marks = [row["metadata"].get("interlock_effect_id") for row in self.ours()]
        self.assertEqual(marks, [written["effect_id"], message.artifact["effect_id"]])

    def test_somebody_redeploys_during_the_outage(self) -> None:
        tool = self.tool()
        tool.effect.propose("case-1", BUCKET, NAME, self.v41)
        self.put("v43")
        self.assert_outcome(self.restore(tool), "REFUSED:stale_premise")
        self.assertEqual((self.live(), self.count()), ("v43", 0))

    def test_it_landed_and_somebody_redeployed(self) -> None:
        self.lost()
        message = self.restore(self.tool(restores=self.then(lambda: self.put("v43"))))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual((len(self.ours()), self.live(), self.count()), (1, "v43", 1))

    def test_what_cannot_be_restored(self) -> None:
        message = self.restore(self.tool(name="a"), generation=5)
        self.assert_outcome(message, "REFUSED:premise_not_met")
        self.assertIn("source: is not found", message.text)
        message = self.restore(self.tool(name="b"), generation=self.v42)
        self.assertIn("source: is live already", message.text)
        self.assertEqual(self.count(), 0)
        for bad in (0, "41", True):
            with self.assertRaises(BadArguments):
                self.tool(name=f"c{bad}").invoke({"bucket": BUCKET, "name": NAME, "generation": bad})

    def test_an_object_that_was_deleted(self) -> None:
        self.act("delete", bucket=BUCKET, object=NAME)
        self.assert_outcome(self.restore(), "COMMITTED", "send")
        self.assertEqual(self.live(), "v41")

    def test_what_takes_more_than_one_request(self) -> None:
        self.act("limit", rewrite_bytes=2)
        message = self.restore()
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertEqual((message.artifact["code"], self.live(), self.count()), ("too_large", "v42", 1))


class Configuration(GcsToolCase):
    def environment(self, **changes: str | None) -> Any:
        wanted: dict[str, str | None] = {
            "STORAGE_EMULATOR_HOST": self.sandbox.url,
            "GOOGLE_STORAGE_TOKEN": None,
            "GOOGLE_APPLICATION_CREDENTIALS": None,
            "INTERLOCK_JOURNAL": str(self.folder / "environment.db"),
            **changes,
        }
        kept = {name: value for name, value in os.environ.items() if name not in wanted}
        return mock.patch.dict(os.environ, {**kept, **{n: v for n, v in wanted.items() if v is not None}}, clear=True)

    def test_a_tool_from_the_environment_recovers_what_was_left_open(self) -> None:
        self.control.fault("answer", *self.sends, status=429, headers={"Retry-After": "600"})
        with self.environment():
            first = WriteObject(request=lambda: "case-1")
            self.assert_outcome(self.write(first), "IN_FLIGHT:rate_limited")
            first.effect._gate.close()
            second = WriteObject(request=lambda: "case-1")
            self.addCleanup(second.effect._gate.close)
        self.assertEqual(len(self.ours()), 1)

    def test_what_is_missing(self) -> None:
        with self.environment(STORAGE_EMULATOR_HOST=None), self.assertRaisesRegex(DefinitionError, "GOOGLE_APP"):
            WriteObject()
        path = self.folder / "credentials.json"
        with self.environment(STORAGE_EMULATOR_HOST=None, GOOGLE_APPLICATION_CREDENTIALS=str(path)):
            self.assertRaisesRegex(DefinitionError, "cannot be used", storage_from_environment)
            path.write_text('{"type": "external_account"}')
            self.assertRaisesRegex(DefinitionError, "cannot be used", storage_from_environment)
            user = {"type": "authorized_user", "client_id": "c", "client_secret": "s", "refresh_token": "r"}
            path.write_text(json.dumps(user))
            self.assertEqual(storage_from_environment()._credentials.refresh_token, "r")
        with self.environment(INTERLOCK_JOURNAL=None), self.assertRaisesRegex(DefinitionError, "INTERLOCK_JOURNAL"):
            WriteObject()
        self.assertRaises(DefinitionError, self.toolkit, client="token")
        self.assertRaises(DefinitionError, self.toolkit, tools=["delete_object"])

    def test_the_application_s_client_is_left_as_it_is(self) -> None:
        theirs = self.api()
        session = theirs._http
        adapters = dict(session.adapters)
        self.toolkit(client=theirs)
        self.assertIs(theirs._http, session)
        self.assertEqual(dict(session.adapters), adapters)

    def test_no_request_that_nobody_asked_for(self) -> None:
        self.put()
        self.write()
        paths = {(request["method"], request["path"].rpartition("/")[0]) for request in self.control.requests()}
        self.assertEqual(
            paths, {("GET", f"/storage/v1/b/{BUCKET}/o/config"), ("POST", f"/upload/storage/v1/b/{BUCKET}")}
        )

    def test_a_token_is_in_no_record(self) -> None:
        words = {"message": f"bad {TOKEN}", "domain": "global", "reason": "invalid"}
        answer = {"error": {"code": 400, "message": f"bad {TOKEN}", "errors": [words]}}
        self.control.fault("answer", *self.sends, status=400, answer=answer)
        toolkit = self.toolkit(tools="write_object")
        (tool,) = toolkit.get_tools()
        assert isinstance(tool, GatedTool)
        message = self.write(tool)
        self.assert_outcome(message, "REFUSED:rejected")
        seen = [message.text, json.dumps(message.artifact), repr(tool), repr(toolkit), json.dumps(tool.to_json())]
        for text in (*seen, self.everything_written().decode("latin-1")):
            self.assertNotIn("NotToBeSeen", text)

    def test_two_projects_at_one_journal(self) -> None:
        self.toolkit()
        self.assertRaises(DefinitionError, self.toolkit)
        self.toolkit(name="gcs.other")
        self.assertEqual(self.gate.effects, ("gcs.write", "gcs.restore", "gcs.other.write", "gcs.other.restore"))


if __name__ == "__main__":
    unittest.main()
