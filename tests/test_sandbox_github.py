"""The GitHub sandbox, driven by PyGithub over real HTTP and by git itself."""

from __future__ import annotations

import json
import unittest
import urllib.error
import urllib.request
from typing import Any

from github import Auth, Github, GithubException
from github.Commit import Commit
from github.Issue import Issue
from github.IssueComment import IssueComment
from github.PullRequest import PullRequest
from github.Repository import Repository

from scenarios.sandbox import ControlError, SandboxProcess
from scenarios.sandbox.github.person import Clone, GitFailed

REPO = "acme/shop"


class GitHubCase(unittest.TestCase):
    """One sandbox for the class, reset for each test: a repository with one pull request, its mergeability known."""

    sandbox: SandboxProcess

    @classmethod
    def setUpClass(cls) -> None:
        cls.sandbox = SandboxProcess("github").start()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.sandbox.stop()

    def setUp(self) -> None:
        self.control = self.sandbox.control
        self.control.reset()
        self.control.freeze()
        self.action = self.control.action
        self.action("create_repo", full_name=REPO, files={"price.txt": "10\n", "name.txt": "shop\n"})
        self.base = self.branch("main")
        self.head = self.action("commit", repo=REPO, branch="fix", files={"price.txt": "12\n"})["sha"]
        self.number = self.action("open_pull", repo=REPO, head="fix", title="Fix the price")["number"]
        self.control.advance(10)
        self.repo = self.connect("ghp_sandbox_interlock").get_repo(REPO)

    def tearDown(self) -> None:
        self.assertEqual(self.sandbox.printed(), "", "the sandbox itself reported a defect")

    def connect(self, token: str, per_page: int = 30) -> Github:
        return Github(
            base_url=self.sandbox.url,
            auth=Auth.Token(token),
            retry=None,
            seconds_between_requests=0,
            seconds_between_writes=0,
            per_page=per_page,
        )

    def ledger(self) -> Any:
        return self.control.ledger()["repos"][REPO]

    def branch(self, name: str) -> str:
        return str(self.ledger()["branches"][name]["sha"])

    def pull(self) -> PullRequest:
        return self.repo.get_pull(self.number)

    def refused(self, status: int, call: Any) -> GithubException:
        with self.assertRaises(GithubException) as caught:
            call()
        self.assertEqual(caught.exception.status, status, caught.exception)
        return caught.exception


