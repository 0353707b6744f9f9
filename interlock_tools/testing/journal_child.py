"""A process of its own that uses a journal as it is told, for tests that kill, stop and fork it.

``Child(url)`` starts one. It answers one line of JSON to each line that it is
sent: a command's name and its arguments.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ..core.entries import Kind
from ..core.states import fold
from ..errors import JournalError
from ..journal.open import open_journal
from ..journal.protocol import Conflict, OverBudget
from .journal_story import TO_DISPATCHED, Story

ANSWER_TIMEOUT_S = 60.0
ROOTS = [str(Path(__file__).resolve().parents[2])]


class Child:
    """A child process that has the journal at ``url`` open. Use as a context manager; it is killed at the end.

    Args:
        url: of the journal.
        prefix: a command to run it under, for example ``strace``.
        **options: for ``subprocess.Popen``.
    """

    def __init__(self, url: str, prefix: Sequence[str] = (), **options: Any) -> None:
        environment = dict(os.environ)
        environment["PYTHONPATH"] = os.pathsep.join([*ROOTS, environment.get("PYTHONPATH", "")])
        self.process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "interlock_tools.testing.journal_child", url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            **options,
        )
        self.pid = self.process.pid

    def __enter__(self) -> Child:
        return self

    def __exit__(self, *exc_info: object) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.wait(ANSWER_TIMEOUT_S)
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def ask(self, command: str, *arguments: Any) -> Any:
        """Let the child do something and return its answer."""
        self.tell(command, *arguments)
        return self.answer()

    def tell(self, command: str, *arguments: Any) -> None:
        """Let the child do something, without waiting for the answer."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([command, *arguments]) + "\n")
        self.process.stdin.flush()

    def answer(self) -> Any:
        """Wait for the next answer. Raises ``EOFError`` if the child has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line.endswith("\n"):
            raise EOFError(f"the child ended: {self.process.wait(ANSWER_TIMEOUT_S)}")
        return json.loads(line)

    def kill(self) -> None:
        """End it by SIGKILL and wait until it is dead."""
        self.process.kill()
        status = self.process.wait(ANSWER_TIMEOUT_S)
        assert status == -signal.SIGKILL, status

    def stop(self) -> None:
        """Stop it by SIGSTOP and wait until it stands still."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.pid, os.WUNTRACED)

    def go_on(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)


class _Commands:
    """What a child can be told to do."""

    def __init__(self, url: str) -> None:
        self.journal = open_journal(url)
        self.stories: dict[str, Story] = {}
        self.spawned: list[subprocess.Popen[bytes]] = []

    def dispatch(self, key: str, *budgets: dict[str, Any]) -> str:
        """Record a new effect up to its send. Returns the session."""
        story = self.stories[key] = Story(self.journal, key)
        story.dispatch(budgets=list(budgets))
        assert story.slot is not None
        return story.slot.session

    def slot(self, key: str, method: str) -> Any:
        """Call a method of a send's slot."""
        return getattr(self.stories[key].slot, method)()

    def drop(self, key: str) -> None:
        """Forget a send without a word."""
        del self.stories[key]

    def finish(self, key: str) -> None:
        """Record that the effect happened."""
        self.stories[key].append(Kind.COMMITTED)

    def try_each(self, keys: list[str], budgets: list[dict[str, Any]]) -> dict[str, list[str]]:
        """Try to record a new effect for each key. Returns which were won, lost, and over budget."""
        found: dict[str, list[str]] = {"won": [], "lost": [], "over": []}
        for key in keys:
            try:
                Story(self.journal, key).append(*TO_DISPATCHED, budgets=budgets)
                found["won"].append(key)
            except Conflict:
                found["lost"].append(key)
            except OverBudget:
                found["over"].append(key)
        return found

    def loop(self, prefix: str, count: int) -> int:
        """Record effects one after the other, and say so after each."""
        for number in range(count):
            Story(self.journal, f"{prefix}-{number}").append(*TO_DISPATCHED).append(Kind.COMMITTED)
            print(json.dumps(f"{prefix}-{number}"), flush=True)
        return count

    def sight(self, effect_id: str) -> list[Any]:
        """Look at the last send of an effect."""
        seen, holder = self.journal.sight(fold(self.journal.entries(effect_id)).sends[-1])
        return [seen.sender.value, seen.mark.value, holder.pid if holder else None]

    def count(self) -> int:
        """Count the effects."""
        return len(self.journal.effects(limit=1_000_000))

    def fork(self, key: str) -> dict[str, Any]:
        """Fork. The child tries the parent's send, records an effect of its own, and stays until it is killed."""
        read_fd, write_fd = os.pipe()
        pid = os.fork()
        if pid == 0:
            found: dict[str, Any] = {"check": None}
            try:
                parents = next(iter(self.stories.values()), None)
                if parents is not None and parents.slot is not None:
                    found["check"] = parents.slot.check()
                    try:
                        parents.slot.hand_over()
                    except JournalError as error:
                        found["hand_over"] = str(error)
                own = Story(self.journal, key).dispatch()
                assert own.slot is not None
                found["session"] = own.slot.session
            finally:
                os.write(write_fd, json.dumps(found).encode())
                os.close(write_fd)
                signal.pause()
                os._exit(0)
        os.close(write_fd)
        with os.fdopen(read_fd) as answer:
            return {"pid": pid, **json.loads(answer.read())}

    def spawn(self) -> int:
        """Start a program that goes on running when this process is killed. Returns its process id."""
        self.spawned.append(subprocess.Popen(["sleep", "600"], close_fds=False, stdin=subprocess.DEVNULL))
        return self.spawned[-1].pid

    def touch(self, *paths: str) -> None:
        """Read files from beginning to end and close them, as a backup inside the host program does."""
        for path in paths:
            Path(path).read_bytes()

    def run(self, code: str) -> Any:
        """Run Python that sees ``journal`` and ``Story``. Returns what it leaves in ``answer``."""
        names: dict[str, Any] = {"journal": self.journal, "Story": Story, "stories": self.stories, "answer": None}
        exec(code, names)
        return names["answer"]

    def threads(self, prefix: str, threads: int, count: int) -> int:
        """Record effects in several threads at once. Returns how many."""
        start = threading.Barrier(threads)

        def work(number: int) -> None:
            start.wait()
            for index in range(count):
                Story(self.journal, f"{prefix}-{number}-{index}").append(*TO_DISPATCHED).append(Kind.COMMITTED)

        running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return self.count()

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    def monotonic(self) -> float:
        """Read the clock, to see that the child is there."""
        return time.monotonic()


def main() -> None:
    """Answer commands until standard input ends."""
    commands = _Commands(sys.argv[1])
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        method: Callable[..., Any] = getattr(commands, name)
        try:
            answer = method(*arguments)
        except (Conflict, OverBudget, JournalError) as error:
            answer = {"error": type(error).__name__, "words": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
