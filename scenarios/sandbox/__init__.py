"""Sandboxes: services that run on loopback and behave as the real ones do, faults included.

Each service runs in an operating system process of its own, keeps its state in memory and carries a control plane
under ``/_control/``: a clock that can be moved, faults to inject, the requests that came in, and the ledger of every
effect that the service holds. Start one from a shell with ``python -m scenarios.sandbox stripe``, from Python with
:class:`SandboxProcess`.

This package imports nothing outside the standard library until a service is actually run.
"""

from scenarios.sandbox.client import ControlClient, ControlError
from scenarios.sandbox.process import SandboxError, SandboxProcess

__all__ = ["ControlClient", "ControlError", "SandboxError", "SandboxProcess"]
