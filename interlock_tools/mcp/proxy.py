"""The proxy itself: two streams of lines, and the calls that are taken out of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
import threading
from collections.abc import Coroutine, Sequence
from io import RawIOBase
from typing import Any, BinaryIO

from ..errors import InterlockError, MissingRequestKey, describe
from ..gate import Gate
from . import wire
from .config import Config, Rule
from .gating import ENVELOPE, Gating
from .server import Server

log = logging.getLogger("interlock_tools")

LAST_ANSWERS_S = 5.0
"""How long calls that are under way may take to end once the client has gone."""


class ProxyFailed(InterlockError):
    """The proxy cannot go on. What was sent is in the journal, and the next proxy takes it up."""


class Proxy:
    """Stands between a client on standard input and output and a server that it starts.

    What it passes on it passes on as it came, byte for byte, unless others could
    read it as more than one line. It takes out calls of gated tools and answers
    them by itself; takes part in no handshake; and edits one thing, the list of
    tools (see ``Gating.shown``).
    """

    def __init__(self, gate: Gate, config: Config, stdin: RawIOBase, stdout: BinaryIO) -> None:
        self.gate = gate
        self.gating = Gating(gate, config)
        self.rules = config.rules
        self._stdin, self._stdout = stdin, stdout
        self._writing = asyncio.Lock()
        self._lists: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._cancelled: set[str] = set()
        self._ready: asyncio.Task[None] | None = None
        self._others: set[asyncio.Task[None]] = set()

    async def run(self, command: Sequence[str]) -> int:
        """Serve until the client or the server has gone; return the server's exit code. Raises ``OSError``."""
        server = await Server.start(command, self._from_server)
        self.gating.server = server
        reading, listening = self._task(self._read()), self._task(server.listen())
        leaving = self._task(wire.hung_up(self._stdin))
        await asyncio.wait({reading, listening, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if leaving.done():  # a server that takes nothing more keeps the end of the client's input from being read
            await asyncio.wait({reading, listening}, timeout=LAST_ANSWERS_S, return_when=asyncio.FIRST_COMPLETED)
        if calls := list(self._running.values()):  # the client has gone, and these go on
            await asyncio.wait(calls, timeout=LAST_ANSWERS_S)
        code = await server.end()
        for task in (reading, listening, leaving):
            task.cancel()
        for ended in await asyncio.gather(reading, listening, leaving, return_exceptions=True):
            if isinstance(ended, Exception):
                raise ended if isinstance(ended, InterlockError) else ProxyFailed(describe(ended))
        return code

    def _task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._others.add(task)
        task.add_done_callback(self._others.discard)
        return task

    # -- from the client -----------------------------------------------------------------------------

    async def _read(self) -> None:
        """Take lines from standard input, read by a thread that nobody waits for at the end."""
        loop = asyncio.get_running_loop()
        lines: asyncio.Queue[bytes] = asyncio.Queue(100)

        def read() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                for line in wire.lines(self._stdin):
                    asyncio.run_coroutine_threadsafe(lines.put(line), loop).result()
                asyncio.run_coroutine_threadsafe(lines.put(b""), loop).result()

        threading.Thread(target=read, name="interlock-stdin", daemon=True).start()
        while line := await lines.get():
            await self._from_client(line)

    async def _from_client(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            message = wire.parse(line)
        except ValueError as error:
            await self._say(wire.error(None, wire.PARSE_ERROR, f"not passed on: {error}"))
            return
        if isinstance(message, list):  # one revision of the protocol had batches
            for one in message:
                await self._one(one, wire.line_of(one))
        else:
            await self._one(message, line if wire.one_line(line) else wire.line_of(message))

    async def _one(self, message: Any, line: bytes) -> None:
        assert self.gating.server is not None
        method = message.get("method") if isinstance(message, dict) else None
        params = message.get("params") if isinstance(message, dict) else None
        if isinstance(params, dict):
            self._note_envelope(params.get("_meta"))
        if method == "tools/call" and isinstance(params, dict) and isinstance(params.get("name"), str):
            rule = self.rules.get(params["name"])
            if rule is not None:
                self._take(rule, message, params)
                return
        if method == "notifications/cancelled" and isinstance(params, dict):
            key = wire.id_of({"id": params.get("requestId")})
            if key in self._running:  # the call goes on, and its end is recorded
                self._cancelled.add(key)
                return
        if method == "tools/list" and isinstance(message, dict):
            self._lists.add(wire.id_of(message))
        with contextlib.suppress(InterlockError):
            await self.gating.server.write(line)
        if method == "notifications/initialized":
            self._prepare()

    def _note_envelope(self, meta: Any) -> None:
        """Remember what every request carries in revisions without a handshake, for requests of the proxy's own."""
        found = {name: value for name, value in meta.items() if name.startswith(ENVELOPE)} if _is(meta) else {}
        if f"{ENVELOPE}protocolVersion" in found:
            self.gating.envelope = found
            self._prepare()

    def _take(self, rule: Rule, message: dict[str, Any], params: dict[str, Any]) -> None:
        """Carry a call of a gated tool out, beside everything else. One without an id is nobody's, and is not done."""
        if message.get("id") is None:
            log.warning("%s: a call without an id is not done", rule.tool)
            return
        key = wire.id_of(message)
        task = self._task(self._call(rule, message["id"], key, params))
        self._running[key] = task

    async def _call(self, rule: Rule, request_id: Any, key: str, params: dict[str, Any]) -> None:
        try:
            await self._prepare()
            said = wire.answer(request_id, await self.gating.call(rule, params))
        except MissingRequestKey as error:
            said = wire.error(request_id, wire.INVALID_PARAMS, str(error))
        except Exception as error:
            said = wire.error(request_id, wire.INTERNAL_ERROR, f"{rule.tool}: {describe(error)}. Nothing was sent.")
        finally:
            self._running.pop(key, None)
        if key in self._cancelled:
            self._cancelled.discard(key)
        else:
            await self._say(said)

    # -- start ---------------------------------------------------------------------------------------

    def _prepare(self) -> asyncio.Task[None]:
        """Begin to recover, once; calls of gated tools wait for its end."""
        if self._ready is None:
            self._ready = self._task(self._recover())
        return self._ready

    async def _recover(self) -> None:
        """As soon as the server can be asked: bring to an end what an earlier proxy left open."""
        try:
            await self.gating.learn()
        except InterlockError as error:
            log.warning("the server's tools could not be listed: %s", describe(error))
        try:
            report = await self.gate.arecover()
            for outcome in report:
                log.warning("recovered: %s: %s", outcome, outcome.message)
        except Exception as error:
            log.error("recovery failed: %s", describe(error))

    # -- to the client -------------------------------------------------------------------------------

    async def _from_server(self, line: bytes) -> None:
        if self._lists or b"list_changed" in line:
            line = self._edited(line)
        await self._write(line)

    def _edited(self, line: bytes) -> bytes:
        """An answer to the client's ``tools/list`` as it is shown to it; any other line as it is."""
        try:
            message = wire.parse(line)
        except ValueError:
            return line
        if _is(message) and message.get("method") == "notifications/tools/list_changed":
            self.gating.schemas = None
        if not wire.is_answer(message) or wire.id_of(message) not in self._lists:
            return line
        self._lists.discard(wire.id_of(message))
        if "result" not in message:
            return line
        return wire.line_of({**message, "result": self.gating.shown(message["result"])})

    async def _say(self, message: Any) -> None:
        await self._write(wire.line_of(message))

    async def _write(self, line: bytes) -> None:
        async with self._writing:
            await asyncio.to_thread(self._put, line)

    def _put(self, line: bytes) -> None:
        self._stdout.write(line)
        self._stdout.flush()


def _is(value: Any) -> bool:
    return isinstance(value, dict)


def serve(gate: Gate, config: Config, command: Sequence[str]) -> int:
    """Run the proxy on this process's standard input and output; return the server's exit code."""

    async def main() -> int:
        return await Proxy(gate, config, stdin, sys.stdout.buffer).run(command)

    # Unbuffered: a thread that waits in a buffered read holds a lock that the end of the interpreter needs.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as stdin:
        return asyncio.run(main())