class Merges(GitHubCase):
    def test_a_merge_commit_has_base_and_head_as_parents(self) -> None:
        pull = self.pull()
        self.assertEqual(
            (pull.state, pull.merged, pull.mergeable, pull.mergeable_state), ("open", False, True, "clean")
        )
        status = pull.merge(sha=self.head, commit_message="Because.")
        self.assertTrue(status.merged)
        (row,) = self.ledger()["merges"]
        self.assertEqual((row["sha"], row["method"], row["by"]), (status.sha, "merge", "interlock"))
        commit = self.repo.get_commit(status.sha)
        self.assertEqual([parent.sha for parent in commit.parents], [self.base, self.head])
        self.assertEqual(commit.commit.message, "Merge pull request #1 from acme/fix\n\nBecause.")
        after = self.pull()
        self.assertEqual((after.state, after.merged, after.merged_by.login), ("closed", True, "interlock"))
        self.assertEqual((after.merge_commit_sha, after.head.sha), (status.sha, self.head))
        self.assertTrue(after.is_merged())
        self.assertEqual(self.branch("main"), status.sha)

    def test_a_squash_has_one_parent_and_the_same_content(self) -> None:
        second = self.action("commit", repo=REPO, branch="fix", files={"name.txt": "store\n"}, message="Rename")["sha"]
        self.control.advance(10)
        status = self.pull().merge(merge_method="squash", sha=second)
        commit = self.repo.get_commit(status.sha)
        self.assertEqual([parent.sha for parent in commit.parents], [self.base])
        self.assertEqual(commit.commit.message, "Fix the price (#1)\n\n* Change files\n\n* Rename")
        self.assertEqual(commit.commit.tree.sha, self.repo.get_commit(second).commit.tree.sha)

    def test_a_rebase_writes_every_commit_again_and_ignores_the_message(self) -> None:
        second = self.action("commit", repo=REPO, branch="fix", files={"other.txt": "x\n"}, message="Other")["sha"]
        self.action("commit", repo=REPO, branch="main", files={"name.txt": "store\n"}, message="Meanwhile")
        self.control.advance(10)
        status = self.pull().merge(merge_method="rebase", sha=second, commit_message="ignored")
        (row,) = self.ledger()["merges"]
        messages = [self.repo.get_commit(sha).commit.message for sha in row["commits"]]
        self.assertEqual(messages, ["Other", "Change files"])
        self.assertFalse({second, self.head} & set(row["commits"]))
        self.assertEqual(self.repo.get_commit(status.sha).commit.committer.name, "interlock")
        self.assertEqual(self.pull().merge_commit_sha, status.sha)

    def test_a_pull_request_is_merged_at_most_once(self) -> None:
        self.pull().merge(sha=self.head)
        error = self.refused(405, lambda: self.pull().merge(sha=self.head))
        self.assertEqual(error.message, "Pull Request is not mergeable")
        self.assertEqual(len(self.ledger()["merges"]), 1)
        self.refused(422, lambda: self.pull().edit(state="open"))

    def test_sha_must_be_the_head(self) -> None:
        error = self.refused(409, lambda: self.pull().merge(sha=self.base))
        self.assertEqual(error.message, "Head branch was modified. Review and try the merge again.")
        self.assertFalse(self.pull().merged)

    def test_refusals_that_are_rules(self) -> None:
        self.action("allow", repo=REPO, squash=False)
        error = self.refused(405, lambda: self.pull().merge(merge_method="squash"))
        self.assertEqual(error.message, "Squash merges are not allowed on this repository.")
        words = "At least 1 approving review is required by reviewers with write access."
        self.action("protect", repo=REPO, message=words)
        self.assertEqual(self.pull().mergeable_state, "blocked")
        self.assertEqual(self.refused(405, lambda: self.pull().merge()).message, words)
        self.refused(422, lambda: self.pull().merge(merge_method="fast-forward"))
        self.refused(404, lambda: self.repo.get_pull(99))
        self.action("close", repo=REPO, number=self.number)
        self.refused(405, lambda: self.pull().merge())

    def test_a_conflict_is_not_mergeable(self) -> None:
        self.action("commit", repo=REPO, branch="main", files={"price.txt": "9\n"})
        self.control.advance(10)
        pull = self.pull()
        self.assertEqual((pull.mergeable, pull.mergeable_state), (False, "dirty"))
        self.refused(405, lambda: pull.merge())
        self.refused(405, lambda: pull.merge(merge_method="rebase"))


