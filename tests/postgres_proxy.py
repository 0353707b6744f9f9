"""A TCP proxy on loopback that cuts connections at chosen bytes, for tests of the PostgreSQL journal."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading

TO_SERVER, TO_CLIENT = "to server", "to client"


class Proxy:
    """Passes connections on to a server on loopback. Use as a context manager.

    Args:
        port: of the server.
        as_pooler: tell clients another backend's process id than the server's, as connection poolers do.

    Attributes:
        port: where it listens.
        passed: how many bytes have gone in each direction since ``arm`` or ``count``.
    """

    def __init__(self, port: int, as_pooler: bool = False) -> None:
        self._server_port = port
        self._as_pooler = as_pooler
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.passed = {TO_SERVER: 0, TO_CLIENT: 0}
        self._cut: tuple[str, int] | None = None
        self._then_down = False
        self._down = False
        self._mutex = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.cuts = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.down()
        self._listener.close()

    def count(self) -> None:
        """Count bytes from here on."""
        with self._mutex:
            self.passed = {TO_SERVER: 0, TO_CLIENT: 0}

    def arm(self, direction: str, at_byte: int, then_down: bool = False) -> None:
        """Let so many more bytes pass in one direction, then cut that connection; later ones pass, unless told."""
        with self._mutex:
            self.passed = {TO_SERVER: 0, TO_CLIENT: 0}
            self._cut, self._then_down = (direction, at_byte), then_down

    def down(self) -> None:
        """Cut all connections and refuse new ones."""
        self._down = True
        for end in list(self._sockets):
            self._close(end)

    def up(self) -> None:
        """Accept connections again."""
        self._down = False

    def _close(self, end: socket.socket) -> None:
        self._sockets.discard(end)
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            end.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._down:
                client.close()
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self._server_port))
            except OSError:
                client.close()
                continue
            self._sockets |= {client, server}
            for source, target, direction in ((client, server, TO_SERVER), (server, client, TO_CLIENT)):
                threading.Thread(target=self._pass, args=(source, target, direction), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, direction: str) -> None:
        while True:
            try:
                content = source.recv(65536)
                if not content:
                    break
                if self._as_pooler and direction == TO_CLIENT:
                    content = _other_backend(content)
                cut = self._allowed(direction, len(content))
                target.sendall(content if cut is None else content[:cut])
                if cut is not None:
                    break
            except OSError:
                break
        self._close(source)
        self._close(target)

    def _allowed(self, direction: str, size: int) -> int | None:
        """How many of the bytes may pass before the cut; None if there is no cut among them."""
        with self._mutex:
            before = self.passed[direction]
            self.passed[direction] = before + size
            if self._cut is None or self._cut[0] != direction or before + size < self._cut[1]:
                return None
            allowed = self._cut[1] - before
            self._cut = None
            self._down = self._then_down
            self.cuts += 1
            return allowed


def _other_backend(content: bytes) -> bytes:
    """Change the process id in the message that tells a client how to cancel."""
    at = content.find(b"K\x00\x00\x00\x0c")
    if at < 0:
        return content
    (pid,) = struct.unpack_from("!i", content, at + 5)
    return content[: at + 5] + struct.pack("!i", pid ^ 0x40000000) + content[at + 9 :]
