"""The MCP server as a child process: lines to it and from it, and requests of the proxy's own among them."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..errors import InterlockError
from . import wire

END_S = 2.0
"""How long the server has to end by itself once its input has ended, and then again before it is killed."""


SIGNALLED = 128
"""Added to the number of the signal that ended it, this is its exit code, as in a shell."""


class ServerGone(InterlockError):
    """The server ended before it answered. What it did is not known."""


class ServerError(InterlockError):
    """The server answered with a JSON-RPC error."""


class Server:
    """The child process.

    Args:
        process: the child, with pipes.
        pass_on: takes every line that is not an answer to one of the proxy's own requests.
    """

    def __init__(self, process: asyncio.subprocess.Process, pass_on: Callable[[bytes], Awaitable[None]]) -> None:
        self.process = process
        self._pass_on = pass_on
        self._prefix = f"interlock-{secrets.token_hex(6)}-"
        self._count = 0
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self.gone = False
        """Whether it has ended."""

    @classmethod
    async def start(cls, command: Sequence[str], pass_on: Callable[[bytes], Awaitable[None]]) -> Server:
        """Start it. Its standard error stays the proxy's. Raises ``OSError``."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=wire.MAX_LINE)
        return cls(process, pass_on)

    async def write(self, line: bytes) -> None:
        """Pass a line to it. Raises ``ServerGone``."""
        stdin = self.process.stdin
        assert stdin is not None
        if self.gone or stdin.is_closing():
            raise ServerGone("the MCP server has ended")
        stdin.write(line)
        with contextlib.suppress(ConnectionError):
            await stdin.drain()

    async def request(
        self, method: str, params: dict[str, Any], before_bytes: Callable[[], Any] | None = None
    ) -> dict[str, Any]:
        """Make a request of the proxy's own and return its result.

        Raises:
            ServerError: it answered with an error.
            ServerGone: it ended before it answered.
        """
        self._count += 1
        request_id = f"{self._prefix}{self._count}"
        message = {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}
        line = wire.line_of(message)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[request_id] = future
        try:
            if before_bytes is not None:
                before_bytes()
            await self.write(line)
            found = await future
        finally:
            self._waiting.pop(request_id, None)
        if isinstance(found.get("result"), dict):
            return dict(found["result"])
        said = found.get("error")
        if "error" not in found:
            raise ServerError(f"{method} was answered with something that is no result")
        raise ServerError(str(said.get("message") if isinstance(said, dict) else said)[:300])

    async def listen(self) -> None:
        """Read what it says until it ends."""
        stdout = self.process.stdout
        assert stdout is not None
        try:
            while line := await stdout.readline():
                if not self._ours(line):
                    await self._pass_on(line)
        except ValueError:
            raise ServerGone(f"the MCP server said a line of more than {wire.MAX_LINE} bytes, and was ended") from None
        finally:
            self.gone = True
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(ServerGone("the MCP server ended before it answered"))

    def _ours(self, line: bytes) -> bool:
        """Whether a line answers a request of the proxy's own; if so, whoever waits for it has it."""
        if self._prefix.encode() not in line:
            return False
        try:
            message = wire.parse(line)
        except ValueError:
            return False
        if not wire.is_answer(message) or not str(message["id"]).startswith(self._prefix):
            return False
        future = self._waiting.get(message["id"])
        if future is not None and not future.done():
            future.set_result(message)
        return True

    async def end(self) -> int:
        """Have it end; return its exit code."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        for stop in (None, self.process.terminate, self.process.kill):
            if stop is not None:
                with contextlib.suppress(ProcessLookupError):
                    stop()
            with contextlib.suppress(asyncio.TimeoutError):
                code = await asyncio.wait_for(self.process.wait(), END_S)
                return code if code >= 0 else SIGNALLED - code
        return SIGNALLED
