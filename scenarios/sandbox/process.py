"""Sandboxes from Python: a process that lives exactly as long as the ``with`` block, or its parent."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from scenarios.sandbox.client import ControlClient

ROOT = Path(__file__).resolve().parents[2]


class SandboxError(Exception):
    """The sandbox did not start; the message has what it printed."""


class SandboxProcess:
    """Runs ``python -m scenarios.sandbox`` for the named services and waits until they accept.

        with SandboxProcess("stripe") as sandbox:
            client = StripeClient("sk_test_x", base_addresses={"api": sandbox.url}, max_network_retries=0)
            sandbox.control.fault("apply_then_cut", "POST", "/v1/refunds")

    ``url``, ``control`` and ``environment`` are those of the first service; ``urls`` and ``controls`` have all by name.
    ``options`` are ``{"stripe.connect": "off"}``. The process ends with the block, or within a second of its parent.
    Starting raises SandboxError after ``timeout_s`` or if the process ends.
    """

    def __init__(self, *services: str, options: Mapping[str, str] | None = None, timeout_s: float = 30.0) -> None:
        if not services:
            raise ValueError("name at least one service")
        self._services = services
        self._options = dict(options or {})
        self._timeout_s = timeout_s
        self._process: subprocess.Popen[bytes] | None = None
        self._errors: IO[bytes] | None = None
        self.urls: dict[str, str] = {}
        self.controls: dict[str, ControlClient] = {}
        self.environment: dict[str, str] = {}

    @property
    def url(self) -> str:
        return self.urls[self._services[0]]

    @property
    def control(self) -> ControlClient:
        return self.controls[self._services[0]]

    @property
    def pid(self) -> int:
        assert self._process is not None, "not started"
        return self._process.pid

    def start(self) -> SandboxProcess:
        """Start and wait until every service accepts."""
        command = [sys.executable, "-m", "scenarios.sandbox", *self._services, "--json"]
        command += ["--parent-pid", str(os.getpid())]
        for name, value in self._options.items():
            command += ["--set", f"{name}={value}"]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by stop)
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._errors
        )
        try:
            description = json.loads(self._first_line())
        except BaseException:
            self.stop()
            raise
        for name, service in description["services"].items():
            self.urls[name] = service["url"]
            self.controls[name] = ControlClient(service["url"])
            self.environment.update(service["environment"])
        return self

    def stop(self) -> None:
        """End the process (SIGTERM, then SIGKILL after 5 s). Does nothing if it is not running."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(5)
        if process.stdout is not None:
            process.stdout.close()
        if self._errors is not None:
            self._errors.close()

    def printed(self) -> str:
        """What the sandbox wrote to its standard error so far: empty unless something is wrong with the sandbox."""
        if self._errors is None or self._errors.closed:
            return ""
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode("utf-8", "replace")

    def __enter__(self) -> SandboxProcess:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _first_line(self) -> bytes:
        process: Any = self._process
        deadline = time.monotonic() + self._timeout_s
        collected = b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while b"\n" not in collected:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise SandboxError(f"no sandbox within {self._timeout_s} s: {self.printed()}")
                chunk = os.read(process.stdout.fileno(), 65536)
                if not chunk:
                    process.wait(5)
                    raise SandboxError(f"the sandbox ended with {process.returncode}: {self.printed()}")
                collected += chunk
        return collected.split(b"\n", 1)[0]
