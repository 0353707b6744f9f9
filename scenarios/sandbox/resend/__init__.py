"""Resend: sending emails, with idempotency keys, and reading them back.

What each part reproduces, and where that is known from, stands in its module's docstring. Not reproduced: batches,
attachments, templates, scheduling, webhooks, domains over HTTP, a rate that is really counted.
"""

from scenarios.sandbox.resend.service import ResendService

SERVICE = ResendService

__all__ = ["SERVICE", "ResendService"]
