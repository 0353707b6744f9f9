"""The GitHub tools against the sandbox: what they rest on, what their errors prove, how they recover."""

from __future__ import annotations

import json
import os
import sys
import threading
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

from github import Auth, Github
from langchain_core.messages import ToolMessage

sys.path.insert(0, str(Path(__file__).resolve().parent))
from tool_support import ToolCase

from interlock_integrations.github import CreateIssueComment, GithubToolkit, MergePullRequest
from interlock_tools import BadArguments, DefinitionError, Evidence, Gate, Grant, MissingRequestKey
from interlock_tools.langchain import GatedTool
from scenarios.sandbox.github.person import Clone

REPO = "acme/shop"
MERGES = f"/repos/{REPO}/pulls/[0-9]+/merge"
COMMENTS = f"/repos/{REPO}/issues/[0-9]+/comments"
TOKEN = "ghp_sandbox_interlock"


class GithubToolCase(ToolCase):
    service = "github"

    def setUp(self) -> None:
        super().setUp()
        self.act = self.control.action
        self.act("create_repo", full_name=REPO, files={"price.txt": "10\n", "name.txt": "shop\n"})
        self.head = self.act("commit", repo=REPO, branch="fix", files={"price.txt": "12\n"})["sha"]
        self.number = self.act("open_pull", repo=REPO, head="fix", title="Fix the price")["number"]
        self.control.advance(10)

    def api(self, token: str = TOKEN, **options: Any) -> Github:
        options = {"seconds_between_requests": 0, "seconds_between_writes": 0, **options}
        return Github(base_url=self.sandbox.url, auth=Auth.Token(token), **options)

    def toolkit(self, gate: Gate | None = None, **options: Any) -> GithubToolkit:
        options.setdefault("client", self.api())
        options.setdefault("request", lambda: "case-1")
        return GithubToolkit(gate or self.gate, **options)

    def tool(self, gate: Gate | None = None, **options: Any) -> GatedTool:
        (tool,) = self.toolkit(gate, tools=self.tool_name, **options).get_tools()
        assert isinstance(tool, GatedTool)
        return tool

    tool_name = "merge_pull_request"

    def ledger(self) -> Any:
        return self.control.ledger()["repos"][REPO]

    def person_pushes(self, **files: str) -> str:
        """A commit that nobody has reviewed, by a real push."""
        with Clone(self.sandbox.url, REPO, "alice") as clone:
            sha = clone.commit("fix", files or {"price.txt": "99\n"}, "Not reviewed")
            clone.push("fix")
        return sha


