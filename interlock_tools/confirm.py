"""Asks a service whether it agrees with a receipt, with the access of whoever verifies."""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib import import_module

from .errors import describe
from .receipts.report import Answer, Report, ServiceFinding, Subject, Word

log = logging.getLogger("interlock_tools")

Confirm = Callable[[Subject], ServiceFinding]
"""Asks a service about what a receipt says. Raises whatever it likes where it cannot tell."""

SERVICES = ("stripe", "github", "gcs", "calendar", "resend")
"""Services that can be asked: ``interlock_integrations.<name>.confirm``, configured by the environment."""


def confirm(report: Report, ask: Confirm | None = None) -> Report:
    """Return the report with what the service answers today.

    Args:
        report: of a receipt; nothing is asked about one that failed a check.
        ask: asks the service; by default the integration of the service that the receipt names.
    """
    subject = report.subject
    if report.word is Word.INVALID or subject is None:
        return report
    return report.with_service(_ask(subject, ask))


def _ask(subject: Subject, ask: Confirm | None) -> ServiceFinding:
    try:
        return (ask or _of(subject))(subject)
    except Exception as error:
        log.info("the service could not be asked", exc_info=True)
        return ServiceFinding(Answer.UNKNOWN, f"The service could not be asked or could not tell: {describe(error)}.")


def _of(subject: Subject) -> Confirm:
    """The integration that asks. Its name comes from a closed list, never from the receipt itself."""
    named = subject.service.get("name") or subject.name.partition(".")[0]
    if named not in SERVICES:
        raise LookupError(f"no integration here asks about {subject.name!r}")
    try:
        ask: Confirm = import_module(f"interlock_integrations.{named}.confirm").confirm
    except ImportError as error:
        raise LookupError(f"asking needs packages of its own: pip install 'interlock-tools[{named}]'") from error
    return ask
