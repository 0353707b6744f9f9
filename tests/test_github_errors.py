"""What each of GitHub's errors proves: every row of the table, provoked over HTTP by PyGithub."""

from __future__ import annotations

import sys
import unittest
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path
from typing import Any

from github import Auth, Github, GithubException

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.github import declare_comment, declare_merge, gated_client
from interlock_integrations.github.errors import ANYTHING_ELSE, TABLE, NotMergeable, answer_of, classify, row_of
from interlock_integrations.github.reading import pull_request
from interlock_integrations.proofs import Proof
from interlock_integrations.transport import sending
from interlock_tools import DefiniteNo, NotSent, PreconditionFailed, RateLimited, SendError

REPO = "acme/shop"
MERGES = f"/repos/{REPO}/pulls/[0-9]+/merge"
COMMENTS = f"/repos/{REPO}/issues/[0-9]+/comments"
ROWS = {row.name: row for row in (*TABLE, ANYTHING_ELSE)}
RAISES: dict[Proof, type[Exception]] = {
    Proof.DEFINITE_NO: DefiniteNo,
    Proof.PRECONDITION_FAILED: PreconditionFailed,
    Proof.IN_PROGRESS: NotMergeable,
    Proof.RATE_LIMITED: RateLimited,
    Proof.UNKNOWN: Exception,
}


class EveryRow(ToolCase):
    service = "github"
    sends = ("PUT", MERGES)

    def setUp(self) -> None:
        super().setUp()
        self.act = self.control.action
        self.act("create_repo", full_name=REPO)
        self.head = self.act("commit", repo=REPO, branch="fix", files={"a": "b"})["sha"]
        self.act("open_pull", repo=REPO, head="fix")
        self.control.advance(10)
        self.requester = self.connect("ghp_sandbox_interlock")

    def connect(self, token: str) -> Any:
        auth = Auth.Token(token)
        return gated_client(
            Github(base_url=self.sandbox.url, auth=auth, seconds_between_requests=0, seconds_between_writes=0)
        )

    def merge(self, **changes: Any) -> Any:
        """The bare request, with its errors classified, and nothing around it."""
        from interlock_integrations.github.errors import classified

        requester = changes.pop("requester", self.requester)
        given = {"merge_method": "merge", "sha": self.head, **changes}
        with classified(), sending(lambda: None):
            return pull_request(requester, "acme", "shop", changes.pop("number", 1)).merge(**given)

    def comment(self, body: str = "x", number: int = 1) -> Any:
        send = declare_comment(self.gate, self.requester, name=f"e{len(self.gate.effects)}").definition.function
        return send("1", "acme", "shop", number, body, idempotency_key="0123456789", on_send=lambda: None)

    def assert_row(self, name: str, attempt: Any = None) -> Exception:
        with self.assertRaises(RAISES[ROWS[name].proves]) as caught:
            (attempt or self.merge)()
        error = caught.exception
        if ROWS[name].proves is Proof.UNKNOWN:
            self.assertNotIsInstance(error, SendError)
        theirs = error.__cause__ if isinstance(error, SendError) else error
        assert theirs is not None
        self.assertEqual(row_of(answer_of(theirs)).name, name)
        self.assertEqual(self.act("rate_limit", remaining=5000)["remaining"], 5000)
        return error

    def answer(self, status: int, answer: Any = None, **fields: Any) -> None:
        told = {"message": answer, "documentation_url": "https://docs"} if isinstance(answer, str) else answer
        self.control.fault("answer", "PUT", MERGES, status=status, answer=told, **fields)

    def test_every_row_is_provoked(self) -> None:
        tests = {name.removeprefix("test_row_").replace("_", " ") for name in dir(self) if name.startswith("test_row_")}
        self.assertEqual(tests, {name.replace("'", "") for name in ROWS})

    def test_row_no_answer(self) -> None:
        self.control.fault("cut_before", "PUT", MERGES)
        self.assert_row("no answer")
        self.control.fault("answer", "PUT", MERGES, status=200, answer="{")
        self.assert_row("no answer")

    def test_row_server_error(self) -> None:
        for status in (500, 502, 503, 504):
            self.answer(status)
            self.assert_row("server error")

    def test_row_moved(self) -> None:
        self.act("rename", repo=REPO, to="store")
        self.assert_row("moved")
        for status in (301, 302, 308):
            self.answer(status, "Moved", headers={"Location": f"{self.sandbox.url}/repos/acme/store/pulls/1/merge"})
            self.assert_row("moved")
        self.assertEqual(len(self.control.requests("PUT")), 4, "no redirect is followed")

    def test_row_not_GitHubs_words(self) -> None:
        for body in (["blocked"], {"error": "no"}, {"message": ""}, {"message": 5}):
            self.answer(403, body)
            self.assert_row("not GitHub's words")
        self.control.fault("answer", "PUT", MERGES, status=405, answer="<html>blocked</html>")
        self.assert_row("not GitHub's words")

    def test_row_rate_limit(self) -> None:
        for status in (403, 429):
            self.act("rate_limit", remaining=0, reset_in_s=40, status=status)
            error = self.assert_row("rate limit")
            assert isinstance(error, RateLimited) and error.retry_after is not None
            ahead_s = self.control.clock()["offset_s"]  # of the Date that the sandbox gives
            self.assertAlmostEqual(error.retry_after, 40 + ahead_s, delta=5)
            self.act("secondary_limit", seconds=30, status=status)
            error = self.assert_row("rate limit")
            assert isinstance(error, RateLimited)
            self.assertEqual(error.retry_after, 30)
            self.act("secondary_limit", seconds=30, status=status, says_when=False)
            error = self.assert_row("rate limit")
            assert isinstance(error, RateLimited)
            self.assertEqual(error.retry_after, 60)
            self.control.advance(31)

    def test_row_credentials(self) -> None:
        self.assert_row("credentials", lambda: self.merge(requester=self.connect("ghp_invalid")))

    def test_row_not_permitted(self) -> None:
        self.assert_row("not permitted", lambda: self.merge(requester=self.connect("ghp_readonly_eve")))
        self.act("lock", repo=REPO, number=1)
        self.assert_row("not permitted", self.comment)

    def test_row_not_there(self) -> None:
        self.assert_row("not there", lambda: self.comment(number=99))
        self.answer(410, "Gone")
        self.assert_row("not there")

    def test_row_base_moved(self) -> None:
        self.answer(405, "Base branch was modified. Review and try the merge again.")
        error = self.assert_row("base moved")
        assert isinstance(error, RateLimited)
        self.assertEqual(error.retry_after, 1)

    def test_row_head_moved(self) -> None:
        self.act("commit", repo=REPO, branch="fix", files={"a": "c"})
        self.control.advance(10)
        self.assert_row("head moved")

    def test_row_method_not_allowed_here(self) -> None:
        self.act("allow", repo=REPO, merge=False, squash=False, rebase=False)
        for method in ("merge", "squash", "rebase"):
            self.assert_row("method not allowed here", lambda method=method: self.merge(merge_method=method))

    def test_row_not_mergeable(self) -> None:
        self.act("merge", repo=REPO, number=1)
        self.assert_row("not mergeable")

    def test_row_invalid_request(self) -> None:
        self.assert_row("invalid request", lambda: self.merge(merge_method="ff"))
        self.assert_row("invalid request", lambda: self.comment("x" * 70_000))

    def test_row_anything_else(self) -> None:
        for status in (402, 409, 418):
            self.answer(status, "Something new")
            self.assert_row("anything else")

    def test_an_answer_that_is_no_merge_is_no_evidence(self) -> None:
        send = declare_merge(self.gate, self.requester).definition.function
        for body in ({"merged": False, "sha": self.head}, {"merged": True}, {}, {"sha": self.head}):
            self.answer(200, body)
            found = send(*("1", "acme", "shop", 1, "merge", self.head), idempotency_key="0" * 32, on_send=lambda: None)
            self.assertIsNone(found)


