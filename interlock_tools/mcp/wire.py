"""JSON-RPC messages, one a line, as MCP has them on standard input and output."""

from __future__ import annotations

import asyncio
import json
import select
from collections.abc import Iterator
from io import RawIOBase
from typing import Any

MAX_LINE = 64 * 1024 * 1024
"""Longest line, in bytes."""

PARSE_ERROR, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32602, -32603


def lines(stream: RawIOBase) -> Iterator[bytes]:
    """The lines of an unbuffered stream, each with its end; one that is longer than may be comes in pieces."""
    held = bytearray()
    while piece := stream.read(1 << 16):
        start = len(held)
        held += piece
        while (end := held.find(b"\n", start, MAX_LINE) + 1) or len(held) >= MAX_LINE:
            line = bytes(held[: end or MAX_LINE])
            del held[: len(line)]
            start = 0
            yield line
    if held:
        yield bytes(held)


async def hung_up(stream: RawIOBase, every_s: float = 0.5) -> None:
    """Return once whoever writes to a pipe has gone, whether or not all of it was read. Never, for anything else."""
    poll = select.poll()
    poll.register(stream.fileno(), 0)  # a hang-up is always told
    while not any(event & select.POLLHUP for _, event in poll.poll(0)):
        await asyncio.sleep(every_s)


def parse(line: bytes) -> Any:
    """Return the message of a line. Raises ``ValueError``, also where a name stands twice.

    With a name twice, the server may read another message than the proxy did.
    """
    try:
        return json.loads(line.decode("utf-8"), object_pairs_hook=_once)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


def line_of(message: Any) -> bytes:
    """Return a message as a line, in ASCII, so that every reader takes it for one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def one_line(line: bytes) -> bool:
    """Whether every reader takes this for one line. Some end lines at a carriage return or at Unicode's separators,
    and would read another message out of the middle of it."""
    return len(line.decode("utf-8").splitlines()) == 1


def answer(request_id: Any, result: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error(request_id: Any, code: int, message: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}}


def is_answer(message: Any) -> bool:
    return isinstance(message, dict) and "id" in message and "method" not in message


def id_of(message: dict[str, Any]) -> str:
    """A message's id as a key: 1 and "1" are two."""
    return json.dumps(message.get("id"))