class Pushes(GitHubCase):
    def test_a_real_push_is_read_late_and_merges_are_answered_405_for_a_while(self) -> None:
        self.assertTrue(self.pull().mergeable)
        with Clone(self.sandbox.url, REPO, "alice") as clone:
            later = clone.commit("fix", {"price.txt": "13\n"})
            clone.push("fix")
        stale = self.pull()
        self.assertEqual((stale.head.sha, stale.mergeable), (self.head, True), "reads lag behind the push")
        self.refused(409, lambda: stale.merge(sha=stale.head.sha))
        self.refused(405, lambda: stale.merge())
        self.control.advance(0.6)
        fresh = self.pull()
        self.assertEqual((fresh.head.sha, fresh.mergeable, fresh.mergeable_state), (later, None, "unknown"))
        self.refused(405, lambda: fresh.merge(sha=later))
        self.control.advance(3)
        self.assertTrue(self.pull().mergeable)
        self.assertTrue(self.pull().merge(sha=later).merged)

    def test_a_push_after_the_merge_leaves_it_as_it_is(self) -> None:
        self.pull().merge(sha=self.head)
        with Clone(self.sandbox.url, REPO, "alice") as clone:
            later = clone.commit("fix", {"price.txt": "13\n"})
            clone.push("fix")
        self.control.advance(10)
        self.assertEqual(self.pull().head.sha, self.head)
        self.assertNotIn(later, self.ledger()["branches"]["main"]["commits"])

    def test_commits_pushed_to_the_base_branch_by_hand_merge_it(self) -> None:
        with Clone(self.sandbox.url, REPO, "bob") as clone:
            clone.git("checkout", "--quiet", "main")
            clone.git("merge", "--quiet", "--no-edit", "origin/fix")
            clone.push("main")
        pull = self.pull()
        self.assertEqual((pull.merged, pull.merged_by.login), (True, "bob"))
        self.assertEqual(self.ledger()["merges"][0]["via"], "push")

    def test_a_push_needs_a_name(self) -> None:
        with Clone(self.sandbox.url, REPO, "alice") as clone:
            clone.commit("fix", {"price.txt": "13\n"})
            clone.git("remote", "set-url", "origin", f"{self.sandbox.url}/{REPO}.git")
            self.assertRaises(GitFailed, clone.push, "fix")

    def test_a_force_push_and_a_deleted_branch(self) -> None:
        self.action(
            "force_push",
            repo=REPO,
            branch="fix",
            sha=self.action("commit", repo=REPO, branch="other", files={"a": "b\n"})["sha"],
        )
        self.control.advance(10)
        self.assertNotEqual(self.pull().head.sha, self.head)
        self.action("delete_branch", repo=REPO, branch="fix")
        self.assertEqual((self.pull().state, self.pull().merged), ("closed", False))

    def test_opening_again_and_another_base(self) -> None:
        self.action("close", repo=REPO, number=self.number)
        self.action("reopen", repo=REPO, number=self.number)
        self.action("commit", repo=REPO, branch="release", files={"a": "b\n"})
        self.action("retarget", repo=REPO, number=self.number, base="release")
        self.control.advance(10)
        self.pull().merge(sha=self.head)
        self.assertEqual(self.ledger()["merges"][0]["base"], "release")
        self.assertEqual(self.branch("main"), self.base)


class Comments(GitHubCase):
    def setUp(self) -> None:
        super().setUp()
        self.issue = self.action("open_issue", repo=REPO, title="A question")["number"]

    def test_comments_are_listed_oldest_first_by_pages(self) -> None:
        self.action("comment", repo=REPO, number=self.issue, count=204)
        made = self.repo.get_issue(self.issue).create_comment("the last one")
        repo = self.connect("ghp_sandbox_interlock", per_page=100).get_repo(REPO)
        self.control.advance(1)
        before = self.control.count("GET", f"/repos/{REPO}/issues/{self.issue}/comments")
        found = list(repo.get_issue(self.issue).get_comments())
        self.assertEqual((len(found), found[-1].id, found[-1].user.login), (205, made.id, "interlock"))
        after = self.control.count("GET", f"/repos/{REPO}/issues/{self.issue}/comments")
        self.assertEqual(after - before, 3)
        self.assertEqual(repo.get_issue(self.issue).comments, 205)

    def test_two_equal_comments_are_two(self) -> None:
        for _ in range(2):
            self.repo.get_issue(self.issue).create_comment("same")
        self.assertEqual(len(self.ledger()["comments"]), 2)

    def test_edited_deleted_locked(self) -> None:
        comment = self.repo.get_issue(self.issue).create_comment("first")
        comment.edit("second")
        self.assertEqual(self.repo.get_issue(self.issue).get_comment(comment.id).body, "second")
        comment.delete()
        self.assertEqual(list(self.repo.get_issue(self.issue).get_comments()), [])
        self.refused(404, lambda: self.repo.get_issue(self.issue).get_comment(comment.id))
        self.action("lock", repo=REPO, number=self.issue)
        error = self.refused(403, lambda: self.repo.get_issue(self.issue).create_comment("no"))
        self.assertIn("locked", str(error.message))

    def test_what_is_not_accepted(self) -> None:
        issue = self.repo.get_issue(self.issue)
        self.refused(422, lambda: issue.create_comment(""))
        self.refused(422, lambda: issue.create_comment("x" * 65_537))
        self.refused(404, lambda: self.repo.get_issue(99))

    def test_a_pull_request_takes_comments_as_the_issue_that_it_is(self) -> None:
        self.repo.get_issue(self.number).create_comment("on a pull request")
        self.assertEqual(self.pull().comments, 1)
        self.assertIsNotNone(self.repo.get_issue(self.number).pull_request)


