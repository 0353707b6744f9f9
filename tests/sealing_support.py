"""What the tests of signing share: a gate that signs, witnesses in this process, and one way to verify."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
from gate_support import GateCase

from interlock_tools import Gate, Outcome
from interlock_tools.receipts import Policy, Report, Word, parse_policy, verify
from interlock_tools.receipts.keys import COSIGNATURE, KeySigner, verifier_key
from interlock_tools.sealing import Keys
from interlock_tools.witness.book import WitnessBook


class WitnessServer:
    """A witness on loopback, with a switch to make it unreachable."""

    def __init__(self, folder: Path, name: str) -> None:
        import uvicorn

        from interlock_tools.witness.server import application

        self.signer = KeySigner(f"witness.example/{name}", name.encode() * 32)
        path = folder / f"witness-{name}.db"
        WitnessBook.create(path, self.signer)
        self.book = WitnessBook(path, self.signer, lambda: int(time.time()))
        self.up = True
        self.requests = 0
        served = application(self.book)

        async def switch(scope: Any, receive: Any, send: Any) -> None:
            self.requests += 1
            if not self.up:
                await send({"type": "http.response.start", "status": 503, "headers": []})
                await send({"type": "http.response.body", "body": b"down\n"})
                return
            await served(scope, receive, send)

        config = uvicorn.Config(switch, host="127.0.0.1", port=0, log_level="error", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 20
        while not self._server.started:
            if time.monotonic() > deadline:
                raise TimeoutError("the witness does not start")
            time.sleep(0.01)
        port = self._server.servers[0].sockets[0].getsockname()[1]
        self.line = f"witness {name} {verifier_key(self.signer, COSIGNATURE)} http://127.0.0.1:{port}\n"

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self.book.close()


class SealingCase(GateCase):
    """A gate with keys in a directory of its own. A test says when there is a checkpoint."""

    flush_s = 3600.0

    def setUp(self) -> None:
        super().setUp()
        self.keys = self.folder / "keys"
        self.unsigned: Gate | None = self.gate

    def sign(self, **options: Any) -> Gate:
        """Another gate over the same journal, with signing on."""
        from interlock_tools.sealing import Signing

        keys = Keys.in_directory(self.keys, "refunds.example")
        options.setdefault("signing", Signing(keys.writer, keys.logs[0], flush_s=self.flush_s, flush_records=1_000_000))
        if self.unsigned is not None:
            self.unsigned.close()
            self.unsigned = None
        self.gate = self.open(**options)
        return self.gate

    def keys_there(self) -> None:
        """Make the keys, where a witness has to know them before a gate is opened."""
        Keys.in_directory(self.keys, "refunds.example")

    def witness(self, name: str = "a") -> WitnessServer:
        server = WitnessServer(self.folder, name)
        self.addCleanup(server.close)
        server.book.add_log(str(verifier_key(Keys.in_directory(self.keys, "refunds.example").logs[0])))
        return server

    def policy(self, *witnesses: WitnessServer, quorum: str | None = None) -> Policy:
        """What an auditor trusts: the keys of this journal, and all of these witnesses."""
        text = Keys.in_directory(self.keys).policy() + "".join(witness.line for witness in witnesses)
        if witnesses and quorum is None:
            names = " ".join(line.line.split()[1] for line in witnesses)
            text += f"group everybody all {names}\n"
            quorum = "everybody"
        return parse_policy(f"{text}quorum {quorum or 'none'}\n")

    def verified(self, outcome: Outcome | str, policy: Policy | None = None) -> Report:
        effect_id = outcome if isinstance(outcome, str) else outcome.effect_id
        return verify(self.gate.receipt(effect_id), policy if policy is not None else self.policy())

    def assertWord(self, word: Word, outcome: Outcome | str, policy: Policy | None = None) -> Report:
        report = self.verified(outcome, policy)
        self.assertEqual((report.word, report.failed), (word, ()), str(report))
        return report


class LossCase(SealingCase):
    """A journal that is restored from an old copy, and a witness that has seen more."""

    def begin(self, **options: Any) -> Any:
        self.keys_there()
        witness = self.witness()
        self.open_witnessed(witness, **options)
        return witness

    def open_witnessed(self, server: Any, **options: Any) -> Gate:
        return self.sign(witnesses=self.policy(server), **options)

    def restore(self, copy: Path) -> None:
        """Put an old copy of the journal in its place, as a person with a backup does."""
        for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
            (self.folder / name).unlink(missing_ok=True)
        shutil.copyfile(copy, self.path)

    def lose(self, witness: Any) -> list[Outcome]:
        """Do two things, keep a copy of the journal after the first, and restore it."""
        refund = self.looked_up()
        kept = refund("kept")
        self.gate.close()
        copy = self.folder / "backup"
        shutil.copyfile(self.path, copy)
        self.open_witnessed(witness)
        lost = self.looked_up()("lost")
        self.gate.close()
        self.restore(copy)
        return [kept, lost]


def until(condition: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Wait for something that another thread does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


HOUR = timedelta(hours=1)
