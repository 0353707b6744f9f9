"""A witness as an HTTP server: ``POST /add-checkpoint``, ``GET /<hash of origin>/checkpoint``, ``GET /healthz``.

Put it behind a TLS proxy when others are to reach it. It keeps no request log.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.responses import Response as HttpResponse
from starlette.routing import Route

from interlock_tools.keyfiles import load_key, load_or_create_key
from interlock_tools.receipts.keys import COSIGNATURE, verifier_key

from .book import Response, WitnessBook
from .errors import WitnessUnusable
from .wire import MAX_BODY_BYTES


def initialise(database: str | Path, key_file: str | Path, name: str) -> str:
    """Make a new witness: its key and its database. Returns its verifier key, for policies.

    Raises:
        WitnessUnusable: one of the two files exists without the other, or both do.
        KeyUnusable: the key file cannot be written.
    """
    if Path(key_file).exists() or Path(database).exists():
        raise WitnessUnusable(
            f"{key_file} or {database} exists. A witness's key and database belong together for ever: a key whose "
            "database is lost is retired, not used again"
        )
    signer = load_or_create_key(key_file, name)
    WitnessBook.create(database, signer)
    return str(verifier_key(signer, COSIGNATURE))


def open_witness(
    database: str | Path, key_file: str | Path, now_s: Callable[[], int] = lambda: int(time.time())
) -> WitnessBook:
    """Open a witness that ``initialise`` made. Raises ``WitnessUnusable`` or ``KeyUnusable``."""
    return WitnessBook(database, load_key(key_file), now_s)


def application(book: WitnessBook) -> Starlette:
    """Return the witness as an ASGI application."""

    async def add_checkpoint(request: Request) -> HttpResponse:
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                return PlainTextResponse("the request is too large\n", 413)
        return _http(await run_in_threadpool(book.add_checkpoint, bytes(body)))

    async def checkpoint(request: Request) -> HttpResponse:
        return _http(await run_in_threadpool(book.checkpoint, request.path_params["origin"]))

    async def health(request: Request) -> HttpResponse:
        return PlainTextResponse("ok\n")

    return Starlette(
        routes=[
            Route("/add-checkpoint", add_checkpoint, methods=["POST"]),
            Route("/healthz", health, methods=["GET"]),
            Route("/{origin}/checkpoint", checkpoint, methods=["GET"]),
        ]
    )


def serve(
    book: WitnessBook,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], None] = print,
    logs: Iterable[str] = (),
) -> None:
    """Run the witness until it is told to stop (SIGINT or SIGTERM).

    Args:
        book: what it remembers.
        host: the address to listen on.
        port: 0 for any free one.
        ready: called with the URL as soon as connections are accepted.
        logs: verifier keys of logs to know, besides those that are known already.
    """
    for key in logs:
        book.add_log(key)
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
        shown = f"[{host}]" if ":" in host else host
        ready(f"http://{shown}:{listener.getsockname()[1]}")
        config = uvicorn.Config(application(book), log_level="warning", access_log=False, lifespan="off")
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            book.close()


def _http(response: Response) -> HttpResponse:
    return HttpResponse(response.body, response.status, media_type=response.content_type)
