"""The state of the GitHub sandbox: users, repositories, issues, pull requests and comments."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scenarios.sandbox.clock import Clock
from scenarios.sandbox.github.errors import GitHubError, not_found
from scenarios.sandbox.github.gitrepo import GitRepo, Person

WEB_FLOW = Person("GitHub", "noreply@github.com")
"""Committer of what is committed through the web interface and the API."""


@dataclass
class Timing:
    """Delays in seconds of sandbox time, and limits."""

    head_lag_s: float = 0.5
    """After a push, reads of a pull request go on showing what was there before (seen: about 0.5)."""
    mergeability_s: float = 3.0
    """After a push to head or base, ``mergeable`` is null and a merge answers 405 (seen: a few seconds)."""
    rate_limit: float = 5000
    """Requests an hour (documented for a user's token)."""
    content_per_minute: float = 80
    """Content-creating requests a minute before the secondary limit (documented: no more than 80)."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Timing:
        """Timing with those defaults replaced that ``options`` name. Raises ValueError for what is not a number."""
        return cls(**{name: float(value) for name, value in options.items()})

    @classmethod
    def names(cls) -> list[str]:
        return [item.name for item in fields(cls)]


@dataclass
class User:
    login: str
    id: int
    type: str = "User"

    @property
    def person(self) -> Person:
        return Person(self.login, f"{self.id}+{self.login}@users.noreply.github.com")


@dataclass
class Comment:
    id: int
    issue: int
    author: User
    body: str
    created_at: float
    updated_at: float
    deleted: bool = False


@dataclass
class Pull:
    """What a pull request has beyond its issue. Times are sandbox time."""

    head_ref: str
    base_ref: str
    head_sha: str
    base_sha: str
    """The base branch when this was opened, or last changed head."""
    draft: bool = False
    merged_at: float | None = None
    merged_by: User | None = None
    merge_commit_sha: str | None = None
    stale_until: float = 0.0
    stale: tuple[str, bool | None] = ("", None)
    """Head and mergeability that reads show until ``stale_until``."""
    pending_until: float = 0.0
    """Until when mergeability is being recomputed."""
    tested: tuple[str, str] | None = None
    """Base and head for which ``test_commit`` was made."""
    test_commit: str | None = None

    @property
    def merged(self) -> bool:
        return self.merged_at is not None

    def shown_head(self, now: float) -> str:
        """The head that a read shows now."""
        return self.stale[0] if now < self.stale_until else self.head_sha


@dataclass
class Issue:
    """An issue, or the issue that every pull request is."""

    number: int
    id: int
    title: str
    body: str
    author: User
    created_at: float
    updated_at: float
    closed_at: float | None = None
    closed_by: User | None = None
    locked: bool = False
    pull: Pull | None = None

    @property
    def state(self) -> str:
        return "open" if self.closed_at is None else "closed"


@dataclass
class Repo:
    """One repository. ``lock`` is held by whoever reads or changes its git objects."""

    id: int
    owner: User
    name: str
    git: GitRepo
    default_branch: str
    created_at: float
    allow: dict[str, bool]
    has_issues: bool = True
    branches: dict[str, str] = field(default_factory=dict)
    history: dict[str, list[str]] = field(default_factory=dict)
    """Commits of each branch, newest first, for the ledger."""
    issues: dict[int, Issue] = field(default_factory=dict)
    comments: dict[int, Comment] = field(default_factory=dict)
    protected: dict[str, str] = field(default_factory=dict)
    """Branches that a rule keeps merges out of, and GitHub's words for it."""
    merges: list[dict[str, Any]] = field(default_factory=list)
    pushes: list[dict[str, Any]] = field(default_factory=list)
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def full_name(self) -> str:
        return f"{self.owner.login}/{self.name}"

    def issue(self, number: int) -> Issue:
        """Raises the service's 404."""
        found = self.issues.get(number)
        if found is None:
            raise not_found()
        return found

    def pull(self, number: int) -> tuple[Issue, Pull]:
        """Raises the service's 404, also for an issue that is no pull request."""
        issue = self.issue(number)
        if issue.pull is None:
            raise not_found()
        return issue, issue.pull

    def pulls(self) -> list[tuple[Issue, Pull]]:
        return [(issue, issue.pull) for issue in self.issues.values() if issue.pull is not None]

    def comment(self, number: int) -> Comment:
        """Raises the service's 404, also for a comment that was deleted."""
        found = self.comments.get(number)
        if found is None or found.deleted:
            raise not_found()
        return found

    def comments_of(self, number: int) -> list[Comment]:
        """Comments of one issue, oldest first, without deleted ones."""
        return [c for c in self.comments.values() if c.issue == number and not c.deleted]


class World:
    """Everything the service holds."""

    def __init__(self, clock: Clock, timing: Timing) -> None:
        self.clock = clock
        self.timing = timing
        self.users: dict[str, User] = {}
        self.repos: dict[str, Repo] = {}
        self.moved: dict[str, str] = {}
        """Old names (lower case) of renamed repositories and their new ones."""
        self._ids = itertools.count(1001)

    def new_id(self) -> int:
        return next(self._ids)

    def now(self) -> float:
        return self.clock.now()

    def user(self, login: str) -> User:
        """The user, made at first mention."""
        if login not in self.users:
            kind = "Bot" if login.endswith("[bot]") else "User"
            self.users[login] = User(login, self.new_id(), kind)
        return self.users[login]

    def add_repo(self, repo: Repo) -> None:
        key = repo.full_name.lower()
        if key in self.repos:
            raise ValueError(f"there is a repository {repo.full_name} already")
        self.repos[key] = repo

    def find(self, full_name: str) -> Repo | None:
        return self.repos.get(full_name.lower())

    def repo(self, owner: str, name: str) -> Repo:
        """Raises the service's 404."""
        found = self.find(f"{owner}/{name}")
        if found is None:
            raise not_found()
        return found

    def named(self, full_name: str) -> Repo:
        """For control calls. Raises ValueError."""
        found = self.find(full_name)
        if found is None:
            raise ValueError(
                f"no repository {full_name!r}; there are {', '.join(r.full_name for r in self.repos.values())}"
            )
        return found

    def next_number(self, repo: Repo) -> int:
        return max(repo.issues, default=0) + 1

    def add_issue(self, repo: Repo, title: str, body: str, author: User, pull: Pull | None = None) -> Issue:
        now = self.now()
        issue = Issue(self.next_number(repo), self.new_id(), title, body, author, now, now, pull=pull)
        repo.issues[issue.number] = issue
        return issue

    def close(self, issue: Issue, by: User | None) -> None:
        if issue.closed_at is None:
            issue.closed_at = issue.updated_at = self.now()
            issue.closed_by = by

    def reopen(self, issue: Issue) -> None:
        """Raises the service's 422 for a merged pull request, which nothing reopens."""
        if issue.pull is not None and issue.pull.merged:
            raise GitHubError(422, "Validation Failed", errors=["state cannot be changed. The pull request is merged."])
        issue.closed_at = None
        issue.closed_by = None
        issue.updated_at = self.now()

    def add_comment(self, repo: Repo, number: int, body: str, author: User) -> Comment:
        issue = repo.issue(number)
        now = self.now()
        comment = Comment(self.new_id(), number, author, body, now, now)
        repo.comments[comment.id] = comment
        issue.updated_at = now
        return comment