class MergeCase(GithubToolCase):
    sends = ("PUT", MERGES)

    def arguments(self, **changes: Any) -> dict[str, Any]:
        asked = {"pull_number": self.number, "merge_method": "merge", "sha": self.head}
        return {"owner": "acme", "repo": "shop", **asked, **changes}

    def merge(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        return self.call(tool or self.tool(), **self.arguments(**changes))

    def merges(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.ledger()["merges"]
        return rows

    def on_main(self) -> list[str]:
        commits: list[str] = self.ledger()["branches"]["main"]["commits"]
        return commits

    def assert_merged_once(self, message: ToolMessage) -> dict[str, Any]:
        (row,) = self.merges()
        self.assertEqual((row["head"], row["sha"]), (self.head, message.artifact["result"]["id"]))
        effect_id = message.artifact["effect_id"]
        self.assertEqual(self.count(), self.dispatched(self.gate, effect_id), "one journalled send is one request")
        return row

    def lost(self) -> None:
        """The next merge is carried out and its answer lost."""
        self.control.fault("apply_then_cut", "PUT", MERGES)

    def vanishes(self) -> None:
        """The next merge never arrives."""
        self.control.fault("cut_before", "PUT", MERGES)


class OneMerge(MergeCase):
    def test_it_is_merged_once_at_the_reviewed_head(self) -> None:
        tool = self.tool()
        first, second = self.merge(tool), self.merge(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual((first.text, first.artifact["by_us"]), (second.text, "yes"))
        row = self.assert_merged_once(first)
        self.assertEqual((row["method"], row["by"]), ("merge", "interlock"))
        self.assertTrue(row["message"].endswith(f"Interlock-Effect: {first.artifact['effect_id']}"))

    def test_each_method(self) -> None:
        for method in ("squash", "rebase"):
            self.setUp()
            with self.subTest(method):
                row = self.assert_merged_once(self.merge(merge_method=method))
                self.assertEqual(row["method"], method)

    def test_names_are_one_in_upper_and_lower_case(self) -> None:
        tool = self.tool()
        self.merge(tool)
        self.assert_outcome(self.merge(tool, owner="Acme", repo="SHOP"), "REFUSED:already_done")
        self.assertEqual(len(self.merges()), 1)

    def test_arguments(self) -> None:
        tool = self.tool()
        bad: list[dict[str, Any]] = [{"sha": "HEAD"}, {"sha": self.head[:39]}, {"merge_method": "ff"}, {"owner": "a/b"}]
        bad += [{"repo": ".."}, {"repo": "a b"}, {"pull_number": "1"}, {"pull_number": 0}, {"commit_message": "x"}]
        for change in bad:
            with self.subTest(change), self.assertRaises(BadArguments):
                tool.invoke(self.arguments(**change))
        self.assertEqual((self.control.requests(), self.gate.journal.effects()), ([], []))
        with self.assertRaises(MissingRequestKey):
            self.tool(request=None, name="other").invoke(self.arguments())

    def test_threads_do_not_send_each_others_requests(self) -> None:
        numbers = [self.number]
        for index in range(5):
            self.act("commit", repo=REPO, branch=f"b{index}", files={f"{index}.txt": "x"})
            numbers.append(self.act("open_pull", repo=REPO, head=f"b{index}")["number"])
        heads = {pull["number"]: pull["head"] for pull in self.ledger()["pulls"]}
        self.control.advance(10)
        self.control.action("allow", repo=REPO, merge=False)  # each is refused, so that none holds up the others
        tool = self.tool()
        said: dict[int, ToolMessage] = {}

        def merge(number: int) -> None:
            said[number] = self.merge(tool, pull_number=number, sha=heads[number])

        threads = [threading.Thread(target=merge, args=(number,)) for number in numbers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        self.assertEqual({message.artifact["outcome"] for message in said.values()}, {"REFUSED:rejected"})
        paths = sorted(request["path"] for request in self.control.requests(*self.sends))
        self.assertEqual(paths, sorted(f"/repos/{REPO}/pulls/{number}/merge" for number in numbers))


class MergePremises(MergeCase):
    def test_a_commit_that_nobody_reviewed(self) -> None:
        tool = self.tool()
        tool.effect.propose("case-1", "acme", "shop", self.number, "merge", self.head)
        later = self.person_pushes()
        self.control.advance(10)
        message = self.merge(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertIn(f"head: was {self.head}, now {later}", message.text)
        self.assertEqual((self.merges(), self.count()), ([], 0))

    def test_a_stale_read_is_caught_by_sha(self) -> None:
        self.control.freeze()
        self.person_pushes()
        message = self.merge()
        self.assert_outcome(message, "REFUSED:precondition_failed")
        self.assertEqual((self.merges(), self.count()), ([], 1))

    def test_what_is_not_open(self) -> None:
        cases: dict[str, Any] = {
            "closed": lambda: self.act("close", repo=REPO, number=self.number),
            "merged": lambda: self.act("merge", repo=REPO, number=self.number),
        }
        for state, happens in cases.items():
            self.setUp()
            happens()
            message = self.merge()
            self.assert_outcome(message, "REFUSED:premise_not_met")
            self.assertIn(f"pull_request: is {state}", message.text)
        self.assert_outcome(self.merge(self.tool(name="b"), pull_number=99), "REFUSED:premise_not_met")
        draft = self.act("commit", repo=REPO, branch="draft", files={"d.txt": "d"})["sha"]
        number = self.act("open_pull", repo=REPO, head="draft", draft=True)["number"]
        message = self.merge(self.tool(name="c"), pull_number=number, sha=draft)
        self.assertIn("draft: is true", message.text)
        self.assertEqual(self.count(), 0)

    def test_another_branch_to_go_to(self) -> None:
        self.act("commit", repo=REPO, branch="release", files={"a": "b"})
        tool = self.tool()
        tool.effect.propose("case-1", "acme", "shop", self.number, "merge", self.head)
        self.act("retarget", repo=REPO, number=self.number, base="release")
        message = self.merge(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertIn("base: was main, now release", message.text)

    def test_the_application_s_own_facts_and_approvals(self) -> None:
        options: dict[str, Any] = {"premises": lambda sha: {"checks": "failed"}, "expect": {"checks": "passed"}}
        self.assert_outcome(self.merge(self.tool(name="a", merges=options)), "REFUSED:premise_not_met")
        refusing = {"approvals": lambda pull_number: None}
        self.assert_outcome(self.merge(self.tool(name="b", merges=refusing)), "REFUSED:not_allowed")
        granting = {"approvals": lambda: Grant("review-1")}
        self.assert_outcome(self.merge(self.tool(name="c", merges=granting)), "COMMITTED", "send")

    def test_what_cannot_be_read(self) -> None:
        for number, answer in enumerate(({"merged": "no"}, [], "<html>", {})):
            self.control.fault("answer", "GET", f"/repos/{REPO}/pulls/1", status=200, answer=answer)
            self.assert_outcome(self.merge(self.tool(name=f"x{number}")), "IN_FLIGHT:unreadable")
        self.control.fault("answer", "GET", f"/repos/{REPO}/pulls/1", status=502)
        self.assert_outcome(self.merge(self.tool(name="y")), "IN_FLIGHT:unreadable")
        self.assertEqual(self.count(), 0)


class NotMergeableNow(MergeCase):
    def test_while_mergeability_is_computed_it_is_tried_again(self) -> None:
        self.head = self.person_pushes()
        self.control.advance(2.7)
        message = self.merge()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assert_merged_once(message)
        self.assertEqual(self.count(), 2)

    def test_where_that_lasts_it_stays_open(self) -> None:
        self.control.freeze()
        self.head = self.person_pushes()
        self.control.advance(1)
        message = self.merge(self.tool(self.open_gate(retry=0.1)))
        self.assert_outcome(message, "IN_FLIGHT:rate_limited")
        self.assertIn("not mergeable yet", message.text)
        self.control.advance(5)
        self.tool()
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.merges())), ("COMMITTED", 1))

    def test_what_keeps_it_out_for_good(self) -> None:
        self.act("commit", repo=REPO, branch="main", files={"price.txt": "9\n"})
        self.control.advance(10)
        message = self.merge()
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertEqual(message.artifact["code"], "dirty")
        self.setUp()
        self.act("protect", repo=REPO, message="At least 1 approving review is required.")
        message = self.merge()
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertIn("blocked: At least 1 approving review is required", message.text)
        self.setUp()
        self.act("allow", repo=REPO, squash=False)
        self.assert_outcome(self.merge(merge_method="squash"), "REFUSED:rejected")

    def test_closed_between_the_reading_and_the_send(self) -> None:
        closes = mock.Mock(side_effect=lambda: self.act("close", repo=REPO, number=self.number))

        def premises() -> dict[str, Any]:
            closes()
            return {}

        tool = self.tool(merges={"premises": premises})
        message = self.merge(tool)
        self.assert_outcome(message, "REFUSED:precondition_failed")
        self.assertEqual((message.artifact["code"], self.count()), ("closed", 1))

    def test_the_base_moves_meanwhile(self) -> None:
        words = {"message": "Base branch was modified. Review and try the merge again.", "status": "405"}
        self.control.fault("answer", "PUT", MERGES, status=405, answer=words)
        message = self.merge()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual(self.count(), 2)

    def test_a_405_that_cannot_be_followed_up_is_unknown(self) -> None:
        self.control.freeze()
        self.control.fault("apply_then_status", "PUT", MERGES, status=405, answer={"message": "Not mergeable"})
        self.control.fault("answer", "GET", f"/repos/{REPO}/pulls/1", nth=2, status=502)
        message = self.merge()
        self.assertEqual(message.artifact["outcome"], "COMMITTED", message.text)
        self.assertEqual(len(self.merges()), 1)


class LostAnswers(MergeCase):
    """A send came back without an answer."""

    def test_by_whom_it_was_merged(self) -> None:
        """By method: what can be told of our own merge afterwards."""
        for method, by_us in (("merge", "yes"), ("squash", "yes"), ("rebase", "unknown")):
            self.setUp()
            with self.subTest(method):
                self.lost()
                message = self.merge(merge_method=method)
                self.assert_outcome(message, "COMMITTED", "lookup")
                self.assertEqual((message.artifact["by_us"], self.count()), (by_us, 1))
                self.assert_merged_once(message)

    def test_sent_again_at_once_where_it_never_arrived(self) -> None:
        self.vanishes()
        message = self.merge()
        self.assert_outcome(message, "COMMITTED", "resend")
        self.assert_merged_once(message)

    def test_a_proxy_that_repeats_it(self) -> None:
        """The caller sees "405 not mergeable" for a merge that is in."""
        self.control.fault("hold", "PUT", MERGES, seconds=0, applications=2)
        message = self.merge()
        self.assert_outcome(message, "COMMITTED", "send")
        self.assertEqual(message.artifact["by_us"], "yes")
        self.assert_merged_once(message)

    def test_the_sdk_s_own_retries_are_off(self) -> None:
        self.control.fault("apply_then_status", "PUT", MERGES, status=502)
        message = self.merge(self.tool(client=self.api(retry=3)))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assert_merged_once(message)
        self.assertEqual(self.count(), 1)

    def moved(self, happens: Any) -> Any:
        """Premises that let something happen once a request has left."""
        pending = [happens]

        def premises() -> dict[str, Any]:
            while self.count() and pending:
                pending.pop()()
            return {}

        return {"premises": premises}

    def test_a_person_merges_the_reviewed_head(self) -> None:
        for author, by_us in (("alice", "no"), ("interlock", "unknown")):
            self.setUp()
            with self.subTest(author):
                merges = self.moved(lambda author=author: self.act("merge", repo=REPO, number=1, author=author))
                self.vanishes()
                message = self.merge(self.tool(merges=merges))
                self.assert_outcome(message, "COMMITTED", "lookup")
                self.assertEqual((message.artifact["by_us"], len(self.merges())), (by_us, 1))
                if by_us == "no":
                    self.assertIn("someone else's identical action", message.text)

    def test_an_app_s_installation_has_to_say_who_it_is(self) -> None:
        for login, by_us in ((None, "unknown"), ("bot[bot]", "no")):
            self.setUp()
            merges = self.moved(lambda: self.act("merge", repo=REPO, number=1, author="alice"))
            self.vanishes()
            message = self.merge(self.tool(client=self.api("ghs_bot"), merges={**merges, "login": login}))
            self.assertEqual(message.artifact["by_us"], by_us, message.text)

    def test_a_person_merges_another_head(self) -> None:
        def merges() -> None:
            self.person_pushes()
            self.control.advance(10)
            self.act("merge", repo=REPO, number=1, method="squash")

        self.vanishes()
        tool = self.tool(merges=self.moved(merges))
        self.assert_outcome(self.merge(tool), "IN_FLIGHT:waiting")
        self.clock.advance(6)
        message = self.merge(tool)
        self.assert_outcome(message, "IN_FLIGHT:waiting")
        self.clock.advance(121)
        message = self.merge(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertEqual((len(self.merges()), self.count()), (1, 1))

    def test_a_push_after_the_merge(self) -> None:
        self.lost()
        message = self.merge(self.tool(merges=self.moved(self.person_pushes)))
        self.assert_outcome(message, "COMMITTED", "lookup")
        self.assertEqual(self.on_main()[0], message.artifact["result"]["id"])
        self.assertEqual(len(self.on_main()), 3, "the later commit is not among them")

    def test_a_pull_request_that_cannot_be_seen_any_more_is_no_proof(self) -> None:
        self.lost()
        self.control.fault("answer", "GET", f"/repos/{REPO}/pulls/1", nth=2, times=None, status=404)
        self.assert_outcome(self.merge(), "IN_FLIGHT:unreadable")
        self.clock.advance(1000)
        self.control.clear_faults()
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.merges())), ("COMMITTED", 1))

    def test_a_renamed_repository(self) -> None:
        self.act("rename", repo=REPO, to="store")
        message = self.merge()
        self.assert_outcome(message, "REFUSED:rejected")
        self.assertEqual(message.artifact["code"], "moved")
        self.assertEqual(self.control.ledger()["repos"]["acme/store"]["merges"], [])


class Comments(GithubToolCase):
    sends = ("POST", COMMENTS)
    tool_name = "create_issue_comment"

    def setUp(self) -> None:
        super().setUp()
        self.issue = self.act("open_issue", repo=REPO)["number"]

    def comment(self, tool: GatedTool | None = None, **changes: Any) -> ToolMessage:
        asked = {"owner": "acme", "repo": "shop", "issue_number": self.issue, "body": "It is fixed."}
        return self.call(tool or self.tool(), **{**asked, **changes})

    def made(self) -> list[dict[str, Any]]:
        return [comment for comment in self.ledger()["comments"] if comment["author"] == "interlock"]

    def test_it_is_made_once_and_the_marker_is_not_displayed(self) -> None:
        tool = self.tool()
        first, second = self.comment(tool), self.comment(tool)
        self.assert_outcome(first, "COMMITTED", "send")
        self.assertEqual(first.text, second.text)
        (made,) = self.made()
        effect_id = first.artifact["effect_id"]
        self.assertEqual(made["body"], f"It is fixed.\n\n<!-- interlock-effect: {effect_id} -->")
        self.assertEqual(first.artifact["result"]["id"], str(made["id"]))
        self.assertEqual((self.count(), self.dispatched(self.gate, effect_id)), (1, 1))

    def test_another_body_under_the_same_request(self) -> None:
        tool = self.tool()
        self.comment(tool)
        self.assert_outcome(self.comment(tool, body="Fixed!"), "REFUSED:already_done")
        self.assertEqual(len(self.made()), 1)

    def test_on_a_pull_request(self) -> None:
        self.assert_outcome(self.comment(issue_number=self.number), "COMMITTED", "send")

    def test_what_it_rests_on(self) -> None:
        tool = self.tool()
        tool.effect.propose("case-1", "acme", "shop", self.issue, "It is fixed.")
        self.act("close", repo=REPO, number=self.issue)
        message = self.comment(tool)
        self.assert_outcome(message, "REFUSED:stale_premise")
        self.assertIn("state: was open, now closed", message.text)
        self.act("lock", repo=REPO, number=self.issue)
        self.assert_outcome(self.comment(self.tool(name="b")), "REFUSED:premise_not_met")
        self.assert_outcome(self.comment(self.tool(name="c"), issue_number=99), "REFUSED:premise_not_met")
        self.assertEqual((self.count(), self.made()), (0, []))

    def test_locked_between_the_reading_and_the_send(self) -> None:
        words = {"message": "Unable to create comment because issue is locked.", "status": "403"}
        self.control.fault("answer", "POST", COMMENTS, status=403, answer=words)
        self.assert_outcome(self.comment(), "REFUSED:rejected")

    def test_a_quoted_marker_is_not_ours(self) -> None:
        self.control.fault("cut_before", "POST", COMMENTS)
        tool = self.tool()
        message = self.comment(tool)
        self.assert_outcome(message, "IN_FLIGHT:waiting")
        marker = f"<!-- interlock-effect: {message.artifact['effect_id']} -->"
        self.act("comment", repo=REPO, number=self.issue, body=f"> It is fixed.\n>\n> {marker}\n\nWhat is?")
        self.clock.advance(126)
        self.assert_outcome(self.comment(tool), "COMMITTED", "send")
        self.assertEqual(len(self.made()), 1)

    def test_nothing_is_sent_again_before_it_is_sure(self) -> None:
        self.control.fault("apply_then_cut", "POST", COMMENTS)
        self.assert_outcome(self.comment(), "COMMITTED", "lookup")
        self.assertEqual((len(self.made()), self.count()), (1, 1))

    def test_a_list_that_cannot_be_read_is_no_proof(self) -> None:
        self.control.fault("cut_before", "POST", COMMENTS)
        tool = self.tool()
        self.comment(tool)
        self.clock.advance(1000)
        for answer in ({"status": 404}, {"status": 502}, {"status": 200, "answer": {"message": "no list"}}):
            self.control.fault("answer", "GET", COMMENTS, **answer)
            self.assert_outcome(self.comment(tool), "IN_FLIGHT:unreadable")
        self.assert_outcome(self.comment(tool), "COMMITTED", "send")

    def test_the_primary_rate_limit_says_until_when(self) -> None:
        reset = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(self.control.now()) + 500)}
        words = {"message": "API rate limit exceeded for user ID 1."}
        self.control.fault("answer", "POST", COMMENTS, status=403, headers=reset, answer=words)
        message = self.comment()
        self.assert_outcome(message, "IN_FLIGHT:rate_limited")
        self.assertGreater(message.artifact["retry_after_ms"], 450_000)
        (outcome,) = self.gate.recover()
        self.assertEqual((str(outcome), len(self.made())), ("COMMITTED", 1))


