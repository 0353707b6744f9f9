"""GitHub, Cloud Storage, Calendar and Resend themselves, by their public APIs alone.

Each cell works on things of its own: a branch and pull request, an issue, an
object, a slot, a subject. The repository, bucket and calendar are yours to name.
"""

from __future__ import annotations

import os
import uuid
from typing import Any

from google.cloud import storage

from interlock_integrations.calendar import calendar_from_environment
from interlock_integrations.gcs import storage_from_environment
from interlock_integrations.github.client import github_from_environment
from interlock_integrations.resend import resend_from_environment
from scenarios.sandbox.github.person import Clone
from scenarios.suite.live_base import LiveControl, LiveService


def _environment(*names: str) -> dict[str, str]:
    return {name: os.environ[name] for name in names if os.environ.get(name)}


class GithubControl(LiveControl):
    """A repository of your own, ``GITHUB_REPOSITORY``. What people do is done with the same token."""

    def __init__(self) -> None:
        super().__init__()
        client = github_from_environment()
        self.repo = client.get_repo(os.environ["GITHUB_REPOSITORY"])
        self.me = client.get_user().login

    def do_create_repo(self, full_name: str, **fields: Any) -> Any:
        return {"full_name": full_name}  # it is there

    def do_push(self, branch: str, files: dict[str, str], message: str, start: str = "") -> str:
        """Commit files to a branch, a new one from ``start``, and push it; the new head."""
        url = os.environ.get("GITHUB_API_URL") or "https://github.com"
        token = os.environ["GITHUB_TOKEN"]
        with Clone(url, self.repo.full_name, "x-access-token", token) as clone:
            head = clone.commit(branch, files, message=message, start=start)
            clone.push(branch)
        return head

    def do_open_pull(self, repo: str, head: str) -> Any:
        base = self.repo.default_branch
        return {"number": self.repo.create_pull(base=base, head=head, title="A change", body="").number}

    def do_open_issue(self, repo: str) -> Any:
        return {"number": self.repo.create_issue("A question").number}

    def do_lock(self, repo: str, number: int) -> Any:
        self.repo.get_issue(number).lock("resolved")
        return {}

    def has_landed(self) -> bool:
        found = self.ledger()["repos"][self.repo.full_name]
        return bool(found["merges"] or found["comments"])

    def ledger(self) -> dict[str, Any]:
        found: dict[str, Any] = {"merges": [], "pulls": [], "comments": []}
        if self.arguments.get("pull_number"):
            pull = self.repo.get_pull(self.arguments["pull_number"])
            found["pulls"] = [{"number": pull.number, "merge_commit_sha": pull.merge_commit_sha}]
            if pull.merged:
                found["merges"] = [{"pull": pull.number, "head": pull.head.sha}]
        if self.arguments.get("issue_number"):
            for one in self.repo.get_issue(self.arguments["issue_number"]).get_comments():
                author = "interlock" if one.user.login == self.me else one.user.login
                row = {"id": one.id, "issue": self.arguments["issue_number"], "author": author, "body": one.body}
                found["comments"].append(row)
        return {"repos": {self.repo.full_name: found}}


class GcsControl(LiveControl):
    """A bucket of your own with versioning, ``GOOGLE_STORAGE_BUCKET``."""

    def __init__(self) -> None:
        super().__init__()
        self.client: storage.Client = storage_from_environment()
        self.bucket = self.client.bucket(os.environ["GOOGLE_STORAGE_BUCKET"])
        self.theirs: set[int] = set()

    def do_create_bucket(self, bucket: str, versioning: bool = False) -> Any:
        return {"bucket": bucket}  # it is there

    def do_put(self, bucket: str, object: str, content: str) -> Any:
        from interlock_integrations.transport import sending

        blob = self.bucket.blob(object)
        with sending(lambda: None):
            blob.upload_from_string(content, content_type="application/json", retry=None)
        self.theirs.add(int(blob.generation or 0))
        return {"generation": blob.generation}

    def has_landed(self) -> bool:
        return any(one["via"] == "api" for one in self._generations())

    def _generations(self) -> list[dict[str, Any]]:
        listed = self.client.list_blobs(self.bucket, prefix=self.arguments["name"], versions=True)
        numbers = sorted(int(one.generation) for one in listed if one.name == self.arguments["name"])
        return [{"generation": n, "via": "person" if n in self.theirs else "api"} for n in numbers]

    def ledger(self) -> dict[str, Any]:
        objects = {self.arguments["name"]: {"generations": self._generations()}}
        return {"buckets": {self.bucket.name: {"objects": objects}}}


class CalendarControl(LiveControl):
    """The calendar of the token's owner. What a person does is done with the same token, and remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.service = calendar_from_environment()
        self.theirs: set[str] = set()

    def do_event(self, start: str, end: str, summary: str = "Somebody else's") -> Any:
        from interlock_integrations.transport import sending

        name = uuid.uuid4().hex
        body = {"id": name, "summary": summary, "start": {"dateTime": start}, "end": {"dateTime": end}}
        with sending(lambda: None):
            self.service.events().insert(calendarId="primary", body=body).execute()
        self.theirs.add(name)
        return {"id": name}

    def do_delete(self, event: str) -> Any:
        from interlock_integrations.transport import sending

        with sending(lambda: None):
            self.service.events().delete(calendarId="primary", eventId=event).execute()
        return {}

    def has_landed(self) -> bool:
        return any(event["via"] == "api" for event in self.ledger()["events"])

    def ledger(self) -> dict[str, Any]:
        span = {"timeMin": self.arguments["start_datetime"] + "Z", "timeMax": self.arguments["end_datetime"] + "Z"}
        listed = self.service.events().list(calendarId="primary", showDeleted=True, **span).execute()["items"]
        rows = [
            {
                "id": one["id"],
                "summary": one.get("summary"),
                "status": one["status"],
                "via": "person" if one["id"] in self.theirs else "api",
            }
            for one in listed
        ]
        return {"events": rows}


class ResendControl(LiveControl):
    """An account of your own; the key must be one with full access, so that what was sent can be listed."""

    def __init__(self) -> None:
        super().__init__()
        self.client = resend_from_environment()

    def has_landed(self) -> bool:
        return bool(self.ledger()["mails"])

    def ledger(self) -> dict[str, Any]:
        found = [one for one in self.client.page(100, None)["data"] if one["subject"] == self.arguments["subject"]]
        mails = []
        for one in found:
            mail = self.client.email(str(one["id"]))
            tags = {tag["name"]: tag["value"] for tag in mail.get("tags") or []}
            key = tags.get("interlock_effect_id", "")
            mails.append({"id": mail["id"], "via": "api", "text": mail.get("text") or "", "idempotency_key": key})
        return {"mails": mails}


def live_github() -> LiveService:
    names = ("GITHUB_TOKEN", "GITHUB_API_URL", "GITHUB_REPOSITORY")
    return LiveService(os.environ.get("GITHUB_API_URL", ""), _environment(*names), GithubControl())


def live_gcs() -> LiveService:
    names = ("GOOGLE_STORAGE_TOKEN", "GOOGLE_STORAGE_BUCKET", "STORAGE_EMULATOR_HOST", "GOOGLE_CLOUD_PROJECT")
    return LiveService("", _environment(*names), GcsControl())


def live_calendar() -> LiveService:
    return LiveService("", _environment("GOOGLE_CALENDAR_TOKEN", "GOOGLE_CALENDAR_API"), CalendarControl())


def live_resend() -> LiveService:
    return LiveService("", _environment("RESEND_API_KEY", "RESEND_API_URL", "RESEND_FROM"), ResendControl())
