"""GitHub's JSON shapes. Source: response schemas of the REST API reference; PyGithub reads every field given here."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from scenarios.sandbox.github.gitrepo import CommitInfo, Person
from scenarios.sandbox.github.merging import shown_mergeable
from scenarios.sandbox.github.world import Comment, Issue, Pull, Repo, User, World

Json = dict[str, Any]


def moment(at: float | None) -> str | None:
    """A time as the API words it: UTC, whole seconds."""
    if at is None:
        return None
    return datetime.fromtimestamp(int(at), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Renderer:
    """Objects as JSON; every URL in them begins with the sandbox's own."""

    def __init__(self, world: World, url: str) -> None:
        self._world = world
        self._url = url

    def repo_url(self, repo: Repo) -> str:
        return f"{self._url}/repos/{repo.full_name}"

    def user(self, user: User | None) -> Json | None:
        if user is None:
            return None
        url = f"{self._url}/users/{user.login}"
        return {
            "login": user.login,
            "id": user.id,
            "node_id": f"U_{user.id}",
            "avatar_url": f"{self._url}/avatars/{user.id}",
            "gravatar_id": "",
            "url": url,
            "html_url": f"{self._url}/{user.login}",
            "repos_url": f"{url}/repos",
            "events_url": f"{url}/events{{/privacy}}",
            "type": user.type,
            "site_admin": False,
        }

    def repo(self, repo: Repo) -> Json:
        url = self.repo_url(repo)
        return {
            "id": repo.id,
            "node_id": f"R_{repo.id}",
            "name": repo.name,
            "full_name": repo.full_name,
            "private": False,
            "owner": self.user(repo.owner),
            "html_url": f"{self._url}/{repo.full_name}",
            "clone_url": f"{self._url}/{repo.full_name}.git",
            "description": None,
            "fork": False,
            "url": url,
            "branches_url": f"{url}/branches{{/branch}}",
            "commits_url": f"{url}/commits{{/sha}}",
            "pulls_url": f"{url}/pulls{{/number}}",
            "issues_url": f"{url}/issues{{/number}}",
            "issue_comment_url": f"{url}/issues/comments{{/number}}",
            "created_at": moment(repo.created_at),
            "updated_at": moment(repo.created_at),
            "pushed_at": moment(repo.pushes[-1]["at"]) if repo.pushes else None,
            "default_branch": repo.default_branch,
            "has_issues": repo.has_issues,
            "archived": False,
            "disabled": False,
            "visibility": "public",
            "open_issues_count": sum(issue.closed_at is None for issue in repo.issues.values()),
            "allow_merge_commit": repo.allow["merge"],
            "allow_squash_merge": repo.allow["squash"],
            "allow_rebase_merge": repo.allow["rebase"],
        }

    def issue(self, repo: Repo, issue: Issue) -> Json:
        url = f"{self.repo_url(repo)}/issues/{issue.number}"
        shown: Json = {
            "id": issue.id,
            "node_id": f"I_{issue.id}",
            "url": url,
            "repository_url": self.repo_url(repo),
            "labels_url": f"{url}/labels{{/name}}",
            "comments_url": f"{url}/comments",
            "events_url": f"{url}/events",
            "html_url": f"{self._url}/{repo.full_name}/issues/{issue.number}",
            "number": issue.number,
            "state": issue.state,
            "state_reason": "completed" if issue.closed_at is not None else None,
            "title": issue.title,
            "body": issue.body,
            "user": self.user(issue.author),
            "labels": [],
            "assignee": None,
            "assignees": [],
            "milestone": None,
            "locked": issue.locked,
            "active_lock_reason": None,
            "comments": len(repo.comments_of(issue.number)),
            "created_at": moment(issue.created_at),
            "updated_at": moment(issue.updated_at),
            "closed_at": moment(issue.closed_at),
            "closed_by": self.user(issue.closed_by),
            "author_association": "OWNER" if issue.author is repo.owner else "CONTRIBUTOR",
        }
        if issue.pull is not None:
            pull_url = f"{self.repo_url(repo)}/pulls/{issue.number}"
            html = f"{self._url}/{repo.full_name}/pull/{issue.number}"
            shown["html_url"] = html
            shown["draft"] = issue.pull.draft
            shown["pull_request"] = {
                "url": pull_url,
                "html_url": html,
                "diff_url": f"{html}.diff",
                "patch_url": f"{html}.patch",
                "merged_at": moment(issue.pull.merged_at),
            }
        return shown

    def comment(self, repo: Repo, comment: Comment) -> Json:
        issue_url = f"{self.repo_url(repo)}/issues/{comment.issue}"
        return {
            "id": comment.id,
            "node_id": f"IC_{comment.id}",
            "url": f"{self.repo_url(repo)}/issues/comments/{comment.id}",
            "html_url": f"{self._url}/{repo.full_name}/issues/{comment.issue}#issuecomment-{comment.id}",
            "issue_url": issue_url,
            "body": comment.body,
            "user": self.user(comment.author),
            "created_at": moment(comment.created_at),
            "updated_at": moment(comment.updated_at),
            "author_association": "OWNER" if comment.author is repo.owner else "CONTRIBUTOR",
        }

    def pull(self, repo: Repo, issue: Issue, pull: Pull) -> Json:
        """A pull request as its own endpoint shows it; lists leave the last fields out."""
        shown = self.pull_in_list(repo, issue, pull)
        mergeable = shown_mergeable(pull, self._world.now())
        shown.update(
            {
                "merged": pull.merged,
                "mergeable": mergeable,
                "rebaseable": mergeable,
                "mergeable_state": self._mergeable_state(repo, pull, mergeable),
                "merged_by": self.user(pull.merged_by),
                "comments": len(repo.comments_of(issue.number)),
                "review_comments": 0,
                "maintainer_can_modify": False,
            }
        )
        return shown

    def pull_in_list(self, repo: Repo, issue: Issue, pull: Pull) -> Json:
        now = self._world.now()
        url = f"{self.repo_url(repo)}/pulls/{issue.number}"
        html = f"{self._url}/{repo.full_name}/pull/{issue.number}"
        issue_url = f"{self.repo_url(repo)}/issues/{issue.number}"
        links = {"self": url, "html": html, "issue": issue_url, "comments": f"{issue_url}/comments"}
        return {
            "url": url,
            "id": issue.id,
            "node_id": f"PR_{issue.id}",
            "html_url": html,
            "diff_url": f"{html}.diff",
            "patch_url": f"{html}.patch",
            "issue_url": issue_url,
            "comments_url": f"{issue_url}/comments",
            "commits_url": f"{url}/commits",
            "number": issue.number,
            "state": issue.state,
            "locked": issue.locked,
            "title": issue.title,
            "user": self.user(issue.author),
            "body": issue.body,
            "labels": [],
            "assignee": None,
            "assignees": [],
            "requested_reviewers": [],
            "requested_teams": [],
            "milestone": None,
            "created_at": moment(issue.created_at),
            "updated_at": moment(issue.updated_at),
            "closed_at": moment(issue.closed_at),
            "merged_at": moment(pull.merged_at),
            "merge_commit_sha": pull.merge_commit_sha if pull.merged else pull.test_commit,
            "draft": pull.draft,
            "head": self._end(repo, pull.head_ref, pull.shown_head(now)),
            "base": self._end(repo, pull.base_ref, pull.base_sha),
            "_links": {name: {"href": href} for name, href in links.items()},
            "author_association": "CONTRIBUTOR",
            "auto_merge": None,
        }

    def _end(self, repo: Repo, ref: str, sha: str) -> Json:
        return {
            "label": f"{repo.owner.login}:{ref}",
            "ref": ref,
            "sha": sha,
            "user": self.user(repo.owner),
            "repo": self.repo(repo),
        }

    def _mergeable_state(self, repo: Repo, pull: Pull, mergeable: bool | None) -> str:
        if pull.draft and not pull.merged:
            return "draft"
        if mergeable is None:
            return "unknown"
        if not mergeable:
            return "dirty"
        return "blocked" if pull.base_ref in repo.protected else "clean"

    def commit(self, repo: Repo, info: CommitInfo) -> Json:
        url = f"{self.repo_url(repo)}/commits/{info.sha}"
        return {
            "sha": info.sha,
            "node_id": f"C_{info.sha}",
            "commit": self._git_commit(repo, info),
            "url": url,
            "html_url": f"{self._url}/{repo.full_name}/commit/{info.sha}",
            "comments_url": f"{url}/comments",
            "author": self._known(info.author),
            "committer": self._known(info.committer),
            "parents": [
                {
                    "sha": sha,
                    "url": f"{self.repo_url(repo)}/commits/{sha}",
                    "html_url": f"{self._url}/{repo.full_name}/commit/{sha}",
                }
                for sha in info.parents
            ],
        }

    def _git_commit(self, repo: Repo, info: CommitInfo) -> Json:
        git = f"{self.repo_url(repo)}/git"
        return {
            "author": self._signature(info.author, info.authored_at),
            "committer": self._signature(info.committer, info.committed_at),
            "message": info.message,
            "tree": {"sha": info.tree, "url": f"{git}/trees/{info.tree}"},
            "url": f"{git}/commits/{info.sha}",
            "comment_count": 0,
        }

    def _signature(self, person: Person, at: int) -> Json:
        return {"name": person.name, "email": person.email, "date": moment(at)}

    def _known(self, person: Person) -> Json | None:
        """The account that a commit's address belongs to."""
        return next((self.user(u) for u in self._world.users.values() if u.person.email == person.email), None)

    def branch(self, repo: Repo, name: str, sha: str) -> Json:
        return {
            "name": name,
            "commit": {"sha": sha, "url": f"{self.repo_url(repo)}/commits/{sha}"},
            "protected": name in repo.protected,
        }

    def ref(self, repo: Repo, name: str, sha: str) -> Json:
        git = f"{self.repo_url(repo)}/git"
        return {
            "ref": f"refs/heads/{name}",
            "node_id": f"REF_{repo.id}_{name}",
            "url": f"{git}/refs/heads/{name}",
            "object": {"sha": sha, "type": "commit", "url": f"{git}/commits/{sha}"},
        }
