"""Processes that declare one effect of an integration and call it. Run by tests, which kill them in the middle.

``python tool_worker.py TOOL URL``, and on standard input a JSON list of jobs, each ``{"die_at", "journal", "options",
"calls"}``. Options go to the declaration; calls is a list of ``{"do": "call", "propose" or "recover", "arguments"}``.
Every job is a process of its own, forked when everything is imported. Prints a JSON list with the number of the signal
that ended each, or what it printed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "integrations")]

from interlock_tools import Gate  # noqa: E402
from interlock_tools.effect import Effect  # noqa: E402
from interlock_tools.journal.sqlite import SqliteJournal  # noqa: E402
from interlock_tools.testing.crash import arm_from_environment  # noqa: E402


def calendar(gate: Gate, url: str, options: dict[str, Any]) -> Effect[Any]:
    from google.oauth2.credentials import Credentials
    from googleapiclient.discovery import build

    from interlock_integrations.calendar import declare_event, gated_service

    address = {"api_endpoint": url + "/calendar/v3/"}
    service = build("calendar", "v3", credentials=Credentials(token="t"), client_options=address)
    return declare_event(gate, gated_service(service), **options)


def resend(gate: Gate, url: str, options: dict[str, Any]) -> Effect[Any]:
    from interlock_integrations.resend import ResendClient, declare_mail

    return declare_mail(gate, ResendClient(options.pop("api_key"), url), **options)


DECLARE = {"calendar": calendar, "resend": resend}


def run(tool: str, url: str, job: dict[str, Any]) -> None:
    options = job["options"]
    for name in ("send_timeout", "retention"):
        if name in options:
            options[name] = timedelta(seconds=options[name])
    gate = Gate(SqliteJournal(job["journal"]))
    effect = DECLARE[tool](gate, url, options)
    for step in job["calls"]:
        if step["do"] == "recover":
            print([str(outcome) for outcome in gate.recover()])
        else:
            act = effect.propose if step["do"] == "propose" else effect
            print(str(act(**step["arguments"])))


def fork(tool: str, url: str, job: dict[str, Any]) -> Any:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        printed = io.StringIO()
        try:
            os.environ["INTERLOCK_CRASH"] = job["die_at"]
            arm_from_environment()
            with contextlib.redirect_stdout(printed):
                run(tool, url, job)
        except BaseException as error:
            printed.write(repr(error))
        os.write(writer, printed.getvalue().encode()[:60_000])
        os._exit(1)
    os.close(writer)
    with os.fdopen(reader) as told:
        said = told.read()
    _, status = os.waitpid(pid, 0)
    return os.WTERMSIG(status) if os.WIFSIGNALED(status) else said


def main(tool: str, url: str) -> None:
    __import__(f"interlock_integrations.{tool}")
    print(json.dumps([fork(tool, url, job) for job in json.load(sys.stdin)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
