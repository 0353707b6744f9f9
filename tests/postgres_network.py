"""Hosts as network namespaces, each on a wire of its own to this one, which a test can cut. Needs root and ``ip``."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess

TIMEOUT_S = 30

NOBODY = "02:00:00:00:00:01"
"""The address of no network card."""


class NoNamespaces(Exception):
    """There can be no network namespaces here; the sentence says why."""


class Wire:
    """A network namespace, and a pair of virtual interfaces between it and this host.

    Its addresses are of a range for measurements that nobody routes.

    Attributes:
        address: this host's end.
        prefix: what runs a command in the namespace.

    Raises:
        NoNamespaces: this process may not make one, or there is no ``ip``.
    """

    def __init__(self) -> None:
        if os.geteuid() != 0:
            raise NoNamespaces("no network namespaces: run as root")
        if shutil.which("ip") is None:
            raise NoNamespaces("no network namespaces: apt-get install iproute2")
        token = secrets.token_bytes(3)
        self._namespace = f"interlock-{token.hex()}"
        self._outer, inner = f"il{token.hex()}o", f"il{token.hex()}i"
        net, last = f"198.{18 + token[1] % 2}.{token[0]}", token[2] & 0xFC
        self.address, other = f"{net}.{last + 1}", f"{net}.{last + 2}"
        self.prefix = ["ip", "netns", "exec", self._namespace]
        self._sides: list[tuple[list[str], str, str]] = [
            ([], other, self._outer),
            (["-n", self._namespace], self.address, inner),
        ]
        try:
            self._ip("netns", "add", self._namespace)
            self._ip("link", "add", self._outer, "type", "veth", "peer", "name", inner, "netns", self._namespace)
            self._ip("addr", "add", f"{self.address}/30", "dev", self._outer)
            self._ip("link", "set", self._outer, "up")
            self._ip("-n", self._namespace, "addr", "add", f"{other}/30", "dev", inner)
            self._ip("-n", self._namespace, "link", "set", inner, "up")
        except BaseException:
            self.remove()
            raise

    def _ip(self, *arguments: str) -> None:
        done = subprocess.run(
            ["ip", *arguments], capture_output=True, text=True, timeout=TIMEOUT_S, stdin=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            raise NoNamespaces(f"no network namespaces: ip {arguments[0]}: {done.stderr.strip()}")

    def cut(self) -> None:
        """Let nothing pass any more. Neither side is told: each sends to a card that is not there."""
        for side, far, card in self._sides:
            self._ip(*side, "neigh", "replace", far, "lladdr", NOBODY, "dev", card, "nud", "permanent")

    def mend(self) -> None:
        """Let everything pass again."""
        for side, far, card in self._sides:
            self._ip(*side, "neigh", "del", far, "dev", card)

    def remove(self) -> None:
        """Take the wire and the namespace away."""
        for command in (["link", "del", self._outer], ["netns", "del", self._namespace]):
            subprocess.run(["ip", *command], capture_output=True, timeout=TIMEOUT_S, check=False)