class OtherErrors(unittest.TestCase):
    def test_what_failed_before_the_first_byte(self) -> None:
        requester = gated_client(Github(base_url="http://127.0.0.1:1", auth=Auth.Token("t")))
        with self.assertRaises(NotSent) as caught, sending(lambda: None):
            pull_request(requester, "acme", "shop", 1).merge()
        self.assertIsInstance(classify(caught.exception), NotSent)

    def test_an_answer_that_leads_elsewhere_is_not_followed(self) -> None:
        requester = gated_client(Github(base_url="http://127.0.0.1:1", auth=Auth.Token("t")))
        self.assertRaises(RuntimeError, requester.requestJsonAndCheck, "GET", "http://127.0.0.2:1/user")

    def test_the_primary_limit_is_counted_by_githubs_clock(self) -> None:
        date = format_datetime(datetime.fromtimestamp(1_000_000, timezone.utc), usegmt=True)
        headers = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1000030", "Date": date}
        answer = answer_of(GithubException(403, {"message": "API rate limit exceeded"}, headers))
        self.assertEqual(answer.retry_after_s, 30)
        headers["X-RateLimit-Reset"] = "soon"
        self.assertEqual(answer_of(GithubException(403, {"message": "x"}, headers)).retry_after_s, 60)

    def test_every_row_says_why_and_whence(self) -> None:
        for row in TABLE:
            self.assertTrue(row.why.endswith((".", ")")) and row.source, row.name)


if __name__ == "__main__":
    unittest.main()