class Access(GitHubCase):
    def test_tokens(self) -> None:
        self.assertEqual(self.connect("ghp_sandbox_carol").get_user().login, "carol")
        self.refused(401, lambda: self.connect("ghp_invalid").get_user().login)
        self.refused(403, lambda: self.connect("ghs_app").get_user().login)
        self.refused(403, lambda: self.connect("ghp_readonly_eve").get_repo(REPO).get_pull(1).merge())
        self.assertNotIn("ghp_", json.dumps(self.control.requests()))

    def test_primary_rate_limit(self) -> None:
        self.action("rate_limit", remaining=1, reset_in_s=40)
        self.repo.get_issue(1)
        error = self.refused(403, lambda: self.repo.get_issue(1))
        headers = error.headers or {}
        self.assertEqual(headers["x-ratelimit-remaining"], "0")
        self.assertEqual(int(headers["x-ratelimit-reset"]), int(self.control.now() + 40))
        self.control.advance(41)
        self.repo.get_issue(1)

    def test_secondary_rate_limit(self) -> None:
        self.action("secondary_limit", seconds=30, status=429)
        error = self.refused(429, lambda: self.repo.get_issue(1).create_comment("x"))
        self.assertEqual((error.headers or {})["retry-after"], "30")
        self.repo.get_issue(1)
        self.control.advance(31)
        for _ in range(80):
            self.repo.get_issue(1).create_comment("x")
        self.refused(429, lambda: self.repo.get_issue(1).create_comment("one too many in a minute"))

    def test_a_renamed_repository_redirects(self) -> None:
        self.action("rename", repo=REPO, to="store")
        self.assertEqual(self.connect("t").get_repo(REPO).full_name, "acme/store")
        request = urllib.request.Request(
            f"{self.sandbox.url}/repos/{REPO}/issues/1/comments",
            b"{}",
            {"Authorization": "Bearer t", "User-Agent": "test"},
            method="PUT",
        )
        with self.assertRaises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        self.assertEqual(caught.exception.code, 307)
        caught.exception.close()

    def test_an_unchanged_object_is_answered_304(self) -> None:
        issue = self.repo.get_issue(1)
        self.assertFalse(issue.update())
        issue.create_comment("x")
        self.assertTrue(issue.update())

    def test_faults_have_the_services_shape(self) -> None:
        self.control.fault("answer", "GET", ".*/issues/1", status=502)
        self.assertEqual(self.refused(502, lambda: self.repo.get_issue(1)).message, "Server Error")
        self.assertRaises(ControlError, self.action, "merge", repo=REPO, number=99)


class Shapes(GitHubCase):
    def test_the_sdk_knows_every_field(self) -> None:
        """No field here that PyGithub's models, made from GitHub's published API description, do not have."""
        self.repo.get_issue(1).create_comment("x")
        self.pull().merge(sha=self.head)
        kinds: list[tuple[type, str]] = [
            (Repository, f"/repos/{REPO}"),
            (PullRequest, f"/repos/{REPO}/pulls/1"),
            (Issue, f"/repos/{REPO}/issues/1"),
            (IssueComment, f"/repos/{REPO}/issues/comments/{self.ledger()['comments'][0]['id']}"),
            (Commit, f"/repos/{REPO}/commits/main"),
        ]
        for kind, path in kinds:
            with urllib.request.urlopen(
                urllib.request.Request(self.sandbox.url + path, headers={"User-Agent": "test"})
            ) as response:
                body = json.load(response)
            known = {name for name in dir(kind) if not name.startswith("_")} | {"_links"}
            self.assertEqual(sorted(set(body) - known), [], kind.__name__)
            for value in _urls(body):
                self.assertTrue(value.startswith(self.sandbox.url), value)


def _urls(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [url for item in value.values() for url in _urls(item)]
    if isinstance(value, list):
        return [url for item in value for url in _urls(item)]
    return [value] if isinstance(value, str) and value.startswith("http") else []


if __name__ == "__main__":
    unittest.main()
