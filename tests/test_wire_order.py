"""Order on the wire, seen by the kernel: what is sent has been made durable before its first byte leaves (I1).

A system-call trace of a whole process shows every write to the journal, every sync, and every byte that goes to the
service's socket. Without ``strace`` (or the right to use it) these tests are skipped, by name.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
import threading
import unittest
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WORKER = Path(__file__).with_name("wire_worker.py")
CALLS = "fsync,fdatasync,write,writev,pwrite64,pwritev,sendto,sendmsg"


def why_not_strace() -> str:
    """Why there can be no trace here; empty if there can."""
    strace = shutil.which("strace")
    if strace is None:
        return "strace is not installed"
    tried = subprocess.run([strace, "-f", "-o", "/dev/null", "true"], capture_output=True, text=True)
    return "" if tried.returncode == 0 else f"strace may not trace here: {tried.stderr.strip()[:200]}"


class Service(BaseHTTPRequestHandler):
    """Answers 200; the first request for ``fails-first`` gets a 500."""

    seen: set[str] = set()  # noqa: RUF012 (one server at a time)

    def do_POST(self) -> None:
        failing = self.path.startswith("/fails-first/") and self.path not in self.seen
        self.seen.add(self.path)
        self.send_response(500 if failing else 200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        """Nothing."""


@dataclass
class Trace:
    """What a process did, in order: ``("write", data)``, ``("sync", "")``, ``("post", path)``, ``("mark", words)``.

    A sync stands where it *ended*, a write and a post where they *began*.
    """

    events: list[tuple[str, str]] = field(default_factory=list)

    def posts(self) -> list[int]:
        return [place for place, (what, _) in enumerate(self.events) if what == "post"]

    def sent_before_durable(self) -> list[str]:
        """Posts before whose first byte no sync ended that covers the write of their dispatch."""
        wrong = []
        earlier: dict[str, list[int]] = {}
        for place in self.posts():
            path = self.events[place][1]
            key = path.rsplit("/", 1)[1]
            before = earlier.setdefault(key, [])
            # The first dispatch stands in one commit with the entry that names the effect.
            written = f'\\"send\\":{len(before) + 1}' if before else key
            own = [
                at
                for at in range(before[-1] + 1 if before else 0, place)
                if self.events[at][0] == "write" and written in self.events[at][1]
            ]
            if not own or all(what != "sync" for what, _ in self.events[own[0] : place]):
                wrong.append(path)
            before.append(place)
        return wrong

    def syncs_of_marked_effects(self) -> list[int]:
        """How many syncs ended between each ``begin`` and its ``end``."""
        counts: list[int] = []
        counting = False
        for what, words in self.events:
            if what == "mark" and words in ("begin", "end"):
                counting = words == "begin"
                if counting:
                    counts.append(0)
            elif what == "sync" and counting:
                counts[-1] += 1
        return counts


_LINE = re.compile(r"(\d+) +(?:<\.\.\. )?(\w+)(.*)", re.DOTALL)


def read_trace(path: Path, journal: Path, port: int) -> Trace:
    """Read strace's output. A call that was interrupted by another thread's stands in two lines."""
    trace = Trace()
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        _, call, rest = found.groups()
        resumed = line.split(maxsplit=1)[1].startswith("<...")
        if call in ("fsync", "fdatasync"):
            if rest.endswith("= 0"):
                trace.events.append(("sync", ""))
        elif resumed:
            continue
        elif f"<{journal}-wal>" in rest or f"<{journal}>" in rest:
            trace.events.append(("write", rest))
        elif f"->127.0.0.1:{port}]>" in rest and '"POST ' in rest:
            trace.events.append(("post", rest.split('"POST ', 1)[1].split(" ", 1)[0]))
        elif '"MARK ' in rest:
            trace.events.append(("mark", rest.split('"MARK ', 1)[1].split("\\n", 1)[0]))
    return trace


class WireOrder(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        why = why_not_strace()
        if why:
            print(f"skipped: order on the wire is not checked here ({why})")
            raise unittest.SkipTest(why)

    def trace(self, how: str) -> Trace:
        Service.seen = set()
        server = ThreadingHTTPServer(("127.0.0.1", 0), Service)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        directory = Path(tempfile.mkdtemp(prefix="interlock-wire-"))
        self.addCleanup(shutil.rmtree, directory)
        journal, output = directory / "journal.db", directory / "trace"
        command = ["strace", "-f", "-yy", "-s", "9000", "-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(output)]
        url = f"http://127.0.0.1:{server.server_port}"
        worker = [sys.executable, str(WORKER), how, url, str(journal)]
        ended = subprocess.run([*command, *worker], capture_output=True, text=True, timeout=120)
        self.assertEqual(ended.returncode, 0, ended.stderr)
        trace = read_trace(output, journal, server.server_port)
        self.assertIn(("mark", "done"), trace.events, ended.stderr)
        return trace

    def test_i1_every_send_is_durable_before_its_first_byte(self) -> None:
        trace = self.trace("honest")
        paths = [trace.events[place][1].split("/")[1] for place in trace.posts()]
        threads = [path for path in paths if path.startswith("thread-")]
        self.assertEqual(paths[:5], ["warm", "one", "two", "fails-first", "fails-first"])
        self.assertEqual(len(threads), 8)
        self.assertEqual(trace.sent_before_durable(), [])

    def test_an_effect_that_goes_well_costs_two_syncs(self) -> None:
        self.assertEqual(self.trace("honest").syncs_of_marked_effects(), [2, 2])

    def test_a_build_that_sends_first_is_caught(self) -> None:
        wrong = self.trace("send_first").sent_before_durable()
        self.assertEqual([path.split("/")[1] for path in wrong], ["warm", "one", "two", "fails-first", "fails-first"])

    def test_a_build_that_does_not_sync_is_caught(self) -> None:
        trace = self.trace("no_sync")
        wrong = [path.split("/")[1] for path in trace.sent_before_durable()]
        self.assertEqual(wrong[-4:], ["one", "two", "fails-first", "fails-first"])
        self.assertEqual(trace.syncs_of_marked_effects(), [0, 0])


if __name__ == "__main__":
    unittest.main()