class Configuration(MergeCase):
    def environment(self, **changes: str | None) -> Any:
        wanted: dict[str, str | None] = {
            "GITHUB_TOKEN": TOKEN,
            "GITHUB_API_URL": self.sandbox.url,
            "INTERLOCK_JOURNAL": str(self.folder / "environment.db"),
            **changes,
        }
        kept = {name: value for name, value in os.environ.items() if name not in wanted}
        return mock.patch.dict(os.environ, {**kept, **{n: v for n, v in wanted.items() if v is not None}}, clear=True)

    def test_a_tool_from_the_environment_recovers_what_was_left_open(self) -> None:
        self.control.fault("answer", "PUT", MERGES, status=429, headers={"Retry-After": "600"}, answer={"message": "x"})
        with self.environment():
            first = MergePullRequest(request=lambda: "case-1")
            self.assert_outcome(self.merge(first), "IN_FLIGHT:rate_limited")
            first.effect._gate.close()
            second = MergePullRequest(request=lambda: "case-1")
            self.addCleanup(second.effect._gate.close)
        self.assertEqual(len(self.merges()), 1)

    def test_what_is_missing(self) -> None:
        with self.environment(GITHUB_TOKEN=None), self.assertRaisesRegex(DefinitionError, "GITHUB_TOKEN"):
            MergePullRequest()
        with self.environment(INTERLOCK_JOURNAL=None), self.assertRaisesRegex(DefinitionError, "INTERLOCK_JOURNAL"):
            CreateIssueComment()
        self.assertRaises(DefinitionError, self.toolkit, client=Github())
        self.assertRaises(DefinitionError, self.toolkit, client="token")
        self.assertRaises(DefinitionError, self.toolkit, tools=["close_issue"])

    def test_a_token_is_in_no_record(self) -> None:
        self.control.fault("answer", "PUT", MERGES, status=422, answer={"message": f"bad {TOKEN}"})
        toolkit = self.toolkit(tools="merge_pull_request")
        (tool,) = toolkit.get_tools()
        assert isinstance(tool, GatedTool)
        message = self.merge(tool)
        self.assert_outcome(message, "REFUSED:rejected")
        seen = [message.text, json.dumps(message.artifact), repr(tool), repr(toolkit), json.dumps(tool.to_json())]
        for text in (*seen, self.everything_written().decode("latin-1")):
            self.assertNotIn(TOKEN, text)

    def test_two_accounts_at_one_journal(self) -> None:
        self.toolkit()
        self.assertRaises(DefinitionError, self.toolkit)
        self.toolkit(name="github.other")
        names = ("github.merge", "github.comment", "github.other.merge", "github.other.comment")
        self.assertEqual(self.gate.effects, names)

    def test_a_lookup_of_a_merge_says_by_whom(self) -> None:
        lookup = self.tool().effect.definition.lookup
        assert lookup is not None
        self.act("merge", repo=REPO, number=1)
        found = lookup.function("acme", "shop", 1, self.head, "0" * 32)
        assert isinstance(found, Evidence)
        self.assertEqual((found.by_us, found.value["merged_by"]), ("no", "alice"))


if __name__ == "__main__":
    unittest.main()
