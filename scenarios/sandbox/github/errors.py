"""Errors in GitHub's shape: ``{"message", "documentation_url", "status", "errors"?}`` with an HTTP status.

Source: GitHub's REST API reference, "Troubleshooting the REST API" and the pages of the endpoints. Wordings that the
reference does not give are those that public clients of the API quote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DOCS = "https://docs.github.com/rest"

NOT_MERGEABLE = "Pull Request is not mergeable"
HEAD_MODIFIED = "Head branch was modified. Review and try the merge again."
METHOD_REFUSED = {
    "merge": "Merge commits are not allowed on this repository.",
    "squash": "Squash merges are not allowed on this repository.",
    "rebase": "Rebase merges are not allowed on this repository.",
}


class GitHubError(Exception):
    """An error that a request is answered with."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        page: str = "",
        errors: list[Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.page = page
        self.errors = errors
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        body: dict[str, Any] = {"message": self.message}
        if self.errors is not None:
            body["errors"] = self.errors
        body["documentation_url"] = DOCS + self.page
        body["status"] = str(self.status)
        return body


def not_found() -> GitHubError:
    """404: there is no such thing, or this token may not see it."""
    return GitHubError(404, "Not Found")


def invalid(resource: str, field: str, code: str = "missing_field", message: str | None = None) -> GitHubError:
    """422 from validation."""
    error = {"resource": resource, "code": code, "field": field}
    if message is not None:
        error["message"] = message
    return GitHubError(422, "Validation Failed", errors=[error])


def merge_refused(message: str, status: int = 405) -> GitHubError:
    """405 (or 409) from the merge endpoint."""
    return GitHubError(status, message, page="/pulls/pulls#merge-a-pull-request")


def server_error(status: int) -> GitHubError:
    return GitHubError(status, "Server Error")
