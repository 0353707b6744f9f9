"""What a flow asks of its driver, and the two drivers.

The protocol is written once, as generators that yield commands. The drivers
carry commands out, one for plain code and one for asyncio, and know nothing of
the protocol.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
import inspect
import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, NamedTuple, TypeAlias, TypeVar

T = TypeVar("T")
log = logging.getLogger("interlock_tools")


class Call(NamedTuple):
    """Call a function of the application's. It may be async."""

    function: Callable[..., Any]
    arguments: dict[str, Any]


class Work(NamedTuple):
    """Do blocking work of our own, such as a commit."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]


class Sleep(NamedTuple):
    """Pause for a number of seconds. ``why`` is for the log; one that a rule of recovery asks for names the rule."""

    seconds: float
    why: str


Command: TypeAlias = "Call | Work | Sleep"
Flow = Generator[Command, Any, T]


def run(flow: Flow[T]) -> T:
    """Carry a flow out in this thread."""
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            command = flow.send(result) if error is None else flow.throw(error)
        except StopIteration as stop:
            value: T = stop.value
            return value
        result, error = None, None
        try:
            if type(command) is Work:
                result = command.function(*command.arguments)
            elif type(command) is Call:
                result = command.function(**command.arguments)
                if inspect.isawaitable(result):
                    result = _await(result)
            else:
                assert type(command) is Sleep
                _pausing(command)
                time.sleep(command.seconds)
        except BaseException as raised:
            error = raised


async def arun(flow: Flow[T]) -> T:
    """Carry a flow out under asyncio. Blocking functions run in threads, so the loop goes on."""
    import asyncio  # here and below: plain code starts faster without it

    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            command = flow.send(result) if error is None else flow.throw(error)
        except StopIteration as stop:
            value: T = stop.value
            return value
        result, error = None, None
        try:
            if type(command) is Work:
                result = await _in_thread(functools.partial(command.function, *command.arguments))
            elif type(command) is Call:
                if inspect.iscoroutinefunction(command.function):
                    result = await command.function(**command.arguments)
                else:
                    result = await _in_thread(functools.partial(command.function, **command.arguments))
                    if inspect.isawaitable(result):
                        result = await result
            else:
                assert type(command) is Sleep
                _pausing(command)
                await asyncio.sleep(command.seconds)
        except BaseException as raised:
            error = raised


def _pausing(pause: Sleep) -> None:
    """Log a pause; ``pause_s`` and ``why`` are attributes of the log record, too."""
    extra = {"pause_s": pause.seconds, "why": pause.why}
    log.debug("pausing for %.3f s: %s", pause.seconds, pause.why, extra=extra)


async def _in_thread(function: Callable[[], Any]) -> Any:
    """Run a blocking function in a thread and wait for its end, come what may.

    A thread cannot be cancelled: the request it sends lands all the same. So a
    cancellation that arrives meanwhile is not passed on before its result is in.
    """
    import asyncio

    context = contextvars.copy_context()
    future = asyncio.get_running_loop().run_in_executor(None, context.run, function)
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    return future.result()


def _await(awaitable: Any) -> Any:
    """Wait for an async function of the application's from plain code, also inside a running loop."""
    import asyncio

    async def wait() -> Any:
        return await awaitable

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(wait())
    box: list[Any] = []

    def target() -> None:
        try:
            box.extend((True, asyncio.run(wait())))
        except BaseException as raised:
            box.extend((False, raised))

    thread = threading.Thread(target=target, name="interlock-await")
    thread.start()
    thread.join()
    if box[0]:
        return box[1]
    raise box[1]
