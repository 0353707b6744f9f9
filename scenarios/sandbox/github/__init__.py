"""The GitHub sandbox: the REST API for pull requests, issues and comments over real git repositories.

What it does is in ``world`` (state), ``merging`` (pushes, mergeability, merges), ``api`` (endpoints), ``githttp``
(``git push`` over smart HTTP), ``limits`` and ``actions`` (what people do). Its ledger lists every branch with its
commits, every merge (how, by whom, at which head, which commits) and every comment.

Left out: forks, reviews, checks, GraphQL, labels, milestones, merge queues, private repositories.
"""

from scenarios.sandbox.github.service import SANDBOX_TOKEN, GitHubService

SERVICE = GitHubService

__all__ = ["SANDBOX_TOKEN", "SERVICE", "GitHubService"]
